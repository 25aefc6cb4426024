//! What a worker of a cluster never fetches from: the cluster.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::fetch::guard::Guard;
use crate::model::node::Node;
use crate::store::StoreError;
use crate::store::catalog::Catalog;
use crate::telemetry;

/// Between two looks at who is there.
const INTERVAL: Duration = Duration::from_secs(30);
/// The same where the last one failed.
const RETRY: Duration = Duration::from_secs(1);

/// Tells the guard of all nodes that are registered, beside those that are `always` there, for ever.
/// Nodes that left are kept: they may be back.
pub(super) async fn keep_told(guard: Arc<Guard>, catalog: Catalog, always: Vec<String>) {
    let mut known: BTreeSet<String> = always.into_iter().collect();
    loop {
        guard.set_own_nodes(known.iter().cloned());
        let pause = match registered(&catalog).await {
            Ok(nodes) if nodes.is_subset(&known) => INTERVAL,
            Ok(nodes) => {
                known.extend(nodes);
                continue;
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

async fn registered(catalog: &Catalog) -> Result<BTreeSet<String>, StoreError> {
    let nodes = catalog.scan::<Node>(&catalog.keys().all_nodes()).await?;
    let nodes = nodes.records.into_iter();
    Ok(nodes.map(|(_, node)| node.value.address).collect())
}
