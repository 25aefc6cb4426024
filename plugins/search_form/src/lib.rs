//! The hits of a search form: one form, several searches, and the pages of results of each.
//!
//! The form is read from its page, with the fields that the page fills in: hidden ones, and the choice that is
//! selected. It is sent by GET or POST, as the form says. The searches differ in their addresses or in their bodies, so
//! each is another page to the crawler.
//!
//! The words travel with the requests for results as their state. A title that two searches find is two items.

use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Results {
    #[rows("ol.results li")]
    hits: Vec<Hit>,
    #[css("a[rel=next]", attr = "href")]
    next: Links,
}

#[derive(Extract, Item, serde::Serialize)]
struct Hit {
    /// Words that were searched for.
    #[page(state)]
    search: String,
    #[css("a", attr = "href")]
    url: Url,
    #[css("a")]
    title: String,
    #[css("span.year")]
    year: Option<i32>,
}

/// The plugin.
pub struct SearchForm;

#[plugin(
    items(Hit),
    reads(Results),
    params(
        start(about = "Address of the page with the form"),
        searches(
            about = "What is searched for, separated by commas; each search may have several words"
        ),
        field(about = "Name of the field for the words", default = "q")
    )
)]
impl SearchForm {
    /// The page with the form.
    pub fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.follow(start, Self::FORM)
    }

    /// The form is sent once for each search. A form without the field would find the same for all of them.
    #[rule]
    pub fn form(page: &Page, crawl: &mut Crawl) -> Result {
        let form = page.dom().form_at("form#search")?;
        let field = crawl.config().require("field")?;
        let searches = crawl.config().require("searches")?;
        form.get(&field)
            .require(&format!("a field {field:?} in its form"))?;
        let searches = searches.split(',').map(str::trim);
        for words in searches.filter(|words| !words.is_empty()) {
            let form = form.clone().set(&field, words);
            crawl.request(form.request(Self::RESULTS).state(words))?;
        }
        Ok(())
    }

    /// Results, and the next page of them.
    #[rule]
    pub fn results(page: &Page, crawl: &mut Crawl) -> Result {
        let results: Results = page.extract()?;
        crawl.emit_all(&results.hits)?;
        crawl.follow_links(&results.next, Follow::by(Self::RESULTS).state(page.state()))
    }
}
