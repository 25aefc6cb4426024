//! The books and authors of a JSON API. A page of books leads to the next one by a cursor, and to the author of each
//! book.
//!
//! serde tells what is read of an answer: `Option` and `default` are for what may be missing. Anything else that is
//! missing, or has another type, ends the call with an error that names the field. What the API has besides is
//! passed over. One struct may be both what is read and the item.
//!
//! Many books name the same author. All of them are followed, and the crawler fetches each address once.

use crawler_plugin_sdk::{Rule, prelude::*};
use serde::{Deserialize, Serialize};

/// One page of the list.
#[derive(Deserialize)]
struct Books {
    books: Vec<Book>,
    /// Cursor of the next page. The last page has none.
    next: Option<String>,
}

#[derive(Item, Deserialize, Serialize)]
struct Book {
    id: u64,
    title: String,
    /// Id of the author.
    author: u64,
    year: Option<i32>,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Item, Deserialize, Serialize)]
struct Author {
    id: u64,
    name: String,
    born: Option<i32>,
}

/// The plugin.
pub struct JsonApi;

#[plugin(
    items(Book, Author),
    params(api(about = "Address below which the API has `books` and `authors`"))
)]
impl JsonApi {
    /// The first page of books.
    pub fn root(crawl: &mut Crawl) -> Result {
        let books = endpoint(crawl, "books")?;
        crawl.request(ask(books, Self::BOOKS))
    }

    /// A cursor may have any characters, so it is encoded as a value of the query.
    #[rule]
    pub fn books(page: &Page, crawl: &mut Crawl) -> Result {
        let Books { books, next } = page.json()?;
        crawl.emit_all(&books)?;
        for book in &books {
            let author = endpoint(crawl, &format!("authors/{}", book.author))?;
            crawl.request(ask(author, Self::AUTHOR))?;
        }
        let Some(cursor) = next else { return Ok(()) };
        let mut next = endpoint(crawl, "books")?;
        next.query_pairs_mut().append_pair("cursor", &cursor);
        crawl.request(ask(next, Self::BOOKS))
    }

    /// One author.
    #[rule]
    pub fn author(page: &Page, crawl: &mut Crawl) -> Result {
        crawl.emit(&page.json::<Author>()?)
    }
}

/// Returns the address of an endpoint, whether param `api` ends with a slash or not.
fn endpoint(crawl: &Crawl, path: &str) -> Result<Url> {
    let mut api: Url = crawl.config().parse("api")?.require("param api")?;
    let folder = format!("{}/", api.path().trim_end_matches('/'));
    api.set_path(&folder);
    Ok(api.join(path)?)
}

/// Returns a request for JSON. Some servers send HTML to clients that do not ask for JSON.
fn ask(url: Url, rule: Rule) -> Request {
    Request::get(url, rule).header("accept", "application/json")
}
