//! A data root that is there and does not answer.

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

/// An object store that does not answer while it hangs.
#[derive(Debug)]
pub(super) struct Hanging {
    pub(super) inner: Arc<dyn ObjectStore>,
    pub(super) hangs: watch::Sender<bool>,
}

impl Hanging {
    async fn answers(&self) {
        let mut hangs = self.hangs.subscribe();
        hangs.wait_for(|hangs| !hangs).await.unwrap();
    }
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
        self.answers().await;
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.answers().await;
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.answers().await;
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
        let mut hangs = self.hangs.subscribe();
        let listed = async move {
            hangs.wait_for(|hangs| !hangs).await.unwrap();
            inner.list(prefix.as_ref())
        };
        listed.flatten_stream().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.answers().await;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.answers().await;
        self.inner.copy_opts(from, to, options).await
    }
}
