//! The images and PDFs of a site. Each is kept as a file, and an item tells its address, its media type, its size and
//! the digest that is the name of the file.
//!
//! The pages of the host of param `start` are looked through. Images of other hosts are kept too, where setting
//! `scope` admits these hosts. Setting `max-file` bounds the size of a file, and `max-kept` that of all files.
//! `crawler file NAME DIGEST -o 7.png` reads one; `crawler run` stores them in the folder of `--files`.
//!
//! Some sites answer with a page in HTML where a file was expected: a login form, or a notice that the file is gone. Such
//! an answer becomes a dead letter that says so, and no item names it. Its body is on disk all the same, because a body is
//! stored before the rule is called. An answer without a media type passes as a file.

use crawler_plugin_sdk::prelude::*;

/// Addresses of what is kept, as a regular expression.
const KEPT: &str = r"(?i)\.(pdf|png|jpe?g|gif|webp|svg)([?#]|$)";

#[derive(Extract)]
struct Pictures {
    #[css("img", attr = "src")]
    pictures: Links,
}

#[derive(Item, serde::Serialize)]
struct File<'p> {
    /// Address of the file.
    url: &'p str,
    /// Address of the first page that has it.
    referrer: Option<&'p str>,
    /// Name of the file: the sha256 of its bytes.
    digest: &'p str,
    /// Media type, if the site names one.
    media_type: Option<&'p str>,
    /// Size in bytes.
    size: u64,
}

/// The plugin.
pub struct Files;

#[plugin(
    items(File<'_>),
    reads(Pictures),
    params(start(about = "Address of the first page of the site"))
)]
impl Files {
    /// Begins with the first page.
    pub fn root(crawl: &mut Crawl) -> Result {
        crawl.follow(crawl.config().require("start")?, Self::PAGE)
    }

    /// A page leads to files, and to further pages of its host.
    #[rule]
    pub fn page(page: &Page, crawl: &mut Crawl) -> Result {
        let Pictures { pictures } = page.extract()?;
        let keep = Follow::by(Self::FILE).keep_body();
        crawl.follow_links(&pictures, keep.clone())?;
        crawl.follow_links(&page.links().matching(KEPT), keep)?;
        let pages = page.links().within_host().not_matching(KEPT);
        crawl.follow_links(&pages, Self::PAGE)
    }

    /// A file is stored before this rule is called.
    #[rule]
    pub fn file(page: &Page, crawl: &mut Crawl) -> Result {
        let kept = page.kept().require("a file")?;
        if let Some("text/html" | "application/xhtml+xml") = kept.media_type {
            let why = "the site sends a page in HTML instead of a file";
            return Err(RuleError::unexpected(why));
        }
        crawl.emit(&File {
            url: page.url(),
            referrer: page.referrer(),
            digest: kept.digest,
            media_type: kept.media_type,
            size: kept.size,
        })
    }
}
