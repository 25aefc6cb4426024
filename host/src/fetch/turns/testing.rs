//! Workers for the tests of shared turns.

use std::collections::BTreeMap;

use super::call::Life;
use super::rank::Peer;
use crate::model::id::Incarnation;
use crate::model::node::{CallToken, Node, Role};

/// The first life of a worker.
pub(in crate::fetch) fn life(n: u64) -> Life {
    peer(n).life()
}

/// The first registration of a worker.
pub(in crate::fetch) fn peer(n: u64) -> Peer {
    Peer {
        node: Node {
            id: format!("worker-{n}").parse().unwrap(),
            role: Role::Worker,
            address: format!("127.0.0.1:{n}"),
            http: String::new(),
            incarnation: Incarnation(n),
            labels: BTreeMap::new(),
            capacity: 1,
            version: "0".into(),
            interface: String::new(),
            draining: false,
            started_at: 0,
            call_token: CallToken::default(),
            shares_turns: true,
        },
        registration: n,
    }
}
