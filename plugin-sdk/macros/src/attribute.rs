//! Content of `#[plugin(…)]`.

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitInt, LitStr, Path, Result, Token, parenthesized};

use crate::params::{Param, params};

const KEYS: &str = "the keys are items, reads, params, name, version, hosts and limits";

/// Limits, by the names that `--limit` takes.
const LIMITS: [&str; 11] = [
    "fuel",
    "cpu",
    "timeout",
    "memory",
    "body",
    "items",
    "item-bytes",
    "requests",
    "log-lines",
    "captures",
    "capture-bytes",
];

/// Largest number of plans of an author.
const PLANS_MAX: usize = 64;
/// Name of the plan that every plugin has in addition.
const LINKS_PLAN: &str = "page.links";

/// Content of `#[plugin(…)]`, as the author wrote it.
#[derive(Default)]
pub(crate) struct Attribute {
    pub(crate) name: Option<LitStr>,
    pub(crate) version: Option<LitStr>,
    pub(crate) items: Vec<Named>,
    pub(crate) reads: Vec<Named>,
    pub(crate) hosts: Vec<LitStr>,
    pub(crate) limits: Vec<(String, LitInt)>,
    /// `None` if the author declares no list of params, which is not the same as an empty one.
    pub(crate) params: Option<Vec<Param>>,
}

/// A type and the name that it has in the description.
pub(crate) struct Named {
    pub(crate) path: Path,
    pub(crate) name: String,
}

impl Parse for Attribute {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut attribute = Attribute::default();
        let mut seen = Vec::new();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            let text = key.to_string();
            if seen.contains(&text) {
                return Err(Error::new(key.span(), format!("`{text}` is given twice")));
            }
            match text.as_str() {
                "name" => attribute.name = Some(value(input)?),
                "version" => attribute.version = Some(value(input)?),
                "items" => attribute.items = types(input, "kinds of items")?,
                "reads" => attribute.reads = plans(input)?,
                "hosts" => attribute.hosts = list(input, |input| input.parse())?,
                "limits" => attribute.limits = list(input, limit)?,
                "params" => attribute.params = Some(params(input)?),
                _ => {
                    return Err(Error::new(
                        key.span(),
                        format!("unknown key `{text}`; {KEYS}"),
                    ));
                }
            }
            seen.push(text);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(attribute)
    }
}

/// Reads `= "text"`.
pub(crate) fn value(input: ParseStream<'_>) -> Result<LitStr> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// Reads `(one, two)`.
pub(crate) fn list<T>(
    input: ParseStream<'_>,
    one: fn(ParseStream<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let content;
    parenthesized!(content in input);
    let parts = Punctuated::<T, Token![,]>::parse_terminated_with(&content, one)?;
    Ok(parts.into_iter().collect())
}

fn types(input: ParseStream<'_>, kind: &str) -> Result<Vec<Named>> {
    let types: Vec<Named> = list(input, named)?;
    for (n, named) in types.iter().enumerate() {
        if types[..n].iter().any(|earlier| earlier.name == named.name) {
            let message = format!("there are two {kind} named `{}`", named.name);
            return Err(Error::new_spanned(&named.path, message));
        }
    }
    Ok(types)
}

fn plans(input: ParseStream<'_>) -> Result<Vec<Named>> {
    let plans = types(input, "plans")?;
    if let Some(taken) = plans.iter().find(|plan| plan.name == LINKS_PLAN) {
        let message = format!("`{LINKS_PLAN}` is the name of the plan behind `page.links()`");
        return Err(Error::new_spanned(&taken.path, message));
    }
    if let Some(first) = plans.get(PLANS_MAX) {
        let message = format!("a plugin has at most {PLANS_MAX} plans; split the plugin");
        return Err(Error::new_spanned(&first.path, message));
    }
    Ok(plans)
}

/// Reads `model::Book` or `Author = "writer"`.
fn named(input: ParseStream<'_>) -> Result<Named> {
    let path: Path = input.parse()?;
    let name = if input.peek(Token![=]) {
        value(input)?.value()
    } else {
        // A parsed path has at least one segment.
        path.segments
            .last()
            .map(|segment| snake_case(&segment.ident))
            .unwrap_or_default()
    };
    Ok(Named { path, name })
}

/// Reads `item_bytes = 4_000_000`.
fn limit(input: ParseStream<'_>) -> Result<(String, LitInt)> {
    let name: Ident = input.parse()?;
    let text = name.to_string().replace('_', "-");
    if !LIMITS.contains(&text.as_str()) {
        let names = LIMITS.join(", ").replace('-', "_");
        return Err(Error::new(
            name.span(),
            format!("unknown limit `{name}`; the limits are {names}"),
        ));
    }
    input.parse::<Token![=]>()?;
    Ok((text, input.parse()?))
}

/// Writes `BookPage` as `book_page`.
fn snake_case(ident: &Ident) -> String {
    let mut name = String::new();
    for (n, c) in ident.to_string().chars().enumerate() {
        if c.is_uppercase() && n > 0 {
            name.push('_');
        }
        name.extend(c.to_lowercase());
    }
    name
}
