//! The messages of pprof's `profile.proto`, as far as they are written here. All texts are places in
//! the table of strings.

use prost::Message;

/// All of it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Profile {
    /// What the values of a sample are.
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<ValueType>,
    /// Stacks that were seen.
    #[prost(message, repeated, tag = "2")]
    pub(super) sample: Vec<Sample>,
    /// Places in code that stacks name.
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<Location>,
    /// Functions that locations name.
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<Function>,
    /// The first is empty.
    #[prost(string, repeated, tag = "6")]
    pub(super) string_table: Vec<String>,
    /// When it began, in nanoseconds since 1970.
    #[prost(int64, tag = "9")]
    pub(super) time_nanos: i64,
    /// How long it took.
    #[prost(int64, tag = "10")]
    pub(super) duration_nanos: i64,
    /// What is between two samples.
    #[prost(message, optional, tag = "11")]
    pub(super) period_type: Option<ValueType>,
    /// How much of it.
    #[prost(int64, tag = "12")]
    pub(super) period: i64,
}

/// `cpu` in `nanoseconds`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct ValueType {
    /// A text.
    #[prost(int64, tag = "1")]
    pub(super) kind: i64,
    /// A text.
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

/// A stack, and how often it was seen.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    /// Innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    /// One for each type.
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
    /// Where else it belongs.
    #[prost(message, repeated, tag = "3")]
    pub(super) label: Vec<Label>,
}

/// A name with a text.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Label {
    /// A text.
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    /// A text.
    #[prost(int64, tag = "2")]
    pub(super) text: i64,
}

/// A place in code.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    /// From 1.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// One: what is inlined has a location of its own.
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Line>,
}

/// A line of a function.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Line {
    /// The function.
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
    /// From 1; 0 is unknown.
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Function {
    /// From 1.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// For people.
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    /// For linkers.
    #[prost(int64, tag = "3")]
    pub(super) system_name: i64,
    /// Where it is written.
    #[prost(int64, tag = "4")]
    pub(super) filename: i64,
}
