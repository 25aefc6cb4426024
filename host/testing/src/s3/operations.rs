//! Operations of S3, as calls of the bucket.
//!
//! Bodies are complete before the bucket is locked, and it is not held while anything is awaited.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use s3s::dto::*;
use s3s::{Body, S3, S3Error, S3Request, S3Response, S3Result, s3_error};

use super::BUCKET;
use super::bucket::{self, Attributes, Bucket, Object};
use super::conditions::{ReadConditions, WriteConditions};
use super::connection;
use super::faults::Faults;
use super::listing::{Position, Query};

/// The operations, with the bucket that they work on.
pub(super) struct Operations {
    bucket: Mutex<Bucket>,
    faults: Arc<Faults>,
}

impl Operations {
    pub(super) fn new(faults: Arc<Faults>) -> Self {
        Self {
            bucket: Mutex::default(),
            faults,
        }
    }

    fn bucket(&self, name: &str) -> S3Result<MutexGuard<'_, Bucket>> {
        if name != BUCKET {
            return Err(s3_error!(NoSuchBucket));
        }
        Ok(self.bucket.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn conditions(
        &self,
        if_match: Option<ETagCondition>,
        if_none_match: Option<ETagCondition>,
    ) -> WriteConditions {
        if self.faults.without_conditions() {
            return WriteConditions::default();
        }
        WriteConditions {
            if_match,
            if_none_match,
        }
    }

    fn timestamp(&self, time: SystemTime) -> Timestamp {
        self.faults.shift(time).into()
    }
}

#[async_trait::async_trait]
impl S3 for Operations {
    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        drop(self.bucket(&request.input.bucket)?);
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let input = request.input;
        let object = self.bucket(&input.bucket)?.object(&input.key)?.clone();
        let last_modified = self.timestamp(object.written);
        let read = ReadConditions {
            if_match: input.if_match,
            if_none_match: input.if_none_match,
            if_modified_since: input.if_modified_since,
            if_unmodified_since: input.if_unmodified_since,
        };
        read.check(&object, &last_modified)?;
        let total = object.body.len();
        let (body, content_range) = match input.range {
            None => (object.body, None),
            Some(range) => {
                let range = range.check(total as u64)?;
                let content_range = format!("bytes {}-{}/{total}", range.start, range.end - 1);
                let body = object.body.slice(range.start as usize..range.end as usize);
                (body, Some(content_range))
            }
        };
        Ok(S3Response::new(GetObjectOutput {
            accept_ranges: Some("bytes".into()),
            content_length: Some(body.len() as i64),
            content_range,
            body: Some(Body::from(body).into()),
            e_tag: Some(object.e_tag),
            last_modified: Some(last_modified),
            cache_control: object.attributes.cache_control,
            content_disposition: object.attributes.content_disposition,
            content_encoding: object.attributes.content_encoding,
            content_language: object.attributes.content_language,
            content_type: object.attributes.content_type,
            metadata: object.attributes.metadata,
            ..Default::default()
        }))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = request.input;
        let object = self.bucket(&input.bucket)?.object(&input.key)?.clone();
        let last_modified = self.timestamp(object.written);
        let read = ReadConditions {
            if_match: input.if_match,
            if_none_match: input.if_none_match,
            if_modified_since: input.if_modified_since,
            if_unmodified_since: input.if_unmodified_since,
        };
        read.check(&object, &last_modified)?;
        Ok(S3Response::new(HeadObjectOutput {
            accept_ranges: Some("bytes".into()),
            content_length: Some(object.len()),
            e_tag: Some(object.e_tag),
            last_modified: Some(last_modified),
            cache_control: object.attributes.cache_control,
            content_disposition: object.attributes.content_disposition,
            content_encoding: object.attributes.content_encoding,
            content_language: object.attributes.content_language,
            content_type: object.attributes.content_type,
            metadata: object.attributes.metadata,
            ..Default::default()
        }))
    }

    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let input = request.input;
        let body = read(input.body).await?;
        let attributes = Attributes {
            cache_control: input.cache_control,
            content_disposition: input.content_disposition,
            content_encoding: input.content_encoding,
            content_language: input.content_language,
            content_type: input.content_type,
            metadata: input.metadata,
        };
        let object = Object::new(body, attributes);
        let e_tag = object.e_tag.clone();
        let conditions = self.conditions(input.if_match, input.if_none_match);
        self.bucket(&input.bucket)?
            .put(input.key, object, &conditions)?;
        Ok(S3Response::new(PutObjectOutput {
            e_tag: Some(e_tag),
            ..Default::default()
        }))
    }

    async fn copy_object(
        &self,
        request: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        let input = request.input;
        let CopySource::Bucket { bucket, key, .. } = &input.copy_source else {
            return Err(s3_error!(NotImplemented));
        };
        let replaces = |d: &MetadataDirective| d.as_str() != MetadataDirective::COPY;
        if bucket.as_ref() != input.bucket
            || input.metadata_directive.as_ref().is_some_and(replaces)
        {
            return Err(s3_error!(NotImplemented));
        }
        let mut bucket = self.bucket(&input.bucket)?;
        let mut object = bucket.object(key)?.clone();
        object.written = bucket::now();
        let result = CopyObjectResult {
            e_tag: Some(object.e_tag.clone()),
            last_modified: Some(self.timestamp(object.written)),
            ..Default::default()
        };
        bucket.put(input.key, object, &WriteConditions::default())?;
        Ok(S3Response::new(CopyObjectOutput {
            copy_object_result: Some(result),
            ..Default::default()
        }))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let input = request.input;
        let conditions = self.conditions(input.if_match, None);
        self.bucket(&input.bucket)?
            .delete(&input.key, &conditions)?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let input = request.input;
        let mut bucket = self.bucket(&input.bucket)?;
        let mut deleted = Vec::new();
        for named in input.delete.objects {
            bucket.delete(&named.key, &WriteConditions::default())?;
            deleted.push(DeletedObject {
                key: Some(named.key),
                ..Default::default()
            });
        }
        Ok(S3Response::new(DeleteObjectsOutput {
            deleted: Some(deleted),
            ..Default::default()
        }))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = request.input;
        // A token is a later place than the key that the listing starts after.
        let after = match (&input.continuation_token, &input.start_after) {
            (Some(token), _) => Position::from_token(token)
                .ok_or_else(|| s3_error!(InvalidArgument, "unknown continuation token"))?,
            (None, Some(key)) => Position::Key(key.clone()),
            (None, None) => Position::Start,
        };
        let bucket = self.bucket(&input.bucket)?;
        let page = bucket.list(&Query {
            prefix: input.prefix.as_deref().unwrap_or_default(),
            delimiter: input.delimiter.as_deref().filter(|d| !d.is_empty()),
            after,
            limit: input.max_keys.map(|n| usize::try_from(n).unwrap_or(0)),
        });
        let contents = page.objects.iter().map(|(key, object)| s3s::dto::Object {
            key: Some((*key).clone()),
            size: Some(object.len()),
            e_tag: Some(object.e_tag.clone()),
            last_modified: Some(self.timestamp(object.written)),
            ..Default::default()
        });
        let common_prefixes = page.prefixes.iter().map(|prefix| CommonPrefix {
            prefix: Some((*prefix).into()),
        });
        Ok(S3Response::new(ListObjectsV2Output {
            key_count: Some((page.objects.len() + page.prefixes.len()) as i32),
            is_truncated: Some(page.next.is_some()),
            next_continuation_token: page.next.as_ref().map(Position::to_token),
            contents: Some(contents.collect()),
            common_prefixes: Some(common_prefixes.collect()),
            name: Some(input.bucket),
            prefix: input.prefix,
            delimiter: input.delimiter,
            max_keys: input.max_keys,
            continuation_token: input.continuation_token,
            start_after: input.start_after,
            ..Default::default()
        }))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let input = request.input;
        let attributes = Attributes {
            cache_control: input.cache_control,
            content_disposition: input.content_disposition,
            content_encoding: input.content_encoding,
            content_language: input.content_language,
            content_type: input.content_type,
            metadata: input.metadata,
        };
        let mut bucket = self.bucket(&input.bucket)?;
        let upload_id = bucket.uploads.start(input.key.clone(), attributes);
        Ok(S3Response::new(CreateMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(upload_id),
            ..Default::default()
        }))
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let input = request.input;
        let body = read(input.body).await?;
        let mut bucket = self.bucket(&input.bucket)?;
        let uploads = &mut bucket.uploads;
        let e_tag = uploads.add(&input.upload_id, &input.key, input.part_number, body)?;
        Ok(S3Response::new(UploadPartOutput {
            e_tag: Some(e_tag),
            ..Default::default()
        }))
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let input = request.input;
        let conditions = self.conditions(input.if_match, input.if_none_match);
        let parts = input.multipart_upload.and_then(|upload| upload.parts);
        let parts = parts.unwrap_or_default();
        let mut bucket = self.bucket(&input.bucket)?;
        let e_tag = bucket.complete(&input.upload_id, &input.key, &parts, &conditions)?;
        Ok(S3Response::new(CompleteMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            e_tag: Some(e_tag),
            ..Default::default()
        }))
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let input = request.input;
        let mut bucket = self.bucket(&input.bucket)?;
        bucket.uploads.abort(&input.upload_id, &input.key)?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }

    async fn list_multipart_uploads(
        &self,
        request: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        let input = request.input;
        let prefix = input.prefix.clone().unwrap_or_default();
        let bucket = self.bucket(&input.bucket)?;
        let uploads = bucket.uploads.iter();
        let uploads = uploads.filter(|(_, upload)| upload.key.starts_with(&prefix));
        let uploads = uploads.map(|(id, upload)| MultipartUpload {
            upload_id: Some(id.clone()),
            key: Some(upload.key.clone()),
            initiated: Some(self.timestamp(upload.started)),
            ..Default::default()
        });
        Ok(S3Response::new(ListMultipartUploadsOutput {
            uploads: Some(uploads.collect()),
            is_truncated: Some(false),
            bucket: Some(input.bucket),
            prefix: input.prefix,
            ..Default::default()
        }))
    }
}

async fn read(body: Option<StreamingBlob>) -> S3Result<Bytes> {
    let Some(body) = body else {
        return Ok(Bytes::new());
    };
    let body = connection::read(body).await;
    body.map_err(|e| S3Error::with_source(s3s::S3ErrorCode::IncompleteBody, e))
}
