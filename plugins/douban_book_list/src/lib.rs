//! Books by tag, in three steps: the page of tags, the lists of a tag, the details of a book.
//!
//! Param `start`: the address of the page of tags.

use crawler_plugin_sdk::prelude::*;
use serde::Serialize;

/// What a detail page tells, and the tag that led there.
#[derive(Serialize)]
struct Book {
    url: String,
    tag: String,
    title: String,
    author: String,
    publisher: Option<String>,
    score: Option<f32>,
}

/// The plugin.
pub struct Douban;

#[plugin(items(Book))]
impl Douban {
    /// One request leads to everything else.
    pub fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.follow(start, Self::TAGS)
    }

    /// The name of a tag travels with the request: its list page does not tell it.
    #[rule]
    pub fn tags(page: &Page, crawl: &mut Crawl) -> Result {
        let dom = page.dom();
        for tag in dom.all("table.tagCol td a") {
            let href = tag.attr("href").require("an address of a tag")?;
            let name: String = tag.text().collect();
            crawl.request(Request::get(href, Self::LIST).state(name.trim()))?;
        }
        Ok(())
    }

    /// Books and the next list page inherit the tag. Details first: fewer pages wait.
    #[rule]
    pub fn list(page: &Page, crawl: &mut Crawl) -> Result {
        let dom = page.dom();
        for href in dom.attrs_at("li.subject-item h2 a", "href") {
            crawl.request(
                Request::get(href, Self::DETAIL)
                    .priority(1)
                    .state(page.state()),
            )?;
        }
        for href in dom.attrs_at("span.next a", "href") {
            crawl.request(Request::get(href, Self::LIST).state(page.state()))?;
        }
        Ok(())
    }

    /// Facts stand in one block as `label: value`; a book may lack publisher and score.
    #[rule]
    pub fn detail(page: &Page, crawl: &mut Crawl) -> Result {
        let dom = page.dom();
        let facts = dom.texts_at("#info > span");
        let fact = |label: &str| {
            let value = facts.iter().find_map(|fact| fact.strip_prefix(label));
            value.map(|value| value.trim_start_matches([':', '：', ' ']).to_owned())
        };
        crawl.emit(&Book {
            url: page.url().to_owned(),
            tag: std::str::from_utf8(page.state())?.to_owned(),
            title: dom.text_at("h1")?,
            author: fact("作者").require("an author")?,
            publisher: fact("出版社"),
            score: dom
                .text_at("strong.rating_num")
                .ok()
                .and_then(|score| score.parse().ok()),
        })
    }
}
