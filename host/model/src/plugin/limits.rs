//! Limits of one call of a rule: defaults, values that a resource sets, and values that a plugin asks for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Description;
pub use table::{LimitKind, LimitName, Limits};

mod table;

/// Changes to [`Limits`] by name, as given with `--limit` and stored with a resource.
///
/// Values are in base units: instructions, milliseconds, bytes, pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LimitOverrides(BTreeMap<LimitName, u64>);

/// Factor by which a limit may exceed its default, unless the operator sets another ceiling.
pub const LIMIT_CEILING_FACTOR: u64 = 10;

/// Reason why a limit is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// No limit has this name.
    #[error("there is no limit {name:?}; the limits are {}", LimitName::ALL.map(LimitName::as_str).join(", "))]
    Unknown {
        /// The name, as received.
        name: String,
    },
    /// The value does not parse.
    #[error("limit {name} takes {expected}, not {text:?}")]
    Value {
        /// Name of the limit.
        name: LimitName,
        /// Form of the value, with an example.
        expected: &'static str,
        /// The value, as received.
        text: String,
    },
    /// The value is zero, which would stop every call.
    #[error("limit {name} must be above zero")]
    Zero {
        /// Name of the limit.
        name: LimitName,
    },
    /// The value is above the ceiling that the operator allows.
    #[error(
        "limit {name} is {value}, above the ceiling of {ceiling}; the operator can raise it with --limit-ceiling {name}=VALUE"
    )]
    AboveCeiling {
        /// Name of the limit.
        name: LimitName,
        /// Requested value, in base units.
        value: u64,
        /// Allowed value, in base units.
        ceiling: u64,
    },
}

impl LimitOverrides {
    /// Sets one limit from text: `memory` takes `64MiB`, `cpu` takes `200ms`, `fuel` a number.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), LimitError> {
        let Some(limit) = LimitName::ALL.into_iter().find(|l| l.as_str() == name) else {
            return Err(LimitError::Unknown {
                name: name.to_owned(),
            });
        };
        let (value, expected) = match limit.kind() {
            LimitKind::Time => (parse_millis(text), "a time like 200ms or 2s"),
            LimitKind::Bytes => (parse_bytes(text), "a size like 64MiB or 4096"),
            LimitKind::Count => (text.parse().ok(), "a whole number"),
        };
        let Some(value) = value else {
            return Err(LimitError::Value {
                name: limit,
                expected,
                text: text.to_owned(),
            });
        };
        self.set_value(limit, value)
    }

    /// Sets one limit by its name, in its base unit.
    pub fn set_number(&mut self, name: &str, value: u64) -> Result<(), LimitError> {
        let known = LimitName::ALL.into_iter().find(|l| l.as_str() == name);
        let name = known.ok_or_else(|| LimitError::Unknown {
            name: name.to_owned(),
        })?;
        self.set_value(name, value)
    }

    /// Sets one limit in its base unit.
    pub fn set_value(&mut self, name: LimitName, value: u64) -> Result<(), LimitError> {
        if value == 0 {
            return Err(LimitError::Zero { name });
        }
        self.0.insert(name, value);
        Ok(())
    }

    /// Returns these limits with those of `later` added or replaced.
    #[must_use]
    pub fn and(&self, later: &LimitOverrides) -> Self {
        let mut all = self.clone();
        all.0.extend(later.iter());
        all
    }

    /// Returns ceilings that allow any value.
    pub fn unlimited() -> Self {
        Self(LimitName::ALL.map(|name| (name, u64::MAX)).into())
    }

    /// Iterates over the limits that are set, in base units.
    pub fn iter(&self) -> impl Iterator<Item = (LimitName, u64)> + '_ {
        self.0.iter().map(|(name, value)| (*name, *value))
    }

    /// True if no limit is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Limits {
    /// Returns these limits with some replaced. Refuses a value above its ceiling.
    pub fn with(
        self,
        overrides: &LimitOverrides,
        ceilings: &LimitOverrides,
    ) -> Result<Limits, LimitError> {
        let mut limits = self;
        let ceiling = |name| {
            let ceiling = ceilings.0.get(&name).copied();
            ceiling.unwrap_or_else(|| {
                Limits::default()
                    .value(name)
                    .saturating_mul(LIMIT_CEILING_FACTOR)
            })
        };
        limits.memory_asked = limits.memory_asked.min(ceiling(LimitName::Memory));
        for (name, value) in overrides.iter() {
            let ceiling = ceiling(name);
            if value > ceiling {
                return Err(LimitError::AboveCeiling {
                    name,
                    value,
                    ceiling,
                });
            }
            limits.set(name, value);
        }
        Ok(limits)
    }

    /// Returns the limits for the calls of a plugin. Interpreters need more memory than compiled rules, and
    /// know it: a plugin that asks for more than the default gets it, up to `memory_asked`. Other limits
    /// that a plugin asks for are ignored; the resource sets them.
    pub fn of_plugin(self, description: &Description) -> Limits {
        let asked = description.limits.get(LimitName::Memory.as_str()).copied();
        let asked = asked.map_or(0, |asked| asked.min(self.memory_asked));
        Limits {
            memory: self.memory.max(asked),
            ..self
        }
    }
}

