//! Tests that the probe finds stores that do not keep writers apart.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::*;

/// Reaction of a store to a create of an object that exists.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// The store refuses it, as it should.
    None,
    /// The store overwrites the object.
    Overwrites,
    /// The store refuses it after it has overwritten the object.
    OverwritesUnseen,
    /// The store replaces an object on any condition.
    UpdatesBlindly,
    /// The answer to the first write is lost.
    LosesAnswer,
    /// The answers to all writes that succeed are lost.
    LosesAnswers,
    /// The store cannot be reached.
    Fails,
}

#[derive(Debug)]
struct Faulty {
    inner: InMemory,
    fault: Fault,
    n_puts: AtomicUsize,
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &ObjectPath,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let is_first = self.n_puts.fetch_add(1, Ordering::Relaxed) == 0;
        let there = || ObjectError::AlreadyExists {
            path: location.to_string(),
            source: "there".into(),
        };
        match self.fault {
            Fault::None => self.inner.put_opts(location, payload, options).await,
            Fault::Overwrites => self.inner.put(location, payload).await,
            Fault::OverwritesUnseen => {
                let put = self.inner.put(location, payload).await?;
                is_first.then_some(put).ok_or_else(there)
            }
            Fault::UpdatesBlindly => match options.mode {
                PutMode::Create => self.inner.put_opts(location, payload, options).await,
                _ => self.inner.put(location, payload).await,
            },
            Fault::LosesAnswer | Fault::LosesAnswers => {
                let put = self.inner.put_opts(location, payload, options).await;
                let is_lost = is_first || matches!(self.fault, Fault::LosesAnswers);
                if is_lost { put.and(away()) } else { put }
            }
            Fault::Fails => away(),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &ObjectPath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &ObjectPath, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<ObjectPath>>,
    ) -> BoxStream<'static, Result<ObjectPath>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &ObjectPath,
        to: &ObjectPath,
        options: CopyOptions,
    ) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn away() -> Result<PutResult> {
    Err(ObjectError::Generic {
        store: "faulty",
        source: "away".into(),
    })
}

async fn check(fault: Fault, expected: &str) {
    let faulty = Arc::new(Faulty {
        inner: InMemory::new(),
        fault,
        n_puts: AtomicUsize::default(),
    });
    let objects: Arc<dyn ObjectStore> = faulty.clone();
    let found = match probe(&objects, true).await {
        Ok(ProbeResult::Kept(dated)) => format!("kept at {}", dated / (365 * 86_400_000)),
        Ok(ProbeResult::Broken(why)) => why,
        Err(error) => error.to_string(),
    };
    assert!(found.contains(expected), "{fault:?}: {found}");
    let left = objects.list_with_delimiter(None).await.unwrap();
    assert!(left.objects.is_empty() && left.common_prefixes.is_empty());
}

#[tokio::test]
async fn a_store_that_does_not_keep_writers_apart_is_found_out() {
    // This many years after 1970.
    check(Fault::None, "kept at 5").await;
    check(Fault::LosesAnswer, "kept at 5").await;
    check(Fault::LosesAnswers, "nobody was told that it won").await;
    check(
        Fault::UpdatesBlindly,
        "that replaced one object at once, 8 were told",
    )
    .await;
    check(Fault::Overwrites, "8 were told that they did").await;
    check(Fault::OverwritesUnseen, "another one's bytes").await;
    check(Fault::Fails, "away").await;
}
