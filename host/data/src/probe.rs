//! Tests that a store keeps two writers apart: frontiers and clusters rely on it.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt as _, PutMode};

/// Folder of probes. Each is removed when it is done; a kill may leave one.
pub(super) const PROBES: &str = "probe";
/// Number of creates at once.
const WRITERS: usize = 8;

/// Result of a probe.
#[derive(Debug)]
pub(super) enum ProbeResult {
    /// Exactly one writer wins.
    Kept,
    /// The store does something else, described here.
    Broken(String),
}

/// Creates one object several times at once. Exactly one create may succeed, the others must be told that the
/// object exists, and its content must be the winner's.
pub(super) async fn probe(objects: &Arc<dyn ObjectStore>) -> Result<ProbeResult, ObjectError> {
    let name = hex::encode(rand::random::<[u8; 8]>());
    let path = ObjectPath::from_iter([PROBES, &name]);
    let found = race(objects, &path).await;
    match objects.delete(&path).await {
        Ok(()) | Err(ObjectError::NotFound { .. }) => found,
        Err(error) => found.and(Err(error)),
    }
}

async fn race(
    objects: &Arc<dyn ObjectStore>,
    path: &ObjectPath,
) -> Result<ProbeResult, ObjectError> {
    let creates = (0..WRITERS).map(|n| async move {
        let body = format!("writer {n}");
        let create = objects.put_opts(path, body.clone().into(), PutMode::Create.into());
        match create.await {
            Ok(_) => Ok(Some(body)),
            Err(ObjectError::AlreadyExists { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    });
    let created: Vec<Option<String>> = join_all(creates)
        .await
        .into_iter()
        .collect::<Result<_, _>>()?;
    let winners: Vec<String> = created.into_iter().flatten().collect();
    let [winner] = winners.as_slice() else {
        let n = winners.len();
        return Ok(ProbeResult::Broken(format!(
            "of {WRITERS} writers that created one file at once, {n} were told that they did"
        )));
    };
    let kept: Bytes = objects.get(path).await?.bytes().await?;
    if kept != winner.as_bytes() {
        return Ok(ProbeResult::Broken(
            "of several writers that created one file at once, another one's bytes were kept"
                .to_owned(),
        ));
    }
    Ok(ProbeResult::Kept)
}

#[cfg(test)]
mod tests;
