//! Sink of items in tables of SQLite, PostgreSQL, MariaDB and MySQL.
//!
//! Each kind of items of a resource has a table, with a column for each field that its schema declares. A row is
//! written by its key, and the newest version of a row wins, in whatever order versions are written. So the same items may come
//! again after a crash or a lost answer, and an earlier owner of a shard may still write after a later one: the tables
//! end up the same. No marks are kept.
//!
//! Rows are written in transactions, and a write counts once all of its transactions are committed. Items that do not fit
//! their table go to a table of rejected items, with the reason. All other errors keep the items: the caller of a write
//! tries again, and they go on as soon as their cause is gone. If the server is too slow for a write, the next one has
//! half of its items.
//!
//! ```text
//! target      URL of a database
//! names       names of tables and columns
//! columns     tables as items need them
//! rows        items as rows
//! dialect     differences between the servers
//! connection  calls to one of the servers
//! database    connections that shards share
//! table       tables on the server: made, looked at, changed
//! batch       rows of one transaction
//! trouble     causes of errors, and what to do
//! check       what is tried before a resource uses a database
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::SemaphorePermit;

use crawler_model::crawl::ItemRecord;
use crawler_model::plugin::Schema;
use crawler_process::retry::Backoff;
use crawler_sink::{
    CheckSink, Delivery, Gathering, OpenSinks, Sink, SinkCheck, SinkError, Written,
};

use batch::{Batch, Plan, Ready};
use columns::Kind;
use database::Database;
use rows::Resource;
use trouble::{Cause, Trouble};

mod batch;
mod check;
mod columns;
mod connection;
mod database;
mod dialect;
mod names;
mod rows;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod trouble;

pub use names::{TableTemplate, TemplateError};
pub use target::{Target, TargetError};

/// Number of attempts of a write, with a little time between them, if other transactions or changes of tables are in its
/// way.
const ATTEMPTS: u32 = 6;
/// Part of its bound by which the number of items of a transaction grows after one that was in time.
const GROWTH: usize = 64;
/// First and largest wait between these attempts.
const WAITS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// Settings of a database of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlSettings {
    /// Template of the names of tables.
    pub table: TableTemplate,
    /// Template of the name of the table for items that do not fit theirs.
    pub reject_table: TableTemplate,
    /// Fields by which rows of a kind are identified in all runs. Without them, each item of each run is a row.
    pub keys: BTreeMap<String, Vec<String>>,
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
            keys: BTreeMap::new(),
            batch_items: 1_000,
            batch_bytes: 8 << 20,
            max_wait: Duration::from_secs(1),
            timeout: Duration::from_secs(30),
            connections: 4,
        }
    }
}

/// Fault of a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value}; it goes from {least} to {most}")]
pub struct SettingError {
    name: &'static str,
    value: String,
    least: &'static str,
    most: &'static str,
}

impl SqlSettings {
    /// Checks that all numbers are in their ranges.
    ///
    /// # Errors
    ///
    /// Names the first setting that is out of its range.
    pub fn check(&self) -> Result<(), SettingError> {
        let text = |time: Duration| humantime::format_duration(time).to_string();
        let rows = [
            (
                "batch-items",
                self.batch_items.to_string(),
                (1..=10_000).contains(&self.batch_items),
                ("1", "10000"),
            ),
            (
                "batch-bytes",
                self.batch_bytes.to_string(),
                (1..=64 << 20).contains(&self.batch_bytes),
                ("1", "64MiB"),
            ),
            (
                "max-wait",
                text(self.max_wait),
                self.max_wait <= Duration::from_secs(60),
                ("0s", "1m"),
            ),
            (
                "timeout",
                text(self.timeout),
                (Duration::from_secs(1)..=Duration::from_secs(600)).contains(&self.timeout),
                ("1s", "10m"),
            ),
            (
                "connections",
                self.connections.to_string(),
                (1..=100).contains(&self.connections),
                ("1", "100"),
            ),
        ];
        match rows.into_iter().find(|(_, _, is_kept, _)| !is_kept) {
            None => Ok(()),
            Some((name, value, _, (least, most))) => Err(SettingError {
                name,
                value,
                least,
                most,
            }),
        }
    }
}

/// Sinks of all shards of a process in one database, whose connections they share.
pub struct SqlSinks {
    database: Arc<Database>,
    settings: SqlSettings,
}

impl SqlSinks {
    /// Creates the sinks of a database. Nothing is connected before the first write.
    ///
    /// # Errors
    ///
    /// A setting is out of range.
    pub fn new(target: Target, settings: SqlSettings) -> Result<Self, SettingError> {
        settings.check()?;
        let database = Database::new(target, settings.timeout, settings.connections);
        Ok(Self {
            database: Arc::new(database),
            settings,
        })
    }

    /// Returns the sink of a shard.
    pub fn sink(&self, delivery: &Delivery) -> SqlSink {
        let resource = Resource {
            id: delivery.shard.resource,
            name: delivery.spec.name.to_string(),
        };
        let rejects = self.settings.reject_table.name(&resource.name, "rejects");
        let plan = Plan {
            dialect: self.database.dialect,
            resource,
            kinds: BTreeMap::new(),
            rejects: columns::rejects(rejects),
        };
        let mut sink = SqlSink {
            database: Arc::clone(&self.database),
            settings: self.settings.clone(),
            plan,
            ready: Ready::new(),
            max_items: self.settings.batch_items,
        };
        for schema in &delivery.schemas {
            sink.know(&schema.name, Some(schema));
        }
        sink
    }
}

#[async_trait]
impl OpenSinks for SqlSinks {
    async fn open(&self, delivery: &Delivery) -> Result<Box<dyn Sink>, SinkError> {
        Ok(Box::new(self.sink(delivery)))
    }
}

