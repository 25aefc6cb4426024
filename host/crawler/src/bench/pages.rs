//! Pages that are served: made up, or those of a folder.

use std::io;

use super::folder::Folder;
use super::web::{Found, Web};

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
