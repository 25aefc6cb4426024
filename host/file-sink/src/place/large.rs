//! Large files on their way between a place and temporary files of this machine: no more than a part is in memory.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};

use futures::StreamExt as _;
use object_store::path::Path as ObjectPath;
use object_store::{
    Attribute, Attributes, Error as ObjectError, GetResultPayload, MultipartUpload,
    ObjectStoreExt as _, PutMultipartOptions, PutPayload,
};

use crawler_process::task;
use crawler_sink::SinkError;

use super::{OpenPlace, UNFINISHED, unfinished};

/// Size of a part of an upload. A file that is no larger is written at once.
const PART: usize = 8 << 20;

/// Error of this machine in the middle of a transfer.
fn own(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ObjectError {
    ObjectError::Generic {
        store: "temporary file",
        source: error.into(),
    }
}

/// Does work on a file away from the executor.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, ObjectError> {
    let done = task::blocking(work).await.map_err(own)?;
    done.map_err(own)
}

/// Reads up to a part, and returns the file with what was read: less than a part is the end.
async fn next_part(mut file: File) -> Result<(File, Vec<u8>), ObjectError> {
    blocking(move || {
        let mut part = Vec::new();
        (&mut file).take(PART as u64).read_to_end(&mut part)?;
        Ok((file, part))
    })
    .await
}

impl OpenPlace {
    /// Returns a file of the place as one of this machine, to be read from its beginning: the file itself in a folder, else
    /// a temporary copy. Returns `None` if it is gone.
    pub(crate) async fn fetch(&self, path: &ObjectPath) -> Result<Option<File>, SinkError> {
        match self.try_fetch(path).await {
            Ok(file) => Ok(Some(file)),
            Err(ObjectError::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("read", path, error)),
        }
    }

    async fn try_fetch(&self, path: &ObjectPath) -> Result<File, ObjectError> {
        let found = self.objects.get(path).await?;
        let mut stream = match found.payload {
            GetResultPayload::File(file, _) => return Ok(file),
            GetResultPayload::Stream(stream) => stream,
        };
        let mut copy = blocking(tempfile::tempfile).await?;
        while let Some(bytes) = stream.next().await {
            let bytes = bytes?;
            copy = blocking(move || {
                copy.write_all(&bytes)?;
                Ok(copy)
            })
            .await?;
        }
        blocking(move || {
            copy.rewind()?;
            Ok(copy)
        })
        .await
    }

    /// Writes a whole file of this machine, read from where it stands, under a name that nobody else writes. It is there as
    /// a whole, or not at all.
    pub(crate) async fn upload(
        &self,
        path: &ObjectPath,
        file: File,
        media_type: &'static str,
    ) -> Result<(), SinkError> {
        let failed = |error| self.failed("write", path, error);
        let n_bytes = file.metadata().map(|found| found.len());
        let n_bytes = n_bytes.map_err(|error| failed(own(error)))?;
        let (file, first) = next_part(file).await.map_err(failed)?;
        if first.len() < PART {
            return self.create(path, first, media_type).await;
        }
        match self.upload_parts(path, file, first, media_type).await {
            Ok(()) => Ok(()),
            Err(error) => match self.objects.head(path).await {
                // The answer to the last request was lost.
                Ok(found) if found.size == n_bytes => Ok(()),
                _ => Err(failed(error)),
            },
        }
    }

    /// Removes a file that nobody finishes, with what is there of it under other names.
    pub(crate) async fn sweep(&self, path: &ObjectPath) -> Result<(), SinkError> {
        self.remove(path).await?;
        let Some(root) = &self.folder else {
            return Ok(());
        };
        let folder = root.join(UNFINISHED);
        let beginning = unfinished(path);
        let beginning = beginning.filename().unwrap_or_default().to_owned();
        let swept = blocking(move || {
            let entries = match std::fs::read_dir(&folder) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                let name = entry.file_name();
                if name.to_string_lossy().starts_with(&beginning) {
                    match std::fs::remove_file(entry.path()) {
                        // Another run sweeps, too, or the output has its name now.
                        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                        removed => removed?,
                    }
                }
            }
            Ok(())
        });
        let swept = swept.await;
        swept.map_err(|error| self.failed("remove what is unfinished of", path, error))
    }

    async fn upload_parts(
        &self,
        path: &ObjectPath,
        file: File,
        first: Vec<u8>,
        media_type: &'static str,
    ) -> Result<(), ObjectError> {
        let mut options = PutMultipartOptions::default();
        let to = match &self.folder {
            Some(_) => unfinished(path),
            None => {
                options.attributes = Attributes::from_iter([(Attribute::ContentType, media_type)]);
                path.clone()
            }
        };
        let mut upload = self.objects.put_multipart_opts(&to, options).await?;
        if let Err(error) = put_parts(&mut *upload, file, first).await {
            // Whoever looks after the bucket ends uploads that are left.
            let _left = upload.abort().await;
            return Err(error);
        }
        match &self.folder {
            Some(_) => self.give_name(&to, path).await,
            None => Ok(()),
        }
    }
}

async fn put_parts(
    upload: &mut dyn MultipartUpload,
    mut file: File,
    mut part: Vec<u8>,
) -> Result<(), ObjectError> {
    loop {
        let is_last = part.len() < PART;
        if !part.is_empty() {
            upload.put_part(PutPayload::from(part)).await?;
        }
        if is_last {
            return upload.complete().await.map(drop);
        }
        (file, part) = next_part(file).await?;
    }
}
