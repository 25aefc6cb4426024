//! Messages of HTTP in records: written in the form of HTTP/1.1, and parsed.
//!
//! The transfer-encoding of an answer is always removed, and its content-encoding if only the decoded body was recorded.
//! Headers that then do not hold for the block any more are written with `x-orig-` before their names, as other
//! crawlers do. Parsing gives them their names back. A header that a site has sent with such a name gets `x-orig-` once
//! more, so that no site can say of its answer what only the archive does.

use std::io::{self, BufRead, Read as _};

use bytes::Bytes;

use super::error::damaged;
use crawler_model::exchange::{BodyForm, Exchange, SentHeader};

/// Maximum size in bytes of the head of a message. The client takes 400 KiB.
const MAX_HEAD: u64 = 512 << 10;
/// Beginning of the names of headers that do not hold for the block.
const ORIGINAL: &str = "x-orig-";
/// Headers about the coding of a body.
const OF_CODING: [&str; 2] = ["content-encoding", "content-length"];
/// Header about the coding of a transfer.
const TRANSFER: &str = "transfer-encoding";

/// Head of a message.
#[derive(Debug)]
pub(crate) struct MessageHead {
    /// First line, without its end.
    pub(crate) line: String,
    /// Headers, in order.
    pub(crate) headers: Vec<SentHeader>,
}

/// Returns the head of the request of an exchange.
pub(crate) fn request_head(exchange: &Exchange) -> Bytes {
    let path = &exchange.url[url::Position::BeforePath..url::Position::AfterQuery];
    let mut head = format!("{} {path} HTTP/1.1\r\n", exchange.method).into_bytes();
    for (name, value) in &exchange.request_headers {
        push_header(&mut head, "", name, value);
    }
    head.extend_from_slice(b"\r\n");
    head.into()
}

/// Returns the head of the answer of an exchange.
pub(crate) fn answer_head(exchange: &Exchange) -> Bytes {
    let status = exchange.status;
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status)).into_bytes();
    let is_sent = exchange.body_form == BodyForm::Sent;
    for (name, value) in &exchange.headers {
        let is_original = name.eq_ignore_ascii_case(TRANSFER)
            || !is_sent && is_of_coding(name)
            || is_marked(&name.to_ascii_lowercase());
        let before = if is_original { ORIGINAL } else { "" };
        push_header(&mut head, before, name, value);
    }
    head.extend_from_slice(b"\r\n");
    head.into()
}

fn push_header(head: &mut Vec<u8>, before: &str, name: &str, value: &[u8]) {
    head.extend_from_slice(before.as_bytes());
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    // A line break would begin another header.
    head.extend(value.iter().map(|byte| match byte {
        b'\r' | b'\n' => b' ',
        byte => *byte,
    }));
    head.extend_from_slice(b"\r\n");
}

fn is_of_coding(name: &str) -> bool {
    OF_CODING.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Returns true for a name in lower case that means that a header does not hold for the block.
fn is_marked(name: &str) -> bool {
    let own = name.trim_start_matches(ORIGINAL);
    own.len() < name.len() && (own == TRANSFER || is_of_coding(own))
}

/// Returns the usual phrase of a status, or nothing: the client does not keep the one that was sent.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        410 => "Gone",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

impl MessageHead {
    /// Reads the head of a message; the rest of the block is its payload.
    pub(crate) fn read(block: &mut dyn BufRead) -> io::Result<Self> {
        let mut left = MAX_HEAD;
        let first = next_line(block, &mut left)?;
        let line = String::from_utf8_lossy(&first).into_owned();
        let mut headers: Vec<SentHeader> = Vec::new();
        loop {
            let line = next_line(block, &mut left)?;
            if line.is_empty() {
                break;
            }
            if let (b' ' | b'\t', Some((_, value))) = (line[0], headers.last_mut()) {
                let folded = [&value[..], b" ", line.trim_ascii()].concat();
                *value = folded.into();
                continue;
            }
            // Servers send lines that are no headers, and clients leave them out.
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                continue;
            };
            let name = String::from_utf8_lossy(line[..colon].trim_ascii());
            let value = Bytes::copy_from_slice(line[colon + 1..].trim_ascii());
            headers.push((name.to_ascii_lowercase(), value));
        }
        Ok(Self { line, headers })
    }

    /// Returns the status of an answer, if it is one.
    pub(crate) fn status(&self) -> Option<u16> {
        let mut words = self.line.split(' ');
        let is_http = words.next()?.starts_with("HTTP/");
        let status = words.find(|word| !word.is_empty())?.parse().ok()?;
        (is_http && (100..=999).contains(&status)).then_some(status)
    }

    /// Returns the method of a request, if it is one.
    pub(crate) fn method(&self) -> Option<&str> {
        let (method, _) = self.line.split_once(' ')?;
        (!method.starts_with("HTTP/")).then_some(method)
    }

    /// Returns the value of the first header with this name, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter();
        let (_, value) = named.find(|(n, _)| n == name)?;
        std::str::from_utf8(value).ok()
    }

    /// True if the payload is in chunks, unless these were removed all the same.
    pub(crate) fn is_chunked(&self) -> bool {
        let coding = self.header(TRANSFER);
        coding.is_some_and(|coding| coding.to_ascii_lowercase().contains("chunked"))
    }

    /// Gives headers their names back that do not hold for the block. Returns true if the content-encoding was removed.
    pub(crate) fn restore_names(&mut self) -> bool {
        let mut is_decoded = false;
        for (name, _) in &mut self.headers {
            if is_marked(name) {
                let own = name.split_off(ORIGINAL.len());
                is_decoded |= own == "content-encoding";
                *name = own;
            }
        }
        is_decoded
    }
}

