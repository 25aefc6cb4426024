//! Copies objects between the archive and the data root, in pieces.

use std::fmt;
use std::sync::Arc;

use futures::TryStreamExt as _;
use object_store::path::Path as ObjectPath;
use object_store::{
    Error as ObjectError, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutPayload,
    WriteMultipart,
};

use super::BackupError;
use crawler_model::id::{Digest, RunningDigest};

/// Number of objects that are copied at the same time.
pub(super) const COPIES: usize = 4;
/// Number of bytes of one piece that is read, and of one part of a large object. A smaller object is written at once.
const PART: usize = 8 << 20;
/// Largest number of parts of one object that all object stores take.
const PARTS_MAX: u64 = 10_000;
/// Number of parts of one object that are written at the same time.
const PARTS_AT_ONCE: usize = 2;

/// Side of a copy.
#[derive(Clone)]
pub(super) struct Objects {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Name of the side, for messages.
    pub(super) place: String,
    /// True if it is a bucket, which takes only so many parts of one object.
    pub(super) is_bucket: bool,
}

impl Objects {
    /// Returns a function that makes the error of an object of this side.
    pub(super) fn failed(
        &self,
        doing: &'static str,
        path: &ObjectPath,
    ) -> impl FnOnce(ObjectError) -> BackupError + use<> {
        let (path, place) = (path.to_string(), self.place.clone());
        move |source| BackupError::Object {
            doing,
            path,
            place,
            source: Box::new(source),
        }
    }

    /// Reads an object, and hands its pieces on. Returns its size and its digest, and the receiver: the caller looks at
    /// the digest before the object that is written counts.
    pub(super) async fn read(
        &self,
        path: &ObjectPath,
        mut sink: PieceSink,
    ) -> Result<((u64, Digest), PieceSink), BackupError> {
        let read = self.store.get(path).await;
        let mut pieces = read.map_err(self.failed("read", path))?.into_stream();
        let mut running = RunningDigest::default();
        let mut n_bytes = 0;
        loop {
            let piece = match pieces.try_next().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(error) => {
                    sink.give_up().await;
                    return Err(self.failed("read", path)(error));
                }
            };
            running.add(&piece);
            n_bytes += piece.len() as u64;
            if let Err(error) = sink.take(piece).await {
                sink.give_up().await;
                return Err(error);
            }
        }
        Ok(((n_bytes, running.digest()), sink))
    }

    /// Returns the description of an object; `None` if it is not there.
    pub(super) async fn find(&self, path: &ObjectPath) -> Result<Option<ObjectMeta>, BackupError> {
        match self.store.head(path).await {
            Ok(object) => Ok(Some(object)),
            Err(ObjectError::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("read", path)(error)),
        }
    }

    /// Reads an object to its end and finishes what is written, with a request for each piece, so that no request of a
    /// large object takes long. Fails if the object has changed since it was listed.
    pub(super) async fn read_pieces(
        &self,
        object: &ObjectMeta,
        mut sink: PieceSink,
    ) -> Result<(u64, Digest), BackupError> {
        let mut running = RunningDigest::default();
        let mut n_bytes = 0;
        while n_bytes < object.size {
            let end = object.size.min(n_bytes + PART as u64);
            let piece = async {
                let options = GetOptions {
                    range: Some((n_bytes..end).into()),
                    if_match: object.e_tag.clone(),
                    ..GetOptions::default()
                };
                let read = self.store.get_opts(&object.location, options).await?;
                read.bytes().await
            };
            let failed = self.failed("read", &object.location);
            let taken = match piece.await {
                Ok(piece) => {
                    running.add(&piece);
                    n_bytes += piece.len() as u64;
                    sink.take(piece).await
                }
                Err(error) => Err(failed(error)),
            };
            if let Err(error) = taken {
                sink.give_up().await;
                return Err(error);
            }
        }
        sink.finish().await?;
        Ok((n_bytes, running.digest()))
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// Receiver of the pieces of an object.
pub(super) enum PieceSink {
    /// Pieces are only read.
    Nowhere,
    /// Pieces are written to an object.
    Object(Box<Writing>),
}

/// Object that is being written.
pub(super) struct Writing {
    to: Objects,
    path: ObjectPath,
    /// Number of bytes of a part.
    part: usize,
    /// Bytes that wait to be written. They are the whole object unless `upload` is there.
    waiting: Vec<u8>,
    upload: Option<WriteMultipart>,
}

impl PieceSink {
    /// Begins to write an object of this size.
    pub(super) fn object(to: &Objects, path: &ObjectPath, n_bytes: u64) -> Self {
        Self::Object(Box::new(Writing {
            to: to.clone(),
            path: path.clone(),
            part: match to.is_bucket {
                true => part_size(n_bytes),
                false => PART,
            },
            waiting: Vec::new(),
            upload: None,
        }))
    }

    async fn take(&mut self, piece: bytes::Bytes) -> Result<(), BackupError> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Object(writing) => writing.take(piece).await,
        }
    }

    /// Ends the object. It is there and durable when this returns.
    pub(super) async fn finish(self) -> Result<(), BackupError> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Object(writing) => writing.finish().await,
        }
    }

    /// Gives the object up: nothing of it is there afterwards.
    pub(super) async fn give_up(self) {
        if let Self::Object(writing) = self
            && let Some(upload) = writing.upload
        {
            // The caller reports why it gives up; parts that stay are removed by a rule of the bucket.
            let _kept = upload.abort().await;
        }
    }
}

