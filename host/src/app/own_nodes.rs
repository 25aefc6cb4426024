//! What a worker of a cluster never fetches from: the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::fetch::guard::Guard;
use crate::model::node::Node;
use crate::store::StoreError;
use crate::store::catalog::Catalog;
use crate::telemetry;

/// Between two looks at who is there.
const INTERVAL: Duration = Duration::from_secs(30);
/// The same where the last one failed.
const RETRY: Duration = Duration::from_secs(1);

/// An address whose node is not registered for so long is given up. A node that comes back, after a
/// restart or an outage, does so within minutes and at the same address mostly; later, the address
/// may be somebody else's.
const KEPT_FOR: Duration = Duration::from_secs(60 * 60);

/// Tells the guard of all nodes that are registered, beside those that are `always` there, for ever.
/// Nodes that left are kept for an hour: they may be back.
pub(super) async fn keep_told(guard: Arc<Guard>, catalog: Catalog, always: Vec<String>) {
    let mut known = Known::default();
    let tell = |known: &Known| guard.set_own_nodes(always.iter().chain(known.addresses()).cloned());
    tell(&known);
    loop {
        let pause = match registered(&catalog).await {
            Ok(nodes) => {
                if known.look(nodes, Instant::now()) {
                    tell(&known);
                }
                INTERVAL
            }
            Err(error) => {
                let error = telemetry::chain(&error);
                tracing::debug!(
                    error,
                    "the nodes that are never fetched from stay as they are"
                );
                RETRY
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Addresses of nodes, each with when it was found that it is not registered any more.
#[derive(Default)]
struct Known(BTreeMap<String, Option<Instant>>);

impl Known {
    fn addresses(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// Takes in what is registered at this moment; whether other addresses are known than before.
    fn look(&mut self, registered: BTreeSet<String>, now: Instant) -> bool {
        let n_before = self.0.len();
        self.0.retain(|address, left_at| {
            let left_at = *left_at.get_or_insert(now);
            registered.contains(address) || now - left_at < KEPT_FOR
        });
        let n_left = self.0.len();
        self.0
            .extend(registered.into_iter().map(|node| (node, None)));
        n_left < n_before || self.0.len() > n_left
    }
}

async fn registered(catalog: &Catalog) -> Result<BTreeSet<String>, StoreError> {
    let nodes = catalog.scan::<Node>(&catalog.keys().all_nodes()).await?;
    let nodes = nodes.records.into_iter();
    Ok(nodes.map(|(_, node)| node.value.address).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After so many minutes, with these nodes there, these are known.
    #[track_caller]
    fn check(known: &mut Known, start: Instant, minutes: u64, there: &[&str], expected: &[&str]) {
        let registered = there.iter().map(|&node| node.to_owned()).collect();
        let before: Vec<String> = known.addresses().cloned().collect();
        let now = start + Duration::from_secs(60 * minutes);
        let is_other = known.look(registered, now);
        let after: Vec<String> = known.addresses().cloned().collect();
        assert_eq!(after, expected, "after {minutes} minutes");
        assert_eq!(is_other, before != after, "after {minutes} minutes");
    }

    #[test]
    fn an_address_is_given_up_an_hour_after_its_node_left() {
        let (mut known, start) = (Known::default(), Instant::now());
        let mut check = |minutes, there: &[&str], expected: &[&str]| {
            check(&mut known, start, minutes, there, expected);
        };
        check(0, &["a:1", "b:1"], &["a:1", "b:1"]);
        check(100, &["b:1"], &["a:1", "b:1"]);
        // It is back for a moment.
        check(159, &["a:1", "b:1"], &["a:1", "b:1"]);
        check(160, &["b:1", "c:1"], &["a:1", "b:1", "c:1"]);
        check(219, &["b:1", "c:1"], &["a:1", "b:1", "c:1"]);
        check(220, &["b:1", "c:1"], &["b:1", "c:1"]);
        // Who was there when the store was seen last is not given up when it is seen again.
        check(500, &["b:1"], &["b:1", "c:1"]);
        check(560, &["b:1"], &["b:1"]);
    }
}
