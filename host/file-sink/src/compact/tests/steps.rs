//! Store that lets something happen before one of its steps: the end of the process, or the work of another one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _};
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result,
};

/// Work of somebody else.
type Run = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// Event before a step.
#[derive(Clone)]
pub(crate) enum Meanwhile {
    /// The process ends: this step fails, and so do all later ones. It may be done all the same.
    Die { dies_after: bool },
    /// This step fails, and all others go on. It may be done all the same.
    FailOnce { after: bool },
    /// Somebody else does all of their work.
    Run(Run),
}

impl Meanwhile {
    pub(crate) fn run(run: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Self {
        Self::Run(Arc::new(run))
    }
}

/// Store whose steps are counted.
#[derive(Clone)]
pub(crate) struct Steps {
    inner: Arc<InMemory>,
    n_left: Arc<AtomicI64>,
    meanwhile: Meanwhile,
}

impl Steps {
    /// Returns a store of which this many steps go as usual before something happens.
    pub(crate) fn new(inner: Arc<InMemory>, n: i64, meanwhile: Meanwhile) -> Self {
        Self {
            inner,
            n_left: Arc::new(AtomicI64::new(n)),
            meanwhile,
        }
    }

    /// Returns true if there were fewer steps.
    pub(crate) fn is_untouched(&self) -> bool {
        self.n_left.load(Ordering::SeqCst) >= 0
    }

    async fn step<T>(&self, step: impl Future<Output = Result<T>>) -> Result<T> {
        let n_left = self.n_left.fetch_sub(1, Ordering::SeqCst);
        match &self.meanwhile {
            Meanwhile::Die { dies_after } if n_left <= 0 => {
                if n_left == 0 && *dies_after {
                    let _unknown = step.await;
                }
                Err(failed("the process has ended"))
            }
            Meanwhile::FailOnce { after } if n_left == 0 => {
                if *after {
                    let _unknown = step.await;
                }
                Err(failed("the answer is lost"))
            }
            Meanwhile::Run(run) if n_left == 0 => {
                run().await;
                step.await
            }
            Meanwhile::Die { .. } | Meanwhile::FailOnce { .. } | Meanwhile::Run(_) => step.await,
        }
    }
}

fn failed(why: &'static str) -> Error {
    Error::Generic {
        store: "steps",
        source: why.into(),
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps").finish_non_exhaustive()
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("steps")
    }
}

#[async_trait]
impl ObjectStore for Steps {
    async fn put_opts(
        &self,
        location: &ObjectPath,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let put = self.inner.put_opts(location, payload, options);
        self.step(put).await
    }

    async fn put_multipart_opts(
        &self,
        location: &ObjectPath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let begin = self.inner.put_multipart_opts(location, options);
        self.step(begin).await
    }

    async fn get_opts(&self, location: &ObjectPath, options: GetOptions) -> Result<GetResult> {
        let get = self.inner.get_opts(location, options);
        self.step(get).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<ObjectPath>>,
    ) -> BoxStream<'static, Result<ObjectPath>> {
        let steps = self.clone();
        let deleted = locations.then(move |location| {
            let steps = steps.clone();
            async move {
                let location = location?;
                let delete = steps.inner.delete(&location);
                steps.step(delete).await?;
                Ok(location)
            }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> Result<ListResult> {
        let list = self.inner.list_with_delimiter(prefix);
        self.step(list).await
    }

    async fn copy_opts(
        &self,
        from: &ObjectPath,
        to: &ObjectPath,
        options: CopyOptions,
    ) -> Result<()> {
        let copy = self.inner.copy_opts(from, to, options);
        self.step(copy).await
    }
}
