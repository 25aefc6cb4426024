//! A profile as a message of pprof, made stack by stack. Each place in code has one function and one location, and each
//! text is written once.

use std::collections::HashMap;
use std::time::Duration;

use prost::Message as _;

use super::format;

/// Place in code: a function, and the line of it that was reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// Name for people.
    pub(super) name: String,
    /// Name for linkers.
    pub(super) system_name: String,
    /// Name of the source file; empty if it is unknown.
    pub(super) file: String,
    /// Number of the line, from 1; 0 is unknown.
    pub(super) line: u32,
}

/// Name of a type of values and its unit, such as `cpu` in `nanoseconds`.
pub(super) type Unit = (&'static str, &'static str);

/// Message that is being made.
pub(super) struct ProfileMessage {
    profile: format::Profile,
    strings: Strings,
    ids: HashMap<Place, u64>,
}

impl ProfileMessage {
    /// Begins a message whose samples have two values each. One was taken for each `period` of the second type.
    pub(super) fn new(types: [Unit; 2], period: i64) -> Self {
        let mut strings = Strings::default();
        let types = types.map(|(kind, unit)| format::ValueType {
            kind: strings.index(kind),
            unit: strings.index(unit),
        });
        Self {
            profile: format::Profile {
                sample_type: types.to_vec(),
                period_type: Some(types[1]),
                period,
                ..format::Profile::default()
            },
            strings,
            ids: HashMap::new(),
        }
    }

    /// Adds a stack, whose innermost place comes first, with its values and the name of its thread.
    pub(super) fn add<'a>(
        &mut self,
        stack: impl IntoIterator<Item = &'a Place>,
        values: [i64; 2],
        thread: Option<&str>,
    ) {
        let location_id = stack.into_iter().map(|place| self.id(place)).collect();
        let label = thread.map(|thread| format::Label {
            key: self.strings.index("thread"),
            text: self.strings.index(thread),
        });
        self.profile.sample.push(format::Sample {
            location_id,
            value: values.to_vec(),
            label: label.into_iter().collect(),
        });
    }

    /// Writes the message of a profile that began at a time since 1970, if that is known.
    pub(super) fn encode(mut self, begun: Duration, length: Duration) -> Vec<u8> {
        self.profile.time_nanos = nanos(begun);
        self.profile.duration_nanos = nanos(length);
        self.profile.string_table = self.strings.table;
        self.profile.encode_to_vec()
    }

    /// Returns the id of the location of a place.
    fn id(&mut self, place: &Place) -> u64 {
        if let Some(id) = self.ids.get(place) {
            return *id;
        }
        let id = self.ids.len() as u64 + 1;
        self.profile.function.push(format::Function {
            id,
            name: self.strings.index(&place.name),
            system_name: self.strings.index(&place.system_name),
            filename: self.strings.index(&place.file),
        });
        self.profile.location.push(format::Location {
            id,
            line: vec![format::Line {
                function_id: id,
                line: i64::from(place.line),
            }],
        });
        self.ids.insert(place.clone(), id);
        id
    }
}

/// Returns the nanoseconds of a time.
pub(super) fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Table of texts: each is written once, and named by its index. The first is empty.
struct Strings {
    table: Vec<String>,
    places: HashMap<String, i64>,
}

impl Default for Strings {
    fn default() -> Self {
        Self {
            table: vec![String::new()],
            places: [(String::new(), 0)].into(),
        }
    }
}

impl Strings {
    fn index(&mut self, text: &str) -> i64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = i64::try_from(self.table.len()).unwrap_or(i64::MAX);
        self.table.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }
}
