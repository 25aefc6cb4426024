//! Bodies that are kept as files: the hint by which a request asks for one, and what its page tells of it.

use crate::Page;

/// Key of the hint.
pub(crate) const KEY: &str = "keep-body";

/// Asks to keep the body.
pub(crate) fn add(hints: &mut Vec<(String, String)>) {
    if hints.iter().all(|(key, _)| key != KEY) {
        hints.push((KEY.to_owned(), "true".to_owned()));
    }
}

/// A body that the crawler keeps as a file, see [`Request::keep_body`](crate::Request::keep_body).
///
/// ```
/// use crawler_plugin_sdk::prelude::*;
///
/// #[derive(Item, serde::Serialize)]
/// struct Picture<'p> {
///     url: &'p str,
///     file: &'p str,
///     bytes: u64,
/// }
///
/// # pub struct Album;
/// # #[plugin(items(Picture<'_>))]
/// # impl Album {
/// #     fn root(_: &mut Crawl) -> Result { Ok(()) }
/// #[rule]
/// fn picture(page: &Page, crawl: &mut Crawl) -> Result {
///     let kept = page.kept().require("a file")?;
///     crawl.emit(&Picture { url: page.url(), file: kept.digest, bytes: kept.size })
/// }
/// # }
/// # let digest = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d";
/// # let page = Page::from_html("http://shop.test/7.png", [0]).with_kept(digest);
/// # let outcome = crawler_plugin_sdk::testing::Trial::new().parse(Album::picture, &page).unwrap();
/// # assert_eq!(outcome.items[0].value["file"], digest);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept<'p> {
    /// Name of the file: the sha256 of the body, in 64 hexadecimal digits.
    pub digest: &'p str,
    /// Length of the body in bytes.
    pub size: u64,
    /// Media type in lower case and without parameters, such as `image/png`, if the answer has one.
    pub media_type: Option<&'p str>,
}

impl Page {
    /// Returns what is known of the file that the body is kept as. Returns `None` if the request did not ask for it
    /// with [`keep_body`](crate::Request::keep_body), for a status that is not one of 200 to 299, for a part of a body
    /// (206), and for an answer to `HEAD`.
    pub fn kept(&self) -> Option<Kept<'_>> {
        Some(Kept {
            digest: self.metadata("kept-digest")?,
            size: self.metadata("kept-bytes")?.parse().ok()?,
            media_type: self.metadata("kept-type"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Follow, Request, Rule};

    #[test]
    fn a_body_is_asked_for_by_one_hint() {
        let rule = Rule::__new(0, "file");
        let expected = [("keep-body".to_owned(), "true".to_owned())];
        let request = Request::get("/", rule).keep_body().keep_body();
        assert_eq!(request.hints, expected);
        assert_eq!(Follow::by(rule).keep_body().hints, expected);
    }

    #[test]
    fn a_page_tells_of_its_file_if_there_is_one() {
        let page = Page::from_html("http://a.test/7.png", "abc");
        assert_eq!(page.kept(), None);
        let page = page.with_header("content-type", "Image/PNG; q=1");
        let page = page.with_kept("ab12");
        let expected = Kept {
            digest: "ab12",
            size: 3,
            media_type: Some("image/png"),
        };
        assert_eq!(page.kept(), Some(expected));
    }
}
