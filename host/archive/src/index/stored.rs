//! An answer that is read from its record, with what its metadata record tells.

use std::io::{self, BufRead, Read as _};

use bytes::Bytes;
use url::Url;

use super::{Key, payload_of};
use crate::about;
use crate::error::{ReadError, damaged};
use crate::http::{MessageHead, dechunked};
use crate::read::{Head, Records};
use crawler_model::crawl::UnixMillis;
use crawler_model::exchange::{BodyForm, Exchange};
use crawler_model::page::FetchRecord;

/// Number of bytes of a body that are read beyond those that are wanted: encoded bodies and chunks may need them.
const SLACK: u64 = 64 << 10;
/// Maximum size in bytes of a block of fields that is read.
const MAX_FIELDS: u64 = 64 << 10;
/// Reads a block of fields.
pub(super) fn text_of(block: &mut dyn BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    block.take(MAX_FIELDS).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads the metadata of an answer, if the next record has it.
pub(super) fn metadata(
    records: &mut Records,
    id: &str,
) -> Result<Option<(UnixMillis, FetchRecord)>, ReadError> {
    let read = records.next(|head, block| {
        let is_own = head.kind() == "metadata" && head.get("warc-refers-to") == Some(id);
        Ok(match is_own {
            true => about::parse(&text_of(block)?),
            false => None,
        })
    });
    match read {
        Ok(read) => Ok(read.and_then(|read| read.value)),
        // The answer is whole, whatever follows.
        Err(ReadError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// An answer that was read.
pub(super) struct Stored {
    pub(super) id: String,
    message: MessageHead,
    status: u16,
    pub(super) body: Vec<u8>,
    /// True if there is more of the body, or if not all of it was recorded.
    pub(super) is_cut: bool,
    /// Payload that another record has.
    pub(super) elsewhere: Option<Key>,
}

/// Reads an answer, with at least `most` bytes of its body if it has as many.
pub(super) fn stored(head: &Head, block: &mut dyn BufRead, most: u64) -> io::Result<Stored> {
    let message = MessageHead::read(block)?;
    let status = message.status();
    let status = status.ok_or_else(|| damaged("its block is no answer of HTTP"))?;
    let most = most.saturating_add(SLACK);
    let mut body = Vec::new();
    block.take(most.saturating_add(1)).read_to_end(&mut body)?;
    let is_longer = body.len() as u64 > most;
    if message.is_chunked()
        && let Some(plain) = dechunked(&body)
    {
        body = plain;
    }
    Ok(Stored {
        id: head.get("warc-record-id").unwrap_or_default().to_owned(),
        message,
        status,
        body,
        is_cut: is_longer || head.get("warc-truncated").is_some(),
        elsewhere: payload_of(head).filter(|_| head.kind() == "revisit"),
    })
}

impl Stored {
    /// Returns the answer as that to this request.
    pub(super) fn exchange(
        mut self,
        method: &str,
        url: &Url,
        (began_at, ended_at): (UnixMillis, UnixMillis),
        record: FetchRecord,
    ) -> Exchange {
        let is_decoded = self.message.restore_names();
        let is_encoded = self.message.header("content-encoding").is_some() && !is_decoded;
        let body_form = match (self.is_cut, is_decoded) {
            // The beginning of an encoded body is decoded as far as it goes, which is as far as it is wanted.
            (true, _) if !is_encoded => BodyForm::Cut,
            (false, true) => BodyForm::Decoded,
            (true, _) | (false, false) => BodyForm::Sent,
        };
        Exchange {
            url: url.clone(),
            method: method.to_owned(),
            request_headers: Vec::new(),
            request_body: Bytes::new(),
            status: self.status,
            headers: self.message.headers,
            body: self.body.into(),
            body_form,
            began_at,
            ended_at,
            record,
        }
    }
}
