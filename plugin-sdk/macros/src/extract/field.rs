//! One field: its type, and what stands in `#[css(…)]`, `#[rows(…)]` or `#[page(…)]`.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, GenericArgument, Ident, LitStr, Path, PathArguments, Result, Token, Type,
};

const KEYS: &str = "the keys are attr, inner, raw, present, tag, regex, with and default";

/// A field and what it is read from.
pub(super) struct Field {
    pub(super) ident: Ident,
    /// Without `r#`.
    pub(super) name: String,
    /// None: it is not in the page.
    pub(super) selector: Option<LitStr>,
    /// Without `Option` and `Vec`.
    pub(super) inner: Type,
    pub(super) count: Count,
    pub(super) kind: Kind,
}

/// How many are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    One,
    Maybe,
    All,
}

/// What is read.
pub(super) enum Kind {
    Value {
        take: Take,
        regex: Option<LitStr>,
        with: Option<Path>,
        or_default: bool,
    },
    Present,
    Links(Take),
    Rows,
    Page(OfPage),
}

/// What is not in the page, but of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfPage {
    Url,
    State,
}

/// What of an element is read.
pub(super) enum Take {
    Text,
    Raw,
    Inner,
    Attr(LitStr),
    Tag,
}

impl Field {
    pub(super) fn check(field: syn::Field, of: &Ident) -> Result<Self> {
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

    /// Whether it means something only inside of a row: its own element, or children of it.
    pub(super) fn needs_row(&self) -> bool {
        self.selector.as_ref().is_some_and(|selector| {
            let selector = selector.value();
            selector.trim().is_empty() || selector.trim_start().starts_with('>')
        })
    }
}

/// What stands in `#[css(…)]`.
struct Css {
    selector: LitStr,
    /// Which key said what is read.
    take: Option<(Ident, Option<Take>)>,
    regex: Option<(Ident, LitStr)>,
    with: Option<(Ident, Path)>,
    default: Option<Ident>,
}

impl Css {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut css = Css {
            selector: selector(input, "#[css(\"h1\")]")?,
            take: None,
            regex: None,
            with: None,
            default: None,
        };
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let key = input.call(Ident::parse_any)?;
            match key.to_string().as_str() {
                "attr" => {
                    input.parse::<Token![=]>()?;
                    let name: LitStr = input.parse()?;
                    if name.value().trim().is_empty() {
                        return Err(Error::new(name.span(), "the attribute's name is missing"));
                    }
                    css.take(key, Some(Take::Attr(name)))?;
                }
                "inner" => css.take(key, Some(Take::Inner))?,
                "raw" => css.take(key, Some(Take::Raw))?,
                "tag" => css.take(key, Some(Take::Tag))?,
                "present" => css.take(key, None)?,
                "regex" => {
                    input.parse::<Token![=]>()?;
                    let pattern: LitStr = input.parse()?;
                    if let Err(error) = regex_lite::Regex::new(&pattern.value()) {
                        let message = format!("it is no regular expression: {error}");
                        return Err(Error::new(pattern.span(), message));
                    }
                    once(css.regex.is_some(), &key)?;
                    css.regex = Some((key, pattern));
                }
                "with" => {
                    input.parse::<Token![=]>()?;
                    let path = input.parse()?;
                    once(css.with.is_some(), &key)?;
                    css.with = Some((key, path));
                }
                "default" => {
                    once(css.default.is_some(), &key)?;
                    css.default = Some(key);
                }
                other => {
                    let message = format!("unknown key `{other}`; {KEYS}");
                    return Err(Error::new(key.span(), message));
                }
            }
        }
        Ok(css)
    }

    fn take(&mut self, key: Ident, take: Option<Take>) -> Result<()> {
        if let Some((earlier, _)) = &self.take {
            once(*earlier == key, &key)?;
            let message = format!("`{earlier}` and `{key}` both say what is read; give one");
            return Err(Error::new(key.span(), message));
        }
        self.take = Some((key, take));
        Ok(())
    }

    fn kind(self, ty: &Type, inner: &Type, count: Count) -> Result<(LitStr, Kind)> {
        let keys = [
            self.regex.as_ref().map(|(key, _)| key),
            self.with.as_ref().map(|(key, _)| key),
            self.default.as_ref(),
        ];
        let refuse_keys = |what: &str| match keys.into_iter().flatten().next() {
            Some(key) => Err(Error::new(
                key.span(),
                format!("`{key}` has no meaning {what}"),
            )),
            None => Ok(()),
        };
        let take = match self.take {
            Some((key, None)) => {
                if !is_called(ty, "bool") {
                    let message = "`present` says whether there is such an element: a `bool`";
                    return Err(Error::new_spanned(ty, message));
                }
                refuse_keys(&format!("beside `{key}`: the answer is always there"))?;
                return Ok((self.selector, Kind::Present));
            }
            Some((_, Some(take))) => take,
            None => Take::Text,
        };
        let is_link = is_called(inner, "Link") && self.with.is_none();
        let is_address = is_link || is_called(inner, "Links");
        if is_address && !matches!(take, Take::Attr(_)) {
            let message = "an address stands in an attribute; say in which: attr = \"href\"";
            return Err(Error::new_spanned(ty, message));
        }
        if let (true, Some((key, _))) = (is_address, &self.regex) {
            let message = "an address is followed as it stands; read a `String` to match it";
            return Err(Error::new(key.span(), message));
        }
        if is_called(inner, "Links") {
            if count != Count::One {
                let message =
                    "`Links` are all that the selector matches, or none; write `Links` alone";
                return Err(Error::new_spanned(ty, message));
            }
            refuse_keys("for `Links`: they stay with the crawler")?;
            return Ok((self.selector, Kind::Links(take)));
        }
        if let (Some(key), Count::Maybe | Count::All) = (&self.default, count) {
            let message = "`default` is for what has to be there: an `Option` is `None` and a `Vec` is empty without it";
            return Err(Error::new(key.span(), message));
        }
        let kind = Kind::Value {
            take,
            regex: self.regex.map(|(_, pattern)| pattern),
            with: self.with.map(|(_, path)| path),
            or_default: self.default.is_some(),
        };
        Ok((self.selector, kind))
    }
}

