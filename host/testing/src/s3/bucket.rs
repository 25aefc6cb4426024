//! The bucket: objects in the order of their keys, and the rules of their writes.
//!
//! Whoever changes the bucket holds it alone, and checks the condition and writes in one call. This is what makes
//! conditional writes atomic.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use s3s::crypto::{Checksum, Md5};
use s3s::dto::{ETag, Metadata};
use s3s::{S3Result, s3_error};

use super::conditions::WriteConditions;
use super::uploads::Uploads;

/// All objects and unfinished uploads.
#[derive(Default)]
pub(super) struct Bucket {
    pub(super) objects: BTreeMap<String, Object>,
    pub(super) uploads: Uploads,
}

/// A stored object.
#[derive(Clone)]
pub(super) struct Object {
    pub(super) body: Bytes,
    pub(super) e_tag: ETag,
    /// Time of the write in whole seconds, as in Amazon S3.
    pub(super) written: SystemTime,
    pub(super) attributes: Attributes,
}

/// Headers that a writer gives to an object, and a reader gets back.
#[derive(Clone, Default)]
pub(super) struct Attributes {
    pub(super) cache_control: Option<String>,
    pub(super) content_disposition: Option<String>,
    pub(super) content_encoding: Option<String>,
    pub(super) content_language: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) metadata: Option<Metadata>,
}

impl Bucket {
    pub(super) fn object(&self, key: &str) -> S3Result<&Object> {
        self.objects.get(key).ok_or_else(|| s3_error!(NoSuchKey))
    }

    /// Writes an object if its conditions hold.
    pub(super) fn put(
        &mut self,
        key: String,
        object: Object,
        conditions: &WriteConditions,
    ) -> S3Result<()> {
        conditions.check(self.objects.get(&key))?;
        self.objects.insert(key, object);
        Ok(())
    }

    /// Deletes an object if its conditions hold; deleting what is not there is a success.
    pub(super) fn delete(&mut self, key: &str, conditions: &WriteConditions) -> S3Result<()> {
        conditions.check(self.objects.get(key))?;
        self.objects.remove(key);
        Ok(())
    }
}

impl Object {
    pub(super) fn new(body: Bytes, attributes: Attributes) -> Self {
        let e_tag = e_tag(&body);
        Self {
            body,
            e_tag,
            written: now(),
            attributes,
        }
    }

    pub(super) fn len(&self) -> i64 {
        self.body
            .len()
            .try_into()
            .expect("an object fits into memory")
    }
}

/// Returns the ETag of a body: its MD5.
pub(super) fn e_tag(body: &[u8]) -> ETag {
    ETag::Strong(hex(&Md5::checksum(body)))
}

/// Returns a digest as text.
pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the time in whole seconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the server stands for another machine, whose clock no test controls"
)]
pub(super) fn now() -> SystemTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    UNIX_EPOCH + Duration::from_secs(since.unwrap_or_default().as_secs())
}
