//! The pages that the sitemaps of a site list, each with its title and the last change that its sitemap tells.
//!
//! The crawler itself reads no sitemaps. A robots.txt is a page like others, and a sitemap is read like HTML, since a
//! selector may name any element. A sitemap may list further sitemaps, which come to the same rule.
//!
//! A sitemap may have 50 000 addresses in 50 MiB. The plugin names the limits that a long one needs, and the resource
//! has to ask for them: `--limit requests=20000 --limit body=50MiB`. The operator has to allow more requests than
//! that by `--limit-ceiling`. A sitemap that exceeds a limit fails, because a part of it would look like the whole. One
//! that is a gzip file itself lists nothing here; the crate `flate2` unpacks it. Sitemaps and pages on other hosts need
//! setting `scope`.

use crawler_plugin_sdk::{prelude::*, warn};

#[derive(Extract)]
struct Sitemap {
    #[rows("sitemap")]
    maps: Vec<Entry>,
    #[rows("url")]
    pages: Vec<Entry>,
}

#[derive(Extract)]
struct Entry {
    #[css("> loc")]
    address: String,
    /// Time of the last change: a year, a month, a day, or a day and a time.
    #[css("> lastmod", default)]
    lastmod: String,
}

#[derive(Extract)]
struct Head<'p> {
    #[css("title")]
    title: &'p str,
}

#[derive(Item, serde::Serialize)]
struct ListedPage<'p> {
    url: &'p str,
    title: &'p str,
    /// Time of the last change, as the sitemap writes it.
    lastmod: Option<&'p str>,
}

/// The plugin.
pub struct Sitemaps;

#[plugin(
    items(ListedPage<'_> = "page"),
    reads(Sitemap, Head<'_>),
    limits(requests = 20_000, body = 52_428_800),
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
        let Sitemap { maps, pages } = page.extract()?;
        if page.truncated() || page.truncated_by::<Sitemap>()? {
            return Err(RuleError::unexpected(
                "the sitemap exceeds limit body or captures",
            ));
        }
        if maps.is_empty() && pages.is_empty() {
            warn!("{} lists nothing", page.url());
        }
        let since = crawl.config().require("since")?;
        for (rule, entries) in [(Self::SITEMAP, maps), (Self::PAGE, pages)] {
            for Entry { address, lastmod } in entries {
                if !is_before(&lastmod, &since) {
                    crawl.request(Request::get(address, rule).state(lastmod))?;
                }
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