/// Reads a line, and returns it without its end.
fn next_line(block: &mut dyn BufRead, left: &mut u64) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let n = block.take(*left).read_until(b'\n', &mut line)?;
    *left -= n as u64;
    if line.pop() != Some(b'\n') {
        return Err(damaged("the head of a message has no end"));
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(line)
}

/// Returns a payload without its chunks. Returns `None` if it has none: most programs remove them and leave the header.
pub(crate) fn dechunked(payload: &[u8]) -> Option<Vec<u8>> {
    let (mut body, mut rest) = (Vec::with_capacity(payload.len()), payload);
    loop {
        let end = rest.iter().take(1 << 10).position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(&rest[..end]).ok()?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        rest = &rest[end + 1..];
        if size == 0 {
            return Some(body);
        }
        if size >= rest.len() {
            // It was cut.
            body.extend_from_slice(rest);
            return Some(body);
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size..];
        rest = rest
            .strip_prefix(b"\r\n")
            .or_else(|| rest.strip_prefix(b"\n"))?;
        if rest.is_empty() {
            return Some(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_cannot_say_that_its_body_was_decoded() {
        let sent = [
            ("content-encoding", "gzip"),
            ("x-orig-content-encoding", "br"),
            ("x-orig-x-orig-transfer-encoding", "a"),
            ("x-orig-other", "b"),
        ];
        let header = |(name, value): (&str, &str)| (name.to_owned(), Bytes::from(value.to_owned()));
        let exchange = Exchange {
            headers: sent.map(header).into(),
            ..crate::tests::exchange("/", "")
        };
        let written = answer_head(&exchange);
        let mut head = MessageHead::read(&mut &written[..]).unwrap();
        assert!(!head.restore_names());
        assert_eq!(head.headers, exchange.headers);
    }

    #[test]
    fn heads_are_parsed_as_servers_write_them() {
        let mut block = &b"HTTP/1.1  404 Not Found\r\nX-A: 1\r\n  more\nno header\r\nx-orig-Content-Encoding:br\r\n\r\nbody"[..];
        let mut head = MessageHead::read(&mut block).unwrap();
        assert_eq!((head.status(), head.method()), (Some(404), None));
        assert_eq!(head.header("x-a"), Some("1 more"));
        assert!(head.restore_names());
        assert_eq!(head.header("content-encoding"), Some("br"));
        assert_eq!(block, b"body");
        let head = MessageHead::read(&mut &b"POST /x HTTP/1.1\r\n\r\n"[..]).unwrap();
        assert_eq!((head.status(), head.method()), (None, Some("POST")));
        for bad in [&b""[..], b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK\r\na: b\r\n"] {
            assert!(MessageHead::read(&mut &bad[..]).is_err());
        }
        let long = [
            b"HTTP/1.1 200 OK\r\na: ",
            &vec![b'x'; 600 << 10][..],
            b"\r\n\r\n",
        ]
        .concat();
        assert!(MessageHead::read(&mut &long[..]).is_err());
    }

    #[test]
    fn chunks_are_removed_where_there_are_any() {
        let of =
            |payload: &str| dechunked(payload.as_bytes()).map(|b| String::from_utf8(b).unwrap());
        assert_eq!(
            of("3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n").as_deref(),
            Some("abcde")
        );
        assert_eq!(
            of("5\r\nabc").as_deref(),
            Some("abc"),
            "a chunk that was cut"
        );
        assert_eq!(of("0\r\n\r\n").as_deref(), Some(""));
        assert_eq!(of("<html>"), None);
        assert_eq!(of("<html>\n"), None);
        assert_eq!(of(""), None);
        assert_eq!(of("ffffffffffffffffff\r\n"), None);
    }
}
