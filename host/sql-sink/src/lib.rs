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
//! settings    settings of a database, and their ranges
//! target      URL of a database
//! names       names of tables and columns
//! columns     tables as items need them
//! rows        items as rows
//! history     versions of items as rows
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
use crawler_sink::settings::SettingError;
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
mod history;
mod names;
mod rows;
mod settings;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod trouble;

pub use names::{TableTemplate, TemplateError};
pub use settings::{OtherSink, SqlSettings};
pub use target::{Target, TargetError};

/// Number of attempts of a write, with a little time between them, if other transactions or changes of tables are in its
/// way.
const ATTEMPTS: u32 = 6;
/// Part of its bound by which the number of items of a transaction grows after one that was in time.
const GROWTH: usize = 64;
/// First and largest wait between these attempts.
const WAITS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

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
            other_kinds: delivery.other_kinds.clone(),
            refusal: None,
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
        let kinds = match table.to_string().contains("{kind}") {
            true => "a table for each kind of items",
            false => "one table for all kinds of items",
        };
        would_create.push(format!("{kinds}, {table}"));
        if self.settings.history {
            let suffix = history::SUFFIX;
            would_create.push(format!("a table for their versions, {table}{suffix}"));
        }
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
    /// JSON schema of kinds that the plugin of the run does not declare, if they have one.
    other_kinds: Option<String>,
    /// Reason why no items are written, if a kind of them would share its table with another sink.
    refusal: Option<String>,
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
                let schema = self.other_kinds.clone().map(|json_schema| Schema {
                    name: record.schema.clone(),
                    json_schema,
                });
                self.know(&record.schema, schema.as_ref());
            }
        }
        if let Some(refusal) = &self.refusal {
            let trouble = Trouble::told(Cause::Refused, refusal.clone());
            return Err(trouble.into_sink_error(&self.database.target.to_string()));
        }
        let written = Box::pin(self.try_write(items)).await;
        match written {
            Ok(n_rejected) => {
                let step = self.settings.batch_items.div_ceil(GROWTH);
                self.max_items = (self.max_items + step).min(self.settings.batch_items);
                Ok(Written {
                    n_rejected,
                    ..Written::all(items, None)
                })
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
        if self.settings.history {
            kind = kind.with_history();
        }
        if let Some(refusal) = self.refusal_of(name, &kind) {
            self.refusal = Some(refusal);
        }
        if kind.table.name == self.plan.rejects.name {
            kind.table.name = kind.table.name.apart();
        }
        self.plan.kinds.insert(name.to_owned(), kind);
    }

    /// Returns the reason why nothing is written, if a table of this kind is that of somebody else.
    fn refusal_of(&self, name: &str, kind: &Kind) -> Option<String> {
        let resource = &self.plan.resource.name;
        let history = kind.history.as_ref().map(|table| &table.name);
        // One kind may have the name that another sink gives to the table of another one.
        let names: Vec<&str> = self.plan.kinds.keys().map(String::as_str).collect();
        let names = [&names[..], &[name]].concat();
        let own = kind.tables().map(|table| (table, &names[..]));
        let known = self.plan.kinds.values().flat_map(Kind::tables);
        let known = known.map(|table| (table, &names[names.len() - 1..]));
        for (table, kinds) in own.chain(known) {
            if let Some((owner, of)) = self.settings.owner(table, resource, kinds) {
                let table = table.as_str();
                return Some(format!(
                    "table {table} is that of sink {owner} for items of the kind {of:?}; give one of the sinks another template with table"
                ));
            }
        }
        let (other, table) = self.plan.kinds.iter().find_map(|(other, known)| {
            let known_history = known.history.as_ref().map(|table| &table.name);
            let table = match history {
                Some(history) if *history == known.table.name => history,
                _ if known_history == Some(&kind.table.name) => &kind.table.name,
                _ => return None,
            };
            Some((other, table.as_str()))
        })?;
        Some(format!(
            "table {table} would have items and versions, because there are the kinds {other:?} and {name:?}; give the sink another template with table"
        ))
    }

    /// Writes items whose kinds are known, and returns the number of rejected ones.
    async fn try_write(&mut self, items: &[ItemRecord]) -> Result<u64, Trouble> {
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

/// Writes a batch, and returns the number of rejected items. Conflicts with other transactions, changes of tables and
/// connections that were closed while they were idle are tried again at once, because they are over by then. Each attempt
/// needs a turn; the caller has the first one.
async fn write(
    database: &Database,
    plan: &Plan,
    ready: &mut Ready,
    batch: &Batch<'_>,
    first_turn: SemaphorePermit<'_>,
) -> Result<u64, Trouble> {
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
            let n_rejected = batch.write(plan, &mut lent.connection, ready).await?;
            match lent.connection.is_in_place().await {
                true => Ok(n_rejected),
                false => Err(Trouble::told(
                    Cause::Changed,
                    "the file was removed or replaced while rows were written to it".to_owned(),
                )),
            }
        };
        let (trouble, is_silent) = match tokio::time::timeout(database.timeout, attempt).await {
            Ok(Ok(n_rejected)) => {
                database.give_back(lent);
                return Ok(n_rejected);
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
