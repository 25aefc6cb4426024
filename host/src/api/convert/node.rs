//! Nodes, with the totals that workers report.

use crawler_proto as proto;

use crate::api::answer::{NodeAnswer, NodeEventAnswer, TotalsAnswer};
use crate::api::lifecycle::DrainAnswer;

impl From<NodeAnswer> for proto::Node {
    fn from(answer: NodeAnswer) -> Self {
        Self {
            id: answer.id,
            role: answer.role,
            address: answer.address,
            leader: answer.leader,
            load: answer.load,
            capacity: answer.capacity,
            version: answer.version,
            labels: answer.labels.into_iter().collect(),
            started_at: answer.started_at,
            weight: answer.weight,
            totals: answer.totals.map(Into::into),
            reason: answer.reason,
            draining: answer.draining,
        }
    }
}

impl From<proto::Node> for NodeAnswer {
    fn from(message: proto::Node) -> Self {
        Self {
            id: message.id,
            role: message.role,
            address: message.address,
            leader: message.leader,
            load: message.load,
            capacity: message.capacity,
            version: message.version,
            labels: message.labels.into_iter().collect(),
            started_at: message.started_at,
            weight: message.weight,
            totals: message.totals.map(Into::into),
            reason: message.reason,
            draining: message.draining,
        }
    }
}

impl From<DrainAnswer> for proto::DrainNodeResponse {
    fn from(answer: DrainAnswer) -> Self {
        let DrainAnswer { load, others } = answer;
        Self { load, others }
    }
}

impl From<proto::DrainNodeResponse> for DrainAnswer {
    fn from(message: proto::DrainNodeResponse) -> Self {
        let proto::DrainNodeResponse { load, others } = message;
        Self { load, others }
    }
}

impl From<NodeEventAnswer> for proto::NodeEvent {
    fn from(answer: NodeEventAnswer) -> Self {
        Self {
            event: answer.event,
            node: Some(answer.node.into()),
        }
    }
}

impl From<proto::NodeEvent> for NodeEventAnswer {
    fn from(message: proto::NodeEvent) -> Self {
        Self {
            event: message.event,
            node: message.node.unwrap_or_default().into(),
        }
    }
}

impl From<TotalsAnswer> for proto::NodeTotals {
    fn from(answer: TotalsAnswer) -> Self {
        Self {
            at: answer.at,
            running: answer.running,
            waiting: answer.waiting,
            pages: answer.pages,
            items: answer.items,
            bytes: answer.bytes,
            in_flight: answer.in_flight,
        }
    }
}

impl From<proto::NodeTotals> for TotalsAnswer {
    fn from(message: proto::NodeTotals) -> Self {
        Self {
            at: message.at,
            running: message.running,
            waiting: message.waiting,
            pages: message.pages,
            items: message.items,
            bytes: message.bytes,
            in_flight: message.in_flight,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_arrives_as_it_was_sent() {
        let node = NodeAnswer {
            id: "worker-1".into(),
            role: "worker".into(),
            address: "a:1".into(),
            leader: true,
            load: 2,
            capacity: 3,
            version: "4".into(),
            labels: [("gpu".into(), "true".into())].into(),
            started_at: 5,
            weight: 6,
            totals: Some(TotalsAnswer {
                at: 7,
                running: 8,
                waiting: 9,
                pages: 10,
                items: 11,
                bytes: 12,
                in_flight: 13,
            }),
            reason: "it does not decode".into(),
            draining: true,
        };
        let message = proto::Node::from(node.clone());
        assert_eq!(NodeAnswer::from(message), node);
    }
}
