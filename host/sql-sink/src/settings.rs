//! Settings of a database of items, and the ranges that their numbers have.

use std::collections::BTreeMap;
use std::time::Duration;

use crawler_sink::settings::{SettingError, check_number, check_size, check_time};

use crate::history;
use crate::names::{Identifier, TableTemplate};

/// Another sink in the same database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherSink {
    /// Template of the names of its tables.
    pub table: TableTemplate,
    /// True if it has tables of versions, too.
    pub history: bool,
}

impl OtherSink {
    /// Returns true if a table is one of those that the sink has for a kind of items.
    fn owns(&self, table: &Identifier, resource: &str, kind: &str) -> bool {
        let own = self.table.name(resource, kind);
        *table == own || (self.history && *table == own.with(history::SUFFIX))
    }
}

/// Settings of a database of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlSettings {
    /// Template of the names of tables.
    pub table: TableTemplate,
    /// Template of the name of the table for items that do not fit theirs.
    pub reject_table: TableTemplate,
    /// Other sinks in the same database, by their names. This sink leaves their tables alone.
    pub others: BTreeMap<String, OtherSink>,
    /// Fields by which rows of a kind are identified in all runs. Without them, each item of each run is a row.
    pub keys: BTreeMap<String, Vec<String>>,
    /// True if each kind has a second table with a row for each version of an item. The resource has to tell changes.
    pub history: bool,
    /// Largest number of items of a transaction.
    pub batch_items: usize,
    /// Size of the items of a transaction, in bytes. A transaction with one item may be larger.
    pub batch_bytes: u64,
    /// Time for which items gather until a smaller transaction is made.
    pub max_wait: Duration,
    /// Time that a connection, a statement and a transaction may take.
    pub timeout: Duration,
    /// Largest number of connections of a process. SQLite has one.
    pub connections: usize,
}

impl Default for SqlSettings {
    fn default() -> Self {
        let template = |text: &str| text.parse().expect("the template of this file is one");
        Self {
            table: template("{resource}_{kind}"),
            reject_table: template("crawler_rejects"),
            others: BTreeMap::new(),
            keys: BTreeMap::new(),
            history: false,
            batch_items: 1_000,
            batch_bytes: 8 << 20,
            max_wait: Duration::from_secs(1),
            timeout: Duration::from_secs(30),
            connections: 4,
        }
    }
}

impl SqlSettings {
    /// Returns the default template of the tables of changes.
    pub fn change_table() -> TableTemplate {
        let template = "{resource}_{kind}_changes".parse();
        template.expect("the template of this file is one")
    }

    /// Checks that all numbers are in their ranges.
    ///
    /// # Errors
    ///
    /// Names the first setting that is out of its range.
    pub fn check(&self) -> Result<(), SettingError> {
        let items = self.batch_items as u64;
        check_number("batch-items", items, 1..=10_000, ("1", "10000"))?;
        let sizes = 1..=64 << 20;
        check_size("batch-bytes", self.batch_bytes, sizes, ("1", "64MiB"))?;
        let waits = Duration::ZERO..=Duration::from_secs(60);
        check_time("max-wait", self.max_wait, waits, ("0s", "1m"))?;
        let timeouts = Duration::from_secs(1)..=Duration::from_secs(600);
        check_time("timeout", self.timeout, timeouts, ("1s", "10m"))?;
        let connections = self.connections as u64;
        check_number("connections", connections, 1..=100, ("1", "100"))
    }

    /// Returns the other sink to which a table belongs, and the kind of items that it is for, which is one of these.
    pub(crate) fn owner<'s>(
        &'s self,
        table: &Identifier,
        resource: &str,
        kinds: &[&'s str],
    ) -> Option<(&'s str, &'s str)> {
        self.others.iter().find_map(|(sink, other)| {
            let kind = kinds
                .iter()
                .find(|kind| other.owns(table, resource, kind))?;
            Some((sink.as_str(), *kind))
        })
    }
}
