//! The params that a plugin declares for its resources, and the schema that tells the crawler of them.

use serde::{Serialize, Serializer};

/// A param of the resources of a plugin, declared in `#[plugin(params(…))]`.
///
/// The crawler refuses a resource that lacks a required param, or that has one which is not declared. If a param
/// with a default is not given, rules see the default.
///
/// ```
/// use crawler_plugin_sdk::testing::Trial;
/// use crawler_plugin_sdk::{Plugin, prelude::*};
///
/// pub struct Shop;
///
/// #[plugin(params(
///     start(about = "Address of the first list page", default = "http://shop.test/"),
///     login(about = "Account name"),
///     pages(about = "Number of list pages", optional),
/// ))]
/// impl Shop {
///     fn root(crawl: &mut Crawl) -> Result {
///         crawl.follow(crawl.config().require("start")?, Self::LIST)
///     }
///
///     #[rule]
///     fn list(_: &Page, _: &mut Crawl) -> Result {
///         Ok(())
///     }
/// }
///
/// let [start, login, pages] = Shop::DESCRIPTION.params.unwrap_or_default() else { panic!() };
/// assert_eq!((start.name, start.default), ("start", Some("http://shop.test/")));
/// assert_eq!(login.about, "Account name");
/// assert!(pages.is_optional);
/// assert_eq!(Trial::of::<Shop>().root(Shop::root)?.urls(), ["http://shop.test/"]);
/// # Ok::<(), RuleError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Param {
    /// Name, unique within the plugin, as `--param NAME=VALUE` takes it.
    pub name: &'static str,
    /// One sentence that tells users what the param is for.
    pub about: &'static str,
    /// Value that rules see if the resource has none.
    pub default: Option<&'static str>,
    /// True if the param has no default and may still be missing.
    pub is_optional: bool,
}

impl Param {
    #[doc(hidden)]
    pub const fn __new(
        name: &'static str,
        about: &'static str,
        default: Option<&'static str>,
        is_optional: bool,
    ) -> Self {
        Self {
            name,
            about,
            default,
            is_optional,
        }
    }

    fn is_required(&self) -> bool {
        self.default.is_none() && !self.is_optional
    }
}

/// Returns the JSON Schema of the params of a resource: one object, whose properties are all strings.
pub(crate) fn schema_of(params: &[Param]) -> String {
    let schema = Schema {
        kind: "object",
        properties: Properties(params),
        required: params
            .iter()
            .filter(|param| param.is_required())
            .map(|param| param.name)
            .collect(),
        additional_properties: false,
    };
    serde_json::to_string(&schema).expect("a schema is plain data")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Schema<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    properties: Properties<'a>,
    required: Vec<&'static str>,
    additional_properties: bool,
}

/// Properties in the order declared; a map of serde_json would sort them.
struct Properties<'a>(&'a [Param]);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|param| (param.name, Property::of(param))))
    }
}

#[derive(Serialize)]
struct Property {
    #[serde(rename = "type")]
    kind: &'static str,
    description: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'static str>,
}

impl Property {
    fn of(param: &Param) -> Self {
        Self {
            kind: "string",
            description: param.about,
            default: param.default,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Param = Param::__new("start", "First \"page\"", Some("http://a.test/"), false);
    const LOGIN: Param = Param::__new("login", "Account name", None, false);
    const PAGES: Param = Param::__new("pages", "Number of pages", None, true);

    #[test]
    fn the_schema_has_the_params_in_the_order_declared() {
        assert_eq!(
            schema_of(&[START, LOGIN, PAGES]),
            concat!(
                r#"{"type":"object","properties":{"#,
                r#""start":{"type":"string","description":"First \"page\"","default":"http://a.test/"},"#,
                r#""login":{"type":"string","description":"Account name"},"#,
                r#""pages":{"type":"string","description":"Number of pages"}},"#,
                r#""required":["login"],"additionalProperties":false}"#
            )
        );
    }

    #[test]
    fn the_schema_of_no_params_takes_none() {
        let expected =
            r#"{"type":"object","properties":{},"required":[],"additionalProperties":false}"#;
        assert_eq!(schema_of(&[]), expected);
    }
}
