//! The pages that the sitemaps of a site list, each with its title and the last change that its sitemap tells.
//!
//! The crawler itself reads no sitemaps. A robots.txt is a page like others, and so is a sitemap, which the crate
//! `quick-xml` parses in the sandbox. An index lists further sitemaps, or indexes, which come to the same rule. A run
//! fetches each address once, so indexes that list each other end. `--max-depth` bounds how deep they may nest.
//!
//! The protocol allows 50 000 addresses in 50 MiB. The plugin asks for the memory for that, and is granted it. A long
//! sitemap needs further limits, which the resource has to ask for: `--limit requests=20000 --limit body=50MiB
//! --limit fuel=3000000000 --limit cpu=1s`. An address takes about 30 000 units of fuel. The operator has to allow more
//! than 20 000 requests by `--limit-ceiling`. A sitemap that exceeds a limit fails, because a part of it would look like
//! the whole. Sitemaps and pages on other hosts need setting `scope`.
//!
//! A sitemap with the header `content-encoding: gzip` is read. A file like `sitemap.xml.gz`, which is sent without that
//! header, is an error that says so; the crate `flate2` would unpack it. Feeds and lists in plain text are errors too.

use crawler_plugin_sdk::{prelude::*, warn};

mod xml;

use xml::{Entry, Sitemap};

#[derive(Extract)]
struct Head<'p> {
    #[css("title")]
    title: Option<&'p str>,
}

#[derive(Item, serde::Serialize)]
struct ListedPage<'p> {
    url: &'p str,
    /// Title of the page. `None` for one without a title, and for a PDF or another file.
    title: Option<&'p str>,
    /// Time of the last change, as the sitemap writes it.
    lastmod: Option<&'p str>,
}

/// The plugin.
pub struct Sitemaps;

#[plugin(
    items(ListedPage<'_> = "page"),
    reads(Head<'_>),
    limits(memory = 134_217_728, requests = 20_000, body = 52_428_800, fuel = 3_000_000_000, cpu = 1_000),
    params(
        site(about = "Address of any page of the site"),
        since(
            about = "First day, like 2026-07-01: what was changed before is left out",
            default = ""
        )
    )
)]
impl Sitemaps {
    /// A site without a robots.txt has its sitemap at the usual place.
    pub fn root(crawl: &mut Crawl) -> Result {
        let site: Url = crawl.config().parse("site")?.require("param site")?;
        let robots = Request::get(site.join("/robots.txt")?, Self::ROBOTS);
        crawl.request(robots.accept_status(404).accept_status(410))
    }

    /// Lines about sitemaps belong to no group of user agents.
    #[rule]
    pub fn robots(page: &Page, crawl: &mut Crawl) -> Result {
        let lines = page.text().lines().filter_map(|line| line.split_once(':'));
        let lines = lines.filter(|(key, _)| key.trim().eq_ignore_ascii_case("sitemap"));
        let mut maps: Vec<&str> = lines.map(|(_, address)| address.trim()).collect();
        if maps.is_empty() || page.status() != 200 {
            maps = vec!["/sitemap.xml"];
        }
        crawl.follow_all(maps, Self::SITEMAP)
    }

    /// The time of the last change travels with the request: the page does not tell it.
    #[rule]
    pub fn sitemap(page: &Page, crawl: &mut Crawl) -> Result {
        if page.truncated() {
            return Err(RuleError::unexpected("the sitemap exceeds limit body"));
        }
        if page.charset() == "binary" {
            return Err(RuleError::unexpected(
                "the sitemap is no text; a gzip file is not unpacked",
            ));
        }
        let Sitemap { is_index, entries } = xml::read(page.text())?;
        if entries.is_empty() {
            warn!("{} lists nothing", page.url());
        }
        let rule = match is_index {
            true => Self::SITEMAP,
            false => Self::PAGE,
        };
        let since = crawl.config().require("since")?;
        for Entry { address, lastmod } in entries {
            if !is_before(&lastmod, &since) {
                crawl.request(Request::get(address, rule).state(lastmod))?;
            }
        }
        Ok(())
    }

    /// One page that a sitemap lists.
    #[rule]
    pub fn page(page: &Page, crawl: &mut Crawl) -> Result {
        let Head { title } = page.extract()?;
        let lastmod = std::str::from_utf8(page.state())?;
        crawl.emit(&ListedPage {
            url: page.url(),
            title,
            lastmod: (!lastmod.is_empty()).then_some(lastmod),
        })
    }
}

/// Returns true if a time is known to be before the day. Times of ISO 8601 sort like text. A year or a month begins the
/// text of each of its days, and an empty text begins every day.
fn is_before(time: &str, day: &str) -> bool {
    time < day && !day.starts_with(time)
}
