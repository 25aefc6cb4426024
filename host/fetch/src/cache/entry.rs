//! The stored form of an answer: a mark with the version, a digest of all that follows, the length of the head, the
//! head as JSON, and the body with its content-encoding removed.
//!
//! The digest detects files that were not written completely. A file with another mark is one of another version, or
//! no answer.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use bytes::Bytes;
use hyper::http;
use reqwest::Response;
use serde::{Deserialize, Serialize};

use crate::http::OF_CODING;
use crawler_model::crawl::UnixMillis;
use crawler_model::id::{Digest, RunningDigest};
use crawler_process::memory::MemoryReservation;

/// Mark of the stored form; its number grows with each change of the form.
const MARK: &[u8; 16] = b"crawler answer 1";
/// Bytes before the head: mark, digest and length of the head.
const FIXED: u64 = 16 + 32 + 4;
/// Maximum length in bytes of a head. The client takes 400 KiB of headers, which grow when they are written as JSON.
const MAX_HEAD: u32 = 8 << 20;
/// Number of bytes that are read at once where they are only checked.
const PIECE: usize = 64 << 10;

/// Everything of a stored answer but its body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Time when the answer came.
    pub(crate) stored_at: UnixMillis,
    status: u16,
    /// Version of HTTP.
    version: String,
    /// Headers in the order received, without those about a coding that has been removed.
    headers: Vec<(String, String)>,
    /// Number of bytes of the body that the site sent, before decoding.
    pub(crate) n_received: u64,
    /// False if the body was not read, because head or settings said that it was not wanted.
    pub(crate) has_body: bool,
}

/// A stored answer.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) head: Head,
    /// Body, as far as it was wanted.
    pub(crate) body: Bytes,
    /// Memory of the body.
    pub(crate) held: MemoryReservation,
}

impl Head {
    /// Returns the head of an answer whose body is still to be read.
    pub(crate) fn of(response: &Response, is_encoded: bool, stored_at: UnixMillis) -> Self {
        let all = response.headers().iter();
        let kept = all.filter(|(name, _)| !(is_encoded && OF_CODING.contains(name)));
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        Self {
            stored_at,
            status: response.status().as_u16(),
            version: format!("{:?}", response.version()),
            headers: kept
                .map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes())))
                .collect(),
            n_received: 0,
            has_body: false,
        }
    }

    /// Returns true if a later run may get the answer: it is no part of a body, no answer to a condition, and no
    /// failure except that there is no such page. A site that refuses a request may accept it later.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self.status, 200..=205 | 207..=303 | 305..=399 | 404 | 410)
    }

    /// Returns the answer as it came from the site, with this body.
    pub(crate) fn response(&self, body: Bytes) -> Result<Response, http::Error> {
        let version = match self.version.as_str() {
            "HTTP/0.9" => http::Version::HTTP_09,
            "HTTP/1.0" => http::Version::HTTP_10,
            "HTTP/2.0" => http::Version::HTTP_2,
            _ => http::Version::HTTP_11,
        };
        let mut builder = http::Response::builder();
        builder = builder.status(self.status).version(version);
        for (name, value) in &self.headers {
            builder = builder.header(name, value.as_bytes());
        }
        builder.body(body).map(Response::from)
    }
}

/// Returns the number of bytes of the file of an answer.
pub(super) fn size(head: &[u8], body: &Bytes) -> u64 {
    FIXED + head.len() as u64 + body.len() as u64
}

/// Writes an answer with this head, as [`Head`] is written, to an empty file.
pub(super) fn write(file: &mut File, head: &[u8], body: &Bytes) -> io::Result<()> {
    let length = u32::try_from(head.len()).map_err(io::Error::other)?;
    let length = length.to_be_bytes();
    let mut digest = RunningDigest::default();
    for piece in [&length[..], head, body] {
        digest.add(piece);
    }
    for piece in [&MARK[..], digest.digest().as_bytes(), &length, head, body] {
        file.write_all(piece)?;
    }
    Ok(())
}

/// Reads an answer with the first `most` bytes of its body. Returns `None` if its head is not wanted; nothing else is
/// read or checked then. A file that is no whole answer of this version is an error that [`is_torn`] tells from
/// failures to read.
pub(super) fn read(
    mut file: &File,
    is_wanted: impl FnOnce(&Head) -> bool,
    most: u64,
    mut held: MemoryReservation,
) -> io::Result<Option<Found>> {
    let mut fixed = [0; FIXED as usize];
    file.read_exact(&mut fixed)?;
    let (mark, rest) = fixed.split_at(MARK.len());
    if mark != MARK {
        return Err(torn("it has another mark"));
    }
    let (kept, length) = rest.split_at(rest.len() - 4);
    let mut digest = RunningDigest::default();
    digest.add(length);
    let length = u32::from_be_bytes(length.try_into().map_err(io::Error::other)?);
    let n_after = file.metadata()?.len().saturating_sub(FIXED);
    let n_body = n_after.checked_sub(length.into());
    let n_body = n_body.filter(|_| length <= MAX_HEAD);
    let n_body = n_body.ok_or_else(|| torn("its head has no end"))?;
    let mut head = vec![0; length as usize];
    file.read_exact(&mut head)?;
    digest.add(&head);
    let read = serde_json::from_slice(&head);
    let head: Head = read.map_err(|_| torn("its head is of another form"))?;
    if !is_wanted(&head) {
        return Ok(None);
    }
    let wanted = n_body.min(most);
    held.set(wanted);
    let mut body = vec![0; usize::try_from(wanted).map_err(io::Error::other)?];
    file.read_exact(&mut body)?;
    digest.add(&body);
    add_rest(file, &mut digest)?;
    if digest.digest().as_bytes() != kept {
        return Err(torn("it has another digest"));
    }
    let body = body.into();
    Ok(Some(Found { head, body, held }))
}

