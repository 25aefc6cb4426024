//! Addresses of a page: one that the rule sees, and many that stay with the crawler.

use std::fmt;
use std::rc::Rc;

use url::Url;

use super::reading::Reading;
use crate::{Result, RuleError};

/// An address of the page that the rule sees.
///
/// It is followed by [`Crawl::follow_link`](crate::Crawl::follow_link). A field of an item should be a [`Url`],
/// which is absolute.
///
/// ```
/// use crawler_plugin_sdk::testing::Trial;
/// use crawler_plugin_sdk::prelude::*;
///
/// #[derive(Extract)]
/// struct Listing {
///     #[css("li a", attr = "href")]
///     books: Vec<Link>,
/// }
///
/// pub struct Books;
///
/// #[plugin(reads(Listing))]
/// impl Books {
///     fn root(_: &mut Crawl) -> Result {
///         Ok(())
///     }
///
///     #[rule]
///     fn list(page: &Page, crawl: &mut Crawl) -> Result {
///         for book in page.extract::<Listing>()?.books {
///             if book.absolute()?.path().starts_with("/books/") && book.href() != "7.html" {
///                 crawl.follow_link(&book, Self::LIST)?;
///             }
///         }
///         Ok(())
///     }
/// }
///
/// let html = r#"<ul><li><a href="7.html"></a> <li><a href="8.html"></a> <li><a href="/about"></a></ul>"#;
/// let page = Page::from_html("http://shop.test/books/", html);
/// let outcome = Trial::new().parse(Books::list, &page)?;
/// assert_eq!(outcome.urls(), ["http://shop.test/books/8.html"]);
/// # Ok::<(), RuleError>(())
/// ```
#[derive(Clone)]
pub struct Link {
    pub(crate) reading: Rc<Reading>,
    pub(crate) field: u32,
    pub(crate) position: u32,
}

impl Link {
    /// Address as it is written in the page.
    pub fn href(&self) -> &str {
        self.reading.text(self.field, self.position)
    }

    /// Returns the absolute address, resolved against the page's `<base href>`, or else against its address.
    pub fn absolute(&self) -> Result<Url> {
        let href = self.href();
        self.reading
            .join(href)
            .map_err(|why| RuleError::unexpected(format!("link {href:?} is no address: {why}")))
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.href()).finish()
    }
}

/// Addresses that a field matches. They stay with the crawler, and can only be followed: by
/// [`Crawl::follow_links`](crate::Crawl::follow_links).
///
/// Following them costs next to nothing, however many there are. In a nested struct, the field has the addresses
/// of its row, and then they do cross into the sandbox.
///
/// ```
/// use crawler_plugin_sdk::prelude::*;
///
/// #[derive(Extract)]
/// struct Listing {
///     #[css("article.book h3 a", attr = "href")]
///     books: Links,
///     #[css("li.next a", attr = "href")]
///     next: Links,
/// }
///
/// pub struct Books;
///
/// #[plugin(reads(Listing))]
/// impl Books {
///     fn root(_: &mut Crawl) -> Result {
///         Ok(())
///     }
///
///     #[rule]
///     fn list(page: &Page, crawl: &mut Crawl) -> Result {
///         let listing: Listing = page.extract()?;
///         crawl.follow_links(&listing.books, Self::DETAIL)?;
///         crawl.follow_links(&listing.next, Self::LIST)
///     }
///
///     #[rule]
///     fn detail(_: &Page, _: &mut Crawl) -> Result {
///         Ok(())
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Links {
    pub(crate) reading: Rc<Reading>,
    pub(crate) field: u32,
    /// Addresses of one row. If `None`, all addresses of the field.
    pub(crate) chosen: Option<Vec<u32>>,
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").finish_non_exhaustive()
    }
}
