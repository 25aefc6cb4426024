//! The page of a native call.

use super::BINARY;

/// A saved page. It has the same functions as that of the sandbox, so that [`Page`](crate::Page) is the
/// same code in both.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(super) url: String,
    pub(super) requested_url: String,
    pub(super) redirects: Vec<String>,
    pub(super) fetched_at: u64,
    pub(super) truncated: bool,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) metadata: Vec<(String, String)>,
    pub(super) depth: u32,
    pub(super) attempt: u32,
    pub(super) state: Vec<u8>,
    pub(super) referrer: Option<String>,
    pub(super) body: Vec<u8>,
    /// True if the body is no text, as the crawler found.
    pub(super) is_binary: bool,
    pub(super) captures_limit: Option<usize>,
}

impl Answer {
    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    pub(crate) fn requested_url(&self) -> String {
        self.requested_url.clone()
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn headers(&self) -> Vec<(String, String)> {
        self.headers.clone()
    }

    pub(crate) fn redirects(&self) -> Vec<String> {
        self.redirects.clone()
    }

    pub(crate) fn fetched_at(&self) -> u64 {
        self.fetched_at
    }

    pub(crate) fn charset(&self) -> String {
        match self.is_binary {
            true => BINARY.to_owned(),
            false => "UTF-8".to_owned(),
        }
    }

    pub(crate) fn metadata(&self) -> Vec<(String, String)> {
        self.metadata.clone()
    }

    pub(crate) fn truncated(&self) -> bool {
        self.truncated
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    pub(crate) fn state(&self) -> Vec<u8> {
        self.state.clone()
    }

    pub(crate) fn referrer(&self) -> Option<String> {
        self.referrer.clone()
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    pub(crate) fn text(&self) -> String {
        match self.is_binary {
            true => String::new(),
            false => String::from_utf8_lossy(&self.body).into_owned(),
        }
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        self.body.clone()
    }
}
