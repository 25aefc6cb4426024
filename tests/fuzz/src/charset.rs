//! The text of a body: the first line is a content type, or empty; the rest is the body.

use bytes::Bytes;
use crawler_fetch::charset::{BINARY, decode};
use encoding_rs::Encoding;

use super::first_line;

/// Checks that a text is no larger than its bytes can stand for, comes from an existing encoding, and is the text
/// that was encoded.
pub fn charset(data: &[u8]) {
    let (content_type, body) = first_line(data);
    let content_type = String::from_utf8_lossy(content_type);
    let content_type = (!content_type.is_empty()).then_some(&*content_type);
    let body = Bytes::copy_from_slice(body);

    let found = decode(&body, content_type, content_type);
    match (found.charset, &found.decoded) {
        (BINARY, text) => assert_eq!(text.as_deref(), Some("")),
        // No encoding has more than three bytes of text for one byte.
        (charset, Some(text)) => {
            assert_eq!(named(charset), Some(charset));
            assert!(
                text.len() <= 3 * body.len(),
                "{charset}: {} bytes",
                text.len()
            );
        }
        (charset, None) => {
            assert_eq!(charset, "UTF-8");
            assert!(std::str::from_utf8(&body).is_ok());
        }
    }

    let text = String::from_utf8_lossy(&body);
    let text = text.trim_start_matches('\u{feff}');
    read_back(
        text,
        text.as_bytes().to_vec(),
        "text/html; charset=utf-8",
        "UTF-8",
    );
    let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
    read_back(text, marked, "text/html; charset=gbk", "UTF-8");
    let little = |unit: u16| unit.to_le_bytes();
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    read_back(
        text,
        units.clone().flat_map(little).collect(),
        "",
        "UTF-16LE",
    );
    let big = |unit: u16| unit.to_be_bytes();
    read_back(text, units.flat_map(big).collect(), "image/png", "UTF-16BE");
    in_the_encoding_that_is_named(text, content_type.unwrap_or_default());
}

fn named(label: &str) -> Option<&'static str> {
    Encoding::for_label(label.as_bytes()).map(Encoding::name)
}

#[track_caller]
fn read_back(text: &str, body: Vec<u8>, content_type: &str, charset: &str) {
    let body = Bytes::from(body);
    let found = decode(&body, Some(content_type), None);
    assert_eq!(found.charset, charset);
    let found = match &found.decoded {
        Some(decoded) => decoded.as_bytes(),
        None => &body,
    };
    assert_eq!(found, text.as_bytes(), "{charset}");
}

/// Checks the text in the encoding that the content type names, if that can be written and can write this text.
fn in_the_encoding_that_is_named(text: &str, label: &str) {
    let Some(encoding) = Encoding::for_label(label.trim().as_bytes()) else {
        return;
    };
    let (body, written, is_lossy) = encoding.encode(text);
    // UTF-16 and similar encodings are written as UTF-8. A text that begins like a byte order mark is read by that
    // mark.
    if is_lossy || written != encoding || Encoding::for_bom(&body).is_some() {
        return;
    }
    let content_type = format!("text/plain; charset=\"{}\"", encoding.name());
    let found = decode(&Bytes::copy_from_slice(&body), Some(&content_type), None);
    assert_eq!(found.charset, encoding.name());
    let again = found.decoded.as_deref().unwrap_or(text);
    // Not every written code is read as the same character, but further rounds do not change it.
    let (body_again, _, _) = encoding.encode(again);
    assert_eq!(body_again, body, "{}", encoding.name());
}
