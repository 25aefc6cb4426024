//! Pages that are served: made up, or those of a folder.

use std::io;
use std::time::Duration;

use super::folder::Folder;
use super::web::{FORBIDDEN, Found, Web, robots};

/// Pages by host and path.
#[derive(Debug)]
pub(super) enum Pages {
    MadeUp(Web),
    Folder(Folder),
}

impl Pages {
    pub(super) fn n_hosts(&self) -> u32 {
        match self {
            Self::MadeUp(web) => web.n_hosts(),
            Self::Folder(_) => 1,
        }
    }

    pub(super) fn n_pages(&self) -> usize {
        match self {
            Self::MadeUp(web) => web.n_pages() as usize,
            Self::Folder(folder) => folder.n_pages(),
        }
    }

    /// Returns what a host has at a path.
    pub(super) fn find(&self, host: u32, path: &str) -> Found {
        match self {
            Self::MadeUp(web) => web.find(host, path),
            Self::Folder(folder) => folder.find(path),
        }
    }

    /// Returns the robots.txt of every host. It forbids no file of a folder, whatever its name is.
    pub(super) fn robots(&self, crawl_delay: Duration) -> String {
        match self {
            Self::MadeUp(_) => robots(FORBIDDEN, crawl_delay),
            Self::Folder(_) => robots("", crawl_delay),
        }
    }

    /// Returns true if the first request for a page fails.
    pub(super) fn fails_first(&self, page: u32) -> bool {
        match self {
            Self::MadeUp(web) => web.fails_first(page),
            Self::Folder(_) => false,
        }
    }

    /// Returns the body of a page; links to other hosts have this port.
    pub(super) async fn body(&self, page: u32, port: u16) -> io::Result<Vec<u8>> {
        match self {
            Self::MadeUp(web) => Ok(web.html(page, port).into_bytes()),
            Self::Folder(folder) => folder.body(page).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn no_file_of_a_folder_is_forbidden() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("private")).unwrap();
        fs::write(root.path().join("private/a.html"), "").unwrap();
        let pages = Pages::Folder(Folder::read(root.path(), 1).unwrap());
        assert!(matches!(pages.find(0, "/private/a.html"), Found::Page(_)));
        let rules = pages.robots(Duration::ZERO);
        assert_eq!(rules, "user-agent: *\ndisallow: \n");
    }
}
