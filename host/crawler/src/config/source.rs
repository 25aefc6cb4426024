//! The text of a config file while it is read, and the faults that are found in it.
//!
//! A part with a fault is left out, and reading goes on behind it, so that one look at a file tells all of its
//! faults.

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, ValueDeserializer};

use super::file::ConfigError;
use super::json;
use crawler_model::suggest;

/// Text of a file, and what is wrong with it.
pub(super) struct Source<'a> {
    text: &'a str,
    /// Path of the file, as messages show it.
    path: &'a str,
    /// Bytes at which lines end.
    line_ends: Vec<usize>,
    faults: Vec<ConfigError>,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str, path: &'a str) -> Self {
        Self {
            text,
            path,
            line_ends: text.match_indices('\n').map(|(at, _)| at).collect(),
            faults: Vec::new(),
        }
    }

    /// Parses the text as TOML, or as JSON if it begins with a brace, which no file of TOML does. Returns an empty
    /// table if the text is neither.
    pub(super) fn parse(&mut self) -> DeTable<'a> {
        if self.text.trim_start().starts_with('{') {
            return json::parse(self.text).unwrap_or_else(|fault| {
                self.fault(fault.at, fault.why);
                DeTable::new()
            });
        }
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            self.toml_error(error, 0);
        }
        match errors.is_empty() {
            true => table.into_inner(),
            false => DeTable::new(),
        }
    }

    /// Takes note of a fault at this byte of the text.
    pub(super) fn fault(&mut self, at: usize, why: impl Into<String>) {
        self.fault_with_hint(at, why, "");
    }

    pub(super) fn fault_with_hint(
        &mut self,
        at: usize,
        why: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.faults.push(ConfigError::Wrong {
            path: self.path.to_owned(),
            line: self.line(at),
            why: why.into(),
            hint: hint.into(),
        });
    }

    /// Takes note of a key that is none of the known ones.
    pub(super) fn unknown(&mut self, what: &str, key: &Spanned<DeString<'_>>, known: &[&str]) {
        let why = format!("{what} has an unknown key {:?}", key.get_ref());
        let hint = suggest::hint(key.get_ref(), known);
        self.fault_with_hint(key.span().start, why, hint);
    }

    /// Parses a value. If it is wrong, takes note of that and returns `None`.
    pub(super) fn take<T: DeserializeOwned>(&mut self, value: Spanned<DeValue<'_>>) -> Option<T> {
        let at = value.span().start;
        match T::deserialize(ValueDeserializer::from(value)) {
            Ok(value) => Some(value),
            Err(error) => {
                self.toml_error(&error, at);
                None
            }
        }
    }

    /// Parses a table whose keys are all optional: first each key alone, so that each fault has its line, and then all
    /// of them together.
    pub(super) fn take_keys<T: DeserializeOwned, U>(
        &mut self,
        table: Spanned<DeTable<'_>>,
        parse: impl Fn(T) -> Result<U, String>,
    ) -> Option<U> {
        let n_before = self.n_faults();
        for (key, value) in table.get_ref() {
            let alone = DeTable::from_iter([(key.clone(), value.clone())]);
            let alone = self.take(Spanned::new(value.span(), DeValue::Table(alone)));
            let _checked = self.noted(key.span().start, alone.map(&parse));
        }
        if self.n_faults() > n_before {
            return None;
        }
        let at = table.span().start;
        let whole = self.take(as_value(table));
        self.noted(at, whole.map(parse))
    }

    /// Returns the value that was parsed. If it has a fault, takes note of it.
    pub(super) fn noted<T>(&mut self, at: usize, value: Option<Result<T, String>>) -> Option<T> {
        value?.map_err(|why| self.fault(at, why)).ok()
    }

    /// Returns the table that a value is, without the keys that are none of the known ones.
    pub(super) fn table<'v>(
        &mut self,
        what: &str,
        value: Spanned<DeValue<'v>>,
        known: &[&str],
    ) -> Option<Spanned<DeTable<'v>>> {
        let span = value.span();
        let DeValue::Table(table) = value.into_inner() else {
            self.fault(span.start, format!("{what} is not a table"));
            return None;
        };
        let (table, others): (DeTable<'v>, DeTable<'v>) = table
            .into_iter()
            .partition(|(key, _)| known.contains(&&**key.get_ref()));
        for key in others.keys() {
            self.unknown(what, key, known);
        }
        Some(Spanned::new(span, table))
    }

    pub(super) fn n_faults(&self) -> usize {
        self.faults.len()
    }

    /// Returns path and line of this byte, as messages show them.
    pub(super) fn place(&self, at: usize) -> String {
        format!("{}:{}", self.path, self.line(at))
    }

    /// Returns the number of the line of this byte, from 1.
    fn line(&self, at: usize) -> usize {
        self.line_ends.partition_point(|end| *end < at) + 1
    }

    /// Returns all faults in the order of their lines.
    pub(super) fn into_faults(mut self) -> Vec<ConfigError> {
        self.faults.sort_by_key(ConfigError::line);
        self.faults
    }

    fn toml_error(&mut self, error: &toml::de::Error, otherwise: usize) {
        let at = error.span().map_or(otherwise, |span| span.start);
        self.fault(at, error.message());
    }
}

/// Returns a table as a value.
pub(super) fn as_value(table: Spanned<DeTable<'_>>) -> Spanned<DeValue<'_>> {
    let span = table.span();
    Spanned::new(span, DeValue::Table(table.into_inner()))
}
