//! The id under which a process of a cluster registers.
//!
//! A process that asks for no id gets the next free number of the cluster, `worker-1` first, and keeps it in
//! its state folder. A number is free if nobody is registered under it, nobody has told it to drain, and
//! nobody has reserved it. Each process reserves its number for as long as it runs, and an hour longer: a
//! process that is away from the store, or starts again, finds its number again.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;

use super::stop::spawn_until_stopped;
use crate::cli::WantedId;
use crawler_model::id::NodeId;
use crawler_model::node::Role;
use crawler_process::retry::Backoff;
use crawler_process::task::TaskScope;
use crawler_process::telemetry;
use crawler_store::catalog::Catalog;
use crawler_store::{Guard, LeaseId, Outcome, StoreError, Txn};

/// File in the state folder that holds the id; its lock shows that a process uses the id.
const ID_FILE: &str = "node-id";
/// Number of characters of the host's name in an id.
const HOST_MAX: usize = 40;
/// Time for which a number stays reserved after its process was last there.
const RESERVED_FOR: Duration = Duration::from_secs(60 * 60);
/// Time between two renewals of a reservation.
const RENEW_EVERY: Duration = Duration::from_secs(60);
/// Pauses between two tries to reserve a number, at first and at the most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// Id of a process, for as long as this value lives.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) id: NodeId,
    /// Place where the id is kept. If `None`, the id was asked for and is kept nowhere.
    place: Option<Place>,
    /// Lease of the number, if it was reserved at this start.
    reserved: Option<LeaseId>,
}

/// An id with a reserved number.
#[derive(Debug)]
struct Numbered {
    id: NodeId,
    lease: LeaseId,
}

/// Place where an id is kept.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Lock of the file. If `None`, another process of this state folder has the place and the id in it.
    lock: Option<File>,
}

impl Identity {
    /// Returns the id that was asked for, or the one that is kept in the state folder, or a new one, which is
    /// then kept there. Waits for the store if a new number is wanted.
    pub(super) async fn find(
        role: Role,
        wanted: &WantedId,
        state: &Path,
        catalog: &Catalog,
    ) -> anyhow::Result<Self> {
        if let WantedId::Is(id) = wanted {
            let id = id.clone();
            return Ok(Self {
                id,
                place: None,
                reserved: None,
            });
        }
        let path = state.join(ID_FILE);
        let cannot_keep = || format!("cannot keep this node's id in {}", path.display());
        let place = Place::take(&path).with_context(cannot_keep)?;
        let kept = place.read(role).with_context(cannot_keep)?;
        let fits = |id: &NodeId| *wanted == WantedId::Number || number_of(role, id).is_none();
        let mut reserved = None;
        let id = match (kept.filter(fits), wanted) {
            (Some(id), _) => id,
            (None, WantedId::Number) => {
                let Numbered { id, lease } = next_number(role, catalog).await?;
                reserved = Some(lease);
                place.write(&format!("{id}\n")).with_context(cannot_keep)?;
                id
            }
            (None, _) => {
                let id = of_host(role);
                place.write(&format!("{id}\n")).with_context(cannot_keep)?;
                id
            }
        };
        let place = Some(place);
        Ok(Self {
            id,
            place,
            reserved,
        })
    }

    /// Keeps the number reserved until `scope` is stopped, unless the id was asked for.
    pub(super) fn keep(&self, role: Role, catalog: &Catalog, scope: &TaskScope) {
        if self.place.is_none() || number_of(role, &self.id).is_none() {
            return;
        }
        let kept = keep_reserved(role, self.id.clone(), self.reserved, catalog.clone());
        spawn_until_stopped(scope, "reservation of a number", kept);
    }

    /// Forgets an id that another process has: the next start finds another one. Does nothing if the id was
    /// asked for.
    pub(super) fn forget(&self) {
        let Some(place) = &self.place else {
            return;
        };
        match place.write("") {
            Ok(()) => tracing::info!(node = %self.id, "the next start takes another id"),
            Err(error) => {
                let path = place.path.display();
                tracing::warn!(%error, %path, "the id cannot be forgotten; remove the file");
            }
        }
    }
}

impl Place {
    fn take(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .open(path)?;
        let lock = match file.try_lock() {
            Ok(()) => Some(file),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Error(error)) => return Err(error),
        };
        Ok(Self {
            path: path.to_owned(),
            lock,
        })
    }

    /// Returns the id that is kept. A file that holds no id of this role is overwritten.
    fn read(&self, role: Role) -> io::Result<Option<NodeId>> {
        if self.lock.is_none() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&self.path)?;
        let kept = text.trim().parse::<NodeId>().ok();
        Ok(kept.filter(|id| id.as_str().starts_with(&format!("{role}-"))))
    }

    /// Writes the file, unless the place is another process's.
    fn write(&self, text: &str) -> io::Result<()> {
        match self.lock {
            Some(_) => std::fs::write(&self.path, text),
            None => Ok(()),
        }
    }
}

