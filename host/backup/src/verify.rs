//! Checks an archive against its lists.

use std::pin::pin;

use futures::TryStreamExt as _;
use object_store::Error as ObjectError;
use object_store::path::Path as ObjectPath;

use super::archive::Archive;
use super::copy::{COPIES, Objects, PieceSink};
use super::lines::{digest, lines};
use super::{BackupError, Manifest, ObjectLine, Progress};

/// Number of faults that are told one by one.
const FAULTS_MAX: usize = 20;

impl Archive {
    /// Checks that the archive is whole: each file has the digest that was written down for it.
    pub async fn verify(&self, progress: Progress<'_>) -> Result<Manifest, BackupError> {
        let manifest = self.manifest().await?;
        let lists = [
            (self.records_file(), &manifest.records),
            (self.objects_file(), &manifest.objects),
        ];
        for (path, listed) in lists {
            if digest(&path).await? != listed.sha256 {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                return Err(self.damaged(vec![format!("{name} has another digest")]));
            }
        }
        let faults = self.check_objects(&manifest, progress).await?;
        match faults.is_empty() {
            true => Ok(manifest),
            false => Err(self.damaged(faults)),
        }
    }

    /// Reads all objects, and returns what is wrong with them.
    async fn check_objects(
        &self,
        manifest: &Manifest,
        progress: Progress<'_>,
    ) -> Result<Vec<String>, BackupError> {
        let objects = self.objects()?;
        let listed = lines::<ObjectLine>(self.objects_file(), manifest.objects.sha256).await?;
        let checks = listed.map_ok(move |line| {
            let objects = objects.clone();
            async move {
                let fault = check(&objects, &line).await?;
                Ok::<_, BackupError>((line.n_bytes, fault))
            }
        });
        let mut checks = pin!(checks.try_buffer_unordered(COPIES));
        let mut faults = Vec::new();
        let (mut n, mut n_bytes, mut n_faults) = (0, 0, 0);
        while let Some((of_object, fault)) = checks.try_next().await? {
            n += 1;
            n_bytes += of_object;
            progress(n, n_bytes);
            if let Some(fault) = fault {
                n_faults += 1;
                if n_faults <= FAULTS_MAX {
                    faults.push(fault);
                }
            }
        }
        if n_faults > FAULTS_MAX {
            faults.push(format!("{} more", n_faults - FAULTS_MAX));
        }
        Ok(faults)
    }
}

/// Returns what is wrong with an object; `None` if it is as it was written.
async fn check(objects: &Objects, line: &ObjectLine) -> Result<Option<String>, BackupError> {
    let path = match path_of(line) {
        Ok(path) => path,
        Err(why) => return Ok(Some(why)),
    };
    Ok(match objects.read(&path, PieceSink::Nowhere).await {
        Ok((read, _)) if read == (line.n_bytes, line.sha256) => None,
        Ok(((n_bytes, _), _)) if n_bytes != line.n_bytes => {
            Some(format!("{path} has {n_bytes} bytes, not {}", line.n_bytes))
        }
        Ok(_) => Some(format!("{path} has another digest")),
        Err(BackupError::Object { source, .. })
            if matches!(*source, ObjectError::NotFound { .. }) =>
        {
            Some(format!("{path} is missing"))
        }
        Err(error) => return Err(error),
    })
}

/// Returns the path of a line; an error is a fault of the archive.
pub(super) fn path_of(line: &ObjectLine) -> Result<ObjectPath, String> {
    let path = ObjectPath::parse(&line.path);
    let path = path.map_err(|error| format!("{:?} is no path: {error}", line.path))?;
    match crawler_data::is_content(&path) {
        true => Ok(path),
        false => Err(format!("{path} is no object of a cluster")),
    }
}
