//! Index of a WACZ file: a line for each answer (CDXJ), sorted by URL, in gzip members of many lines each, and a list of
//! these members.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use url::Url;

use super::record::format_date;
use super::sorted::SortedLines;
use crawler_model::crawl::UnixMillis;

/// Number of lines in a gzip member.
const LINES: usize = 1_024;

/// An answer, as the index has it.
#[derive(Debug, Serialize)]
pub(crate) struct CdxEntry {
    pub(crate) url: String,
    pub(crate) mime: String,
    pub(crate) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    pub(crate) length: String,
    pub(crate) offset: String,
    pub(crate) filename: String,
}

/// Returns the line of an answer that came at this moment.
pub(crate) fn line(entry: &CdxEntry, at: UnixMillis) -> serde_json::Result<String> {
    let json = serde_json::to_string(entry)?;
    let (key, time) = (sort_key(&entry.url), timestamp(at));
    Ok(format!("{key} {time} {json}"))
}

/// Returns 14 digits of a date.
fn timestamp(at: UnixMillis) -> String {
    let digits = format_date(at);
    digits
        .chars()
        .filter(char::is_ascii_digit)
        .take(14)
        .collect()
}

/// Returns the key by which an index is sorted: the names of the host in reverse order, and the path, in lower case.
/// URLs that sites often treat as the same have the same key.
pub(crate) fn sort_key(url: &str) -> String {
    let lower = url.to_lowercase();
    let Ok(parsed) = Url::parse(&lower) else {
        return lower.replace(' ', "%20");
    };
    let host = parsed.host_str().unwrap_or_default();
    let host = match host.strip_prefix("www") {
        Some(rest) => {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            rest.strip_prefix('.').unwrap_or(host)
        }
        None => host,
    };
    let names: Vec<&str> = host.rsplit('.').collect();
    let mut key = names.join(",");
    if let Some(port) = parsed.port() {
        key.push_str(&format!(":{port}"));
    }
    key.push(')');
    key.push_str(parsed.path());
    if let Some(query) = parsed.query().filter(|query| !query.is_empty()) {
        let mut pairs: Vec<&str> = query.split('&').collect();
        pairs.sort_by_key(|pair| pair.split_once('=').map_or(*pair, |(name, _)| name));
        key.push('?');
        key.push_str(&pairs.join("&"));
    }
    key
}

#[derive(Serialize)]
struct Member<'a> {
    offset: u64,
    length: u64,
    filename: &'a str,
}

/// Writes sorted lines as gzip members to `index`, and the list of the members to `list`.
pub(crate) fn write(
    lines: SortedLines,
    filename: &str,
    mut index: impl Write,
    mut list: impl Write,
) -> io::Result<()> {
    let meta = serde_json::json!({ "format": "cdxj-gzip-1.0", "filename": filename });
    writeln!(list, "!meta 0 {meta}")?;
    let (mut member, mut offset, mut n_lines) = (Vec::new(), 0_u64, 0);
    let mut first = String::new();
    let mut end = |member: &mut Vec<u8>, first: &str| -> io::Result<()> {
        if member.is_empty() {
            return Ok(());
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(member)?;
        let bytes = encoder.finish()?;
        let length = bytes.len() as u64;
        let json = serde_json::to_string(&Member {
            offset,
            length,
            filename,
        });
        // The key and the time of the first line.
        let begin: Vec<&str> = first.splitn(3, ' ').take(2).collect();
        writeln!(
            list,
            "{} {}",
            begin.join(" "),
            json.map_err(io::Error::other)?
        )?;
        index.write_all(&bytes)?;
        offset += length;
        member.clear();
        Ok(())
    };
    lines.for_each(|line| {
        if n_lines % LINES == 0 {
            end(&mut member, &first)?;
            first = line.to_owned();
        }
        n_lines += 1;
        member.extend_from_slice(line.as_bytes());
        member.push(b'\n');
        Ok(())
    })?;
    end(&mut member, &first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_host_in_reverse_and_sorted_parameters() {
        for (url, key) in [
            ("http://a.test/", "test,a)/"),
            (
                "https://www.Shop.A.test/Cat?b=2&a=1",
                "test,a,shop)/cat?a=1&b=2",
            ),
            ("http://www2.a.test:8000/x", "test,a:8000)/x"),
            ("http://wwwa.test/?", "test,wwwa)/"),
        ] {
            assert_eq!(sort_key(url), key);
        }
        assert_eq!(timestamp(1_452_554_665_412), "20160111232425");
    }

    #[test]
    fn an_index_is_members_that_its_list_names() {
        let folder = tempfile::tempdir().unwrap();
        let mut lines = SortedLines::new(folder.path());
        for n in (0..2_000).rev() {
            lines.push(format!("test,a)/{n:04} 2026 {{}}")).unwrap();
        }
        let (mut index, mut list) = (Vec::new(), Vec::new());
        write(lines, "index.cdx.gz", &mut index, &mut list).unwrap();
        let list = String::from_utf8(list).unwrap();
        let rows: Vec<&str> = list.lines().collect();
        assert_eq!(rows.len(), 3, "{list}");
        assert!(
            rows[1].starts_with("test,a)/0000 2026 {\"offset\":0,"),
            "{list}"
        );
        assert!(rows[2].starts_with("test,a)/1024 2026 {"), "{list}");
        let mut text = String::new();
        let mut decoder = flate2::read::MultiGzDecoder::new(&index[..]);
        io::Read::read_to_string(&mut decoder, &mut text).unwrap();
        assert_eq!(text.lines().count(), 2_000);
        assert!(text.lines().is_sorted());
    }
}
