//! The products of a shop, with reviews from another host: one item is made of two pages.
//!
//! A rule sees one page and keeps nothing. What the first page tells travels with the request for the second as its
//! state, in JSON, which may have up to 4 KiB. The rule of the second page emits, so an item is whole or missing. A product
//! without a link to reviews is emitted by the rule of the first page. Reviews that cannot be fetched are a dead letter,
//! which `crawler frontier list NAME --state dead` shows.
//!
//! A crawl keeps to the hosts of its root requests. Without `--scope reviews.shop.example` the reviews are refused
//! links, and a product with reviews has no item; `crawler run` tells the hosts of refused links at its end.
//!
//! A run fetches an address once, so each product needs a page of reviews of its own. If products share one, a part of
//! the query that the other host passes over, such as `?for=7`, makes their addresses differ.

use crawler_plugin_sdk::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Extract)]
struct List {
    #[css("ul.products a", attr = "href")]
    products: Links,
    #[css("a[rel=next]", attr = "href")]
    next: Links,
}

/// Product, as the shop offers it.
#[derive(Extract, Deserialize, Serialize)]
struct Offer {
    #[page(url)]
    url: String,
    #[css("h1")]
    name: String,
    #[css("p.price")]
    price: Money,
}

/// Link from a product to its reviews.
#[derive(Extract)]
struct ReviewLink {
    #[css("a.reviews[href]", present)]
    is_there: bool,
    #[css("a.reviews", attr = "href")]
    links: Links,
}

/// Page of reviews, on another host.
#[derive(Extract)]
struct Reviews {
    #[rows("article.review")]
    reviews: Vec<Review>,
}

#[derive(Extract, Item, Serialize)]
struct Review {
    #[css("span.stars", attr = "data-stars")]
    stars: u8,
    #[css("p")]
    text: String,
}

#[derive(Item, Serialize)]
struct Product {
    url: String,
    name: String,
    price: Money,
    /// Empty if there is no link to reviews, or the other host knows none.
    reviews: Vec<Review>,
}

impl Offer {
    fn with(self, reviews: Vec<Review>) -> Product {
        let Self { url, name, price } = self;
        Product {
            url,
            name,
            price,
            reviews,
        }
    }
}

/// The plugin.
pub struct SeveralHosts;

#[plugin(
    items(Product),
    reads(List, Offer, ReviewLink, Reviews),
    params(start(about = "Address of the first list page of the shop"))
)]
impl SeveralHosts {
    /// The first list page of the shop.
    pub fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.follow(start, Self::LIST)
    }

    /// Products first, then the next list page.
    #[rule]
    pub fn list(page: &Page, crawl: &mut Crawl) -> Result {
        let List { products, next } = page.extract()?;
        crawl.follow_links(&products, Self::PRODUCT)?;
        crawl.follow_links(&next, Self::LIST)
    }

    /// The link may lead to a page that is missing, as long as nobody has written a review.
    #[rule]
    pub fn product(page: &Page, crawl: &mut Crawl) -> Result {
        let offer: Offer = page.extract()?;
        let ReviewLink { is_there, links } = page.extract()?;
        if !is_there {
            return crawl.emit(&offer.with(Vec::new()));
        }
        let follow = Follow::by(Self::REVIEWS).state(serde_json::to_vec(&offer)?);
        crawl.follow_links(&links, follow.accept_status(404))
    }

    /// The reviews complete the product that came as the state.
    #[rule]
    pub fn reviews(page: &Page, crawl: &mut Crawl) -> Result {
        let offer: Offer = serde_json::from_slice(page.state())?;
        let reviews = match page.status() {
            404 => Vec::new(),
            _ => page.extract::<Reviews>()?.reviews,
        };
        crawl.emit(&offer.with(reviews))
    }
}
