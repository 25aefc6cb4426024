//! Typed reading: a struct declares where its fields stand in a page, and the crawler reads them all in
//! one pass, outside of the sandbox.
//!
//! ```text
//! shape      what a struct declares: constants that the derive writes, and the plan made of them
//! reading   what the crawler read by a plan, looked up by rows
//! readings  all that was read of one page, kept as long as the page
//! whole     the page as a struct
//! row       one struct made of that, with errors that name field and selector
//! value     one value made of one text
//! pattern   texts that a regular expression chooses
//! date      days, date_time moments
//! money     prices
//! link      addresses
//! page_links  all of a page, declared by nobody
//! as_text   what dates and prices are in JSON
//! ```

#[macro_use]
mod as_text;
mod date;
mod date_time;
mod link;
mod money;
pub(crate) mod page_links;
mod pattern;
pub(crate) mod reading;
pub(crate) mod readings;
mod row;
mod shape;
mod value;
mod whole;

use crate::Result;

pub use date::Date;
pub use date_time::DateTime;
pub use link::{Link, Links};
pub use money::{Amount, Currency, Money};
pub use page_links::{PageLink, PageLinks};
pub use value::{Capture, Value};

/// Items that the code of the derive refers to.
#[doc(hidden)]
pub mod derived {
    pub use super::date::date;
    pub use super::date_time::date_time;
    pub use super::money::money;
    pub use super::pattern::{Compiled, Pattern, compiled, find};
    pub use super::row::{Row, borrowed, by};
    pub use super::shape::{Part, Shape, Shaped, Take};
}

