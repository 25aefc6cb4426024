//! Reading of whole pages into structs.

use std::any::TypeId;
use std::rc::Rc;

use super::derived;
use super::reading::Reading;
use super::{Declared, Extract};
use crate::{Page, Plan, Result};

impl Page {
    /// Reads the page into a struct that the plugin names in `#[plugin(reads(…))]`.
    ///
    /// The crawler reads the page once for each struct, however often it is asked for. Values that limit
    /// `captures` or `capture-bytes` cuts off are missing in the struct; a warning in the log says so, and
    /// [`truncated_by`](Page::truncated_by) returns true.
    ///
    /// ```
    /// use crawler_plugin_sdk::testing::Trial;
    /// use crawler_plugin_sdk::prelude::*;
    ///
    /// #[derive(Extract, Item, serde::Serialize)]
    /// struct Article {
    ///     #[css("h1")]
    ///     title: String,
    ///     #[css("p.pages")]
    ///     pages: u32,
    /// }
    ///
    /// pub struct News;
    ///
    /// #[plugin(items(Article), reads(Article))]
    /// impl News {
    ///     fn root(_: &mut Crawl) -> Result {
    ///         Ok(())
    ///     }
    ///
    ///     #[rule]
    ///     fn article(page: &Page, crawl: &mut Crawl) -> Result {
    ///         crawl.emit(&page.extract::<Article>()?)
    ///     }
    /// }
    ///
    /// let page = Page::from_html("http://news.test/1", "<h1>Rain</h1><p class=pages>two");
    /// let error = Trial::new().parse(News::article, &page).unwrap_err();
    /// let expected = r#"error: "two" is no value for `Article.pages`, read from an element `p.pages`: "#;
    /// assert_eq!(error.to_string(), format!("{expected}invalid digit found in string"));
    /// ```
    pub fn extract<'p, T: Declared + Extract<'p>>(&'p self) -> Result<T> {
        let reading = self.reading::<T>()?;
        T::read(&mut derived::Row::page(self, reading, T::SHAPE))
    }

    /// Returns true if limit `captures` or `capture-bytes` cut off a part of what this struct reads.
    ///
    /// ```
    /// use crawler_plugin_sdk::testing::Trial;
    /// use crawler_plugin_sdk::prelude::*;
    ///
    /// #[derive(Extract)]
    /// struct Index {
    ///     #[css("li")]
    ///     words: Vec<String>,
    /// }
    ///
    /// pub struct Words;
    ///
    /// #[plugin(reads(Index), limits(captures = 1_000_000))]
    /// impl Words {
    ///     fn root(_: &mut Crawl) -> Result {
    ///         Ok(())
    ///     }
    ///
    ///     #[rule]
    ///     fn index(page: &Page, _: &mut Crawl) -> Result {
    ///         let index: Index = page.extract()?;
    ///         assert_eq!(index.words, ["one", "two"]);
    ///         match page.truncated_by::<Index>()? {
    ///             true => Err(RuleError::skip("too many words")),
    ///             false => Ok(()),
    ///         }
    ///     }
    /// }
    ///
    /// let page = Page::from_html("http://words.test/", "<li>one<li>two<li>three").with_captures_limit(2);
    /// let error = Trial::new().parse(Words::index, &page).unwrap_err();
    /// assert_eq!(error, RuleError::skip("too many words"));
    /// ```
    pub fn truncated_by<T: Declared>(&self) -> Result<bool> {
        Ok(self.reading::<T>()?.truncated)
    }

    fn reading<T: Declared>(&self) -> Result<&Rc<Reading>> {
        // The number of a plan differs from plugin to plugin, and native tests may hand one page to several.
        let id = TypeId::of::<T::Own>();
        self.readings
            .get_or_read(id, || self.read_by(T::NUMBER, &Plan::of::<T>()))
    }

    /// Returns the captures of this plan.
    pub(super) fn read_by(&self, number: u32, plan: &Plan) -> Result<Reading> {
        let captures = self.answer.extract(number, plan)?;
        if captures.truncated {
            crate::warn!(
                "what `{}` reads of this page is cut: limit captures or capture-bytes is used up",
                plan.name
            );
        }
        Ok(Reading::new(number, captures, self.url()))
    }
}
