//! Tests that a store keeps two writers apart, and dates what it keeps: frontiers and clusters rely on it.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use object_store::path::Path as ObjectPath;
use object_store::{
    Error as ObjectError, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, UpdateVersion,
};

use crawler_model::crawl::UnixMillis;

/// Folder of probes. Each is removed when it is done; a kill may leave one.
pub(super) const PROBES: &str = "probe";
/// Number of writes at once.
const WRITERS: usize = 8;
/// Number of races until one must have told its winner: the answer to a write may get lost.
const RACES: usize = 5;

/// Result of a probe.
#[derive(Debug)]
pub(super) enum ProbeResult {
    /// Exactly one writer wins. This is the time at which the store says that it wrote the object.
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

/// Writes one object several times at once. Exactly one create may succeed, the others must be told that the
/// object exists, and its content must be the winner's; then the same with updates of what is there, if the store has
/// them.
pub(super) async fn probe(
    objects: &Arc<dyn ObjectStore>,
    has_updates: bool,
) -> Result<ProbeResult, ObjectError> {
    let races: &[Race] = match has_updates {
        true => &[Race::Create, Race::Update],
        false => &[Race::Create],
    };
    // A listing that is not allowed would show much later, in the middle of a crawl.
    objects
        .list_with_delimiter(Some(&ObjectPath::from(PROBES)))
        .await?;
    let mut dated = 0;
    for race in races {
        match conclusive(objects, *race).await? {
            ProbeResult::Kept(at) => dated = at,
            broken @ ProbeResult::Broken(_) => return Ok(broken),
        }
    }
    Ok(ProbeResult::Kept(dated))
}

async fn conclusive(
    objects: &Arc<dyn ObjectStore>,
    race: Race,
) -> Result<ProbeResult, ObjectError> {
    for _ in 0..RACES {
        let name = hex::encode(rand::random::<[u8; 8]>());
        let path = ObjectPath::from_iter([PROBES, &name]);
        let found = run(objects, &path, race).await;
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

/// Returns the result of one race; `None` if no writer was told that it won, although there was one.
async fn run(
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
        // The winner's answer was lost.
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
