//! Forms of a page, filled in and sent as a browser would send them.

use scraper::{ElementRef, Selector};

use crate::{Request, Rule};

/// A form with the fields that its page fills in: hidden fields, preset values, checked boxes.
///
/// ```
/// use crawler_plugin_sdk::{Rule, prelude::*};
///
/// fn log_in(page: &Page, crawl: &mut Crawl, account: Rule) -> Result {
///     let form = page.dom().form_at("form#login")?;
///     let form = form.set("user", "ann").set("password", crawl.config().require("password")?);
///     crawl.request(form.request(account))
/// }
/// ```
///
/// The fields are those that HTML submits when no button is pressed: fields with a name that are not disabled;
/// boxes and radio buttons that are checked; options that are selected, or the first possible one where one is
/// required. Files are left out. Fields are sent as `application/x-www-form-urlencoded`, whatever the form asks
/// for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    action: String,
    is_post: bool,
    fields: Vec<(String, String)>,
}

impl Form {
    /// Reads an element `<form>`.
    pub fn of(form: ElementRef<'_>) -> Self {
        let controls = known("input[name], select[name], textarea[name]");
        let controls = form.select(&controls).filter(|control| {
            let is_off = |element: ElementRef<'_>| element.attr("disabled").is_some();
            let above = control.ancestors().filter_map(ElementRef::wrap);
            let mut sets = above.filter(|element| element.value().name() == "fieldset");
            !is_off(*control) && !sets.any(is_off)
        });
        let mut fields = Vec::new();
        for control in controls {
            let name = control.attr("name").unwrap_or_default();
            let values = values(control).into_iter().filter(|_| !name.is_empty());
            fields.extend(values.map(|value| (name.to_owned(), value)));
        }
        Self {
            action: form.attr("action").unwrap_or_default().trim().to_owned(),
            is_post: form
                .attr("method")
                .is_some_and(|m| m.eq_ignore_ascii_case("post")),
            fields,
        }
    }

    /// Value of the first field of this name, as it is now.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Fills in a field, in place of all values that it had.
    #[must_use]
    pub fn set(self, name: &str, value: impl Into<String>) -> Self {
        let place = self.fields.iter().position(|(known, _)| known == name);
        let mut form = self.without(name);
        let place = place.unwrap_or(form.fields.len());
        form.fields.insert(place, (name.to_owned(), value.into()));
        form
    }

    /// Leaves out a field.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(known, _)| known != name);
        self
    }

    /// Returns the request that sends the form; this rule gets the answer.
    pub fn request(self, rule: Rule) -> Request {
        let fields = self.fields.into_iter();
        let fields = fields.map(|(name, value)| (sent_lines(&name), sent_lines(&value)));
        if self.is_post {
            return Request::form(self.action, fields, rule);
        }
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(fields);
        let bare = self.action.split(['?', '#']).next().unwrap_or_default();
        Request::get(format!("{bare}?{}", query.finish()), rule)
    }
}

/// Converts ends of lines to those that HTML sends.
fn sent_lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.replace('\n', "\r\n")
}

fn values(control: ElementRef<'_>) -> Vec<String> {
    let value = |element: ElementRef<'_>| element.attr("value").map(str::to_owned);
    match control.value().name() {
        "textarea" => {
            // The parser leaves out an empty first line, as HTML requires.
            vec![control.text().collect()]
        }
        "select" => {
            let options = known("option");
            let options: Vec<ElementRef<'_>> = control.select(&options).collect();
            let is_off = |element: ElementRef<'_>| element.attr("disabled").is_some();
            let can_be = |option: &ElementRef<'_>| {
                let group = option.parent().and_then(ElementRef::wrap);
                !is_off(*option) && !group.is_some_and(is_off)
            };
            let selected = |option: &&ElementRef<'_>| option.attr("selected").is_some();
            let chosen: Vec<ElementRef<'_>> = match control.attr("multiple") {
                Some(_) => options.iter().filter(selected).copied().collect(),
                None => {
                    let last = options.iter().rfind(selected);
                    let first = options.iter().find(|option| can_be(option));
                    last.or(first).copied().into_iter().collect()
                }
            };
            let chosen = chosen.into_iter().filter(can_be);
            let text = |option: ElementRef<'_>| {
                let text: String = option.text().collect();
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            };
            let value = |option| value(option).unwrap_or_else(|| text(option));
            chosen.map(value).collect()
        }
        _ => {
            let kind = control
                .attr("type")
                .unwrap_or_default()
                .to_ascii_lowercase();
            match kind.as_str() {
                "submit" | "image" | "reset" | "button" | "file" => Vec::new(),
                "checkbox" | "radio" => {
                    let checked = control.attr("checked");
                    let value = || value(control).unwrap_or_else(|| "on".to_owned());
                    checked.map(|_| value()).into_iter().collect()
                }
                _ => vec![value(control).unwrap_or_default()],
            }
        }
    }
}

fn known(selector: &str) -> Selector {
    Selector::parse(selector).unwrap_or_else(|e| unreachable!("{selector} is a selector: {e}"))
}
