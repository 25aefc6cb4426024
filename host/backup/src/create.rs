//! Takes a backup.

use std::path::Path;
use std::pin::pin;

use futures::{StreamExt as _, TryStreamExt as _};
use object_store::{Error as ObjectError, ObjectMeta};

use super::archive::Archive;
use super::copy::{COPIES, Objects, PieceSink};
use super::lines::LineWriter;
use super::seen::Seen;
use super::{BackupError, FORMAT, Listed, Manifest, ObjectLine, Progress, RecordLine, RootKind};
use crawler_data::DataRoot;
use crawler_model::crawl::UnixMillis;
use crawler_store::catalog::Catalog;
use crawler_store::{Entry, Listing};

/// Takes a backup of a cluster none of whose nodes is there, into a folder that is empty or does not exist. `made_by` is
/// the version of the program, and the time.
pub async fn create(
    catalog: &Catalog,
    data: &DataRoot,
    folder: &Path,
    made_by: (&str, UnixMillis),
    progress: Progress<'_>,
) -> Result<Manifest, BackupError> {
    let before = look(catalog).await?;
    let cluster = cluster(catalog).await?;
    let of_data = data.cluster().await?;
    if of_data.as_deref() != Some(&cluster) {
        return Err(BackupError::Apart {
            store: cluster,
            data: of_data,
        });
    }
    check_outside(folder, data)?;
    let archive = Archive::create(folder)?;
    let records = write_records(&archive, &before.entries).await?;
    let (objects, seen) = copy_objects(data, &archive, progress).await?;
    let what = |what: &str| BackupError::Changed {
        what: what.to_owned(),
    };
    if seen_now(data).await? != seen {
        return Err(what("the data root"));
    }
    if look(catalog).await?.entries != before.entries {
        return Err(what("the store"));
    }
    let manifest = Manifest {
        format: FORMAT,
        cluster,
        version: made_by.0.to_owned(),
        taken_at: made_by.1,
        root: RootKind::of(data),
        revision: before.revision.0,
        records,
        objects,
    };
    archive.finish(&manifest).await?;
    Ok(manifest)
}

/// Lists all keys that are not under leases and that mean something in another store too; an error if nodes are there.
async fn look(catalog: &Catalog) -> Result<Listing, BackupError> {
    let keys = catalog.keys();
    let listed = catalog.store().list(&keys.all()).await;
    let mut listing = listed.map_err(|source| BackupError::Store {
        doing: "read",
        source,
    })?;
    let of_nodes = keys.all_nodes();
    let nodes = listing.entries.iter().filter_map(|entry| {
        let (_role, id) = entry.key.strip_prefix(&of_nodes)?.split_once('/')?;
        Some(id.to_owned())
    });
    let nodes: Vec<String> = nodes.collect();
    if !nodes.is_empty() {
        return Err(BackupError::Running { nodes });
    }
    listing
        .entries
        .retain(|entry| !keys.is_leased(&entry.key) && !keys.is_of_this_store(&entry.key));
    Ok(listing)
}

async fn cluster(catalog: &Catalog) -> Result<String, BackupError> {
    let read = catalog.read::<String>(&catalog.keys().cluster()).await;
    let read = read.map_err(|source| BackupError::Store {
        doing: "read",
        source,
    })?;
    Ok(read.ok_or(BackupError::NoCluster)?.value)
}

/// Refuses a folder that would be among the objects to copy.
fn check_outside(folder: &Path, data: &DataRoot) -> Result<(), BackupError> {
    let absolute = std::path::absolute(folder);
    let absolute = absolute.map_err(BackupError::file("find", folder))?;
    // Links and `..` are followed as far as the path is there.
    let mut there = absolute
        .ancestors()
        .filter_map(|path| path.canonicalize().ok());
    let there = there.next().unwrap_or(absolute);
    match data.folder() {
        Some(root) if there.starts_with(root) => Err(BackupError::Inside {
            folder: folder.display().to_string(),
            root: root.display().to_string(),
        }),
        _ => Ok(()),
    }
}

async fn write_records(archive: &Archive, entries: &[Entry]) -> Result<Listed, BackupError> {
    let mut lines = LineWriter::create(archive.records_file()).await?;
    for entry in entries {
        let line = RecordLine {
            key: entry.key.clone(),
            value: entry.value.to_vec(),
        };
        let n_bytes = entry.key.len() + entry.value.len();
        lines.write(&line, n_bytes as u64).await?;
    }
    lines.finish().await
}

/// Copies all objects of the data root. Returns their lines, and the sum over the listing.
async fn copy_objects(
    data: &DataRoot,
    archive: &Archive,
    progress: Progress<'_>,
) -> Result<(Listed, Seen), BackupError> {
    let from = Objects {
        store: data.object_store(),
        place: "the data root".to_owned(),
        is_bucket: data.folder().is_none(),
    };
    let to = archive.objects()?;
    let mut lines = LineWriter::create(archive.objects_file()).await?;
    let mut seen = Seen::default();
    let (mut n, mut n_bytes) = (0, 0);
    let copies = data.contents().map_err(BackupError::from);
    let copies = copies.map_ok(move |object| {
        let (from, to) = (from.clone(), to.clone());
        async move {
            let line = copy(&from, &to, &object).await?;
            Ok::<_, BackupError>((object, line))
        }
    });
    let mut copies = pin!(copies.try_buffer_unordered(COPIES));
    while let Some((object, line)) = copies.try_next().await? {
        seen.add(&object);
        lines.write(&line, line.n_bytes).await?;
        n += 1;
        n_bytes += line.n_bytes;
        progress(n, n_bytes);
    }
    Ok((lines.finish().await?, seen))
}

async fn copy(
    from: &Objects,
    to: &Objects,
    object: &ObjectMeta,
) -> Result<ObjectLine, BackupError> {
    let path = &object.location;
    let changed = || BackupError::Changed {
        what: path.to_string(),
    };
    let sink = PieceSink::object(to, path, object.size);
    let (n_bytes, sha256) = match from.read_pieces(object, sink).await {
        Err(BackupError::Object { source, .. })
            if matches!(
                *source,
                ObjectError::NotFound { .. } | ObjectError::Precondition { .. }
            ) =>
        {
            return Err(changed());
        }
        read => read?,
    };
    if n_bytes != object.size {
        return Err(changed());
    }
    Ok(ObjectLine {
        path: path.to_string(),
        n_bytes,
        sha256,
    })
}

async fn seen_now(data: &DataRoot) -> Result<Seen, BackupError> {
    let mut seen = Seen::default();
    let mut contents = data.contents();
    while let Some(object) = contents.next().await {
        seen.add(&object?);
    }
    Ok(seen)
}
