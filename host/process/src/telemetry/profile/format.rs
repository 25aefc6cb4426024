//! The messages of pprof's `profile.proto`, as far as they are written here. All texts are indices into the
//! table of strings.

use prost::Message;

/// A whole profile.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Profile {
    /// Types of the values of a sample.
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<ValueType>,
    /// Stacks that were recorded.
    #[prost(message, repeated, tag = "2")]
    pub(super) sample: Vec<Sample>,
    /// Places in code that stacks name.
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<Location>,
    /// Functions that locations name.
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<Function>,
    /// Table of strings; the first is empty.
    #[prost(string, repeated, tag = "6")]
    pub(super) string_table: Vec<String>,
    /// Time at which the profile began, in nanoseconds since 1970.
    #[prost(int64, tag = "9")]
    pub(super) time_nanos: i64,
    /// Length of the profile in nanoseconds.
    #[prost(int64, tag = "10")]
    pub(super) duration_nanos: i64,
    /// Unit of the distance between two samples.
    #[prost(message, optional, tag = "11")]
    pub(super) period_type: Option<ValueType>,
    /// Distance between two samples, in that unit.
    #[prost(int64, tag = "12")]
    pub(super) period: i64,
}

#[cfg(test)]
impl Profile {
    /// Returns a text of the table.
    pub(super) fn text(&self, at: i64) -> &str {
        &self.string_table[usize::try_from(at).unwrap()]
    }

    /// Returns the names of a stack, innermost first.
    pub(super) fn names(&self, sample: &Sample) -> Vec<&str> {
        let names = sample.location_id.iter().map(|id| {
            let location = self.location.iter().find(|l| l.id == *id).unwrap();
            let function = location.line[0].function_id;
            let function = self.function.iter().find(|f| f.id == function).unwrap();
            self.text(function.name)
        });
        names.collect()
    }
}

/// Type of a value: `cpu` in `nanoseconds`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct ValueType {
    /// Index of the type's name.
    #[prost(int64, tag = "1")]
    pub(super) kind: i64,
    /// Index of the unit's name.
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

/// A stack, and the number of times that it was recorded.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    /// Ids of the stack's locations, innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    /// Values, one for each type.
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
    /// Labels of the sample.
    #[prost(message, repeated, tag = "3")]
    pub(super) label: Vec<Label>,
}

/// A name with a text.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Label {
    /// Index of the name.
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    /// Index of the text.
    #[prost(int64, tag = "2")]
    pub(super) text: i64,
}

/// A place in code.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    /// Id, from 1.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// Line of the location. There is one: an inlined function has a location of its own.
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Line>,
}

/// A line of a function.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Line {
    /// Id of the function.
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
    /// Number of the line, from 1; 0 is unknown.
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Function {
    /// Id, from 1.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// Index of the name for people.
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    /// Index of the name for linkers.
    #[prost(int64, tag = "3")]
    pub(super) system_name: i64,
    /// Index of the source file's name.
    #[prost(int64, tag = "4")]
    pub(super) filename: i64,
}
