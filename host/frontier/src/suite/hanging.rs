//! Tests with a data root that does not answer.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::stream::{BoxStream, StreamExt as _};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::watch;

/// Calls that do not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hangs {
    Nothing,
    Writes,
    All,
}

/// An object store that leaves some calls without an answer until it is told otherwise.
#[derive(Debug)]
pub struct Hanging {
    inner: Arc<dyn ObjectStore>,
    hangs: watch::Sender<Hangs>,
}

impl Hanging {
    pub fn new(inner: Arc<dyn ObjectStore>) -> Self {
        let hangs = watch::Sender::new(Hangs::Nothing);
        Self { inner, hangs }
    }

    pub fn set(&self, hangs: Hangs) {
        self.hangs.send_replace(hangs);
    }

    async fn writes(&self) {
        let mut hangs = self.hangs.subscribe();
        let answers = hangs.wait_for(|hangs| *hangs == Hangs::Nothing).await;
        answers.expect("the sender is here");
    }

    async fn reads(&self) {
        reads(self.hangs.subscribe()).await;
    }
}

async fn reads(mut hangs: watch::Receiver<Hangs>) {
    // If the sender is gone, the wait ends.
    let _answers = hangs.wait_for(|hangs| *hangs != Hangs::All).await;
}

impl fmt::Display for Hanging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Hanging {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.writes().await;
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.writes().await;
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.reads().await;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (inner, prefix) = (self.inner.clone(), prefix.cloned());
        let answers = reads(self.hangs.subscribe());
        let listed = async move {
            answers.await;
            inner.list(prefix.as_ref())
        };
        listed.flatten_stream().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.reads().await;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.writes().await;
        self.inner.copy_opts(from, to, options).await
    }
}
