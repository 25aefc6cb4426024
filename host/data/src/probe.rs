//! Tests that a store keeps two writers apart, on which frontiers and clusters rely, and reads its clock.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use object_store::path::Path as ObjectPath;
use object_store::{
    Error as ObjectError, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, UpdateVersion,
};

use crawler_model::crawl::UnixMillis;

/// Folder of probes. Each is removed when it is done; a kill may leave one.
pub const PROBES: &str = "probe";
/// Number of writes at once.
const WRITERS: usize = 8;
/// Number of races in one of which a writer must be told that it won. The answer to a single winner may be lost.
const RACES: usize = 5;

/// Result of a probe.
#[derive(Debug)]
pub(super) enum ProbeResult {
    /// Exactly one writer wins. The value is the time of the write by the store's clock.
    Kept(UnixMillis),
    /// The store does something else, described here.
    Broken(String),
}

/// Kind of a race: the write that all of its writers try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Race {
    Create,
    Update,
}

/// Creates one object several times at once. Exactly one create may succeed, the others must be told that the
/// object exists, and its content must be the winner's. If `has_updates`, the same is tested with conditional updates
/// of an object that exists.
pub(super) async fn probe(
    objects: &Arc<dyn ObjectStore>,
    has_updates: bool,
) -> Result<ProbeResult, ObjectError> {
    let races: &[Race] = match has_updates {
        true => &[Race::Create, Race::Update],
        false => &[Race::Create],
    };
    // If lists are not permitted, this fails here rather than in the middle of a crawl.
    objects
        .list_with_delimiter(Some(&ObjectPath::from(PROBES)))
        .await?;
    let mut dated = 0;
    for race in races {
        match race_until_won(objects, *race).await? {
            ProbeResult::Kept(at) => dated = at,
            broken @ ProbeResult::Broken(_) => return Ok(broken),
        }
    }
    Ok(ProbeResult::Kept(dated))
}

/// Repeats a race until a writer is told that it won, or the store turns out to be broken.
async fn race_until_won(
    objects: &Arc<dyn ObjectStore>,
    race: Race,
) -> Result<ProbeResult, ObjectError> {
    for _ in 0..RACES {
        let name = hex::encode(rand::random::<[u8; 8]>());
        let path = ObjectPath::from_iter([PROBES, &name]);
        let found = race_once(objects, &path, race).await;
        // What cannot be removed now is swept later.
        let _removed = objects.delete(&path).await;
        if let Some(result) = found? {
            return Ok(result);
        }
    }
    let verb = race.verb();
    Ok(ProbeResult::Broken(format!(
        "in {RACES} races of {WRITERS} writers that {verb} one object at once, nobody was told that it won"
    )))
}

/// Returns the result of one race; `None` if a writer won, but the answer to it was lost.
async fn race_once(
    objects: &Arc<dyn ObjectStore>,
    path: &ObjectPath,
    race: Race,
) -> Result<Option<ProbeResult>, ObjectError> {
    let mode = match race {
        Race::Create => PutMode::Create,
        Race::Update => {
            let put = objects.put(path, "before".into()).await?;
            PutMode::Update(UpdateVersion::from(put))
        }
    };
    let writes = (0..WRITERS).map(|n| {
        let mode = mode.clone();
        async move {
            let body = format!("writer {n}");
            let write = objects.put_opts(path, body.clone().into(), mode.into());
            match write.await {
                Ok(_) => Ok(Some(body)),
                Err(ObjectError::AlreadyExists { .. } | ObjectError::Precondition { .. }) => {
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        }
    });
    let mut winners = Vec::new();
    let mut failed = None;
    for written in join_all(writes).await {
        match written {
            Ok(winner) => winners.extend(winner),
            Err(error) => failed = Some(error),
        }
    }
    let (kept, meta) = match read(objects, path).await {
        Ok(found) => found,
        Err(error) => return Err(failed.unwrap_or(error)),
    };
    let verb = race.verb();
    let broken = |why: String| Ok(Some(ProbeResult::Broken(why)));
    match winners.as_slice() {
        // The answer to the winner was lost.
        [] if kept.starts_with(b"writer ") => Ok(None),
        [] if let Some(failed) = failed => Err(failed),
        [winner] if kept == winner.as_bytes() => {
            let dated = u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or(0);
            Ok(Some(ProbeResult::Kept(dated)))
        }
        [_] => broken(format!(
            "of several writers that {verb} one object at once, another one's bytes were kept"
        )),
        winners => broken(format!(
            "of {WRITERS} writers that {verb} one object at once, {} were told that they did",
            winners.len()
        )),
    }
}

impl Race {
    fn verb(self) -> &'static str {
        match self {
            Race::Create => "created",
            Race::Update => "replaced",
        }
    }
}

async fn read(
    objects: &Arc<dyn ObjectStore>,
    path: &ObjectPath,
) -> Result<(Bytes, ObjectMeta), ObjectError> {
    let found = objects.get(path).await?;
    let meta = found.meta.clone();
    Ok((found.bytes().await?, meta))
}

#[cfg(test)]
mod tests;
