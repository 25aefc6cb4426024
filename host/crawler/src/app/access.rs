//! Access to the listeners of a process: the gate that admits callers, and what a cluster needs before the first of
//! them can come.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;

use super::node_tls::NodeTls;
use crate::cli::exposure::Exposure;
use crawler_access::Token;
use crawler_access::gate::Gate;
use crawler_access::registry::{self, FirstToken};
use crawler_access::revoked_nodes::RevokedNodes;
use crawler_api::nodes::{KnownNodes, OwnCluster};
use crawler_process::clock::Clock;
use crawler_process::retry::Backoff;
use crawler_process::task::TaskScope;
use crawler_store::catalog::Catalog;

/// Mode bits that let others read or change a file.
const OTHERS: u32 = 0o077;
/// Largest number of bytes that are read as a token.
const TOKEN_MAX: u64 = 4_096;

/// Returns the gate of a process that asks for tokens. Its view is kept until `scope` is stopped.
pub(super) fn gate(
    exposure: &Exposure,
    catalog: &Catalog,
    clock: &Arc<dyn Clock>,
    scope: &TaskScope,
) -> Gate {
    let (gate, keep_view) = Gate::new(catalog.clone(), clock.clone(), scope.stop_signal());
    scope.spawn("access tokens", keep_view);
    let (exposure, catalog, clock) = (exposure.clone(), catalog.clone(), clock.clone());
    let stop = scope.stop_signal();
    scope.spawn("first access token", async move {
        let prepared = prepare(&exposure, &catalog, &*clock);
        stop.run_until_cancelled(prepared).await;
    });
    gate
}

/// Returns the rule by which a process knows the nodes that call it. If they have certificates of the cluster's CA, it
/// follows which of them are revoked until `scope` is stopped, and calls no node with such a certificate either.
pub(super) fn known_nodes(
    cluster: &OwnCluster,
    tls: &mut NodeTls,
    catalog: &Catalog,
    scope: &TaskScope,
) -> KnownNodes {
    let nodes = KnownNodes::new(cluster.clone(), tls.server.as_ref());
    if !nodes.need_certificates() {
        return nodes;
    }
    let (revoked, follow) = RevokedNodes::new(catalog.clone(), scope.stop_signal());
    scope.spawn("revoked nodes", follow);
    tls.client = std::mem::take(&mut tls.client).without(revoked.clone());
    nodes.without(revoked)
}

