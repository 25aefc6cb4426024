//! A folder of HTML files as a web of one host.
//!
//! Files are found by their paths below the folder, and `x/` is `x/index.html`. The start of the host is not a file: it
//! is the first of the lists that lead to all files, so that each can be reached. Symbolic links are not followed, and
//! files of other kinds are not served.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::web::Found;

/// Largest number of files of a folder.
pub const MAX_FILES: usize = 1_000_000;
/// Largest size of a file in bytes: a file is in memory as a whole for each request.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Number of files that one list leads to.
const PER_LIST: usize = 500;
/// Beginning of the paths of lists.
const LISTS: &str = "/.bench-list/";
/// Characters that are percent-encoded in the path of a link.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Reason why a folder cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder, or one below it, cannot be read.
    #[error("cannot list {path}")]
    Unreadable {
        /// Path of the folder.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// The name of a file cannot be part of an address.
    #[error("cannot serve {path}: its name is not UTF-8; rename it")]
    Name {
        /// Path of the file.
        path: PathBuf,
    },
    /// A file is too large.
    #[error("cannot serve {path}: it is larger than {} MiB; move it out of the folder", MAX_FILE_BYTES >> 20)]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
    },
    /// There are no files.
    #[error("{path} has no HTML files; name a folder with files that end in .html or .htm")]
    Empty {
        /// Path of the folder.
        path: PathBuf,
    },
    /// There are too many files.
    #[error("{path} has more than {max} HTML files; name a smaller folder")]
    TooMany {
        /// Path of the folder.
        path: PathBuf,
        /// Largest number of files.
        max: usize,
    },
}

/// A folder that is served.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    /// Paths below the folder, in their order.
    files: Vec<String>,
    /// Places in `files` by path.
    places: HashMap<String, usize>,
}

impl Folder {
    /// Lists the HTML files of a folder, at most `max`.
    pub fn read(root: &Path, max: usize) -> Result<Self, FolderError> {
        let mut files = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            let unreadable = |source| FolderError::Unreadable {
                path: folder.clone(),
                source,
            };
            for entry in fs::read_dir(&folder).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                let kind = entry.file_type().map_err(unreadable)?;
                let path = entry.path();
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() && is_html(&path) {
                    if entry.metadata().map_err(unreadable)?.len() > MAX_FILE_BYTES {
                        return Err(FolderError::TooLarge { path });
                    }
                    let below = path.strip_prefix(root).ok().and_then(Path::to_str);
                    let below = below.map(str::to_owned);
                    files.push(below.ok_or(FolderError::Name { path })?);
                }
            }
            if files.len() > max {
                let path = root.to_owned();
                return Err(FolderError::TooMany { path, max });
            }
        }
        if files.is_empty() {
            let path = root.to_owned();
            return Err(FolderError::Empty { path });
        }
        files.sort_unstable();
        let places = files.iter().cloned().zip(0..).collect();
        Ok(Self {
            root: root.to_owned(),
            files,
            places,
        })
    }

    /// Returns the number of pages: all lists and files. Lists come first.
    pub fn n_pages(&self) -> usize {
        self.n_lists() + self.files.len()
    }

    /// Returns what is at a path.
    pub(super) fn find(&self, path: &str) -> Found {
        let page = match path {
            "/robots.txt" => return Found::Robots,
            "/" => Some(0),
            path => match path.strip_prefix(LISTS) {
                Some(list) => list.parse().ok().filter(|list| *list < self.n_lists()),
                None => self.place(path).map(|place| self.n_lists() + place),
            },
        };
        let page = page.and_then(|page| u32::try_from(page).ok());
        page.map_or(Found::Nothing, Found::Page)
    }

    /// Returns the body of a page.
    pub(super) async fn body(&self, page: u32) -> io::Result<Vec<u8>> {
        let page = page as usize;
        match page.checked_sub(self.n_lists()) {
            None => Ok(self.list(page).into_bytes()),
            Some(place) => tokio::fs::read(self.root.join(&self.files[place])).await,
        }
    }

    fn place(&self, path: &str) -> Option<usize> {
        let path = percent_decode_str(path.strip_prefix('/')?)
            .decode_utf8()
            .ok()?;
        let found = match path.ends_with('/') {
            true => self.places.get(&format!("{path}index.html")),
            false => self.places.get(&*path),
        };
        found.copied()
    }

    /// Returns a list, with a link to the next one.
    fn list(&self, list: usize) -> String {
        let files = self.files.chunks(PER_LIST).nth(list).unwrap_or_default();
        let encoded = files.iter().map(|file| utf8_percent_encode(file, ENCODED));
        let mut links: Vec<String> = encoded.map(|file| format!("/{file}")).collect();
        if list + 1 < self.n_lists() {
            links.push(format!("{LISTS}{}", list + 1));
        }
        let links = links
            .iter()
            .map(|link| format!("<li><a href=\"{link}\">{link}</a>\n"));
        let links: String = links.collect();
        format!("<!DOCTYPE html>\n<title>List {list}</title>\n<h1>Files</h1>\n<ul>\n{links}</ul>\n")
    }

    fn n_lists(&self) -> usize {
        self.files.len().div_ceil(PER_LIST)
    }
}