/// Adds what is left of a file to the digest.
fn add_rest(mut file: &File, digest: &mut RunningDigest) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(n) => digest.add(&piece[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn torn(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Returns true if an error is about the content of a file.
pub(super) fn is_torn(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, UnexpectedEof};
    matches!(error.kind(), InvalidData | UnexpectedEof)
}

/// Returns the name of the file of an answer.
pub(super) fn file_name(key: Digest) -> String {
    format!("{key}{ENDING}")
}

/// Returns true if a file with this name is one of an answer.
pub(super) fn is_file_name(name: &str) -> bool {
    let key = name.strip_suffix(ENDING);
    key.is_some_and(|key| key.parse::<Digest>().is_ok())
}

/// Ending of the names of files.
const ENDING: &str = ".answer";

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom};

    use super::*;
    use crawler_process::memory::Account;

    fn head() -> Head {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Head {
            stored_at: 7,
            status: 200,
            version: "HTTP/2.0".to_owned(),
            headers: vec![
                header("set-cookie", "a=1"),
                header("x", "\"ü\""),
                header("set-cookie", "b=2"),
            ],
            n_received: 3,
            has_body: true,
        }
    }

    fn written(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file
    }

    fn whole() -> Vec<u8> {
        let mut file = tempfile::tempfile().unwrap();
        let json = serde_json::to_vec(&head()).unwrap();
        write(&mut file, &json, &Bytes::from_static(b"body")).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(
            bytes.len() as u64,
            size(&json, &Bytes::from_static(b"body"))
        );
        bytes
    }

    #[test]
    fn an_answer_is_read_as_it_was_written_as_far_as_is_wanted() {
        let account = Account::default();
        for (most, body) in [(9, "body"), (4, "body"), (2, "bo"), (0, "")] {
            let found = read(&written(&whole()), |_| true, most, account.reserve(0));
            let found = found.unwrap().unwrap();
            assert_eq!((&found.head, &found.body[..]), (&head(), body.as_bytes()));
            assert_eq!(account.bytes(), body.len() as u64);
            let response = found.head.response(found.body.clone()).unwrap();
            assert_eq!(response.status(), 200);
            assert_eq!(response.version(), reqwest::Version::HTTP_2);
            let cookies = response.headers().get_all("set-cookie").iter();
            assert_eq!(cookies.collect::<Vec<_>>(), ["a=1", "b=2"]);
            assert_eq!(response.headers()["x"].as_bytes(), "\"ü\"".as_bytes());
            drop(found);
            assert_eq!(account.bytes(), 0);
        }
    }

    #[test]
    fn nothing_is_read_after_a_head_that_is_not_wanted() {
        let account = Account::default();
        let whole = whole();
        let no_body = written(&whole[..whole.len() - 4]);
        let is_wanted = |head: &Head| head.stored_at > 7;
        let found = read(&no_body, is_wanted, 9, account.reserve(0));
        assert!(found.unwrap().is_none());
    }

    #[test]
    fn a_file_that_was_changed_anywhere_is_torn() {
        let whole = whole();
        let check = |bytes: &[u8], what: &str| {
            let account = Account::default();
            for most in [0, 2, 1 << 20] {
                let read = read(&written(bytes), |_| true, most, account.reserve(0));
                let error = read.unwrap_err();
                assert!(is_torn(&error), "{what}: {error}");
            }
            assert_eq!(account.bytes(), 0);
        };
        for n in 0..whole.len() {
            check(&whole[..n], &format!("the first {n} bytes"));
            let mut changed = whole.clone();
            changed[n] ^= 0x80;
            check(&changed, &format!("byte {n} changed"));
        }
        check(&[&whole[..], b"x"].concat(), "a byte more");
        check(b"<html>", "another file");
    }

    #[test]
    fn answers_that_may_be_over_soon_are_not_lasting() {
        let lasting = |status| Head { status, ..head() }.is_lasting();
        for status in [200, 204, 300, 301, 302, 303, 307, 308, 404, 410] {
            assert!(lasting(status), "{status}");
        }
        for status in [101, 206, 304, 400, 401, 403, 405, 408, 425, 429, 451] {
            assert!(!lasting(status), "{status}");
        }
        for status in [500, 501, 503, 520, 599, 999] {
            assert!(!lasting(status), "{status}");
        }
    }
}