/// Parses a time, such as `1s` or `250ms`, in milliseconds.
pub fn parse_millis(text: &str) -> Option<u64> {
    let duration = humantime::parse_duration(text).ok()?;
    u64::try_from(duration.as_millis()).ok()
}

/// Parses a number of bytes, such as `4096`, `64KiB`, `8MiB`, `1GiB`, `1kB`, `1MB` or `1GB`.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TB" => 1_000_000_000_000,
        "TiB" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Writes a number of bytes as [`parse_bytes`] reads it, in the largest unit that divides it.
pub fn format_bytes(n: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = |(shift, _): &(u32, &str)| n >> shift << shift == n;
    match units.into_iter().find(fits) {
        Some((shift, unit)) if n > 0 => format!("{}{unit}", n >> shift),
        _ => n.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: Result<u64, &str>) {
        let mut overrides = LimitOverrides::default();
        let result = overrides
            .set(name, text)
            .and_then(|()| Limits::default().with(&overrides, &LimitOverrides::default()));
        match (result, expected) {
            (Ok(limits), Ok(value)) => {
                let name = LimitName::ALL
                    .into_iter()
                    .find(|l| l.as_str() == name)
                    .unwrap();
                assert_eq!(limits.value(name), value);
            }
            (Err(e), Err(message)) => assert_eq!(e.to_string(), message),
            (result, expected) => panic!("{name}={text}: {result:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn limits_take_the_units_of_their_kind() {
        check("memory", "512MiB", Ok(512 << 20));
        check("body", "4096", Ok(4096));
        check("cpu", "1s 500ms", Ok(1500));
        check("requests", "20000", Ok(20_000));
    }

    #[test]
    fn bytes_are_written_as_they_are_read() {
        for text in ["0", "1023", "1KiB", "1025", "64MiB", "1536MiB", "1TiB"] {
            let n = parse_bytes(text).expect("it is a size");
            assert_eq!(format_bytes(n), text);
        }
    }

    #[test]
    fn a_wrong_limit_says_what_it_takes() {
        check(
            "cpu",
            "fast",
            Err("limit cpu takes a time like 200ms or 2s, not \"fast\""),
        );
        check(
            "memory",
            "1XB",
            Err("limit memory takes a size like 64MiB or 4096, not \"1XB\""),
        );
        check(
            "items",
            "-1",
            Err("limit items takes a whole number, not \"-1\""),
        );
        check("items", "0", Err("limit items must be above zero"));
        check(
            "ram",
            "1",
            Err(
                "there is no limit \"ram\"; the limits are fuel, cpu, timeout, memory, body, items, item-bytes, requests, log-lines, captures, capture-bytes",
            ),
        );
    }

    #[test]
    fn a_limit_above_the_ceiling_names_the_setting_that_raises_it() {
        check(
            "items",
            "10001",
            Err(
                "limit items is 10001, above the ceiling of 10000; the operator can raise it with --limit-ceiling items=VALUE",
            ),
        );
    }

    /// Checks the memory of a plugin that asks for `asked`, given the resource's limit and the operator's
    /// ceiling.
    #[track_caller]
    fn check_asked(asked: u64, limit: Option<u64>, ceiling: Option<u64>, expected: u64) {
        let set = |value: Option<u64>| {
            let mut overrides = LimitOverrides::default();
            if let Some(value) = value {
                overrides
                    .set_value(LimitName::Memory, value)
                    .expect("it is above zero");
            }
            overrides
        };
        let description = Description {
            name: "books".parse().expect("it is a name"),
            version: "1.0.0".parse().expect("it is a version"),
            rules: Vec::new(),
            schemas: Vec::new(),
            plans: Vec::new(),
            hosts: Vec::new(),
            params: None,
            limits: [("memory".to_owned(), asked), ("fuel".to_owned(), u64::MAX)].into(),
        };
        let limits = Limits::default().with(&set(limit), &set(ceiling));
        let limits = limits.expect("it is below the ceiling");
        let granted = limits.of_plugin(&description);
        assert_eq!(granted.memory, expected);
        assert_eq!(granted.fuel, Limits::default().fuel);
    }

    #[test]
    fn a_plugin_gets_the_memory_it_asks_for_unless_that_is_much_or_set_otherwise() {
        const MIB: u64 = 1 << 20;
        check_asked(128 * MIB, None, None, 128 * MIB);
        check_asked(512 * MIB, None, None, 256 * MIB);
        check_asked(MIB, None, None, 64 * MIB);
        check_asked(128 * MIB, Some(32 * MIB), None, 32 * MIB);
        check_asked(128 * MIB, Some(512 * MIB), None, 512 * MIB);
        check_asked(128 * MIB, None, Some(96 * MIB), 96 * MIB);
        check_asked(128 * MIB, None, Some(32 * MIB), 64 * MIB);
    }
}