/// Returns the number of an id that is made of one.
fn number_of(role: Role, id: &NodeId) -> Option<u32> {
    let number = id.as_str().strip_prefix(&format!("{role}-"))?;
    number.parse().ok()
}

/// Reserves the smallest free number, however long the store does not answer.
async fn next_number(role: Role, catalog: &Catalog) -> Result<Numbered, StoreError> {
    let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
    let mut is_told = false;
    loop {
        match try_next_number(role, catalog).await {
            Ok(Some(numbered)) => return Ok(numbered),
            // Another process was faster.
            Ok(None) => {}
            Err(error) if error.is_transient() || matches!(error, StoreError::LeaseGone) => {
                let error = telemetry::chain(&error);
                // The store may be connected in a moment.
                match std::mem::replace(&mut is_told, true) {
                    true => tracing::warn!(error, "waiting for a number of the cluster"),
                    false => tracing::debug!(error, "waiting for a number of the cluster"),
                }
            }
            Err(error) => return Err(error),
        }
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

/// Chooses and reserves a number, in one try. Returns `None` if another process was faster, or if the outcome
/// is unknown.
async fn try_next_number(role: Role, catalog: &Catalog) -> Result<Option<Numbered>, StoreError> {
    let keys = catalog.keys();
    let prefixes = [
        keys.nodes(role),
        keys.draining_all(),
        keys.reserved_all(role),
    ];
    let mut taken = BTreeSet::new();
    for prefix in prefixes {
        let listing = catalog.store().list(&prefix).await?;
        for entry in &listing.entries {
            let id = entry
                .key
                .strip_prefix(&prefix)
                .and_then(|id| id.parse().ok());
            taken.extend(id.and_then(|id| number_of(role, &id)));
        }
    }
    let number = (1..).find(|number| !taken.contains(number));
    let number = number.expect("a cluster has fewer nodes than numbers");
    let id: NodeId = format!("{role}-{number}")
        .parse()
        .expect("a role, a dash and digits make an id");
    let free = [keys.node(role, &id), keys.draining(&id)];
    let lease = reserve(role, &id, free, catalog).await?;
    Ok(lease.map(|lease| Numbered { id, lease }))
}

/// Reserves an id that nobody has reserved, if these keys are absent too.
async fn reserve(
    role: Role,
    id: &NodeId,
    absent: impl IntoIterator<Item = String>,
    catalog: &Catalog,
) -> Result<Option<LeaseId>, StoreError> {
    let (store, key) = (catalog.store(), catalog.keys().reserved(role, id));
    let lease = store.grant_lease(RESERVED_FOR).await?;
    let absent = absent.into_iter().chain([key.clone()]);
    let txn = absent.map(Guard::Absent).fold(Txn::new(), Txn::guard);
    let txn = txn.put_leased(key, Bytes::from_static(b"{}"), lease);
    let reserved = store.commit(txn).await;
    if let Ok(Outcome::Done(_)) = reserved {
        return Ok(Some(lease));
    }
    if let Err(error) = store.revoke_lease(lease).await {
        // The lease expires by itself.
        let error = telemetry::chain(&error);
        tracing::debug!(node = %id, error, "the lease of a number cannot be given back");
    }
    reserved.map(|_| None)
}

/// Keeps a number reserved. The task never ends.
async fn keep_reserved(role: Role, id: NodeId, mut lease: Option<LeaseId>, catalog: Catalog) {
    loop {
        let kept = match lease {
            Some(held) => catalog.store().renew_lease(held).await.map(|()| lease),
            // An earlier process of this state folder may have reserved it.
            None => reserve(role, &id, [], &catalog).await,
        };
        lease = match kept {
            Ok(kept) => kept,
            Err(StoreError::LeaseGone) => None,
            Err(error) => {
                let error = telemetry::chain(&error);
                tracing::debug!(node = %id, error, "the number is not reserved anew yet");
                lease
            }
        };
        tokio::time::sleep(RENEW_EVERY).await;
    }
}

fn of_host(role: Role) -> NodeId {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    // Characters that a node id may not have are left out of the host's name.
    let host: String = host
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .take(HOST_MAX)
        .collect();
    let random = hex::encode(rand::random::<[u8; 3]>());
    let id = format!("{role}-{host}-{random}");
    id.parse()
        .expect("a role, letters, digits and dashes make an id")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crawler_store::keys::Keys;
    use crawler_store::twin::StoreTwin;

    fn cluster() -> Catalog {
        Catalog::new(Arc::new(StoreTwin::new()), Keys::default())
    }

    async fn worker(state: &Path, catalog: &Catalog, wanted: WantedId) -> Identity {
        let found = Identity::find(Role::Worker, &wanted, state, catalog).await;
        found.unwrap()
    }

    fn id(found: &Identity) -> &str {
        found.id.as_str()
    }

    #[tokio::test]
    async fn a_number_is_kept_over_restarts_and_by_one_process_at_a_time() {
        let (folder, catalog) = (tempfile::tempdir().unwrap(), cluster());
        let state = folder.path().join("state");
        let numbered = || worker(&state, &catalog, WantedId::Number);
        let first = numbered().await;
        assert_eq!(id(&first), "worker-1");
        // Both processes run at the same time.
        let beside = numbered().await;
        assert_eq!(id(&beside), "worker-2");
        drop((first, beside));
        assert_eq!(id(&numbered().await), "worker-1");
        // An id that is asked for is not kept.
        let asked = WantedId::Is("worker-7".parse().unwrap());
        assert_eq!(id(&worker(&state, &catalog, asked).await), "worker-7");
        let again = numbered().await;
        assert_eq!(id(&again), "worker-1");
        again.forget();
        drop(again);
        assert_eq!(id(&numbered().await), "worker-3");
    }

    #[tokio::test(start_paused = true)]
    async fn a_number_is_kept_while_its_process_runs_and_an_hour_longer() {
        let (folder, catalog) = (tempfile::tempdir().unwrap(), cluster());
        // A second process looks whether the number of the first is taken.
        let other = async || {
            let folder = tempfile::tempdir().unwrap();
            let found = worker(folder.path(), &catalog, WantedId::Number).await;
            id(&found).to_owned()
        };
        for n_lives in 0..2 {
            let scope = TaskScope::new();
            let found = worker(folder.path(), &catalog, WantedId::Number).await;
            assert_eq!(id(&found), "worker-1", "life {n_lives}");
            found.keep(Role::Worker, &catalog, &scope);
            tokio::time::sleep(5 * RESERVED_FOR).await;
            assert_ne!(other().await, "worker-1");
            scope.stop(RENEW_EVERY).await;
        }
        tokio::time::sleep(RESERVED_FOR - 2 * RENEW_EVERY).await;
        assert_ne!(other().await, "worker-1");
        tokio::time::sleep(3 * RENEW_EVERY).await;
        assert_eq!(other().await, "worker-1");
    }

    #[tokio::test]
    async fn a_number_that_somebody_has_is_passed_over() {
        let catalog = cluster();
        let keys = catalog.keys();
        let name = |text: &str| text.parse::<NodeId>().unwrap();
        let there = [
            keys.node(Role::Worker, &name("worker-1")),
            keys.draining(&name("worker-2")),
            keys.reserved(Role::Worker, &name("worker-3")),
            // This node has another role.
            keys.node(Role::Master, &name("master-4")),
        ];
        for key in there {
            let put = Txn::new().put(key, "{}");
            catalog.store().commit(put).await.unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let found = worker(folder.path(), &catalog, WantedId::Number).await;
        assert_eq!(id(&found), "worker-4");
    }

    #[tokio::test]
    async fn processes_that_start_together_take_different_numbers() {
        let catalog = cluster();
        let folders: Vec<_> = (0..8).map(|_| tempfile::tempdir().unwrap()).collect();
        let found = folders
            .iter()
            .map(|folder| worker(folder.path(), &catalog, WantedId::Number));
        let found = futures::future::join_all(found).await;
        let mut ids: Vec<&str> = found.iter().map(id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), folders.len());
    }

    #[tokio::test]
    async fn the_name_of_the_host_can_be_had_and_is_kept_as_well() {
        let (folder, catalog) = (tempfile::tempdir().unwrap(), cluster());
        let found = async |wanted| worker(folder.path(), &catalog, wanted).await.id;
        let number = found(WantedId::Number).await;
        let host = found(WantedId::Host).await;
        assert_ne!(host, number);
        assert_eq!(found(WantedId::Host).await, host);
        // A process that has an id of either form keeps it.
        assert_eq!(found(WantedId::Number).await, host);
    }

    #[tokio::test]
    async fn a_file_that_holds_no_id_is_written_anew() {
        let (folder, catalog) = (tempfile::tempdir().unwrap(), cluster());
        for text in ["", "a b", "master-2"] {
            std::fs::write(folder.path().join(ID_FILE), text).unwrap();
            let found = async || worker(folder.path(), &catalog, WantedId::Number).await.id;
            assert_eq!(found().await, found().await);
        }
    }
}