#[async_trait]
impl CheckSink for SqlSinks {
    async fn check(&self) -> Result<SinkCheck, SinkError> {
        let target = &self.database.target;
        let tried = Box::pin(check::try_out(target, self.settings.timeout)).await;
        let mut would_create =
            tried.map_err(|trouble| trouble.into_sink_error(&target.to_string()))?;
        let (table, rejects) = (&self.settings.table, &self.settings.reject_table);
        would_create.push(format!("a table for each kind of items, {table}"));
        would_create.push(format!("a table for items that do not fit, {rejects}"));
        Ok(SinkCheck { would_create })
    }
}

/// Sink of one shard in the tables of its resource.
pub struct SqlSink {
    database: Arc<Database>,
    settings: SqlSettings,
    plan: Plan,
    ready: Ready,
    /// Number of items that the server takes in time, as far as it is known. It is between one and the setting.
    max_items: usize,
}

#[async_trait]
impl Sink for SqlSink {
    async fn write(&mut self, _first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let items = self.first_transaction(items);
        if items.is_empty() {
            return Ok(Written::default());
        }
        for record in items {
            // Items of an earlier version of the plugin may be of a kind that the present one has not.
            if !self.plan.kinds.contains_key(&record.schema) {
                self.know(&record.schema, None);
            }
        }
        let written = Box::pin(self.try_write(items)).await;
        match written {
            Ok(()) => {
                let step = self.settings.batch_items.div_ceil(GROWTH);
                self.max_items = (self.max_items + step).min(self.settings.batch_items);
                Ok(Written::all(items, None))
            }
            Err(trouble) => {
                if trouble.cause == Cause::Slow {
                    self.max_items = (items.len() / 2).max(1);
                }
                Err(trouble.into_sink_error(&self.database.target.to_string()))
            }
        }
    }

    /// Transactions that are given up are rolled back, or were committed as a whole. All items come again.
    fn is_cancel_safe(&self) -> bool {
        true
    }

    fn gathering(&self) -> Gathering {
        Gathering {
            max_items: self.settings.batch_items,
            n_bytes: self.settings.batch_bytes,
            max_wait: self.settings.max_wait,
        }
    }
}

impl SqlSink {
    /// Adds a kind of items.
    fn know(&mut self, name: &str, schema: Option<&Schema>) {
        let key = self.settings.keys.get(name).cloned().unwrap_or_default();
        let mut kind = Kind::new(
            self.plan.dialect,
            &self.settings.table,
            &self.plan.resource.name,
            name,
            schema,
            key,
        );
        if kind.table.name == self.plan.rejects.name {
            kind.table.name = kind.table.name.apart();
        }
        self.plan.kinds.insert(name.to_owned(), kind);
    }

    /// Writes items whose kinds are known.
    async fn try_write(&mut self, items: &[ItemRecord]) -> Result<(), Trouble> {
        let turn = self.database.turn().await?;
        let batch = Batch::new(&mut self.plan, &mut self.ready, items);
        write(&self.database, &self.plan, &mut self.ready, &batch, turn).await
    }

    /// Returns the first items, as many as one transaction takes.
    fn first_transaction<'i>(&self, items: &'i [ItemRecord]) -> &'i [ItemRecord] {
        let mut n_bytes = 0;
        let fitting = items.iter().take(self.max_items);
        let n_items = fitting.take_while(|record| {
            let is_first = n_bytes == 0;
            n_bytes += record.item.get().len() as u64;
            is_first || n_bytes <= self.settings.batch_bytes
        });
        &items[..n_items.count()]
    }
}

/// Writes a batch. Conflicts with other transactions, changes of tables and connections that were closed while they were
/// idle are tried again at once, because they are over by then. Each attempt needs a turn; the caller has the first one.
async fn write(
    database: &Database,
    plan: &Plan,
    ready: &mut Ready,
    batch: &Batch<'_>,
    first_turn: SemaphorePermit<'_>,
) -> Result<(), Trouble> {
    let mut first_turn = Some(first_turn);
    let mut backoff = Backoff::new(WAITS.0, WAITS.1);
    let mut n_failed = 0;
    let mut was_silent = false;
    loop {
        let turn = match first_turn.take() {
            Some(turn) => turn,
            None => database.turn().await?,
        };
        let mut lent = database.lend().await?;
        let attempt = async {
            batch.write(plan, &mut lent.connection, ready).await?;
            match lent.connection.is_in_place().await {
                true => Ok(()),
                false => Err(Trouble::told(
                    Cause::Changed,
                    "the file was removed or replaced while rows were written to it".to_owned(),
                )),
            }
        };
        let (trouble, is_silent) = match tokio::time::timeout(database.timeout, attempt).await {
            Ok(Ok(())) => {
                database.give_back(lent);
                return Ok(());
            }
            Ok(Err(trouble)) => (trouble, false),
            Err(_elapsed) => {
                let detail = format!(
                    "the database did not take items within {:?}; look for locks and load there, or give it a longer timeout",
                    database.timeout
                );
                (Trouble::told(Cause::Slow, detail), true)
            }
        };
        // The tables may be others when the server is back.
        ready.clear();
        n_failed += 1;
        match trouble.cause {
            _ if n_failed >= ATTEMPTS => return Err(trouble),
            Cause::Away if !lent.is_new => database.forget_idle(),
            // The connection may be dead, and the server not slow at all.
            Cause::Slow if is_silent && !was_silent && !lent.is_new => {
                was_silent = true;
                database.forget_idle();
            }
            Cause::Conflict | Cause::Changed | Cause::NoValue => {
                // Its transaction may have locks.
                database.close(lent.connection).await;
                drop(turn);
                tokio::time::sleep(backoff.next_delay()).await;
            }
            _ => return Err(trouble),
        }
    }
}
