//! Workers of the cluster that share the turns of hosts, according to their registrations in the store.

use std::time::Duration;

use crawler_fetch::turns::{Peer, Turns};
use crawler_model::node::{Node, Role};
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::StoreError;
use crawler_store::catalog::{Catalog, Versioned};
use crawler_store::changes::Changes;

/// Maximum time between two looks at the list, in case a watch has missed something.
const RESYNC: Duration = Duration::from_secs(30);

/// Tells the turns which workers share them, after each change. It never ends. While the store is away the
/// last list stays valid, because workers that cannot reach the store stop fetching by themselves.
pub async fn follow(catalog: Catalog, turns: Turns) {
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));
    loop {
        let error = follow_until_error(&catalog, &turns, &mut backoff).await;
        let error = telemetry::chain(&error);
        tracing::debug!(error, "the workers that share turns are not known anew");
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

async fn follow_until_error(catalog: &Catalog, turns: &Turns, backoff: &mut Backoff) -> StoreError {
    let prefix = catalog.keys().nodes(Role::Worker);
    let mut changes = match Changes::below(catalog, &prefix, RESYNC).await {
        Ok(changes) => changes,
        Err(error) => return error,
    };
    loop {
        match sharing(catalog, &prefix).await {
            Ok(peers) => turns.set_workers(peers),
            Err(error) => return error,
        }
        backoff.reset();
        if let Err(error) = changes.next().await {
            return error;
        }
    }
}

/// Returns the workers that share turns. A record that existed without a break, however it was rewritten, is
/// one registration.
async fn sharing(catalog: &Catalog, prefix: &str) -> Result<Vec<Peer>, StoreError> {
    let nodes = catalog.scan::<Node>(prefix).await?.records.into_iter();
    let sharing = nodes.filter(|(_, record)| record.value.shares_turns);
    let peer = |(_, record): (String, Versioned<Node>)| Peer {
        registration: record.created.0,
        node: record.value,
    };
    Ok(sharing.map(peer).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;

    use super::*;
    use crawler_fetch::turns::call::{
        Answer, AskTurns, TurnCallError, TurnRequest, TurnRequests, WorkerProcess,
    };
    use crawler_model::id::Incarnation;
    use crawler_model::node::CallToken;
    use crawler_process::task::TaskScope;
    use crawler_store::Txn;
    use crawler_store::catalog::encode;
    use crawler_store::embedded::{EmbeddedStore, Settings};
    use crawler_store::keys::Keys;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Transport that reaches no worker.
    struct Nobody;

    #[async_trait]
    impl AskTurns for Nobody {
        async fn ask(
            &self,
            _owner: &Node,
            _asks: TurnRequests,
        ) -> Result<Vec<Answer>, TurnCallError> {
            Err(TurnCallError {
                why: "nobody is there".to_owned(),
            })
        }
    }

    fn node(n: u64, shares_turns: bool) -> Node {
        Node {
            id: format!("worker-{n}").parse().unwrap(),
            role: Role::Worker,
            address: "127.0.0.1:1".into(),
            http: String::new(),
            pprof: String::new(),
            incarnation: Incarnation(n),
            labels: [].into(),
            capacity: 1,
            version: "0".into(),
            interface: String::new(),
            draining: false,
            started_at: 0,
            call_token: CallToken::default(),
            shares_turns,
            tls: false,
        }
    }

    async fn put(catalog: &Catalog, node: &Node) {
        let key = catalog.keys().node(Role::Worker, &node.id);
        let txn = Txn::new().put(key, encode(node));
        catalog.store().commit(txn).await.unwrap();
    }

    /// Returns how many of a hundred hosts the first worker owns: it has no turn for others.
    fn n_owned(turns: &Turns) -> usize {
        let ask = |n: u32| TurnRequest {
            host: format!("h{n}.test").into(),
            delay: Duration::from_millis(1),
            is_wanted: true,
            is_in_flight: false,
            ended: None,
        };
        let from = WorkerProcess {
            worker: "worker-9".parse().unwrap(),
            incarnation: Incarnation(9),
        };
        let asks = (0..100).map(ask).collect();
        let answers = turns.receive(TurnRequests { from, asks }).unwrap();
        // An owner waits for leases of the one before, and other workers wait for news of the owner.
        let longest = Duration::from_secs(1);
        let is_owned =
            |answer: &&Answer| matches!(answer, Answer::Later { after } if *after > longest);
        answers.iter().filter(is_owned).count()
    }

    #[tokio::test]
    async fn workers_that_share_turns_are_known_as_they_come() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), Settings::default()).unwrap();
        let catalog = Catalog::new(Arc::new(store), Keys::default());
        let own = node(1, true);
        let life = WorkerProcess {
            worker: own.id.clone(),
            incarnation: own.incarnation,
        };
        let turns = Turns::new(life, Arc::new(Nobody));
        let scope = TaskScope::new();
        scope.spawn("peers", follow(catalog.clone(), turns.clone()));
        put(&catalog, &own).await;
        put(&catalog, &node(2, false)).await;
        let owns = async |wished: std::ops::RangeInclusive<usize>| {
            let there = async {
                while !wished.contains(&n_owned(&turns)) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(PATIENCE, there).await.expect("known");
        };
        owns(100..=100).await;
        put(&catalog, &node(3, true)).await;
        owns(30..=70).await;
    }
}
