//! Restores a backup.

use std::collections::{HashMap, HashSet};
use std::pin::pin;

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::path::Path as ObjectPath;

use super::archive::Archive;
use super::copy::{COPIES, Objects, PieceSink};
use super::lines::lines;
use super::verify::path_of;
use super::{BackupError, Manifest, ObjectLine, Progress, RecordLine, RootKind};
use crawler_data::DataRoot;
use crawler_store::catalog::Catalog;
use crawler_store::{Guard, Outcome, StoreError, TXN_BYTES_MAX, TXN_MAX, Txn};

/// Restores an archive into an empty store and an empty data root, or goes on with the same restore that was cut off:
/// objects that are there already are compared and not written again. Progress is that of the copy, after that of the
/// verification. An archive that changes after its verification is noticed before what has changed is written.
pub async fn restore(
    archive: &Archive,
    catalog: &Catalog,
    data: &DataRoot,
    progress: Progress<'_>,
) -> Result<Manifest, BackupError> {
    let manifest = archive.verify(progress).await?;
    let here = RootKind::of(data);
    if manifest.root != here {
        return Err(BackupError::OtherKind {
            of: manifest.root,
            here,
        });
    }
    let records = records(archive, &manifest, catalog).await?;
    let present = present(catalog).await?;
    let name = name_of(&manifest);
    let marked = data.marked_restore().await?;
    let goes_on = marked.is_some();
    match marked {
        Some(marked) if marked == name => {
            // The id of the cluster is the last record, so all others were written. Nodes may have run since, and
            // nothing is written again.
            if is_cluster(&present, catalog, &manifest) {
                data.unmark_restore().await?;
                return Ok(manifest);
            }
            check_same(&records, present.clone())?;
            check_list((archive, &manifest), paths(data).await?).await?;
        }
        Some(_) => return Err(BackupError::OtherRestore),
        None => {
            if let Some(key) = present.keys().min() {
                return Err(BackupError::StoreUsed { key: key.clone() });
            }
            if let Some(object) = data.contents().try_next().await? {
                let path = object.location.to_string();
                return Err(BackupError::RootUsed { path });
            }
            check_list((archive, &manifest), HashSet::new()).await?;
            if !data.mark_restore(&name).await? {
                return Err(BackupError::OtherRestore);
            }
        }
    }
    // From here on a process of a new cluster is refused.
    data.bind_cluster(&manifest.cluster).await?;
    copy_objects((archive, &manifest), data, goes_on, progress).await?;
    write_records(records, catalog, &present).await?;
    data.unmark_restore().await?;
    Ok(manifest)
}

/// Reads the records of the archive. All of them are of a cluster, and none is of a process that runs. Those that mean nothing
/// in another store are passed over: backups of earlier versions have some.
async fn records(
    archive: &Archive,
    manifest: &Manifest,
    catalog: &Catalog,
) -> Result<Vec<RecordLine>, BackupError> {
    let (keys, all) = (catalog.keys(), catalog.keys().all());
    let lines = lines::<RecordLine>(archive.records_file(), manifest.records.sha256).await?;
    let mut records: Vec<RecordLine> = lines.try_collect().await?;
    let is_foreign = |key: &str| !key.starts_with(&all) || keys.is_leased(key);
    match records.iter().find(|record| is_foreign(&record.key)) {
        Some(RecordLine { key, .. }) => {
            let why = format!("{key:?} is no key of a stopped cluster");
            Err(archive.damaged(vec![why]))
        }
        None => {
            records.retain(|record| !keys.is_of_this_store(&record.key));
            Ok(records)
        }
    }
}

/// Returns a name that tells the archive from all others.
pub(super) fn name_of(manifest: &Manifest) -> String {
    let Manifest {
        records, objects, ..
    } = manifest;
    let (cluster, at) = (&manifest.cluster, manifest.taken_at);
    format!("{cluster} {at} {} {}", records.sha256, objects.sha256)
}

/// Returns all keys of the store.
async fn present(catalog: &Catalog) -> Result<HashMap<String, Bytes>, BackupError> {
    let listed = catalog.store().list(&catalog.keys().all()).await;
    let listed = listed.map_err(|source| BackupError::Store {
        doing: "read",
        source,
    })?;
    let entries = listed.entries.into_iter();
    Ok(entries.map(|entry| (entry.key, entry.value)).collect())
}

/// Returns true if the store has the id of the cluster of the archive.
fn is_cluster(present: &HashMap<String, Bytes>, catalog: &Catalog, manifest: &Manifest) -> bool {
    let id = present.get(&catalog.keys().cluster());
    let id = id.and_then(|id| serde_json::from_slice::<String>(id).ok());
    id.as_ref() == Some(&manifest.cluster)
}

/// Checks that the store has nothing but records of the archive.
fn check_same(
    records: &[RecordLine],
    mut present: HashMap<String, Bytes>,
) -> Result<(), BackupError> {
    for record in records {
        let value = present.get(&record.key);
        if value.is_some_and(|value| *value == record.value) {
            present.remove(&record.key);
        }
    }
    match present.into_keys().min() {
        Some(key) => Err(BackupError::StoreUsed { key }),
        None => Ok(()),
    }
}