fn is_html(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    ending.eq_ignore_ascii_case("html") || ending.eq_ignore_ascii_case("htm")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        folder
    }

    #[tokio::test]
    async fn files_are_found_by_the_links_of_the_list() {
        let names = [
            "a b.html",
            "index.html",
            "x/100%.HTM",
            "x/index.html",
            "x/é&.html",
        ];
        let with_others = [&names[..], &["style.css", "x/image.png", "html"]].concat();
        let root = folder(&with_others);
        let folder = Folder::read(root.path(), 5).unwrap();
        assert_eq!(folder.n_pages(), 6);
        assert_eq!(folder.find("/"), Found::Page(0));
        let list = String::from_utf8(folder.body(0).await.unwrap()).unwrap();
        let links = list.split("href=\"").skip(1);
        let links: Vec<&str> = links.map(|link| link.split_once('"').unwrap().0).collect();
        assert_eq!(links.len(), names.len());
        for (link, name) in links.into_iter().zip(names) {
            let Found::Page(page) = folder.find(link) else {
                panic!("{link}");
            };
            assert_eq!(folder.body(page).await.unwrap(), name.as_bytes());
        }
        assert_eq!(folder.find("/x/"), folder.find("/x/index.html"));
        // Addresses may be written otherwise than the list writes them.
        assert_eq!(folder.find("/x/%C3%A9&.html"), folder.find("/x/é&.html"));
        assert_eq!(folder.find("/robots.txt"), Found::Robots);
        for path in [
            "/style.css",
            "/../x/index.html",
            "/x",
            "/.bench-list/1",
            "/.bench-list/x",
            "",
        ] {
            assert_eq!(folder.find(path), Found::Nothing, "{path}");
        }
    }

    #[tokio::test]
    async fn many_files_have_several_lists() {
        let names: Vec<String> = (0..PER_LIST + 1).map(|n| format!("{n:04}.html")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let root = folder(&names);
        let folder = Folder::read(root.path(), MAX_FILES).unwrap();
        assert_eq!(folder.n_pages(), PER_LIST + 3);
        let first = String::from_utf8(folder.body(0).await.unwrap()).unwrap();
        let next = format!("{LISTS}1");
        assert!(first.contains(&format!("href=\"{next}\"")));
        assert_eq!(folder.find(&next), Found::Page(1));
        let last = String::from_utf8(folder.body(1).await.unwrap()).unwrap();
        assert_eq!(last.matches("href").count(), 1);
    }

    #[test]
    fn a_folder_that_cannot_be_served_is_refused_with_the_reason() {
        let refused = |root: &Path, max| Folder::read(root, max).unwrap_err().to_string();
        let root = folder(&["a.txt"]);
        let path = root.path().display();
        let message = refused(root.path(), 9);
        assert!(
            message.starts_with(&format!("{path} has no HTML files; ")),
            "{message}"
        );
        let absent = root.path().join("absent");
        assert_eq!(
            refused(&absent, 9),
            format!("cannot list {}", absent.display())
        );
        let root = folder(&["a.html"]);
        let large = root.path().join("a.html");
        let file = fs::File::create(&large).unwrap();
        file.set_len(MAX_FILE_BYTES).unwrap();
        assert!(Folder::read(root.path(), 9).is_ok());
        file.set_len(MAX_FILE_BYTES + 1).unwrap();
        let expected = "it is larger than 64 MiB; move it out of the folder";
        assert_eq!(
            refused(root.path(), 9),
            format!("cannot serve {}: {expected}", large.display())
        );
        let root = folder(&["a.html", "b/c.html"]);
        let message = refused(root.path(), 1);
        assert!(
            message.contains(" has more than 1 HTML files; name a smaller folder"),
            "{message}"
        );
    }
}
