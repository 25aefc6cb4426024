//! The site that the plugins of the gallery crawl: a part for each of them, and another host with reviews.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crawler_tests::web::{Site, Web};

mod account;
mod answers;
mod pages;

pub(super) use account::{PASSWORD, USER};

/// Number of the edition that the news of a site are in, from 1.
pub(super) type Edition = Arc<AtomicUsize>;

/// Opens the host of the reviews.
pub(super) fn open_reviews() -> Web {
    // Every address of loopback is another host.
    pages::reviews(Site::new()).open_apart([127, 0, 0, 2].into())
}

/// Opens the site. Products of its shop link to their reviews.
pub(super) fn open(reviews: &Web, edition: &Edition) -> Web {
    let site = pages::catalogue(Site::new());
    let site = pages::links(pages::peaks(site));
    let site = pages::shop(site, reviews.url("/").as_str());
    let site = answers::api(site);
    let site = answers::library(site);
    let site = answers::sitemaps(site);
    let site = answers::news(site, edition);
    let site = answers::album(site);
    account::orders(site).open()
}

/// Returns a page whose parts are HTML.
fn html(title: &str, main: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <nav><a href=\"/\">Home</a></nav>\n<main>\n{main}\n</main>\n</html>\n"
    )
}
