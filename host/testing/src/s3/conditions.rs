//! Conditions of requests: on ETags for writes, on ETags and dates for reads.

use s3s::dto::{ETagCondition, Timestamp};
use s3s::{S3Result, s3_error};

use super::bucket::Object;

/// Conditions of a write; without any, it always succeeds.
#[derive(Default)]
pub(super) struct WriteConditions {
    pub(super) if_match: Option<ETagCondition>,
    pub(super) if_none_match: Option<ETagCondition>,
}

/// Conditions of a read.
pub(super) struct ReadConditions {
    pub(super) if_match: Option<ETagCondition>,
    pub(super) if_none_match: Option<ETagCondition>,
    pub(super) if_modified_since: Option<Timestamp>,
    pub(super) if_unmodified_since: Option<Timestamp>,
}

impl WriteConditions {
    /// Checks the conditions against the object that the write would replace.
    pub(super) fn check(&self, current: Option<&Object>) -> S3Result<()> {
        if let Some(condition) = &self.if_match {
            // Amazon S3 answers 404 here, not 412.
            let current = current.ok_or_else(|| s3_error!(NoSuchKey))?;
            if !matches(condition, current) {
                return Err(s3_error!(PreconditionFailed));
            }
        }
        match (&self.if_none_match, current) {
            (Some(ETagCondition::Any), Some(_)) => Err(s3_error!(PreconditionFailed)),
            // Amazon S3 refuses this, too.
            (Some(ETagCondition::ETag(_)), _) => Err(s3_error!(
                NotImplemented,
                "If-None-Match of a write can only be *"
            )),
            _ => Ok(()),
        }
    }
}

impl ReadConditions {
    /// Checks the conditions in the order of RFC 9110, section 13.2.2: a date counts only where no ETag is given.
    pub(super) fn check(&self, object: &Object, last_modified: &Timestamp) -> S3Result<()> {
        let is_expected = match (&self.if_match, &self.if_unmodified_since) {
            (Some(condition), _) => matches(condition, object),
            (None, Some(since)) => last_modified <= since,
            (None, None) => true,
        };
        if !is_expected {
            return Err(s3_error!(PreconditionFailed));
        }
        let is_new = match (&self.if_none_match, &self.if_modified_since) {
            (Some(condition), _) => !matches(condition, object),
            (None, Some(since)) => last_modified > since,
            (None, None) => true,
        };
        if !is_new {
            return Err(s3_error!(NotModified));
        }
        Ok(())
    }
}

fn matches(condition: &ETagCondition, object: &Object) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(e_tag) => object.e_tag.strong_cmp(e_tag),
    }
}
