//! Object store with faults: it answers 503 or 429, breaks the connection, is slow or full, or does its work and
//! then loses the answer. The holder of the [`Faults`] decides when.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
    UploadPart,
};

/// Faults that a call may meet with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The answer is 503, and nothing is done.
    Unavailable,
    /// The answer is 429, and nothing is done.
    TooMany,
    /// The connection breaks, and nothing is done.
    Reset,
    /// The call is done, and then the connection breaks.
    AnswerLost,
    /// No space is left: writes fail, and other calls are done.
    Full,
    /// The answer to reads is 503, and nothing is done; writes are done.
    Unreadable,
    /// The call is done, this much later.
    Slow(Duration),
}

/// Source of the faults that the calls of a [`FaultyStore`] meet with.
pub type Faults = crate::faults::Faults<Fault>;

/// Meets with the next fault. An error is the answer in place of the call's. If its second part is true, the call
/// is to be made first.
async fn meet(faults: &Faults, writes: bool) -> std::result::Result<(), (Error, bool)> {
    match faults.next() {
        None => Ok(()),
        Some(Fault::Slow(wait)) => {
            tokio::time::sleep(wait).await;
            Ok(())
        }
        Some(Fault::Full) if !writes => Ok(()),
        Some(Fault::Unreadable) if writes => Ok(()),
        Some(fault) => Err((error_of(fault), fault == Fault::AnswerLost)),
    }
}

/// Returns the error of a fault, as clients of object stores see it.
fn error_of(fault: Fault) -> Error {
    let source: Box<dyn std::error::Error + Send + Sync> = match fault {
        Fault::Unavailable | Fault::Unreadable => {
            "server returned 503 Service Unavailable: slow down".into()
        }
        Fault::TooMany => "server returned 429 Too Many Requests".into(),
        Fault::Reset | Fault::AnswerLost => {
            Box::new(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
        }
        Fault::Full => Box::new(std::io::Error::from(std::io::ErrorKind::StorageFull)),
        Fault::Slow(_) => "late".into(),
    };
    Error::Generic {
        store: "faulty",
        source,
    }
}

/// An object store whose calls meet with [`Faults`].
#[derive(Debug, Clone)]
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    faults: Faults,
}

impl FaultyStore {
    /// Wraps another store.
    pub fn new(inner: Arc<dyn ObjectStore>, faults: Faults) -> Self {
        Self { inner, faults }
    }

    async fn around<T>(&self, writes: bool, call: impl Future<Output = Result<T>>) -> Result<T> {
        match meet(&self.faults, writes).await {
            Ok(()) => call.await,
            Err((error, true)) => call.await.and(Err(error)),
            Err((error, false)) => Err(error),
        }
    }

