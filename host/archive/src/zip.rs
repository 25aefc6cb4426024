//! The container of WACZ files: ZIP with entries that are stored as they are, with 64-bit sizes where they are needed.
//!
//! Entries are not compressed, so that a part can be read in its place. A container that is read may be anybody's: the list
//! of entries has a bound, and every offset is checked.

use std::io::{self, Read, Seek, SeekFrom, Write};

use super::error::damaged;

/// Maximum size in bytes of the list of entries that is read.
const MAX_LIST: u64 = 64 << 20;
/// Maximum distance of the end record from the end of the file: its own length, and the longest comment.
const MAX_TAIL: u64 = 22 + 0xffff + 20;
/// Number in the place of one that needs 64 bits.
const LARGE: u32 = u32::MAX;
/// Tag of the extra field with numbers of 64 bits.
const WIDE: u16 = 1;
const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
/// Version that reads numbers of 64 bits.
const VERSION: u16 = 45;
/// The first day that the format knows: files are the same whenever they are made.
const DATE: u16 = 0x21;

/// Entry of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// True if it is not compressed.
    pub(crate) is_stored: bool,
    /// Number of bytes in the container.
    pub(crate) n_stored: u64,
    crc: u32,
    offset: u64,
}

/// Writer of a container.
pub(crate) struct ZipWriter<W> {
    to: W,
    at: u64,
    entries: Vec<Entry>,
}

impl<W: Write + Seek> ZipWriter<W> {
    pub(crate) fn new(to: W) -> Self {
        Self {
            to,
            at: 0,
            entries: Vec::new(),
        }
    }

    /// Writes an entry, and calls `each` with its pieces. Returns the number of its bytes.
    pub(crate) fn add(
        &mut self,
        name: &str,
        mut content: impl Read,
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<u64> {
        let offset = self.at;
        let mut entry = Entry {
            name: name.to_owned(),
            is_stored: true,
            n_stored: 0,
            crc: 0,
            offset,
        };
        // Sizes and checksum are not known yet; the head is written again.
        self.to.write_all(&local(&entry)?)?;
        let (mut crc, mut piece) = (crc32fast::Hasher::new(), vec![0; 64 << 10]);
        loop {
            let n = match content.read(&mut piece) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            crc.update(&piece[..n]);
            each(&piece[..n]);
            self.to.write_all(&piece[..n])?;
            entry.n_stored += n as u64;
        }
        entry.crc = crc.finalize();
        let head = local(&entry)?;
        self.at = offset + head.len() as u64 + entry.n_stored;
        self.to.seek(SeekFrom::Start(offset))?;
        self.to.write_all(&head)?;
        self.to.seek(SeekFrom::Start(self.at))?;
        let n = entry.n_stored;
        self.entries.push(entry);
        Ok(n)
    }

    /// Writes the list of entries, and returns what was written to.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        let begin = self.at;
        let mut list = Vec::new();
        for entry in &self.entries {
            push_central(&mut list, entry)?;
        }
        let (n, size) = (self.entries.len() as u64, list.len() as u64);
        let end_64 = begin + size;
        push(&mut list, &END_64.to_le_bytes());
        push(&mut list, &44_u64.to_le_bytes());
        push(&mut list, &VERSION.to_le_bytes());
        push(&mut list, &VERSION.to_le_bytes());
        push(&mut list, &[0; 8]);
        for number in [n, n, size, begin] {
            push(&mut list, &number.to_le_bytes());
        }
        push(&mut list, &LOCATOR_64.to_le_bytes());
        push(&mut list, &[0; 4]);
        push(&mut list, &end_64.to_le_bytes());
        push(&mut list, &1_u32.to_le_bytes());
        push(&mut list, &END.to_le_bytes());
        push(&mut list, &[0; 4]);
        let n = u16::try_from(n).unwrap_or(u16::MAX);
        push(&mut list, &n.to_le_bytes());
        push(&mut list, &n.to_le_bytes());
        push(&mut list, &narrow(size).to_le_bytes());
        push(&mut list, &narrow(begin).to_le_bytes());
        push(&mut list, &[0; 2]);
        self.to.write_all(&list)?;
        self.to.flush()?;
        Ok(self.to)
    }
}

fn push(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend_from_slice(bytes);
}

/// Returns a number in 32 bits, or the mark of one that needs more.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(LARGE)
}

