//! One row of the table of settings, as the interfaces see it: names, form, default, range and words.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use super::CrawlSettings;
use super::error::SettingError;
use super::table::DAY;
use crate::plugin::format_bytes;

/// Setting of a crawl, apart from its value.
#[derive(Debug)]
pub struct Setting {
    /// Name on the command line and in the config file; messages and counts use it too.
    pub name: &'static str,
    /// Name in messages and JSON bodies: that of the field of [`CrawlSettings`].
    pub field: &'static str,
    /// Form of the value.
    pub kind: Kind,
    /// Word for the value in help texts.
    pub takes: &'static str,
    /// Value that holds if none is set.
    pub default: Fallback,
    /// Smallest and largest value, in milliseconds, bytes or pieces; of a list, number of entries.
    pub range: RangeInclusive<u64>,
    /// Texts of a value; one, unless the setting is a list.
    pub example: &'static [&'static str],
    /// Time at which a change counts in a crawl that runs.
    pub applies: Applies,
    /// Meaning, in one sentence without a full stop.
    pub help: &'static str,
    /// Meaning in the book, in Markdown; empty if the sentence above serves there too.
    pub book: &'static str,
    pub(super) set: fn(&mut CrawlSettings, Value) -> Result<(), String>,
    pub(super) measure: fn(&CrawlSettings) -> Option<u64>,
    pub(super) value: fn(&CrawlSettings) -> Option<Value>,
}

/// Form of the value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number of 32 bits.
    U32,
    /// A number of 64 bits.
    U64,
    /// A number of bytes, which people write like `64MiB`.
    Bytes,
    /// A number of milliseconds, which people write like `250ms`.
    Time,
    /// A text.
    Text,
    /// A list of texts; its option may be given several times.
    Texts,
    /// A list of texts without commas; its option takes them separated by commas.
    List,
}

/// Value that holds if a setting is absent.
#[derive(Debug, Clone, Copy)]
pub enum Fallback {
    /// A number.
    Count(u64),
    /// A number of bytes.
    Bytes(u64),
    /// A time.
    Time(Duration),
    /// The default of a type that is written as text.
    Text(fn() -> String),
    /// A value that words describe.
    Words(&'static str),
    /// The same; the meaning of the setting makes it plain, so that help texts leave it out.
    Implied(&'static str),
}

/// Time at which a change of a setting counts in a crawl that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// From the next page that is taken.
    Pages,
    /// From the links of the next page that is taken.
    Links,
    /// At once.
    AtOnce,
    /// From the next time that the frontier is opened.
    Opening,
    /// From the next run on.
    Run,
}

/// Value of a setting in the form that all interfaces can give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Number, bytes or milliseconds.
    Number(u64),
    /// Text, not yet parsed.
    Text(String),
    /// List of such texts.
    Texts(Vec<String>),
}

impl Setting {
    /// Parses a value and puts it into `settings`. The range is left to [`CrawlSettings::check`].
    pub fn set(&self, settings: &mut CrawlSettings, value: Value) -> Result<(), SettingError> {
        (self.set)(settings, value).map_err(|why| self.error(why))
    }

    /// Returns the value in `settings` as [`set`](Self::set) takes it, or `None` if it is absent.
    pub fn value(&self, settings: &CrawlSettings) -> Option<Value> {
        (self.value)(settings)
    }

    /// Returns the meaning with the default, unless that is plain from the meaning.
    pub fn help_with_default(&self) -> String {
        match &self.default {
            Fallback::Implied(_) => self.help.to_owned(),
            default => format!("{} [default: {default}]", self.help),
        }
    }

    /// Refuses a value that is out of range.
    pub(super) fn check(&self, settings: &CrawlSettings) -> Result<(), SettingError> {
        let max = self.range.end();
        let why = match (self.measure)(settings) {
            None => return Ok(()),
            Some(n) if self.range.contains(&n) => return Ok(()),
            Some(0) => "must be above zero".to_owned(),
            Some(n) if n < *self.range.start() => {
                format!("is {n}; at least {} are needed", self.range.start())
            }
            Some(n) => match self.kind {
                Kind::U32 | Kind::U64 | Kind::Bytes => {
                    format!("is {n}; at most {max} are allowed")
                }
                Kind::Time if *max == DAY => "is longer than a day".to_owned(),
                Kind::Time => format!("is longer than {} days", max / DAY),
                Kind::Text | Kind::Texts | Kind::List => {
                    format!("has {n} entries; at most {max} are allowed")
                }
            },
        };
        Err(self.error(why))
    }

