//! The params of the resource that is crawled.

use std::fmt::Display;
use std::str::FromStr;

use crate::crawl::Outlet;
use crate::{Result, RuleError};

/// The params of the resource: those that a user gives with `--param NAME=VALUE`, and the defaults of others that
/// the plugin declares ([`Param`](crate::Param)).
///
/// ```
/// use crawler_plugin_sdk::prelude::*;
/// use crawler_plugin_sdk::testing::Trial;
///
/// fn root(crawl: &mut Crawl) -> Result {
///     let config = crawl.config();
///     assert_eq!(config.require("start")?, "http://shop.test/");
///     assert_eq!(config.parse("pages")?.unwrap_or(10), 3);
///     assert_eq!(config.get("language"), None);
///     Ok(())
/// }
///
/// Trial::new().param("start", "http://shop.test/").param("pages", "3").root(root).unwrap();
/// let error = Trial::new().root(root).unwrap_err();
/// assert_eq!(error, RuleError::fatal("param `start` is missing; give it with --param start=VALUE"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Config<'a> {
    pub(crate) outlet: &'a Outlet,
}

impl Config<'_> {
    /// The param of this name.
    pub fn get(&self, name: &str) -> Option<String> {
        self.outlet.param(name)
    }

    /// Returns all params as pairs of name and value.
    pub fn all(&self) -> Vec<(String, String)> {
        self.outlet.params()
    }

    /// Returns the param of this name. A missing param is a fatal error, which ends the crawl.
    pub fn require(&self, name: &str) -> Result<String> {
        self.get(name).ok_or_else(|| {
            RuleError::fatal(format!(
                "param `{name}` is missing; give it with --param {name}=VALUE"
            ))
        })
    }

    /// Returns the param of this name as a number or another type, or `None` if there is no such param. A value
    /// that does not parse is a fatal error, which ends the crawl.
    pub fn parse<T>(&self, name: &str) -> Result<Option<T>>
    where
        T: FromStr<Err: Display>,
    {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(e) => Err(RuleError::fatal(format!("param `{name}` is {text:?}: {e}"))),
        }
    }
}