/// Makes the secret of the nodes, and the first token if it is wanted. Tries again while the store does not answer.
async fn prepare(exposure: &Exposure, catalog: &Catalog, clock: &dyn Clock) {
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
    while let Err(error) = try_prepare(exposure, catalog, clock).await {
        let error = format!("{error:#}");
        tracing::warn!(error, "cannot make the first access token yet");
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

async fn try_prepare(
    exposure: &Exposure,
    catalog: &Catalog,
    clock: &dyn Clock,
) -> anyhow::Result<()> {
    registry::node_secret(catalog).await?;
    let Some(file) = &exposure.first_token else {
        if !registry::has_had_tokens(catalog).await? {
            tracing::warn!("there is no access token, so nobody can call; add --first-token FILE");
        }
        return Ok(());
    };
    if registry::has_had_tokens(catalog).await? {
        return Ok(());
    }
    // Masters of one machine may have the same file.
    let mut opened = open(file)?;
    flock(&opened, FlockOperation::NonBlockingLockExclusive)
        .with_context(|| format!("another process uses {}", file.display()))?;
    // A token of an earlier try may have been recorded, although nobody was told.
    let token = match read(&mut opened, file)? {
        Some(token) => token,
        None => {
            let token = Token::random();
            // The file comes first: a token whose secret was lost would stay the only one.
            let written = write(&mut opened, &format!("{}\n", token.expose()));
            written.with_context(|| format!("cannot write {}", file.display()))?;
            token
        }
    };
    match registry::issue_first(catalog, &token, clock.unix_millis()).await {
        Ok(FirstToken::Issued) => {
            tracing::info!(file = %file.display(), token = %token.id(), "wrote the first access token");
            Ok(())
        }
        // A master with another file was faster.
        Ok(FirstToken::IsThere) => Ok(write(&mut opened, "")?),
        // It may have been carried out: the file stays, and the next try tells.
        Err(error) => Err(error.into()),
    }
}

/// Makes the file of the first token, which only this user can read. A confined process can write to it, but not make
/// it.
pub(super) fn make_file(file: &Path) -> anyhow::Result<()> {
    open(file).map(drop)
}

/// Opens the file, and refuses one that another user could read.
fn open(file: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    options
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let opened = options.open(file);
    let opened = opened.with_context(|| format!("cannot open {}", file.display()))?;
    let metadata = opened.metadata()?;
    let is_own = metadata.uid() == geteuid().as_raw() && metadata.is_file();
    anyhow::ensure!(
        is_own && metadata.mode() & OTHERS == 0,
        "{} is not a file that only this user can read; name one that does not exist, with --first-token",
        file.display()
    );
    Ok(opened)
}

/// Returns the token in the file; `None` if the file is empty.
fn read(opened: &mut File, file: &Path) -> anyhow::Result<Option<Token>> {
    let mut text = String::new();
    opened.take(TOKEN_MAX).read_to_string(&mut text)?;
    if text.is_empty() {
        return Ok(None);
    }
    let token = text.trim().parse();
    let token = token.with_context(|| format!("{} has something else in it", file.display()))?;
    Ok(Some(token))
}

fn write(opened: &mut File, text: &str) -> io::Result<()> {
    opened.set_len(0)?;
    opened.rewind()?;
    opened.write_all(text.as_bytes())?;
    opened.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use crawler_process::clock::SystemClock;
    use crawler_store::keys::Keys;
    use crawler_store::twin::StoreTwin;

    use super::*;

    #[tokio::test]
    async fn the_first_token_is_made_once_and_is_for_this_user_only() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Catalog::new(Arc::new(StoreTwin::new()), Keys::default());
        let exposure = |name: &str| Exposure {
            first_token: Some(folder.path().join(name)),
            ..Exposure::default()
        };
        let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        try_prepare(&exposure("one"), &catalog, &SystemClock)
            .await
            .unwrap();
        let token: Token = text("one").trim().parse().unwrap();
        let mode = fs::metadata(folder.path().join("one"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let listed = registry::list(&catalog).await.unwrap();
        assert_eq!(listed[0].0, *token.id());
        assert!(listed[0].1.grants.covers_all());
        // Another master, and this one after a restart, find it there.
        for name in ["two", "one"] {
            try_prepare(&exposure(name), &catalog, &SystemClock)
                .await
                .unwrap();
        }
        assert_eq!(text("two"), "");
        assert_eq!(text("one").trim(), token.expose());
        // Nor does a new one come when it has been revoked.
        registry::revoke(&catalog, token.id()).await.unwrap();
        try_prepare(&exposure("two"), &catalog, &SystemClock)
            .await
            .unwrap();
        assert_eq!(text("two"), "");
    }

    #[tokio::test]
    async fn a_token_that_was_recorded_without_an_answer_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Catalog::new(Arc::new(StoreTwin::new()), Keys::default());
        let file = folder.path().join("token");
        let token = Token::random();
        fs::write(&file, token.expose()).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let exposure = Exposure {
            first_token: Some(file.clone()),
            ..Exposure::default()
        };
        try_prepare(&exposure, &catalog, &SystemClock)
            .await
            .unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), token.expose());
        assert_eq!(registry::list(&catalog).await.unwrap()[0].0, *token.id());
    }

    #[test]
    fn a_file_of_others_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let open_to_all = folder.path().join("open");
        fs::write(&open_to_all, "").unwrap();
        fs::set_permissions(&open_to_all, Permissions::from_mode(0o644)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("target"), &link).unwrap();
        for file in [&open_to_all, &link] {
            assert!(make_file(file).is_err(), "{}", file.display());
        }
        assert!(!folder.path().join("target").exists());
        let other = folder.path().join("other");
        fs::write(&other, "notes").unwrap();
        fs::set_permissions(&other, Permissions::from_mode(0o600)).unwrap();
        let mut opened = open(&other).unwrap();
        assert!(read(&mut opened, &other).is_err());
        assert_eq!(fs::read_to_string(&other).unwrap(), "notes");
    }
}
