//! Multipart uploads: parts wait outside the bucket until all of them become one object.

use std::collections::BTreeMap;
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use s3s::crypto::{Checksum, Md5};
use s3s::dto::{CompletedPart, ETag};
use s3s::{S3Result, s3_error};

use super::bucket::{self, Attributes, Bucket, Object};
use super::conditions::WriteConditions;

/// Smallest size of a part that is not the last one.
const SMALLEST_PART: usize = 5 * 1024 * 1024;

/// Uploads that are neither completed nor aborted.
#[derive(Default)]
pub(super) struct Uploads {
    uploads: BTreeMap<String, Upload>,
    /// Number of uploads that were ever started; an id is never used again.
    n_started: u64,
}

/// An unfinished upload.
pub(super) struct Upload {
    pub(super) key: String,
    pub(super) started: SystemTime,
    attributes: Attributes,
    parts: BTreeMap<i32, Part>,
}

struct Part {
    body: Bytes,
    e_tag: ETag,
}

impl Uploads {
    /// Starts an upload, and returns its id.
    pub(super) fn start(&mut self, key: String, attributes: Attributes) -> String {
        self.n_started += 1;
        let id = format!("upload-{:06}", self.n_started);
        let upload = Upload {
            key,
            started: bucket::now(),
            attributes,
            parts: BTreeMap::new(),
        };
        self.uploads.insert(id.clone(), upload);
        id
    }

    /// Keeps a part, in place of an earlier one of the same number.
    pub(super) fn add(&mut self, id: &str, key: &str, number: i32, body: Bytes) -> S3Result<ETag> {
        self.upload(id, key)?;
        if !(1..=10_000).contains(&number) {
            return Err(s3_error!(
                InvalidArgument,
                "part number is not in 1 to 10000"
            ));
        }
        let e_tag = bucket::e_tag(&body);
        let part = Part {
            body,
            e_tag: e_tag.clone(),
        };
        let upload = self.uploads.get_mut(id).expect("the upload was just seen");
        upload.parts.insert(number, part);
        Ok(e_tag)
    }

    /// Forgets an upload and its parts.
    pub(super) fn abort(&mut self, id: &str, key: &str) -> S3Result<()> {
        self.upload(id, key)?;
        self.uploads.remove(id);
        Ok(())
    }

    /// Returns the uploads in the order in which they were started.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &Upload)> {
        self.uploads.iter()
    }

    fn upload(&self, id: &str, key: &str) -> S3Result<&Upload> {
        let upload = self.uploads.get(id).filter(|upload| upload.key == key);
        upload.ok_or_else(|| s3_error!(NoSuchUpload))
    }
}

impl Bucket {
    /// Makes an object of the named parts. An upload that was completed before is not known any more.
    pub(super) fn complete(
        &mut self,
        id: &str,
        key: &str,
        parts: &[CompletedPart],
        conditions: &WriteConditions,
    ) -> S3Result<ETag> {
        let upload = self.uploads.upload(id, key)?;
        let object = upload.join(parts)?;
        let e_tag = object.e_tag.clone();
        self.put(key.into(), object, conditions)?;
        self.uploads.uploads.remove(id);
        Ok(e_tag)
    }
}

impl Upload {
    fn join(&self, parts: &[CompletedPart]) -> S3Result<Object> {
        if parts.is_empty() {
            return Err(s3_error!(MalformedXML));
        }
        if !parts.is_sorted_by(|a, b| a.part_number < b.part_number) {
            return Err(s3_error!(InvalidPartOrder));
        }
        let mut body = BytesMut::new();
        let mut digests = Md5::new();
        for (i, named) in parts.iter().enumerate() {
            let part = named.part_number.and_then(|number| self.parts.get(&number));
            let part = part.filter(|part| named.e_tag.as_ref() == Some(&part.e_tag));
            let part = part.ok_or_else(|| s3_error!(InvalidPart))?;
            if part.body.len() < SMALLEST_PART && i + 1 < parts.len() {
                return Err(s3_error!(EntityTooSmall));
            }
            body.extend_from_slice(&part.body);
            digests.update(&Md5::checksum(&part.body));
        }
        let digest = bucket::hex(&digests.finalize());
        let mut object = Object::new(body.freeze(), self.attributes.clone());
        object.e_tag = ETag::Strong(format!("{digest}-{}", parts.len()));
        Ok(object)
    }
}
