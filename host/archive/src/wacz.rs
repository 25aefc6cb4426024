//! A WACZ file of WARC files (WACZ 1.1.1): the files themselves, an index by URL, a list of pages, and a description
//! with the digest of each part.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::SOFTWARE;
use super::adopt::readable;
use super::cdx::{self, CdxEntry};
use super::error::{ArchiveError, ReadError, damaged};
use super::http::MessageHead;
use super::read::{DEFAULT_MAX_RECORD, Head, Records};
use super::record::{format_date, format_digest, parse_date};
use super::segment::sync_folder;
use super::sorted::SortedLines;
use super::source::{self, ARCHIVE, Source};
use super::zip::ZipWriter;
use crawler_model::crawl::UnixMillis;
use crawler_model::id::{Digest, RunningDigest};

/// Version of the format.
const VERSION: &str = "1.1.1";
/// Name of the index within its folder.
const INDEX: &str = "index.cdx.gz";

/// Contents of a WACZ file that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packed {
    /// Number of WARC files.
    pub n_files: u64,
    /// Number of these files that are not complete, and that are in it as far as their records are whole.
    pub n_open: u64,
    /// Number of answers in the index.
    pub n_answers: u64,
    /// Number of HTML pages in the list of pages.
    pub n_pages: u64,
}

/// Makes a WACZ file of the archives that these paths name, those in folders included. They stay as they are. A file that
/// is still open is packed as far as its records are whole.
///
/// # Errors
///
/// A file cannot be read or written, there is a file `to` already, an archive is damaged, or there is no WARC file.
pub fn pack_files(
    paths: &[PathBuf],
    to: &Path,
    title: &str,
    now: UnixMillis,
) -> Result<Packed, ArchiveError> {
    let failed = || ArchiveError::of("create", to);
    if fs::exists(to).map_err(failed())? {
        return Err(failed()(io::ErrorKind::AlreadyExists.into()));
    }
    let (warcs, n_open) = warcs_of(paths).map_err(ArchiveError::Pack)?;
    if warcs.is_empty() {
        return Err(ArchiveError::NothingToPack);
    }
    let parent = to.parent().filter(|parent| *parent != Path::new(""));
    let folder = parent.unwrap_or(Path::new("."));
    let mut named = tempfile::Builder::new();
    // A temporary file would be for its owner only.
    named.permissions(Permissions::from_mode(0o666));
    let file = named.tempfile_in(folder).map_err(failed())?;
    let packed = pack(&warcs, file.as_file(), (to, folder), title, now)?;
    let persisted = file.persist_noclobber(to).map_err(|error| error.error);
    persisted.map_err(failed())?;
    sync_folder(folder)?;
    Ok(Packed { n_open, ..packed })
}

/// Returns the WARC files that these paths name, and the number of those that are open.
fn warcs_of(paths: &[PathBuf]) -> Result<(Vec<Source>, u64), ReadError> {
    let (mut warcs, mut n_open) = (Vec::new(), 0);
    for path in source::files_to_pack(paths)? {
        for warc in source::open(&path)?.warcs {
            if !warc.is_open() {
                warcs.push(warc);
                continue;
            }
            let found = readable(&warc, &|| true)?.unwrap_or_default();
            if found.is_damaged {
                let why = "a record of it is damaged: leave the file out, or let the next opening of its frontier complete it";
                return Err(ReadError::at(warc.name(), 0, damaged(why)));
            }
            // What comes after the last whole record is being written, or was cut.
            if let Some(whole) = found.ranges.first() {
                warcs.push(warc.up_to(whole.end));
                n_open += 1;
            }
        }
    }
    Ok((warcs, n_open))
}

/// Writes a WACZ file, which is durable when this returns. Files without a name are made in `folder` meanwhile.
fn pack(
    warcs: &[Source],
    file: &File,
    (path, folder): (&Path, &Path),
    title: &str,
    now: UnixMillis,
) -> Result<Packed, ArchiveError> {
    let failed = || ArchiveError::of("write", path);
    let mut package = Package {
        zip: ZipWriter::new(BufWriter::new(file)),
        resources: Vec::new(),
    };
    let temporary = || tempfile::tempfile_in(folder).map_err(failed());
    let mut found = Found {
        lines: SortedLines::new(folder),
        pages: BufWriter::new(temporary()?),
        n_answers: 0,
        n_pages: 0,
    };
    let head = json!({ "format": "json-pages-1.0", "id": "pages", "title": "Pages" });
    writeln!(found.pages, "{head}").map_err(failed())?;
    let mut names = BTreeSet::new();
    for warc in warcs {
        let name = new_name(warc.name(), &mut names);
        found.add(warc, &name).map_err(ArchiveError::Pack)?;
        let section = warc.section(0).map_err(failed())?;
        let added = package.add(&format!("{ARCHIVE}{name}"), section);
        added.map_err(failed())?;
    }
    let (index, list) = (temporary()?, temporary()?);
    let mut writers = (BufWriter::new(&index), BufWriter::new(&list));
    cdx::write(found.lines, INDEX, &mut writers.0, &mut writers.1)
        .and_then(|()| writers.0.flush())
        .and_then(|()| writers.1.flush())
        .and_then(|()| found.pages.flush())
        .map_err(failed())?;
    drop(writers);
    let mut write_rest = || -> io::Result<()> {
        for (name, content) in [
            (format!("indexes/{INDEX}"), &index),
            ("indexes/index.idx".to_owned(), &list),
            ("pages/pages.jsonl".to_owned(), found.pages.get_ref()),
        ] {
            let mut content = content;
            content.seek(SeekFrom::Start(0))?;
            package.add(&name, BufReader::new(content))?;
        }
        Ok(())
    };
    write_rest().map_err(failed())?;
    package.finish(title, now).map_err(failed())?;
    file.sync_all().map_err(failed())?;
    Ok(Packed {
        n_files: warcs.len() as u64,
        n_open: 0,
        n_answers: found.n_answers,
        n_pages: found.n_pages,
    })
}

