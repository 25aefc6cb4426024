//! Table of the limits of a call: the one place where a limit is declared.
//!
//! From the rows come [`Limits`] with its defaults, [`LimitName`], which all interfaces go through, the values
//! that a limit takes, and the rows of `docs/src/reference/limits.md` and of the units in `http.md`. The names
//! of `#[plugin(limits(…))]` in the SDK are compared with them.
//!
//! The form of a row is `Name field: kind(DEFAULT) { name, book }`, below the documentation of the field. The
//! kinds are `count` (pieces), `bytes` and `time` (milliseconds). `book` is the meaning in the book, in
//! Markdown; rows with the same meaning, one after the other, share a line there.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Kind of a limit: the unit of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// Number of pieces.
    Count,
    /// Number of bytes, written like `64MiB`.
    Bytes,
    /// Milliseconds, written like `200ms`.
    Time,
}

/// Type of a field.
macro_rules! field {
    (time) => {
        Duration
    };
    ($number:ident) => {
        u64
    };
}

/// Field that a value in base units becomes.
macro_rules! from_base {
    (time $value:expr) => {
        Duration::from_millis($value)
    };
    ($number:ident $value:expr) => {
        $value
    };
}

/// Value of a field in base units.
macro_rules! to_base {
    (time $value:expr) => {
        $value.as_millis() as u64
    };
    ($number:ident $value:expr) => {
        $value
    };
}

/// Kind in the form of the interfaces.
macro_rules! kind {
    (count) => {
        LimitKind::Count
    };
    (bytes) => {
        LimitKind::Bytes
    };
    (time) => {
        LimitKind::Time
    };
}

/// Defines `Limits` and `LimitName` from the rows of the table.
macro_rules! define {
    ($($(#[doc = $doc:literal])+ $name:ident $field:ident: $kind:ident($default:expr) {
        name: $text:literal,
        book: $book:literal,
    })*) => {
        /// Limits of one call of a rule. They have the names and units of `--limit NAME=VALUE`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Limits {
            $(
                $(#[doc = $doc])+
                pub $field: field!($kind),
            )*
            /// Upper bound on the memory of a plugin that asks for more than `memory`. A value set for `memory`
            /// sets both.
            pub memory_asked: u64,
        }

        impl Default for Limits {
            fn default() -> Self {
                Self {
                    $($field: from_base!($kind $default),)*
                    memory_asked: 256 << 20,
                }
            }
        }

        /// Name of a limit, as in `--limit`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum LimitName {
            $(
                #[doc = concat!("Limit `", $text, "`.")]
                #[serde(rename = $text)]
                $name,
            )*
        }

        impl LimitName {
            /// All limits, in the order in which they are documented.
            pub const ALL: [LimitName; [$($text),*].len()] = [$(LimitName::$name),*];

            /// Returns the name, as in `--limit`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(LimitName::$name => $text,)*
                }
            }

            /// Returns the kind of the value.
            pub fn kind(self) -> LimitKind {
                match self {
                    $(LimitName::$name => kind!($kind),)*
                }
            }

            /// Returns the meaning in the book, in Markdown.
            pub fn book(self) -> &'static str {
                match self {
                    $(LimitName::$name => $book,)*
                }
            }
        }

        impl Limits {
            /// Returns one limit in its base unit.
            pub fn value(&self, name: LimitName) -> u64 {
                match name {
                    $(LimitName::$name => to_base!($kind self.$field),)*
                }
            }

            /// Sets one limit in its base unit.
            pub(super) fn set(&mut self, name: LimitName, value: u64) {
                match name {
                    $(LimitName::$name => self.$field = from_base!($kind value),)*
                }
                if name == LimitName::Memory {
                    self.memory_asked = value;
                }
            }
        }
    };
}

define! {
    /// Number of instructions, approximately: wasmtime's fuel.
    Fuel fuel: count(1_000_000_000) {
        name: "fuel",
        book: "instructions, roughly",
    }
    /// CPU time.
    Cpu cpu: time(200) {
        name: "cpu",
        book: "time on the processor",
    }
    /// Time from start to end of the call, including host calls.
    Timeout timeout: time(2_000) {
        name: "timeout",
        book: "time from start to end",
    }
    /// Number of bytes of all memories and tables of the instance.
    Memory memory: bytes(64 << 20) {
        name: "memory",
        book: "all memories and tables together; 256MiB for a plugin that asks for as much, such as those in JavaScript and Python",
    }
    /// Number of bytes of a page's body. A longer body is cut and marked as truncated.
    Body body: bytes(8 << 20) {
        name: "body",
        book: "longer pages are cut and marked",
    }
    /// Number of items of one call.
    Items items: count(1_000) {
        name: "items",
        book: "items that the call emits, and their bytes",
    }
    /// Number of bytes of all items of one call.
    ItemBytes item_bytes: bytes(4 << 20) {
        name: "item-bytes",
        book: "items that the call emits, and their bytes",
    }
    /// Number of requests of one call.
    Requests requests: count(2_000) {
        name: "requests",
        book: "links handed over",
    }
    /// Number of log lines of one call. Further ones are counted and dropped.
    LogLines log_lines: count(200) {
        name: "log-lines",
        book: "further lines are counted",
    }
    /// Number of rows and values that all plans of a call read from its page. The rest is left out, and marked.
    Captures captures: count(100_000) {
        name: "captures",
        book: "what all plans of a call read of its page; the rest is left out and marked",
    }
    /// Number of bytes of these values.
    CaptureBytes capture_bytes: bytes(8 << 20) {
        name: "capture-bytes",
        book: "what all plans of a call read of its page; the rest is left out and marked",
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