/// What stands in `#[page(…)]`.
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

/// What stands in `#[rows(…)]`.
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

fn selector(input: ParseStream<'_>, example: &str) -> Result<LitStr> {
    match input.peek(LitStr) {
        true => input.parse(),
        false => Err(input.error(format!("the selector comes first: `{example}`"))),
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

fn once(is_again: bool, key: &Ident) -> Result<()> {
    match is_again {
        true => Err(Error::new(key.span(), format!("`{key}` is given twice"))),
        false => Ok(()),
    }
}

/// What is in an `Option` or a `Vec`, however its path is written.
fn counted(ty: &Type) -> (Type, Count) {
    let Type::Path(path) = ty else {
        return (ty.clone(), Count::One);
    };
    let argument = path.path.segments.last().and_then(|last| {
        let count = match last.ident.to_string().as_str() {
            "Option" => Count::Maybe,
            "Vec" => Count::All,
            _ => return None,
        };
        let PathArguments::AngleBracketed(arguments) = &last.arguments else {
            return None;
        };
        match (arguments.args.first(), arguments.args.len()) {
            (Some(GenericArgument::Type(inner)), 1) => Some((inner.clone(), count)),
            _ => None,
        }
    });
    argument.unwrap_or_else(|| (ty.clone(), Count::One))
}

fn is_called(ty: &Type, name: &str) -> bool {
    let Type::Path(path) = ty else {
        return false;
    };
    let last = path.path.segments.last();
    last.is_some_and(|last| last.ident == name && last.arguments.is_none())
}