/// Returns the paths of all objects of the data root.
async fn paths(data: &DataRoot) -> Result<HashSet<String>, BackupError> {
    let paths = data.contents().map_ok(|object| object.location.to_string());
    Ok(paths.try_collect().await?)
}

/// Checks the whole list of objects before any of them is written: it is the one that was verified, and these paths, which
/// are in the data root, are in it.
async fn check_list(
    (archive, manifest): (&Archive, &Manifest),
    mut present: HashSet<String>,
) -> Result<(), BackupError> {
    let listed = lines::<ObjectLine>(archive.objects_file(), manifest.objects.sha256).await?;
    let mut listed = pin!(listed);
    while let Some(line) = listed.try_next().await? {
        let path = path_of(&line).map_err(|why| archive.damaged(vec![why]))?;
        present.remove(AsRef::<str>::as_ref(&path));
    }
    match present.into_iter().min() {
        Some(path) => Err(BackupError::RootUsed { path }),
        None => Ok(()),
    }
}

/// Copies the objects. If an earlier restore `goes_on`, those that it has written are left as they are.
async fn copy_objects(
    (archive, manifest): (&Archive, &Manifest),
    data: &DataRoot,
    goes_on: bool,
    progress: Progress<'_>,
) -> Result<(), BackupError> {
    let from = archive.objects()?;
    let to = Objects {
        store: data.object_store(),
        place: "the data root".to_owned(),
        is_bucket: data.folder().is_none(),
    };
    let copies = lines::<ObjectLine>(archive.objects_file(), manifest.objects.sha256).await?;
    let archive = archive.clone();
    let copies = copies.map_ok(move |line| {
        let (from, to, archive) = (from.clone(), to.clone(), archive.clone());
        async move {
            let path = path_of(&line).map_err(|why| archive.damaged(vec![why]))?;
            if goes_on && is_there(&to, &path, &line).await? {
                return Ok(line.n_bytes);
            }
            let sink = PieceSink::object(&to, &path, line.n_bytes);
            let (read, sink) = from.read(&path, sink).await?;
            if read != (line.n_bytes, line.sha256) {
                sink.give_up().await;
                let why = format!("{path} has changed since it was verified");
                return Err(archive.damaged(vec![why]));
            }
            sink.finish().await?;
            Ok(line.n_bytes)
        }
    });
    let mut copies = pin!(copies.try_buffer_unordered(COPIES));
    let (mut n, mut n_bytes) = (0, 0);
    while let Some(of_object) = copies.try_next().await? {
        n += 1;
        n_bytes += of_object;
        progress(n, n_bytes);
    }
    Ok(())
}

/// Returns true if the object is there with the size and the digest of this line.
async fn is_there(to: &Objects, path: &ObjectPath, line: &ObjectLine) -> Result<bool, BackupError> {
    match to.find(path).await? {
        Some(object) if object.size == line.n_bytes => {
            let read = to.read_pieces(&object, PieceSink::Nowhere).await?;
            Ok(read == (line.n_bytes, line.sha256))
        }
        Some(_) | None => Ok(false),
    }
}

/// Writes the records that are not there yet, and the id of the cluster last.
async fn write_records(
    records: Vec<RecordLine>,
    catalog: &Catalog,
    present: &HashMap<String, Bytes>,
) -> Result<(), BackupError> {
    let last_key = catalog.keys().cluster();
    let mut last = Batch::default();
    let mut batch = Batch::default();
    for record in records {
        if present.contains_key(&record.key) {
            continue;
        }
        if record.key == last_key {
            last.add(record);
            continue;
        }
        if !batch.has_room_for(&record) {
            std::mem::take(&mut batch).write(catalog).await?;
        }
        batch.add(record);
    }
    batch.write(catalog).await?;
    last.write(catalog).await
}

/// Records that one transaction writes.
#[derive(Default)]
struct Batch {
    txn: Txn,
    keys: Vec<String>,
    n_bytes: usize,
}

impl Batch {
    fn has_room_for(&self, record: &RecordLine) -> bool {
        let n_bytes = self.n_bytes + record.key.len() + record.value.len();
        self.keys.len() < TXN_MAX && n_bytes <= TXN_BYTES_MAX
    }

    fn add(&mut self, record: RecordLine) {
        self.n_bytes += record.key.len() + record.value.len();
        self.keys.push(record.key.clone());
        let txn = std::mem::take(&mut self.txn);
        let txn = txn.guard(Guard::Absent(record.key.clone()));
        self.txn = txn.put(record.key, record.value);
    }

    /// Writes the records; does nothing if there are none.
    async fn write(self, catalog: &Catalog) -> Result<(), BackupError> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let committed = catalog.store().commit(self.txn).await;
        let failed = |source: StoreError| BackupError::Store {
            doing: "write",
            source,
        };
        match committed.map_err(failed)? {
            Outcome::Done(_) => Ok(()),
            Outcome::Lost(guard) => Err(BackupError::StoreUsed {
                key: self.keys.get(guard).cloned().unwrap_or_default(),
            }),
            Outcome::Unknown => Err(BackupError::Unknown),
        }
    }
}
