//! Conversion of a text into a value: a function of the author, or keys that belong to one type.

use syn::parse::ParseStream;
use syn::{Error, Ident, LitStr, Path, Result, Token, Type};

use super::dates;
use super::types::is_called;

/// Conversion of a text into a value.
pub(super) enum Reader {
    /// Conversion that the type defines.
    Plain,
    With(Path),
    Date {
        format: LitStr,
    },
    DateTime {
        format: Option<LitStr>,
        /// Offset in seconds.
        offset: Option<i32>,
    },
    Money {
        currency: Option<LitStr>,
        decimal: Option<char>,
    },
}

/// Keys that name the conversion.
#[derive(Default)]
pub(super) struct ReaderKeys {
    pub(super) with: Option<(Ident, Path)>,
    /// Keys with a text, in their order.
    texts: Vec<(Ident, LitStr)>,
}

impl ReaderKeys {
    /// Reads a key of a conversion. Returns false if it is none.
    pub(super) fn parse(&mut self, key: &Ident, input: ParseStream<'_>) -> Result<bool> {
        match key.to_string().as_str() {
            "with" => {
                input.parse::<Token![=]>()?;
                once(self.with.is_some(), key)?;
                self.with = Some((key.clone(), input.parse()?));
            }
            "format" | "offset" | "currency" | "decimal" => {
                input.parse::<Token![=]>()?;
                once(self.texts.iter().any(|(earlier, _)| earlier == key), key)?;
                self.texts.push((key.clone(), input.parse()?));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the first of the keys.
    pub(super) fn first(&self) -> Option<&Ident> {
        let with = self.with.as_ref().map(|(key, _)| key);
        with.or(self.texts.first().map(|(key, _)| key))
    }

    /// Returns the conversion that the keys name, for a field that holds values of this type.
    pub(super) fn reader(self, inner: &Type) -> Result<Reader> {
        if let (Some((with, _)), Some((key, _))) = (&self.with, self.texts.first()) {
            let message = format!("`{with}` and `{key}` both say how the text is read; give one");
            return Err(Error::new(key.span(), message));
        }
        if let Some((_, path)) = self.with {
            return Ok(Reader::With(path));
        }
        for (key, _) in &self.texts {
            let types: &[&str] = match key.to_string().as_str() {
                "format" => &["Date", "DateTime"],
                "offset" => &["DateTime"],
                _ => &["Money"],
            };
            if !types.iter().any(|name| is_called(inner, name)) {
                let message = format!("`{key}` is for a `{}`", types.join("` or a `"));
                return Err(Error::new(key.span(), message));
            }
        }
        if self.texts.is_empty() {
            return Ok(Reader::Plain);
        }
        let text = |name: &str| {
            let mut texts = self.texts.iter();
            texts.find(|(key, _)| key == name).map(|(_, text)| text)
        };
        if is_called(inner, "Money") {
            return Ok(Reader::Money {
                currency: text("currency").cloned(),
                decimal: text("decimal").map(decimal).transpose()?,
            });
        }
        let format = text("format").cloned();
        if let (true, Some(format)) = (is_called(inner, "Date"), &format) {
            dates::check_date(format)?;
            let format = format.clone();
            return Ok(Reader::Date { format });
        }
        let offset = text("offset");
        if let Some(format) = &format {
            dates::check_date_time(format, offset)?;
        }
        let offset = offset.map(dates::offset).transpose()?;
        Ok(Reader::DateTime { format, offset })
    }
}

fn decimal(text: &LitStr) -> Result<char> {
    match text.value().as_str() {
        "." => Ok('.'),
        "," => Ok(','),
        _ => {
            let message = "the decimal separator is \".\" or \",\"";
            Err(Error::new(text.span(), message))
        }
    }
}

/// Refuses a key that is given twice.
pub(super) fn once(is_again: bool, key: &Ident) -> Result<()> {
    match is_again {
        true => Err(Error::new(key.span(), format!("`{key}` is given twice"))),
        false => Ok(()),
    }
}
