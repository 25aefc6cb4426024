//! Macros of `crawler-plugin-sdk`; use them through that crate.
//!
//! ```text
//! attribute   what stands in #[plugin(…)]
//! params      the params in it, checked
//! rules       what stands in the impl block, checked: errors point at what is wrong
//! expand      the code that makes it a plugin
//! extract     #[derive(Extract)]: fields and their attributes, checked, and the code made of them
//! item        #[derive(Item)]: the shape of what is emitted
//! ```

mod attribute;
mod expand;
mod extract;
mod item;
mod params;
mod rules;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, parse_macro_input};

use attribute::Attribute;
use extract::Shape;
use rules::Rules;

/// Makes an `impl` block a plugin: `root`, and functions marked with `#[rule]`.
///
/// ```text
/// #[plugin(items(Book))]
/// impl Books {
///     fn root(crawl: &mut Crawl) -> Result { … }
///
///     #[rule]
///     fn detail(page: &Page, crawl: &mut Crawl) -> Result { … }
/// }
/// ```
///
/// Every rule adds a constant named like it in capitals, `Self::DETAIL`, for requests. The functions stay
/// unchanged, so that tests can call them. Compiled to WebAssembly, the crate exports the plugin; there can be one
/// in a crate.
///
/// | key | meaning | without it |
/// |---|---|---|
/// | `items(Book, Author = "writer")` | types that `emit` takes, each `Item` | no items |
/// | `reads(Listing, Detail = "book")` | types that `extract` makes of a page, each `Extract` | none |
/// | `params(start(about = "First page", default = "http://…"))` | params that resources take, see below | any params |
/// | `name = "books"` | the plugin's name | the package's name |
/// | `version = "1.2.0"` | the plugin's version | the package's version |
/// | `hosts("img.shop.test")` | hosts wanted beyond those of the root requests, for `crawler plugin check` to show; setting `scope` of a resource grants them | none |
/// | `limits(memory = 134_217_728)` | limits wanted, in base units: `memory` is granted up to 256 MiB, others are for `crawler plugin check` to show, and setting `limits` of a resource grants them | the crawler's defaults |
///
/// Each of the `params` has an `about`, one sentence that users see. A resource has to give a param that has neither
/// a `default` nor the word `optional`; one with a default is filled in by the crawler. A resource with a param that
/// is not declared is refused, so that `params()` takes none. A name that is not a Rust identifier is written as a
/// string: `"start-url"(about = "…")`.
///
/// `#[rule(name = "detail-page")]` gives a rule a name that differs from the function's. Then the function can be
/// renamed without losing the pages that wait for it.
#[proc_macro_attribute]
pub fn plugin(attribute: TokenStream, block: TokenStream) -> TokenStream {
    let attribute = parse_macro_input!(attribute as Attribute);
    let rules = parse_macro_input!(block as Rules);
    expand::plugin(&attribute, &rules).into()
}

/// Makes a struct with named fields readable from pages: each field names its place.
///
/// ```text
/// #[derive(Extract)]
/// struct Listing {
///     #[css("li.next a", attr = "href")]
///     next: Links,
///     #[rows("article.book")]
///     books: Vec<Card>,
/// }
/// ```
///
/// The trait `Extract` describes types and keys.
#[proc_macro_derive(Extract, attributes(css, page, rows))]
pub fn extract(item: TokenStream) -> TokenStream {
    let shape = parse_macro_input!(item as Shape);
    shape.expand().into()
}

/// Makes a struct an item, with a JSON Schema made of the types of its fields.
///
/// ```text
/// #[derive(Serialize, Item)]
/// struct Book {
///     title: String,
///     pence: u32,
/// }
/// ```
///
/// `#[item(key = "isbn")]` before the struct names the field by which an item is known from run to run.
///
/// The trait `Item` describes the schema.
#[proc_macro_derive(Item, attributes(item, serde, schemars))]
pub fn item(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    let expanded = item::expand(item);
    expanded.unwrap_or_else(Error::into_compile_error).into()
}