fn name_length(entry: &Entry) -> io::Result<[u8; 2]> {
    let length = u16::try_from(entry.name.len());
    let length = length.map_err(|_| damaged("a name in the container is too long"))?;
    Ok(length.to_le_bytes())
}

/// Returns the head before the bytes of an entry. Its length does not depend on sizes.
fn local(entry: &Entry) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    push(&mut head, &LOCAL.to_le_bytes());
    push(&mut head, &VERSION.to_le_bytes());
    // No flags, stored, no time of day.
    push(&mut head, &[0; 6]);
    push(&mut head, &DATE.to_le_bytes());
    push(&mut head, &entry.crc.to_le_bytes());
    push(&mut head, &LARGE.to_le_bytes());
    push(&mut head, &LARGE.to_le_bytes());
    push(&mut head, &name_length(entry)?);
    push(&mut head, &20_u16.to_le_bytes());
    push(&mut head, entry.name.as_bytes());
    push(&mut head, &WIDE.to_le_bytes());
    push(&mut head, &16_u16.to_le_bytes());
    push(&mut head, &entry.n_stored.to_le_bytes());
    push(&mut head, &entry.n_stored.to_le_bytes());
    Ok(head)
}

fn push_central(list: &mut Vec<u8>, entry: &Entry) -> io::Result<()> {
    push(list, &CENTRAL.to_le_bytes());
    push(list, &VERSION.to_le_bytes());
    push(list, &VERSION.to_le_bytes());
    push(list, &[0; 6]);
    push(list, &DATE.to_le_bytes());
    push(list, &entry.crc.to_le_bytes());
    push(list, &LARGE.to_le_bytes());
    push(list, &LARGE.to_le_bytes());
    push(list, &name_length(entry)?);
    push(list, &28_u16.to_le_bytes());
    // No comment, the first disk, no attributes.
    push(list, &[0; 10]);
    push(list, &LARGE.to_le_bytes());
    push(list, entry.name.as_bytes());
    push(list, &WIDE.to_le_bytes());
    push(list, &24_u16.to_le_bytes());
    for number in [entry.n_stored, entry.n_stored, entry.offset] {
        push(list, &number.to_le_bytes());
    }
    Ok(())
}

/// Returns true if a file begins like a container.
pub(crate) fn is_zip(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let mut begin = Vec::new();
    file.take(4).read_to_end(&mut begin)?;
    Ok(begin == LOCAL.to_le_bytes())
}

/// Returns the entries of a container, each with the offset of its bytes. None of them may share bytes with another: a small
/// container could have a large number of large parts otherwise.
pub(crate) fn parts(file: &mut (impl Read + Seek)) -> io::Result<Vec<(Entry, u64)>> {
    let (entries, list_at) = entries(file)?;
    let mut parts = Vec::with_capacity(entries.len());
    for entry in entries {
        let begin = data_offset(file, &entry)?;
        parts.push((entry, begin));
    }
    let all = parts.iter();
    let all = all.map(|(entry, begin)| (entry.offset, begin.saturating_add(entry.n_stored)));
    let mut spans: Vec<(u64, u64)> = all.chain([(list_at, u64::MAX)]).collect();
    spans.sort_unstable();
    match spans.windows(2).all(|pair| pair[0].1 <= pair[1].0) {
        true => Ok(parts),
        false => Err(damaged("entries of the container overlap")),
    }
}

/// Returns the entries of a container, and the offset of their list.
fn entries(file: &mut (impl Read + Seek)) -> io::Result<(Vec<Entry>, u64)> {
    let length = file.seek(SeekFrom::End(0))?;
    let tail_at = length.saturating_sub(MAX_TAIL);
    let tail = bytes_at(file, tail_at, length - tail_at)?;
    let signature = END.to_le_bytes();
    let at = tail
        .windows(22)
        .rposition(|window| window.starts_with(&signature));
    let at = at.ok_or_else(|| damaged("the container has no end"))?;
    let mut end = Fields(&tail[at..]);
    end.skip(12)?;
    let (mut size, mut begin) = (u64::from(end.u32()?), u64::from(end.u32()?));
    let locator = at.checked_sub(20).map(|at| &tail[at..]);
    let locator = locator.filter(|bytes| bytes.starts_with(&LOCATOR_64.to_le_bytes()));
    if let Some(locator) = locator {
        let mut locator = Fields(locator);
        locator.skip(8)?;
        let wide = bytes_at(file, locator.u64()?, 56)?;
        let mut wide = Fields(&wide);
        if wide.u32()? != END_64 {
            return Err(damaged("the container has no end"));
        }
        wide.skip(36)?;
        (size, begin) = (wide.u64()?, wide.u64()?);
    }
    if size > MAX_LIST {
        return Err(damaged("the list of the container is longer than 64 MiB"));
    }
    let list = bytes_at(file, begin, size)?;
    let mut list = Fields(&list);
    let mut entries = Vec::new();
    while !list.0.is_empty() {
        entries.push(entry(&mut list)?);
    }
    Ok((entries, begin))
}

