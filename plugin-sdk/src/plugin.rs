//! What a plugin is to the crawler: a description and numbered rules. `#[plugin]` writes it.

use crate::extract::derived::Shape;
use crate::param::{self, Param};
use crate::{Crawl, Declared, Item, Page, Result};

/// A plugin. Implemented by [`#[plugin]`](crate::plugin), never by hand.
pub trait Plugin {
    /// What it says of itself.
    const DESCRIPTION: Description;

    /// Calls `root`.
    fn call_root(crawl: &mut Crawl) -> Result;

    /// Calls the rule of this number.
    fn call_rule(number: u32, page: &Page, crawl: &mut Crawl) -> Result;
}

/// What a plugin says of itself.
///
/// ```
/// use crawler_plugin_sdk::{Plugin, prelude::*};
///
/// pub struct Books;
///
/// #[plugin(name = "books", version = "1.2.0", hosts("img.shop.test"), limits(memory = 134_217_728))]
/// impl Books {
///     fn root(_: &mut Crawl) -> Result {
///         Ok(())
///     }
///
///     #[rule]
///     fn list(_: &Page, _: &mut Crawl) -> Result {
///         Ok(())
///     }
/// }
///
/// assert_eq!(Books::DESCRIPTION.rules, ["list"]);
/// assert_eq!(Books::DESCRIPTION.limits, [("memory", 134_217_728)]);
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Description {
    /// The name it is pushed as.
    pub name: &'static str,
    /// As of Semantic Versioning. A name and version never change their bytes.
    pub version: &'static str,
    /// The names of its rules, in the order of their numbers.
    pub rules: &'static [&'static str],
    /// Its kinds of items, in the order of their numbers.
    pub items: &'static [ItemKind],
    /// What it reads of pages, in the order of their numbers.
    pub plans: &'static [Plan],
    /// Hosts wanted beyond those of the root requests. A wish, not a grant.
    pub hosts: &'static [&'static str],
    /// Limits wanted, in base units: instructions, milliseconds, bytes, pieces. A wish.
    pub limits: &'static [(&'static str, u64)],
    /// Params of its resources, in the order declared. If `None`, resources take any params.
    pub params: Option<&'static [Param]>,
}

impl Description {
    #[doc(hidden)]
    pub const fn __new(
        name: &'static str,
        version: &'static str,
        rules: &'static [&'static str],
        items: &'static [ItemKind],
        plans: &'static [Plan],
        hosts: &'static [&'static str],
        limits: &'static [(&'static str, u64)],
    ) -> Self {
        Self {
            name,
            version,
            rules,
            items,
            plans,
            hosts,
            limits,
            params: None,
        }
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn __with_params(self, params: &'static [Param]) -> Self {
        Self {
            params: Some(params),
            ..self
        }
    }

    /// The JSON Schema that the crawler holds the params of resources to; `None` if the plugin declares none.
    ///
    /// ```
    /// use crawler_plugin_sdk::{Plugin, prelude::*};
    ///
    /// pub struct Books;
    ///
    /// #[plugin(params(login(about = "Account name")))]
    /// impl Books {
    ///     fn root(_: &mut Crawl) -> Result {
    ///         Ok(())
    ///     }
    ///
    ///     #[rule]
    ///     fn list(_: &Page, _: &mut Crawl) -> Result {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let schema = Books::DESCRIPTION.params_schema().unwrap();
    /// assert!(schema.contains(r#""required":["login"]"#));
    /// ```
    pub fn params_schema(&self) -> Option<String> {
        self.params.map(param::schema_of)
    }
}

/// What a struct reads of pages, named in `#[plugin(reads(…))]`.
///
/// ```
/// use crawler_plugin_sdk::{Plugin, prelude::*};
///
/// #[derive(Extract)]
/// struct Detail {
///     #[css("h1")]
///     title: String,
/// }
///
/// pub struct Books;
///
/// #[plugin(reads(Detail = "book"))]
/// impl Books {
///     fn root(_: &mut Crawl) -> Result {
///         Ok(())
///     }
///
///     #[rule]
///     fn detail(page: &Page, _: &mut Crawl) -> Result {
///         page.extract::<Detail>()?.title.parse::<u32>()?;
///         Ok(())
///     }
/// }
///
/// assert_eq!(Books::DESCRIPTION.plans[0].name, "book");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// Unique within the plugin.
    pub name: &'static str,
    pub(crate) shape: &'static Shape,
}

impl Plan {
    #[doc(hidden)]
    pub const fn of<T: Declared>() -> Self {
        Self {
            name: T::NAME,
            shape: T::SHAPE,
        }
    }
}

/// A rule of this plugin, as requests name it.
///
/// [`#[plugin]`](crate::plugin) gives each `#[rule] fn detail` a constant `Self::DETAIL`.
///
/// ```
/// use crawler_plugin_sdk::prelude::*;
///
/// pub struct Books;
///
/// #[plugin]
/// impl Books {
///     fn root(crawl: &mut Crawl) -> Result {
///         crawl.follow("http://shop.test/7", Self::DETAIL)
///     }
///
///     #[rule]
///     fn detail(_: &Page, _: &mut Crawl) -> Result {
///         Ok(())
///     }
/// }
///
/// assert_eq!(Books::DETAIL.name(), "detail");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rule {
    name: &'static str,
    /// Only the boundary speaks in numbers.
    pub(crate) number: u32,
}

impl Rule {
    #[doc(hidden)]
    pub const fn __new(number: u32, name: &'static str) -> Self {
        Self { name, number }
    }

    /// The name that frontier, logs and reports show.
    pub fn name(self) -> &'static str {
        self.name
    }
}

/// A kind of items, named in `#[plugin(items(…))]`.
///
/// ```
/// use crawler_plugin_sdk::{Plugin, prelude::*};
///
/// #[derive(serde::Serialize, Item)]
/// struct Book {
///     title: String,
/// }
///
/// pub struct Books;
///
/// #[plugin(items(Book))]
/// impl Books {
///     fn root(crawl: &mut Crawl) -> Result {
///         crawl.follow("http://shop.test/7", Self::DETAIL)
///     }
///
///     #[rule]
///     fn detail(page: &Page, crawl: &mut Crawl) -> Result {
///         crawl.emit(&Book { title: page.text().to_owned() })
///     }
/// }
///
/// let kind = Books::DESCRIPTION.items[0];
/// assert_eq!(kind.name, "book");
/// assert!(kind.schema().contains("title"));
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ItemKind {
    /// Unique within the plugin.
    pub name: &'static str,
    schema: fn() -> String,
}

impl ItemKind {
    #[doc(hidden)]
    pub const fn of<T: PluginItem>() -> Self {
        Self {
            name: T::NAME,
            schema: T::schema,
        }
    }

    /// The JSON Schema that the crawler holds its items to.
    pub fn schema(&self) -> String {
        (self.schema)()
    }
}

/// An item of this plugin. Implemented by naming the type in `#[plugin(items(Book))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an item of this plugin",
    label = "not declared as an item",
    note = "declare it where the rules are: `#[plugin(items({Self}))]`"
)]
pub trait PluginItem: Item {
    /// `book` for a type `Book`.
    const NAME: &'static str;

    #[doc(hidden)]
    const NUMBER: u32;
}
