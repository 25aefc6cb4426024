//! A plugin as the crawler sees it: a description and numbered rules. `#[plugin]` writes it.

use crate::extract::derived::Shape;
use crate::param::{self, Param};
use crate::{Crawl, Declared, Item, Page, Result};

/// A plugin. It is implemented by [`#[plugin]`](crate::plugin), never by hand.
pub trait Plugin {
    /// Description of the plugin, as the crawler reads it.
    const DESCRIPTION: Description;

    /// Calls `root`.
    fn call_root(crawl: &mut Crawl) -> Result;

    /// Calls the rule of this number.
    fn call_rule(number: u32, page: &Page, crawl: &mut Crawl) -> Result;
}

/// Description that a plugin gives of itself.
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
    /// Name under which the plugin is pushed.
    pub name: &'static str,
    /// Version, by Semantic Versioning. The component of a name and version never changes.
    pub version: &'static str,
    /// Names of the rules, in the order of their numbers.
    pub rules: &'static [&'static str],
    /// Kinds of items, in the order of their numbers.
    pub items: &'static [ItemKind],
    /// Plans by which pages are read, in the order of their numbers.
    pub plans: &'static [Plan],
    /// Hosts wanted beyond those of the root requests. This is a wish, not a grant.
    pub hosts: &'static [&'static str],
    /// Limits wanted, in base units: instructions, milliseconds, bytes, pieces. This is a wish.
    pub limits: &'static [(&'static str, u64)],
    /// Params of the plugin's resources, in the order declared. If `None`, resources take any params.
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

    /// Returns the JSON Schema that the crawler checks the params of resources against; `None` if the plugin
    /// declares none.
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

/// Plan by which pages are read into a struct, named in `#[plugin(reads(…))]`.
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
    /// Name, unique within the plugin.
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

/// A rule of this plugin, named by requests.
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
    /// Number of the rule, used only at the boundary of the sandbox.
    pub(crate) number: u32,
}

impl Rule {
    #[doc(hidden)]
    pub const fn __new(number: u32, name: &'static str) -> Self {
        Self { name, number }
    }

    /// Name that frontier, logs and reports show.
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
    /// Name, unique within the plugin.
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

    /// Returns the JSON Schema that the crawler checks the items against.
    pub fn schema(&self) -> String {
        (self.schema)()
    }
}

/// An item of this plugin. It is implemented by naming the type in `#[plugin(items(Book))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an item of this plugin",
    label = "not declared as an item",
    note = "declare it where the rules are: `#[plugin(items({Self}))]`"
)]
pub trait PluginItem: Item {
    /// Name of the type in snake case: `book` for a type `Book`.
    const NAME: &'static str;

    #[doc(hidden)]
    const NUMBER: u32;
}