/// A struct that is read from pages, by `#[derive(Extract)]`.
///
/// Each field says where it stands: `#[css("…")]` for values, `#[rows("…")]` for nested structs.
///
/// ```
/// use crawler_plugin_sdk::testing::Trial;
/// use crawler_plugin_sdk::prelude::*;
///
/// #[derive(Extract)]
/// struct Listing {
///     #[css("li.next a", attr = "href")]
///     next: Links, // can only be followed
///     #[rows("article.book")]
///     books: Vec<Card>,
/// }
///
/// #[derive(Extract, Item, serde::Serialize)]
/// struct Card {
///     #[css("h3 a", attr = "href")]
///     url: Url,
///     #[css("h3")]
///     title: String, // has to be there
///     #[css("p.rating", attr = "data-stars")]
///     rating: Option<u8>,
///     #[css("p.stock", default)]
///     stock: u32, // 0 if it is missing
///     #[css("ul.tags li")]
///     tags: Vec<String>,
///     #[css("p.sale", present)]
///     on_sale: bool,
///     #[css("p.price", with = pence)]
///     pence: u32,
/// }
///
/// fn pence(price: &str) -> Result<u32, String> {
///     let digits = price.strip_prefix('£').ok_or("there is no £")?;
///     digits.replace('.', "").parse().map_err(|why| format!("{why}"))
/// }
///
/// pub struct Books;
///
/// #[plugin(items(Card), reads(Listing))]
/// impl Books {
///     fn root(crawl: &mut Crawl) -> Result {
///         crawl.follow("http://shop.test/", Self::LIST)
///     }
///
///     #[rule]
///     fn list(page: &Page, crawl: &mut Crawl) -> Result {
///         let listing: Listing = page.extract()?;
///         crawl.follow_links(&listing.next, Self::LIST)?;
///         crawl.emit_all(&listing.books)
///     }
/// }
///
/// let html = r#"
///   <article class=book><h3><a href=7.html>The Waves</a></h3><p class=price>£12.34
///     <ul class=tags><li>novel<li>English</ul></article>
///   <li class=next><a href="?p=2">next</a>"#;
/// let page = Page::from_html("http://shop.test/books/", html);
/// let outcome = Trial::new().parse(Books::list, &page)?;
/// let book = &outcome.items[0].value;
/// assert_eq!(book["url"], "http://shop.test/books/7.html");
/// assert_eq!(book["pence"], 1234);
/// assert_eq!(book["tags"][1], "English");
/// assert_eq!(outcome.urls(), ["http://shop.test/books/?p=2"]);
/// # Ok::<(), RuleError>(())
/// ```
///
/// `#[page(url)]` reads the address of the page into a `String` or `Url`. `#[page(state)]` reads the state of its
/// request into any type that is parsed from text:
///
/// ```
/// # use crawler_plugin_sdk::testing::Trial;
/// # use crawler_plugin_sdk::prelude::*;
/// #[derive(Extract, Item, serde::Serialize)]
/// struct Book {
///     #[page(url)]
///     url: String,
///     #[page(state)]
///     tag: String,
///     #[css("#facts li", regex = "^Author: (.+)")]
///     author: String,
///     #[css("#facts li", regex = r"^Pages: (\d+)")]
///     pages: Option<u32>,
/// }
/// #
/// # pub struct Books;
/// #
/// # #[plugin(items(Book), reads(Book))]
/// # impl Books {
/// #     fn root(_: &mut Crawl) -> Result {
/// #         Ok(())
/// #     }
/// #
/// #     #[rule]
/// #     fn detail(page: &Page, crawl: &mut Crawl) -> Result {
/// #         crawl.emit(&page.extract::<Book>()?)
/// #     }
/// # }
/// #
/// # let html = "<ul id=facts><li>Year: 1931<li>Author: Virginia Woolf<li>Pages: many";
/// # let page = Page::from_html("http://shop.test/7", html).with_state("novel");
/// # let outcome = Trial::new().parse(Books::detail, &page)?;
/// # let expected = r#"{"author":"Virginia Woolf","pages":null,"tag":"novel","url":"http://shop.test/7"}"#;
/// # assert_eq!(outcome.items[0].value.to_string(), expected);
/// # Ok::<(), RuleError>(())
/// ```
///
/// # How many there are
///
/// | type | what is read |
/// |---|---|
/// | `T` | the first; none is an error |
/// | `T` with `default` | the first, or `T::default()` |
/// | `Option<T>` | the first, or `None` |
/// | `Vec<T>` | all, in the order of the page |
/// | [`Links`] | all, but they stay with the crawler |
///
/// `T` is any [`Value`], or with `#[rows("…")]` any struct that derives `Extract`. A value that is there but does
/// not parse is an error in each of them.
///
/// # What is read
///
/// | key of `css` | meaning |
/// |---|---|
/// | none | the element's text: white space folded, ends trimmed |
/// | `raw` | its text with all white space as written |
/// | `inner` | what stands between its tags, as written |
/// | `attr = "href"` | the value of an attribute; elements without it are passed over |
/// | `tag` | the element's name in lower case, as `h2` |
/// | `present` | whether there is such an element: a `bool` |
/// | `regex = "…"` | of the elements those whose text it matches, and of the text its first group, or all that it matches |
/// | `with = path` | a `fn(&str) -> Result<T, impl Display>` makes the value |
/// | `default` | `T::default()` if it is missing |
/// | `format = "%d %B %Y"` | how the page writes a [`Date`] or a [`DateTime`] |
/// | `offset = "+02:00"` | what a [`DateTime`] is from UTC where the page does not say |
/// | `currency = "EUR"`, `decimal = ","` | what [`Money`] is where the page leaves it open |
///
/// # Borrowed text
///
/// A struct with a lifetime borrows from the page. All that the crawler read of the page is one text, and `&'p
/// str` is a part of it, so that no field costs an allocation. `Cow<'p, str>` does as well, and so do own
/// functions, `fn(&'p str) -> Result<T, _>`. Nested structs carry the lifetime on.
///
/// ```
/// # use crawler_plugin_sdk::testing::Trial;
/// # use crawler_plugin_sdk::prelude::*;
/// #[derive(Extract)]
/// struct Index<'p> {
///     #[rows("dt")]
///     entries: Vec<Entry<'p>>,
/// }
///
/// #[derive(Extract, Item, serde::Serialize)]
/// struct Entry<'p> {
///     #[css("")]
///     word: &'p str,
///     #[css("i")]
///     kinds: Vec<&'p str>,
///     #[page(url)]
///     url: &'p str,
/// }
/// #
/// # pub struct Words;
/// #
/// # #[plugin(items(Entry<'_>), reads(Index<'_>))]
/// # impl Words {
/// #     fn root(_: &mut Crawl) -> Result {
/// #         Ok(())
/// #     }
///
/// #[rule]
/// fn index(page: &Page, crawl: &mut Crawl) -> Result {
///     let index: Index<'_> = page.extract()?;
///     crawl.emit_all(&index.entries)
/// }
/// # }
/// #
/// # let page = Page::from_html("http://words.test/", "<dl><dt>rain <i>noun</i> <i>verb</i><dt>sun</dl>");
/// # let outcome = Trial::new().parse(Words::index, &page)?;
/// # let expected = r#"{"kinds":["noun","verb"],"url":"http://words.test/","word":"rain noun verb"}"#;
/// # assert_eq!(outcome.items[0].value.to_string(), expected);
/// # Ok::<(), RuleError>(())
/// ```
///
/// # Selectors
///
/// A value belongs to the innermost row around it. The selector itself is matched against the whole page: in rows
/// of `article`, `main h3` finds the row's headings if the article stands in a `main`. A selector that begins with
/// `>` means children of the row, and an empty one the row's own element. Neither makes sense for a whole page, so
/// neither compiles there. A `>` behind a comma is refused when the plugin is pushed, and by native tests.
///
/// The page is read in one pass, so a selector cannot look ahead. It may use tags, classes, ids, attributes, `>`,
/// `+`, `~`, `:not()`, `:is()`, `:where()`, `:first-child`, `:nth-child()`, `:first-of-type` and `:nth-of-type()`;
/// lists in parentheses have no combinators. For more (`:has()`, `:last-child`, `:empty`) there is
/// [`Page::dom`](crate::Page#method.dom) with feature `dom`. An unknown selector does not compile.
///
/// # What differs from a browser
///
/// Most tags that an author leaves out or writes too often are read as in a browser: elements end where their end
/// tags may be left out, missing `tbody`, `tr` and `colgroup` are added, end tags that close nothing do not count,
/// and the content of `template` and `noscript` is left out. The rest is read as it is written.
/// [`Page::dom`](crate::Page#method.dom) has what a browser has:
///
/// | in the page | a plan reads | a browser has |
/// |---|---|---|
/// | a formatting element (`a`, `b`, `code`, `em`, …) that is left open, or whose end tag crosses a block | it once, up to the end of a block | one more in each block that follows |
/// | a block (`p`, `div`, …) that the end tag of a formatting element around it crosses | the block in that element, and in those between the two | the block behind the element, and in none of those between |
/// | one that is left open in another of its name | the outer one up to the first end tag | the outer one up to the second |
/// | text or elements in a table, but in no cell and no caption | them where they are written, in the table | them before the table |
/// | a start tag without a place: `td` outside of a table, `form` in a `form`, a second `body` | the element | what is in it |
/// | `</p>` or `</br>` that closes nothing | nothing | an empty `p`, a `br` |
/// | a `</form>` in a cell or `select` in its form | nothing, so that the next `</form>` counts | the form as ended, so that the next counts for nothing |
/// | `script`, `link`, `meta` and the like behind `</head>` | them in `html` | them in `head` |
/// | `frameset` | what it holds | frames and nothing else, or nothing at all |
/// | no tag of `html`, `head` or `body` | none, so that `body > p` matches nothing | all three |
/// | an end tag that 64 or more open elements part from its start tag | most elements up to the end of one around them | the element up to its end tag |
/// | lines that end in CR LF, or characters NUL | them as they are | LF; no NUL, or U+FFFD |
/// | a line end right behind `<pre>`, `<listing>` or `<textarea>` | it, by `raw` and `inner` | none |
/// | the element `image` | `image` | `img` |
/// | names in `svg` and `math`, asked for as `foreignobject` or `[viewbox]` | them in any case | only those that are spelled like it |
/// | `math` right in `svg` or the reverse, or CDATA in their HTML | elements and texts in them that may be others | those of the standard |
///
/// Values of `inner` are slices of the page: entities, quotes and tags are as written, also where an end tag is
/// left out or too many. A browser would write all of them anew.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not made to be read from pages",
    label = "does not derive `Extract`",
    note = "write `#[derive(Extract)]` before the struct; single values are read with `#[css(…)]`"
)]
pub trait Extract<'p>: derived::Shaped + Sized {
    #[doc(hidden)]
    fn read(row: &mut derived::Row<'p>) -> Result<Self>;
}

/// A struct by which a plugin reads whole pages. It is implemented by naming the type in
/// `#[plugin(reads(Listing))]`; nested structs need not be named.
///
/// ```
/// use crawler_plugin_sdk::{Declared, prelude::*};
///
/// #[derive(Extract)]
/// struct BookPage {
///     #[css("h1")]
///     title: String,
/// }
///
/// pub struct Books;
///
/// #[plugin(reads(BookPage))]
/// impl Books {
///     fn root(_: &mut Crawl) -> Result {
///         Ok(())
///     }
///
///     #[rule]
///     fn detail(page: &Page, _: &mut Crawl) -> Result {
///         info!("{}", page.extract::<BookPage>()?.title);
///         Ok(())
///     }
/// }
///
/// assert_eq!(BookPage::NAME, "book_page");
/// # use crawler_plugin_sdk::info;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not among what this plugin reads",
    label = "not declared as read",
    note = "declare it where the rules are: `#[plugin(reads({Self}))]`"
)]
pub trait Declared: derived::Shaped {
    /// Name of the type in snake case: `book_page` for a type `BookPage`.
    const NAME: &'static str;

    #[doc(hidden)]
    const NUMBER: u32;
}
