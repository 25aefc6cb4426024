//! Decoding of a body into text, by the encoding that the answer names or that the body itself suggests.
//!
//! The first of these that applies decides: a byte order mark, the `charset` of the content type, a
//! declaration in the first [`PRESCAN`] bytes (`<meta charset>`, `<meta http-equiv>`, `<?xml encoding>`),
//! UTF-8 if the body is valid UTF-8, and last a guess from the bytes and the top-level domain, as browsers
//! make it. Decoding never fails: bytes that cannot be decoded become U+FFFD.
//!
//! A body that is not text (an image, an archive) has the charset [`BINARY`] and an empty text, so that no
//! memory is spent on replacement characters; its bytes remain available.

use bytes::Bytes;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use crawler_model::page::{CharsetSource, PageText};

/// Number of bytes at the start that are searched for a declaration, the same as in browsers.
pub const PRESCAN: usize = 1_024;
/// The charset of a body that is not text.
pub const BINARY: &str = PageText::BINARY;
/// Number of bytes that the detector reads of a body that declares no encoding.
const DETECTED: usize = 256 << 10;

/// Decodes a body that came from this host.
pub fn decode(body: &Bytes, content_type: Option<&str>, host: Option<&str>) -> PageText {
    if let Some((encoding, n_mark)) = Encoding::for_bom(body) {
        return decoded(encoding, CharsetSource::Mark, &body[n_mark..]);
    }
    let is_text = content_type
        .map(essence)
        .filter(|essence| !essence.is_empty())
        .map_or_else(|| !body.iter().take(PRESCAN).any(|&b| b == 0), is_textual);
    if !is_text {
        return PageText::binary();
    }
    let label = content_type.and_then(charset_parameter);
    let (encoding, source) = if let Some(named) = label.and_then(for_label) {
        (named, CharsetSource::Header)
    } else if let Some(declared) = declared(&body[..body.len().min(PRESCAN)]) {
        (declared, CharsetSource::Document)
    } else if is_utf_8(body) {
        (UTF_8, CharsetSource::Valid)
    } else {
        (detected(body, host), CharsetSource::Detected)
    };
    decoded(encoding, source, body)
}

fn for_label(label: &str) -> Option<&'static Encoding> {
    // Nearly all pages say this; it needs no search.
    if label.eq_ignore_ascii_case("utf-8") {
        return Some(UTF_8);
    }
    Encoding::for_label(label.as_bytes())
}

fn decoded(encoding: &'static Encoding, source: CharsetSource, body: &[u8]) -> PageText {
    let has_mark = source == CharsetSource::Mark;
    let as_it_stands = encoding == UTF_8 && !has_mark && simdutf8::basic::from_utf8(body).is_ok();
    let text = || encoding.decode_without_bom_handling(body).0.into_owned();
    PageText {
        charset: encoding.name(),
        source,
        decoded: (!as_it_stands).then(text),
    }
}

fn is_utf_8(body: &[u8]) -> bool {
    match simdutf8::compat::from_utf8(body) {
        Ok(_) => true,
        // A cut body may end within a character. If that character were its only one outside ASCII, it could
        // as well be the last letter of "café" in windows-1252.
        Err(error) => error.error_len().is_none() && !body[..error.valid_up_to()].is_ascii(),
    }
}

fn detected(body: &[u8], host: Option<&str>) -> &'static Encoding {
    // Browsers deny ISO-2022-JP as well: its escapes could turn plain ASCII into markup.
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let start = &body[..body.len().min(DETECTED)];
    detector.feed(start, start.len() == body.len());
    let label = host.and_then(|host| host.rsplit('.').next());
    let is_domain = |label: &&str| {
        let mut bytes = label.bytes();
        bytes.next().is_some_and(|b| b.is_ascii_lowercase())
            && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let top_level = label.filter(is_domain).map(str::as_bytes);
    detector.guess(top_level, Utf8Detection::Deny)
}

/// Returns the part before the parameters: `text/html` of `text/html; charset=x`.
fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

fn is_textual(essence: &str) -> bool {
    let essence = match essence {
        "text/html" => return true,
        other => other.to_ascii_lowercase(),
    };
    let Some((kind, subtype)) = essence.split_once('/') else {
        // This is not a content type at all: some servers write "html", or "utf-8".
        return true;
    };
    let suffix = subtype.rsplit('+').next().unwrap_or(subtype);
    kind == "text"
        || matches!(suffix, "html" | "xhtml" | "xml" | "json" | "javascript")
        || matches!(
            subtype,
            "ecmascript"
                | "json-seq"
                | "jsonlines"
                | "ndjson"
                | "sql"
                | "toml"
                | "x-javascript"
                | "x-ndjson"
                | "x-www-form-urlencoded"
                | "yaml"
        )
}

fn charset_parameter(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        name.trim().eq_ignore_ascii_case("charset").then_some(value)
    })
}