/// Returns the name of a WARC file in the container, which no other has.
fn new_name(path: &str, names: &mut BTreeSet<String>) -> String {
    let name = path.rsplit(['/', ':']).next().unwrap_or(path);
    let name = name.strip_suffix(".open").unwrap_or(name);
    let mut free = name.to_owned();
    let mut n = 1;
    while !names.insert(free.clone()) {
        n += 1;
        free = format!("{n}-{name}");
    }
    free
}

/// Container with the description of its parts.
struct Package<'a> {
    zip: ZipWriter<BufWriter<&'a File>>,
    resources: Vec<Value>,
}

impl Package<'_> {
    fn add(&mut self, path: &str, content: impl Read) -> io::Result<()> {
        let mut digest = RunningDigest::default();
        let n = self.zip.add(path, content, |piece| digest.add(piece))?;
        let name = path.rsplit('/').next().unwrap_or(path);
        let hash = format_digest(digest.digest());
        let resource = json!({ "name": name, "path": path, "hash": hash, "bytes": n });
        self.resources.push(resource);
        Ok(())
    }

    fn finish(mut self, title: &str, now: UnixMillis) -> io::Result<()> {
        let described = json!({
            "profile": "data-package",
            "wacz_version": VERSION,
            "title": title,
            "software": SOFTWARE,
            "created": format_date(now),
            "resources": self.resources,
        });
        let described = serde_json::to_vec_pretty(&described).map_err(io::Error::other)?;
        let hash = format_digest(Digest::of(&described));
        self.zip.add("datapackage.json", &described[..], |_| ())?;
        let digest = json!({ "path": "datapackage.json", "hash": hash }).to_string();
        self.zip
            .add("datapackage-digest.json", digest.as_bytes(), |_| ())?;
        self.zip.finish()?.flush()
    }
}

/// Answers and pages of WARC files.
struct Found {
    lines: SortedLines,
    pages: BufWriter<File>,
    n_answers: u64,
    n_pages: u64,
}

/// An answer in a record.
struct Answer {
    id: String,
    url: String,
    at: UnixMillis,
    status: u16,
    mime: String,
    digest: Option<String>,
}

impl Found {
    fn add(&mut self, warc: &Source, name: &str) -> Result<(), ReadError> {
        let mut records = Records::of(warc, DEFAULT_MAX_RECORD)?;
        while let Some(read) = records.next(answer)? {
            let Some(answer) = read.value else { continue };
            let failed = |source| ReadError::File {
                path: format!("the index of {}", warc.name()),
                source,
            };
            if (answer.status, answer.mime.as_str()) == (200, "text/html") {
                let Answer { id, url, at, .. } = &answer;
                let page = json!({ "id": id, "url": url, "ts": format_date(*at) });
                writeln!(self.pages, "{page}").map_err(failed)?;
                self.n_pages += 1;
            }
            let entry = CdxEntry {
                url: answer.url,
                mime: answer.mime,
                status: answer.status.to_string(),
                digest: answer.digest,
                length: read.length.to_string(),
                offset: read.offset.to_string(),
                filename: name.to_owned(),
            };
            let line = cdx::line(&entry, answer.at).map_err(io::Error::other);
            line.and_then(|line| self.lines.push(line))
                .map_err(failed)?;
            self.n_answers += 1;
        }
        Ok(())
    }
}

/// Returns the answer in a record. Returns `None` if it has none.
fn answer(head: &Head, block: &mut dyn BufRead) -> io::Result<Option<Answer>> {
    let is_revisit = head.kind() == "revisit";
    if !(is_revisit || head.kind() == "response") || !head.is_http() {
        return Ok(None);
    }
    let (Some(url), Some(at)) = (head.target(), head.get("warc-date").and_then(parse_date)) else {
        return Err(damaged("it has no URI or no date"));
    };
    let message = MessageHead::read(block)?;
    let media_type = message.header("content-type").unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default();
    let mime = match is_revisit {
        true => "warc/revisit".to_owned(),
        false => media_type.trim().to_ascii_lowercase(),
    };
    Ok(Some(Answer {
        id: head.get("warc-record-id").unwrap_or_default().to_owned(),
        url: url.to_owned(),
        at,
        status: message.status().unwrap_or_default(),
        mime,
        digest: head.get("warc-payload-digest").map(str::to_owned),
    }))
}