fn entry(list: &mut Fields<'_>) -> io::Result<Entry> {
    if list.u32()? != CENTRAL {
        return Err(damaged("the list of the container is damaged"));
    }
    list.skip(4)?;
    let is_encrypted = list.u16()? & 1 == 1;
    let is_stored = list.u16()? == 0 && !is_encrypted;
    list.skip(4)?;
    let crc = list.u32()?;
    let (stored, plain) = (list.u32()?, list.u32()?);
    let lengths = [list.u16()?, list.u16()?, list.u16()?];
    list.skip(8)?;
    let offset = list.u32()?;
    let [name, extra, comment] = lengths.map(usize::from);
    let name = String::from_utf8_lossy(list.bytes(name)?).into_owned();
    let mut extra = Fields(list.bytes(extra)?);
    list.skip(comment)?;
    let (mut n_stored, mut offset_64) = (u64::from(stored), u64::from(offset));
    while !extra.0.is_empty() {
        let (tag, length) = (extra.u16()?, extra.u16()?);
        let mut field = Fields(extra.bytes(length.into())?);
        if tag == WIDE {
            // It has those of the three numbers that do not fit, in this order.
            if plain == LARGE {
                field.skip(8)?;
            }
            if stored == LARGE {
                n_stored = field.u64()?;
            }
            if offset == LARGE {
                offset_64 = field.u64()?;
            }
        }
    }
    Ok(Entry {
        name,
        is_stored,
        n_stored,
        crc,
        offset: offset_64,
    })
}

/// Returns the offset of the bytes of an entry.
fn data_offset(file: &mut (impl Read + Seek), entry: &Entry) -> io::Result<u64> {
    let head = bytes_at(file, entry.offset, 30)?;
    let mut head = Fields(&head);
    if head.u32()? != LOCAL {
        return Err(damaged("an entry of the container has no head"));
    }
    head.skip(22)?;
    let (name, extra) = (head.u16()?, head.u16()?);
    Ok(entry.offset + 30 + u64::from(name) + u64::from(extra))
}

/// Reads bytes, all of which have to be there.
fn bytes_at(file: &mut (impl Read + Seek), at: u64, n: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(n).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == n {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Numbers and bytes, one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, n: usize) -> io::Result<&'a [u8]> {
        let (bytes, rest) = self
            .0
            .split_at_checked(n)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn skip(&mut self, n: usize) -> io::Result<()> {
        self.bytes(n).map(drop)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let bytes = self.bytes(N)?;
        Ok(bytes.try_into().expect("it has this length"))
    }

    fn u16(&mut self) -> io::Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> io::Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> io::Result<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn container() -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in [("a", "first"), ("b", "second")] {
            zip.add(name, content.as_bytes(), |_| ()).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn parts_are_where_they_were_written() {
        let bytes = container();
        let parts = parts(&mut Cursor::new(&bytes)).unwrap();
        let found = parts.iter().map(|(entry, begin)| {
            let begin = usize::try_from(*begin).unwrap();
            let end = begin + usize::try_from(entry.n_stored).unwrap();
            (entry.name.as_str(), &bytes[begin..end])
        });
        let found: Vec<_> = found.collect();
        assert_eq!(found, [("a", &b"first"[..]), ("b", b"second")]);
    }

    #[test]
    fn entries_that_share_bytes_are_refused() {
        let mut bytes = container();
        let signature = CENTRAL.to_le_bytes();
        let mut windows = bytes.windows(4);
        let second = windows.rposition(|window| window == signature).unwrap();
        // The offset is the last number of the entry, after 46 bytes of head and one of name.
        let at = second + 46 + 1 + 4 + 16;
        bytes[at..at + 8].copy_from_slice(&0_u64.to_le_bytes());
        let error = parts(&mut Cursor::new(&bytes)).unwrap_err();
        assert_eq!(error.to_string(), "entries of the container overlap");
    }
}