/// Returns the encoding that the head of a document declares.
fn declared(head: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let label = match head.trim_start().strip_prefix("<?xml") {
        Some(rest) => value_of(rest.split("?>").next()?, "encoding")?,
        None => meta_charset(&head)?,
    };
    let encoding = for_label(label)?;
    // A declaration that was found byte by byte cannot be in UTF-16; the HTML standard says so too.
    Some(if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    })
}

fn meta_charset(head: &str) -> Option<&str> {
    let mut rest = head;
    while let Some(start) = rest.find('<') {
        rest = &rest[start..];
        let end = if rest.starts_with("<!--") {
            rest.find("-->")?
        } else {
            rest.find('>')?
        };
        let tag = &rest[..end];
        if let Some(attributes) = tag.strip_prefix("<meta")
            && attributes.starts_with(|c: char| c.is_ascii_whitespace() || c == '/')
            && let Some(label) = value_of(attributes, "charset")
        {
            return Some(label);
        }
        rest = &rest[end..];
    }
    None
}

/// Returns the value after `name =`, also within a quoted `content="text/html; charset=x"`.
fn value_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = text;
    loop {
        rest = &rest[rest.find(name)? + name.len()..];
        if let Some(value) = rest.trim_start().strip_prefix('=') {
            let value = value.trim_start().trim_start_matches(['"', '\'']);
            let ends = |c: char| c.is_ascii_whitespace() || matches!(c, '"' | '\'' | ';' | '/');
            return value.split(ends).next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &[u8], content_type: &str, charset: &str, text: Option<&str>) {
        let content_type = (!content_type.is_empty()).then_some(content_type);
        let found = decode(&Bytes::copy_from_slice(body), content_type, None);
        assert_eq!((found.charset, found.decoded.as_deref()), (charset, text));
    }

    #[test]
    fn utf_8_is_left_as_it_stands() {
        check("grün".as_bytes(), "text/html", "UTF-8", None);
        check("grün".as_bytes(), "text/html; charset=utf-8", "UTF-8", None);
        check("grün".as_bytes(), "", "UTF-8", None);
        check(b"", "", "UTF-8", None);
    }

    #[test]
    fn a_byte_order_mark_comes_first_and_is_no_text() {
        check(
            b"\xef\xbb\xbfx",
            "text/html; charset=latin1",
            "UTF-8",
            Some("x"),
        );
        check(b"\xff\xfex\0", "", "UTF-16LE", Some("x"));
        check(b"\xfe\xff\0x", "application/pdf", "UTF-16BE", Some("x"));
    }

    #[test]
    fn the_header_comes_before_the_document() {
        let body = b"<meta charset=utf-8>\xef";
        let type_ = "text/html; x=1; Charset = \"ISO-8859-5\"";
        let text = "<meta charset=utf-8>я";
        check(body, type_, "ISO-8859-5", Some(text));
        check(b"\xa4\xe9", "text/html;charset=Big5", "Big5", Some("日"));
    }

    #[test]
    fn the_document_tells_its_encoding() {
        for head in [
            "<meta charset=gbk>",
            "<META CharSet = 'GBK' />",
            "<!-- <meta charset=utf-8> --><p a=1><meta name=x><meta charset=\"gb2312\">",
            "<meta http-equiv=Content-Type content=\"text/html; charset=gbk\">",
            "<?xml version=\"1.0\" encoding='gbk'?>",
        ] {
            let body = [head.as_bytes(), b"\xd6\xd0"].concat();
            check(&body, "text/html", "GBK", Some(&format!("{head}中")));
        }
        let late = [vec![b' '; PRESCAN], b"<meta charset=gbk>\xd6".to_vec()].concat();
        assert_eq!(decode(&late.into(), None, None).charset, "windows-1252");
    }

    #[test]
    fn a_declaration_that_cannot_be_true_or_is_unknown_is_passed_over() {
        check(b"<meta charset=utf-16>", "", "UTF-8", None);
        check(
            b"<meta charset=x-user-defined>",
            "",
            "windows-1252",
            Some("<meta charset=x-user-defined>"),
        );
        check(
            b"<meta charset=klingon>",
            "text/html; charset=none",
            "UTF-8",
            None,
        );
        check(b"<meta charset", "", "UTF-8", None);
        check(b"<metacharset=gbk>", "", "UTF-8", None);
    }

    #[test]
    fn each_page_tells_how_its_charset_was_found() {
        let source = |body: &[u8], content_type: &str| {
            decode(&Bytes::copy_from_slice(body), Some(content_type), None).source
        };
        let html = "text/html";
        assert_eq!(source(b"\xef\xbb\xbfx", html), CharsetSource::Mark);
        assert_eq!(source(b"x", "text/html;charset=gbk"), CharsetSource::Header);
        assert_eq!(source(b"<meta charset=gbk>", html), CharsetSource::Document);
        assert_eq!(source(b"x", "text/html;charset=none"), CharsetSource::Valid);
        assert_eq!(source(b"caf\xe9", html), CharsetSource::Detected);
        assert_eq!(source(b"x", "image/png"), CharsetSource::None);
    }

    #[test]
    fn declarations_broken_in_any_way_cost_nothing_but_themselves() {
        let text = "<p>plain words</p>";
        for (content_type, head) in [
            ("text/html; charset", ""),
            ("text/html; charset=", ""),
            ("text/html; charset=\"", ""),
            ("text/html; charset='", ""),
            ("text/html; charset=\"utf-8", ""),
            ("text/html; charset=utf-8, utf-8", ""),
            ("text/html; charset=utf-8; charset=latin1", ""),
            ("text/html; charset==utf-8", ""),
            ("text/html; charset: utf-8", ""),
            ("text/html; charset=none", ""),
            ("text/html; charset=utf-42", ""),
            ("text/html; charset=../../etc/passwd", ""),
            ("text/html; charset=\u{fffd}\u{fffd}", ""),
            ("text/html; charset=%75tf-8", ""),
            ("text/html;;;;charset=;;;", ""),
            (";charset=", ""),
            ("charset=utf-8", ""),
            ("text", ""),
            ("text/html", "<meta charset>"),
            ("text/html", "<meta charset=>"),
            ("text/html", "<meta charset=\"\">"),
            ("text/html", "<meta charset=' '>"),
            ("text/html", "<meta charset='utf-8>"),
            ("text/html", "<meta charset=utf-16>"),
            ("text/html", "<meta charset=charset=charset=>"),
            (
                "text/html",
                "<meta http-equiv=Content-Type content='text/html; charset='>",
            ),
            (
                "text/html",
                "<meta http-equiv=Content-Type content='charset'>",
            ),
            ("text/html", "<!-- <meta charset=gbk>"),
            ("text/html", "<?xml encoding=?>"),
            ("text/html", "<?xml version='1.0' encoding='klingon'?>"),
            ("text/html", "<?xml encoding"),
            ("text/html", "<meta charset=big5 charset=utf-8 <meta"),
        ] {
            let body = Bytes::from(format!("{head}{text}"));
            let found = decode(&body, Some(content_type), Some("a.test"));
            let whole = match &found.decoded {
                Some(text) => text.as_bytes(),
                None => &body,
            };
            assert!(
                whole.ends_with(text.as_bytes()),
                "{content_type:?} {head:?}: {found:?}"
            );
            assert!(for_label(found.charset).is_some(), "{found:?}");
        }
    }

    #[test]
    fn without_any_word_it_is_what_it_looks_like_also_by_the_name_of_its_host() {
        let detected = |text: &str, charset: &str, host: &str| {
            let encoding = Encoding::for_label(charset.as_bytes()).unwrap();
            let body = Bytes::from(encoding.encode(text).0.into_owned());
            let found = decode(&body, Some("text/html"), Some(host));
            (found.charset, found.decoded.unwrap_or_default() == text)
        };
        let russian = "Съешь же ещё этих мягких французских булок да выпей чаю";
        let found = detected(russian, "windows-1251", "site.example");
        assert_eq!(found, ("windows-1251", true));
        assert!(detected(russian, "koi8-r", "127.0.0.1").1);
        let japanese = "いろはにほへと ちりぬるを わかよたれそ つねならむ";
        for charset in ["Shift_JIS", "EUC-JP"] {
            assert_eq!(detected(japanese, charset, "a.b.jp"), (charset, true));
        }
        let polish = "Zażółć gęślą jaźń";
        assert!(detected(polish, "iso-8859-2", "a.pl").1);
        for host in ["", ".", "A.JP", "xn--p1ai", "a.é", "[::1]", "1.2.3.4"] {
            assert!(detected(russian, "windows-1251", host).1, "{host}");
        }
    }

    #[test]
    fn without_any_word_it_is_utf_8_or_windows_1252() {
        check(b"gr\xfcn \x80", "text/html", "windows-1252", Some("grün €"));
        check(b"caf\xe9", "text/html", "windows-1252", Some("café"));
        let cut = &"é中".as_bytes()[..4];
        check(cut, "text/html", "UTF-8", Some("é\u{fffd}"));
        check(
            b"\xe4b",
            "text/html;charset=utf-8",
            "UTF-8",
            Some("\u{fffd}b"),
        );
    }

    #[test]
    fn what_is_not_text_is_not_decoded() {
        check(b"\x89PNG\0\xff", "image/png", BINARY, Some(""));
        check(b"x", "application/octet-stream", BINARY, Some(""));
        check(b"PK\0\x01", "", BINARY, Some(""));
        for textual in [
            "image/svg+xml",
            "application/ld+json",
            "application/xhtml+xml",
            "Application/JSON",
            "application/x-ndjson",
            "html",
        ] {
            check(b"x", textual, "UTF-8", None);
        }
    }
}
