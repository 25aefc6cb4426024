//! Conversion of one text of a page into one typed value.

use std::ops::Range;
use std::rc::Rc;

use url::Url;

use super::Link;
use super::reading::Reading;
use crate::Result;

/// One captured text of a page, for example of an attribute.
///
/// It is the input of a [`Value`] of your own.
#[derive(Debug)]
pub struct Capture<'c> {
    pub(super) reading: &'c Rc<Reading>,
    pub(super) field: u32,
    pub(super) position: u32,
    /// Part of the text that a pattern chose.
    pub(super) part: Option<Range<usize>>,
}

impl<'c> Capture<'c> {
    /// Captured text, as the field asks for it: text, attribute, inner HTML.
    ///
    /// ```
    /// use crawler_plugin_sdk::Capture;
    ///
    /// fn first_word(capture: &Capture<'_>) -> String {
    ///     capture.text().split(' ').next().unwrap_or_default().to_owned()
    /// }
    /// ```
    pub fn text(&self) -> &'c str {
        let text = self.reading.text(self.field, self.position);
        match &self.part {
            Some(part) => text.get(part.clone()).unwrap_or_default(),
            None => text,
        }
    }

    /// Returns the text as an absolute address, resolved as the page says.
    ///
    /// ```
    /// use crawler_plugin_sdk::Capture;
    ///
    /// fn host(capture: &Capture<'_>) -> Result<String, String> {
    ///     let url = capture.absolute()?;
    ///     Ok(url.host_str().unwrap_or_default().to_owned())
    /// }
    /// ```
    pub fn absolute(&self) -> Result<Url, String> {
        self.reading
            .join(self.text())
            .map_err(|why| why.to_string())
    }
}

/// A type that one text of a page can be read as: texts, numbers, `bool` (`true` and `false`), `char`,
/// [`Date`](crate::Date), [`DateTime`](crate::DateTime), [`Money`](crate::Money), [`Link`] and [`Url`], which is
/// made absolute. White space around numbers is ignored. Texts may be borrowed, see [`Extract`](crate::Extract).
///
/// A type of your own implements it, or is made by a function named in `#[css(…, with = path)]`.
///
/// ```
/// use crawler_plugin_sdk::testing::Trial;
/// use crawler_plugin_sdk::{Capture, Value, prelude::*};
///
/// #[derive(Item, serde::Serialize)]
/// struct Pence(u32);
///
/// impl Value for Pence {
///     fn read(capture: &Capture<'_>) -> Result<Self, String> {
///         let digits = capture.text().strip_prefix('£').ok_or("there is no £")?;
///         let digits = digits.replace('.', "");
///         digits.parse().map(Pence).map_err(|why| format!("{why}"))
///     }
/// }
///
/// #[derive(Extract, Item, serde::Serialize)]
/// struct Book {
///     #[css("p.price")]
///     price: Pence,
/// }
///
/// pub struct Books;
///
/// #[plugin(items(Book), reads(Book))]
/// impl Books {
///     fn root(_: &mut Crawl) -> Result {
///         Ok(())
///     }
///
///     #[rule]
///     fn detail(page: &Page, crawl: &mut Crawl) -> Result {
///         crawl.emit(&page.extract::<Book>()?)
///     }
/// }
///
/// let page = Page::from_html("http://shop.test/7", "<p class=price>£12.34</p>");
/// let outcome = Trial::new().parse(Books::detail, &page)?;
/// assert_eq!(outcome.items[0].value["price"], 1234);
/// # Ok::<(), RuleError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a text",
    label = "not a value",
    note = "name a function that makes it from a text: `#[css(…, with = path)]`; or implement `Value` for it",
    note = "a struct of several values is read with `#[rows(…)]`"
)]
pub trait Value: Sized {
    /// Reads the value, or returns why the text is none. The message around it quotes the text and names its
    /// place.
    fn read(capture: &Capture<'_>) -> Result<Self, String>;
}

impl Value for String {
    fn read(capture: &Capture<'_>) -> Result<Self, String> {
        Ok(capture.text().to_owned())
    }
}

impl Value for Url {
    fn read(capture: &Capture<'_>) -> Result<Self, String> {
        capture.absolute()
    }
}

impl Value for Link {
    fn read(capture: &Capture<'_>) -> Result<Self, String> {
        Ok(Link {
            reading: Rc::clone(capture.reading),
            field: capture.field,
            position: capture.position,
        })
    }
}

macro_rules! parsed {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn read(capture: &Capture<'_>) -> Result<Self, String> {
                let text = capture.text().trim();
                text.parse::<$type>().map_err(|why| why.to_string())
            }
        }
    )*};
}

parsed! {
    bool char f32 f64
    i8 i16 i32 i64 i128 isize
    u8 u16 u32 u64 u128 usize
}