impl Writing {
    async fn take(&mut self, piece: bytes::Bytes) -> Result<(), BackupError> {
        let failed = self.to.failed("write", &self.path);
        let written = async {
            if let Some(upload) = &mut self.upload {
                upload.wait_for_capacity(PARTS_AT_ONCE).await?;
                upload.put(piece);
                return Ok::<(), ObjectError>(());
            }
            self.waiting.extend_from_slice(&piece);
            if self.waiting.len() > self.part {
                let begun = self.to.store.put_multipart(&self.path).await?;
                let mut upload = WriteMultipart::new_with_chunk_size(begun, self.part);
                upload.put(std::mem::take(&mut self.waiting).into());
                self.upload = Some(upload);
            }
            Ok(())
        };
        written.await.map_err(failed)
    }

    async fn finish(self) -> Result<(), BackupError> {
        let failed = self.to.failed("write", &self.path);
        let written = match self.upload {
            Some(upload) => upload.finish().await,
            None => {
                let whole = PutPayload::from(self.waiting);
                self.to.store.put(&self.path, whole).await
            }
        };
        written.map(drop).map_err(failed)
    }
}

/// Returns the number of bytes of each part of an object of this size in a bucket. Parts of very large objects are larger, because
/// object stores take only so many.
fn part_size(n_bytes: u64) -> usize {
    let smallest = n_bytes.div_ceil(PARTS_MAX);
    usize::try_from(smallest).unwrap_or(usize::MAX).max(PART)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    #[test]
    fn only_a_bucket_gets_larger_parts() {
        let n_bytes = 2 * PARTS_MAX * PART as u64;
        for (is_bucket, expected) in [(true, 2 * PART), (false, PART)] {
            let to = Objects {
                store: Arc::new(InMemory::new()),
                place: "a test".to_owned(),
                is_bucket,
            };
            let sink = PieceSink::object(&to, &ObjectPath::from("a"), n_bytes);
            let PieceSink::Object(writing) = sink else {
                panic!("an object is written")
            };
            assert_eq!(writing.part, expected, "{is_bucket}");
        }
    }

    #[test]
    fn parts_grow_with_the_object_and_stay_within_their_number() {
        const TIB: u64 = 1 << 40;
        let largest_of_usual_parts = PARTS_MAX * PART as u64;
        for n_bytes in [0, 1, TIB / 100, largest_of_usual_parts] {
            assert_eq!(part_size(n_bytes), PART, "{n_bytes}");
        }
        for n_bytes in [largest_of_usual_parts + 1, TIB, 5 * TIB] {
            let part = part_size(n_bytes) as u64;
            assert!(part > PART as u64, "{n_bytes}");
            assert!(n_bytes.div_ceil(part) <= PARTS_MAX, "{n_bytes}");
        }
    }
}
