//! Content of `#[css(…)]`: the selector, and keys that must fit each other and the type.

use crawler_selector::{BYTES_MAX, NESTING_MAX};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Error, Ident, LitStr, Result, Token, Type};

use super::field::{Count, Kind, Take};
use super::reader::{ReaderKeys, once};
use super::types::is_called;

const KEYS: &str = "the keys are attr, inner, raw, present, tag, regex, with, default, and of types format, offset, currency and decimal";

/// Content of `#[css(…)]`.
pub(super) struct Css {
    selector: LitStr,
    /// Key that says which part of the element is read.
    take: Option<(Ident, Option<Take>)>,
    regex: Option<(Ident, LitStr)>,
    reader: ReaderKeys,
    default: Option<Ident>,
}

impl Css {
    pub(super) fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut css = Css {
            selector: selector(input, "#[css(\"h1\")]")?,
            take: None,
            regex: None,
            reader: ReaderKeys::default(),
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
                "default" => {
                    once(css.default.is_some(), &key)?;
                    css.default = Some(key);
                }
                _ if css.reader.parse(&key, input)? => {}
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

    pub(super) fn kind(self, ty: &Type, inner: &Type, count: Count) -> Result<(LitStr, Kind)> {
        let keys = [
            self.regex.as_ref().map(|(key, _)| key),
            self.reader.first(),
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
        let is_link = is_called(inner, "Link") && self.reader.with.is_none();
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
            reader: self.reader.reader(inner)?,
            or_default: self.default.is_some(),
        };
        Ok((self.selector, kind))
    }
}

/// Reads the selector, which comes before all keys. An empty one is the element of a row.
pub(super) fn selector(input: ParseStream<'_>, example: &str) -> Result<LitStr> {
    if !input.peek(LitStr) {
        return Err(input.error(format!("the selector comes first: `{example}`")));
    }
    let selector: LitStr = input.parse()?;
    let text = selector.value();
    if text.trim().is_empty() {
        return Ok(selector);
    }
    match crawler_selector::read(&text, BYTES_MAX, NESTING_MAX) {
        Ok(_alternatives) => Ok(selector),
        // The crawler would refuse the plugin with the same words, without the place.
        Err(fault) => {
            let message = format!("selector {text:?}: {fault}");
            Err(Error::new(selector.span(), message))
        }
    }
}
