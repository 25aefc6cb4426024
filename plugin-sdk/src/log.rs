//! Log lines for whoever runs the crawl; they are kept even if the call fails.

/// Importance of a line.
///
/// ```
/// use crawler_plugin_sdk::testing::Trial;
/// use crawler_plugin_sdk::{Crawl, Level, Page, Result, warn};
///
/// fn detail(page: &Page, _: &mut Crawl) -> Result {
///     warn!("no price on {}", page.url());
///     Ok(())
/// }
///
/// let outcome = Trial::new().parse(detail, &Page::from_html("http://shop.test/7", ""))?;
/// assert_eq!(outcome.logs, [(Level::Warn, "no price on http://shop.test/7".to_owned())]);
/// # Ok::<(), crawler_plugin_sdk::RuleError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the usual words")]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

#[cfg(target_family = "wasm")]
pub use crate::guest::log as write;
#[cfg(not(target_family = "wasm"))]
pub use crate::testing::log as write;

/// Logs a detail, formatted as by [`format!`].
///
/// ```
/// crawler_plugin_sdk::debug!("{} links", 12);
/// ```
#[macro_export]
macro_rules! debug {
    ($($message:tt)+) => { $crate::__log($crate::Level::Debug, ::std::format!($($message)+)) };
}

/// Logs something that an operator may like to know, formatted as by [`format!`].
///
/// ```
/// crawler_plugin_sdk::info!("the catalogue has {} pages", 40);
/// ```
#[macro_export]
macro_rules! info {
    ($($message:tt)+) => { $crate::__log($crate::Level::Info, ::std::format!($($message)+)) };
}

/// Logs something odd but harmless, formatted as by [`format!`].
///
/// ```
/// crawler_plugin_sdk::warn!("no price for {:?}", "The Waves");
/// ```
#[macro_export]
macro_rules! warn {
    ($($message:tt)+) => { $crate::__log($crate::Level::Warn, ::std::format!($($message)+)) };
}

/// Logs something that somebody has to look at, formatted as by [`format!`].
///
/// ```
/// crawler_plugin_sdk::error!("the site has a layout unknown to this rule");
/// ```
#[macro_export]
macro_rules! error {
    ($($message:tt)+) => { $crate::__log($crate::Level::Error, ::std::format!($($message)+)) };
}