    /// Returns a stream that may consist of an error alone.
    fn before<T: Send + 'static>(
        &self,
        stream: BoxStream<'static, Result<T>>,
    ) -> BoxStream<'static, Result<T>> {
        let faults = self.faults.clone();
        let begin = async move {
            match meet(&faults, false).await {
                Ok(()) => stream,
                Err((error, _)) => stream::iter([Err(error)]).boxed(),
            }
        };
        stream::once(begin).flatten().boxed()
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "faulty {}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let put = self.inner.put_opts(location, payload, opts);
        self.around(true, put).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let begin = self.inner.put_multipart_opts(location, opts);
        let upload = self.around(true, begin).await?;
        Ok(Box::new(Upload {
            upload,
            faults: self.faults.clone(),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let get = self.inner.get_opts(location, options);
        self.around(false, get).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let get = self.inner.get_ranges(location, ranges);
        self.around(false, get).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.before(self.inner.delete_stream(locations))
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.before(self.inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.before(self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let list = self.inner.list_with_delimiter(prefix);
        self.around(false, list).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let copy = self.inner.copy_opts(from, to, options);
        self.around(true, copy).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let rename = self.inner.rename_opts(from, to, options);
        self.around(true, rename).await
    }
}

#[derive(Debug)]
struct Upload {
    upload: Box<dyn MultipartUpload>,
    faults: Faults,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (put, faults) = (self.upload.put_part(data), self.faults.clone());
        Box::pin(async move {
            match meet(&faults, true).await {
                Ok(()) => put.await,
                Err((error, true)) => put.await.and(Err(error)),
                Err((error, false)) => Err(error),
            }
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        match meet(&self.faults, true).await {
            Ok(()) => self.upload.complete().await,
            Err((error, true)) => self.upload.complete().await.and(Err(error)),
            Err((error, false)) => Err(error),
        }
    }

    async fn abort(&mut self) -> Result<()> {
        self.upload.abort().await
    }
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt as _;
    use object_store::memory::InMemory;
    use object_store::{ObjectStoreExt as _, PutMode};

    use super::*;
    use crate::random::Random;

    fn store() -> (FaultyStore, Faults) {
        let faults = Faults::default();
        let inner = Arc::new(InMemory::new());
        (FaultyStore::new(inner, faults.clone()), faults)
    }

    async fn paths(store: &FaultyStore) -> Result<Vec<String>> {
        let found = store.list(None).map_ok(|meta| meta.location.to_string());
        found.try_collect().await
    }

    #[tokio::test]
    async fn a_script_is_met_once_in_its_order() {
        let (store, faults) = store();
        let path = Path::from("a");
        faults.script([
            Some(Fault::Unavailable),
            None,
            Some(Fault::Full),
            Some(Fault::TooMany),
        ]);
        let refused = store.put(&path, "1".into()).await.unwrap_err();
        assert!(refused.to_string().contains("503"), "{refused}");
        store.put(&path, "2".into()).await.unwrap();
        let full = store.put(&path, "3".into()).await.unwrap_err();
        assert!(format!("{full:?}").contains("StorageFull"), "{full:?}");
        let refused = paths(&store).await.unwrap_err();
        assert!(refused.to_string().contains("429"), "{refused}");
        assert_eq!(paths(&store).await.unwrap(), ["a"]);
        let bytes = store.get(&path).await.unwrap().bytes().await.unwrap();
        assert_eq!((bytes, faults.n_calls()), (Bytes::from("2"), 6));
        assert_eq!(faults.met().values().sum::<usize>(), 3);
    }

    #[tokio::test]
    async fn a_lost_answer_leaves_what_was_done() {
        let (store, faults) = store();
        let path = Path::from("a");
        faults.always(Fault::AnswerLost);
        let create = || PutOptions::from(PutMode::Create);
        let lost = store.put_opts(&path, "1".into(), create()).await;
        assert!(matches!(lost, Err(Error::Generic { .. })), "{lost:?}");
        faults.none();
        let again = store.put_opts(&path, "1".into(), create()).await;
        assert!(
            matches!(again, Err(Error::AlreadyExists { .. })),
            "{again:?}"
        );
    }

    #[tokio::test]
    async fn a_full_store_is_read_as_before() {
        let (store, faults) = store();
        store.put(&Path::from("a"), "1".into()).await.unwrap();
        faults.always(Fault::Full);
        store.put(&Path::from("b"), "1".into()).await.unwrap_err();
        assert_eq!(paths(&store).await.unwrap(), ["a"]);
        store.get(&Path::from("a")).await.unwrap();
    }

    #[tokio::test]
    async fn a_store_that_is_not_read_is_written_as_before() {
        let (store, faults) = store();
        faults.always(Fault::Unreadable);
        store.put(&Path::from("a"), "1".into()).await.unwrap();
        store.get(&Path::from("a")).await.unwrap_err();
        paths(&store).await.unwrap_err();
        faults.none();
        assert_eq!(paths(&store).await.unwrap(), ["a"]);
    }

    #[tokio::test]
    async fn an_upload_in_parts_meets_faults_in_each() {
        let (store, faults) = store();
        let path = Path::from("a");
        faults.script([None, None, Some(Fault::Reset), Some(Fault::AnswerLost)]);
        let mut upload = store.put_multipart(&path).await.unwrap();
        upload.put_part("1".into()).await.unwrap();
        upload.put_part("2".into()).await.unwrap_err();
        upload.put_part("2".into()).await.unwrap_err();
        assert_eq!(faults.met().len(), 2);
    }

    #[tokio::test]
    async fn chances_are_about_as_asked_for() {
        let (store, faults) = store();
        faults.chance(30, &[Fault::Reset, Fault::Unavailable], Random::seeded(5));
        let mut n_failed = 0;
        for _ in 0..1_000 {
            n_failed += u32::from(store.put(&Path::from("a"), "1".into()).await.is_err());
        }
        assert!((250..350).contains(&n_failed), "{n_failed}");
        assert_eq!(faults.met().len(), 2);
        tokio::time::pause();
        let before = tokio::time::Instant::now();
        faults.always(Fault::Slow(Duration::from_secs(9)));
        store.put(&Path::from("a"), "1".into()).await.unwrap();
        assert!(before.elapsed() >= Duration::from_secs(9));
    }
}