    fn error(&self, why: String) -> SettingError {
        SettingError {
            setting: self.name,
            why,
        }
    }
}

impl Applies {
    /// All of these times, in the order in which the book lists them.
    pub const ALL: [Applies; 5] = [
        Applies::Pages,
        Applies::Links,
        Applies::AtOnce,
        Applies::Opening,
        Applies::Run,
    ];

    /// Returns the time alone, in plain text: the beginning of the words of the book.
    pub fn when(self) -> String {
        let words = self.words();
        let end = words.find(['.', ';']).unwrap_or(words.len());
        words[..end].replace('`', "")
    }

    /// Returns the words of the book, in Markdown.
    pub fn words(self) -> &'static str {
        match self {
            Applies::Pages => {
                "for pages taken from then on. If you shorten a delay or lift a rate, the old one still holds at each host for a minute and twice its length. Which pages of the last run `--unchanged skip` fetches again is decided when a run begins"
            }
            Applies::Links => {
                "for links of pages taken from then on; a link that was refused comes again only if another page has it"
            }
            Applies::AtOnce => {
                "at once; a shard that is idle because its part of a budget is used up goes on only when a link comes"
            }
            Applies::Opening => {
                "when the frontier is opened next, for example after `resource pause` and `resume`"
            }
            Applies::Run => "when the next run begins",
        }
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fallback::Count(n) => n.fmt(f),
            Fallback::Bytes(n) => f.write_str(&format_bytes(*n)),
            Fallback::Time(time) => humantime::format_duration(*time).fmt(f),
            Fallback::Text(text) => f.write_str(&text()),
            Fallback::Words(words) | Fallback::Implied(words) => f.write_str(words),
        }
    }
}

impl Value {
    pub(super) fn of_text(value: &impl ToString) -> Self {
        Value::Text(value.to_string())
    }

    pub(super) fn of_texts<T: ToString>(values: &[T]) -> Option<Self> {
        let texts = || values.iter().map(ToString::to_string).collect();
        (!values.is_empty()).then(|| Value::Texts(texts()))
    }

    pub(super) fn number<N: TryFrom<u64>>(self) -> Result<Option<N>, String> {
        let Value::Number(n) = self else {
            return Err("takes a whole number".to_owned());
        };
        let number = n.try_into().map_err(|_| format!("is too large: {n}"))?;
        Ok(Some(number))
    }

    pub(super) fn text<T: FromStr<Err: Fault>>(self) -> Result<Option<T>, String> {
        let Value::Text(text) = self else {
            return Err("takes a text".to_owned());
        };
        text.parse().map(Some).map_err(Fault::why)
    }

    pub(super) fn texts<T: FromStr<Err: Fault>>(self) -> Result<Vec<T>, String> {
        let Value::Texts(texts) = self else {
            return Err("takes a list of texts".to_owned());
        };
        let parsed = texts.iter().map(|text| text.parse().map_err(Fault::why));
        parsed.collect()
    }
}

/// Reason why a text does not parse, as the end of a sentence that starts with the setting's name.
pub(super) trait Fault {
    fn why(self) -> String;
}

impl Fault for String {
    fn why(self) -> String {
        self
    }
}

impl Fault for SettingError {
    fn why(self) -> String {
        self.why
    }
}

/// Field of [`CrawlSettings`], which may be absent.
pub(super) trait Field: Sized {
    fn is_absent(&self) -> bool;

    /// Returns this field, or that of the present settings if it is absent.
    fn or_present(self, present: Self) -> Self {
        if self.is_absent() { present } else { self }
    }
}

impl<T> Field for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T> Field for Vec<T> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}
