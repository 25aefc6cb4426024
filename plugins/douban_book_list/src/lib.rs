//! Books by tag, in three steps: the page of tags, the lists of a tag, the details of a book.

use crawler_plugin_sdk::prelude::*;
use serde::Serialize;

#[derive(Extract)]
struct Tags {
    #[rows("table.tagCol td a")]
    tags: Vec<Tag>,
}

#[derive(Extract)]
struct Tag {
    #[css("")]
    name: String,
    #[css("", attr = "href")]
    list: Link,
}

#[derive(Extract)]
struct List {
    #[css("li.subject-item h2 a", attr = "href")]
    books: Links,
    #[css("span.next a", attr = "href")]
    next: Links,
}

/// Book of a detail page, and the tag that led there. A book may lack publisher and score.
#[derive(Extract, Item, Serialize)]
struct Book {
    #[page(url)]
    url: String,
    #[page(state)]
    tag: String,
    #[css("h1")]
    title: String,
    #[css("#info > span", regex = "^作者[:： ]*([^:： ].*)")]
    author: String,
    #[css("#info > span", regex = "^出版社[:： ]*([^:： ].*)")]
    publisher: Option<String>,
    #[css("strong.rating_num", regex = r"\d+(?:\.\d+)?")]
    score: Option<f32>,
}

/// The plugin.
pub struct Douban;

#[plugin(
    items(Book),
    reads(Tags, List, Book),
    params(start(
        about = "Address of the page of tags",
        default = "https://book.douban.com/tag/"
    ))
)]
impl Douban {
    /// Requests the page of tags, which leads to everything else.
    pub fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.follow(start, Self::TAGS)
    }

    /// The name of a tag travels with the request: its list page does not tell it.
    #[rule]
    pub fn tags(page: &Page, crawl: &mut Crawl) -> Result {
        let by = |tag: &Tag| Follow::by(Self::LIST).state(&*tag.name);
        let mut tags = page.extract::<Tags>()?.tags.into_iter();
        tags.try_for_each(|tag| crawl.follow_link(&tag.list, by(&tag)))
    }

    /// Books and the next list page inherit the tag. Details first: fewer pages wait.
    #[rule]
    pub fn list(page: &Page, crawl: &mut Crawl) -> Result {
        let (list, tag) = (page.extract::<List>()?, page.state());
        crawl.follow_links(&list.books, Follow::by(Self::DETAIL).priority(1).state(tag))?;
        crawl.follow_links(&list.next, Follow::by(Self::LIST).state(tag))
    }

    /// Facts stand in one block as `label: value`.
    #[rule]
    pub fn detail(page: &Page, crawl: &mut Crawl) -> Result {
        crawl.emit(&page.extract::<Book>()?)
    }
}
