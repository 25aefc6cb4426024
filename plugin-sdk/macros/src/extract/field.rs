//! A field: its type, and the content of `#[css(…)]`, `#[rows(…)]` or `#[page(…)]`.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Ident, Lifetime, LitStr, Result, Token, Type};

use super::css::{Css, selector};
use super::reader::Reader;
use super::types::{counted, is_called};

/// A field and its source.
pub(super) struct Field {
    pub(super) ident: Ident,
    /// Name without `r#`.
    pub(super) name: String,
    /// Selector. If `None`, the field is not in the page.
    pub(super) selector: Option<LitStr>,
    /// Type without `Option` and `Vec`.
    pub(super) inner: Type,
    pub(super) count: Count,
    pub(super) kind: Kind,
}

/// Number of values that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    One,
    Maybe,
    All,
}

/// Kind of a field.
pub(super) enum Kind {
    Value {
        take: Take,
        regex: Option<LitStr>,
        reader: Reader,
        or_default: bool,
    },
    Present,
    Links(Take),
    Rows,
    Page(OfPage),
}

/// Data about the page that is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfPage {
    Url,
    State,
}

/// Part of an element that is read.
pub(super) enum Take {
    Text,
    Raw,
    Inner,
    Attr(LitStr),
    Tag,
}

impl Field {
    pub(super) fn check(
        field: syn::Field,
        of: &Ident,
        lifetime: Option<&Lifetime>,
    ) -> Result<Self> {
        let is_ours = |attribute: &&Attribute| {
            let path = attribute.path();
            ["css", "rows", "page"]
                .iter()
                .any(|name| path.is_ident(name))
        };
        let mut attributes = field.attrs.iter().filter(is_ours);
        let ident = field.ident.clone().expect("only named fields are checked");
        let name = ident.unraw().to_string();
        let Some(attribute) = attributes.next() else {
            let message = format!(
                "`{name}` does not say where it is read; write `#[css(\"…\")]` before it, `#[rows(\"…\")]` before a nested struct, or `#[page(url)]`"
            );
            return Err(Error::new(ident.span(), message));
        };
        if let Some(second) = attributes.next() {
            let message = format!("`{name}` is read from two places; give it one");
            return Err(Error::new_spanned(second, message));
        }
        let (inner, count) = counted(&field.ty);
        check_lifetime(&inner, &name, of, lifetime)?;
        let (selector, kind) = if attribute.path().is_ident("rows") {
            let selector = attribute.parse_args_with(rows)?;
            check_rows(&inner, of)?;
            (Some(selector), Kind::Rows)
        } else if attribute.path().is_ident("page") {
            let of_page = attribute.parse_args_with(of_page)?;
            if count != Count::One {
                let message = "every page has one; write its type alone";
                return Err(Error::new_spanned(&field.ty, message));
            }
            (None, Kind::Page(of_page))
        } else {
            let css = attribute.parse_args_with(Css::parse)?;
            let (selector, kind) = css.kind(&field.ty, &inner, count)?;
            (Some(selector), kind)
        };
        Ok(Field {
            ident,
            name,
            selector,
            inner,
            count,
            kind,
        })
    }

    /// Returns true if the selector has a meaning only inside of a row: its own element, or children of it.
    pub(super) fn needs_row(&self) -> bool {
        self.selector.as_ref().is_some_and(|selector| {
            let selector = selector.value();
            selector.trim().is_empty() || selector.trim_start().starts_with('>')
        })
    }
}

/// Reads the content of `#[page(…)]`.
fn of_page(input: ParseStream<'_>) -> Result<OfPage> {
    let what: Ident = input.parse()?;
    let of_page = match what.to_string().as_str() {
        "url" => OfPage::Url,
        "state" => OfPage::State,
        other => {
            let message = format!("a page has no `{other}` to be read; it has url and state");
            return Err(Error::new(what.span(), message));
        }
    };
    match input.is_empty() {
        true => Ok(of_page),
        false => Err(input.error("it has no keys")),
    }
}

/// Reads the content of `#[rows(…)]`.
fn rows(input: ParseStream<'_>) -> Result<LitStr> {
    let selector = selector(input, "#[rows(\"ul li\")]")?;
    if selector.value().trim().is_empty() {
        let message = "an empty selector has no rows; name the elements that are rows";
        return Err(Error::new(selector.span(), message));
    }
    if input.peek(Token![,]) {
        input.parse::<Token![,]>()?;
    }
    match input.is_empty() {
        true => Ok(selector),
        false => Err(input.error(
            "rows are told by a selector alone; keys go to the fields of the nested struct",
        )),
    }
}

fn check_rows(inner: &Type, of: &Ident) -> Result<()> {
    if !matches!(inner, Type::Path(_)) {
        let message = format!(
            "rows are made of a struct that derives `Extract`, not of `{}`; write `Vec<Row>`, `Option<Row>` or `Row`",
            inner.to_token_stream()
        );
        return Err(Error::new(inner.span(), message));
    }
    if is_called(inner, &of.to_string()) || is_called(inner, "Self") {
        let message = format!("`{of}` cannot have rows of itself: what is read has a fixed depth");
        return Err(Error::new(inner.span(), message));
    }
    Ok(())
}

/// Checks that a borrowed text lives as long as the page, and no longer.
fn check_lifetime(inner: &Type, name: &str, of: &Ident, lifetime: Option<&Lifetime>) -> Result<()> {
    let Type::Reference(reference) = inner else {
        return Ok(());
    };
    match &reference.lifetime {
        // The compiler itself reports a lifetime that is missing, or was not declared.
        Some(written) if written.ident == "static" => {
            let page = lifetime.map_or_else(|| "'p".to_owned(), ToString::to_string);
            let message = format!(
                "`{name}` is borrowed from the page and lives no longer; write `&{page} str` in a `struct {of}<{page}>`, or `String`"
            );
            Err(Error::new(written.span(), message))
        }
        _ => Ok(()),
    }
}
