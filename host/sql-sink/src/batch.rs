//! Batches: rows of several tables that are written in one transaction.
//!
//! If a row does not fit, the transaction is rolled back, and each half of its rows is written in a transaction of its own,
//! until those that do not fit are alone. They go to the table of rejected items. The version of an item is in the transaction
//! of its row, and is not kept if the row does not fit. This finds a row whatever the moment at
//! which the server looks at its constraints, which may be the end of the transaction. If the work ends halfway, the
//! caller gives all items again, and those that are there stay as they are.

use std::collections::{BTreeMap, HashMap};

use crawler_model::crawl::ItemRecord;

use crate::columns::{Kind, Table};
use crate::connection::{Connection, Value};
use crate::dialect::Dialect;
use crate::history::Version;
use crate::names::Identifier;
use crate::rows::{Resource, Row, layers};
use crate::table::prepare;
use crate::trouble::{Cause, Trouble};

/// Largest number of parameters of a statement. SQLite takes 32 766, the others twice as many.
const PARAMETERS_MAX: usize = 10_000;
/// Size of the values of a statement, in bytes, at which the next statement begins.
const STATEMENT_BYTES: u64 = 1 << 20;
/// Largest number of versions that one statement ends. It compares each row that it finds with all of them.
const ENDED_MAX: usize = 64;

/// Kinds of items of a resource, and where they go.
pub(crate) struct Plan {
    pub(crate) dialect: Dialect,
    pub(crate) resource: Resource,
    pub(crate) kinds: BTreeMap<String, Kind>,
    pub(crate) rejects: Table,
}

/// Kinds whose tables were looked at, and were not seen to change since, each with the columns of fields that its items
/// no longer have.
pub(crate) type Ready = HashMap<String, Vec<String>>;

/// Items of one write, as rows.
pub(crate) struct Batch<'i> {
    items: &'i [ItemRecord],
    /// Rows that may be in one statement, with their kind.
    rows: Vec<(&'i str, Vec<Row>)>,
    /// Places of items that are no rows, with the reasons.
    unfit: Vec<(usize, String)>,
}

/// Rows of one transaction, in the order in which they are written.
type Part<'r> = Vec<(&'r str, &'r [Row])>;

impl<'i> Batch<'i> {
    /// Makes rows of items, all of whose kinds the plan has. A kind whose items have no value for a column that takes no
    /// NULL is not ready any more.
    pub(crate) fn new(plan: &mut Plan, ready: &mut Ready, items: &'i [ItemRecord]) -> Self {
        let mut rows: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
        let mut unfit = Vec::new();
        for (place, record) in items.iter().enumerate() {
            let kind = plan.kinds.get_mut(&record.schema);
            let kind = kind.expect("the caller has added the kinds of all items");
            match Row::new(plan.dialect, &plan.resource, kind, record, place) {
                Ok(row) => {
                    if kind.allow_nulls(&row.values) {
                        ready.remove(&record.schema);
                    }
                    rows.entry(&record.schema).or_default().push(row);
                }
                Err(reason) => unfit.push((place, reason)),
            }
        }
        let rows = rows.into_iter().flat_map(|(kind, rows)| {
            let layers = layers(rows).into_iter();
            layers.map(move |rows| (kind, rows))
        });
        Self {
            items,
            rows: rows.collect(),
            unfit,
        }
    }

    /// Writes all rows, and returns the number of items that are among the rejected ones. After an error the connection has
    /// to be closed.
    pub(crate) async fn write(
        &self,
        plan: &Plan,
        connection: &mut Connection,
        ready: &mut Ready,
    ) -> Result<u64, Trouble> {
        let mut kinds = self.rows.iter();
        let is_fresh = kinds.all(|(kind, _)| !ready.contains_key(*kind));
        for (kind, _) in &self.rows {
            if !ready.contains_key(*kind) {
                let Kind { table, history, .. } = &plan.kinds[*kind];
                let stale = prepare(connection, plan.dialect, table).await?;
                if let Some(history) = history {
                    prepare(connection, plan.dialect, history).await?;
                }
                ready.insert((*kind).to_owned(), stale);
            }
        }
        let mut unfit = self.unfit.clone();
        let all = self.rows.iter();
        let mut waiting: Vec<Part<'_>> = vec![all.map(|(kind, rows)| (*kind, &rows[..])).collect()];
        while let Some(part) = waiting.pop() {
            let n_rows: usize = part.iter().map(|(_, rows)| rows.len()).sum();
            if n_rows == 0 {
                continue;
            }
            let mut transaction = Transaction::begin(plan.dialect, connection).await?;
            match transaction.write(plan, ready, &part).await {
                Ok(()) => {}
                // A table that was looked at right now demands no value that rows may lack, so it is not the table's demand.
                Err(trouble)
                    if trouble.cause == Cause::Unfit
                        || (trouble.cause == Cause::NoValue && is_fresh) =>
                {
                    transaction.roll_back().await;
                    match &part[..] {
                        [(_, [row])] => unfit.push((row.item, trouble.reason())),
                        _ => waiting.extend(halves(part, n_rows)),
                    }
                }
                Err(trouble) => return Err(trouble),
            }
        }
        self.keep_rejects(plan, connection, &unfit).await?;
        Ok(unfit.len() as u64)
    }

    async fn keep_rejects(
        &self,
        plan: &Plan,
        connection: &mut Connection,
        unfit: &[(usize, String)],
    ) -> Result<(), Trouble> {
        let Some((place, reason)) = unfit.first() else {
            return Ok(());
        };
        let rows = unfit.iter().map(|(place, reason)| {
            let record = &self.items[*place];
            let table: &Identifier = &plan.kinds[&record.schema].table.name;
            Row::reject(plan.dialect, &plan.resource, table, record, reason)
        });
        let mut rows: Vec<Row> = rows.collect();
        rows.sort_by(|one, other| one.key.cmp(&other.key));
        // The table is made by those who have rejected items.
        prepare(connection, plan.dialect, &plan.rejects).await?;
        let mut transaction = Transaction::begin(plan.dialect, connection).await?;
        let rows: Vec<&Row> = rows.iter().collect();
        transaction.insert(&plan.rejects, &[], &rows).await?;
        transaction.commit().await?;
        tracing::warn!(
            n_items = unfit.len(),
            table = plan.rejects.name.as_str(),
            url = self.items[*place].url,
            reason,
            "items that do not fit their table are among the rejected ones"
        );
        Ok(())
    }
}

/// Returns the halves of a part with several rows, the second one first.
fn halves(part: Part<'_>, n_rows: usize) -> [Part<'_>; 2] {
    let mut n_left = n_rows / 2;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (kind, rows) in part {
        let (head, tail) = rows.split_at(n_left.min(rows.len()));
        n_left -= head.len();
        for (half, rows) in [(&mut first, head), (&mut second, tail)] {
            if !rows.is_empty() {
                half.push((kind, rows));
            }
        }
    }
    [second, first]
}

/// Connection within a transaction.
struct Transaction<'c> {
    dialect: Dialect,
    connection: &'c mut Connection,
}

impl<'c> Transaction<'c> {
    async fn begin(dialect: Dialect, connection: &'c mut Connection) -> Result<Self, Trouble> {
        let mut transaction = Self {
            dialect,
            connection,
        };
        transaction.run(dialect.begin()).await?;
        Ok(transaction)
    }

    async fn write(&mut self, plan: &Plan, ready: &Ready, part: &Part<'_>) -> Result<(), Trouble> {
        for (kind, rows) in part {
            let Kind { table, history, .. } = &plan.kinds[*kind];
            let filled = rows.iter().filter(|row| !row.values.is_empty());
            let filled: Vec<&Row> = filled.collect();
            self.insert(table, &ready[*kind], &filled).await?;
            if let Some(history) = history {
                self.keep_versions(history, rows).await?;
            }
        }
        self.commit().await
    }

    /// Ends the versions that rows follow or end, and begins those that rows begin. An item has one row here at most.
    async fn keep_versions(&mut self, history: &Table, rows: &[Row]) -> Result<(), Trouble> {
        let versions = rows.iter().filter_map(|row| row.version.as_ref());
        let mut versions: Vec<&Version> = versions.collect();
        // Writers that take items in one order seldom wait for each other in a circle. The server ends such a wait, and the
        // write is tried again.
        versions.sort_by_key(|version| version.key());
        for ended in versions.chunks(ENDED_MAX) {
            let (sql, values) = self.dialect.end_versions(history, ended);
            let done = self.connection.execute(&sql, &values).await;
            done.map_err(|error| Trouble::of(self.dialect.cause(&error), error))?;
        }
        let begun = versions.iter().filter_map(|version| version.row.as_deref());
        let begun: Vec<&Row> = begun.collect();
        self.insert(history, &[], &begun).await
    }

    async fn commit(&mut self) -> Result<(), Trouble> {
        self.run("COMMIT").await
    }

    /// Ends a transaction that has failed, unless the server has ended it. If the connection is lost, the next transaction
    /// tells.
    async fn roll_back(&mut self) {
        if let Err(error) = self.connection.run("ROLLBACK").await {
            tracing::debug!(%error, "the server has ended a transaction by itself");
        }
    }

    async fn run(&mut self, sql: &str) -> Result<(), Trouble> {
        let done = self.connection.run(sql).await;
        done.map_err(|error| Trouble::of(self.dialect.cause(&error), error))
    }

    /// Writes rows in as few statements as their bounds allow. Columns in `stale` are emptied.
    async fn insert(
        &mut self,
        table: &Table,
        stale: &[String],
        rows: &[&Row],
    ) -> Result<(), Trouble> {
        // Names and parameters come in addition.
        let n_bytes = STATEMENT_BYTES.min(self.connection.max_statement / 2);
        for rows in statements(table, rows, n_bytes) {
            let sql = self.dialect.insert(table, stale, rows.len());
            let values: Vec<&Value> = rows.iter().flat_map(|row| &row.values).collect();
            let n_bytes: u64 = rows.iter().map(|row| row.n_bytes()).sum();
            let n_bytes = n_bytes + sql.len() as u64;
            let max_bytes = self.connection.max_statement;
            if n_bytes > max_bytes {
                let detail = format!(
                    "an item takes a statement of {n_bytes} bytes, and the server takes {max_bytes}; raise max_allowed_packet there"
                );
                return Err(Trouble::told(Cause::TooLarge, detail));
            }
            let done = self.connection.execute(&sql, &values).await;
            done.map_err(|error| Trouble::of(self.dialect.cause(&error), error))?;
        }
        Ok(())
    }
}

/// Returns the rows of each statement.
fn statements<'r, 'p>(table: &Table, rows: &'p [&'r Row], max_bytes: u64) -> Vec<&'p [&'r Row]> {
    let max_rows = (PARAMETERS_MAX / table.columns.len()).max(1);
    let mut statements = Vec::new();
    let (mut start, mut n_bytes) = (0, 0);
    for (place, row) in rows.iter().enumerate() {
        let size = row.n_bytes();
        let is_full = place - start >= max_rows || n_bytes + size > max_bytes;
        if place > start && is_full {
            statements.push(&rows[start..place]);
            (start, n_bytes) = (place, 0);
        }
        n_bytes += size;
    }
    if start < rows.len() {
        statements.push(&rows[start..]);
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::tests::{record, resource};

    fn row(kind: &Kind, n_bytes: usize) -> Row {
        let json = format!(r#"{{"a":"{}"}}"#, "x".repeat(n_bytes));
        let record = record("k", 1, 7, &json);
        Row::new(Dialect::Sqlite, &resource(), kind, &record, 0).unwrap()
    }

    fn thing() -> Kind {
        let template = "{kind}".parse().unwrap();
        Kind::new(Dialect::Sqlite, &template, "books", "thing", None, vec![])
    }

    #[test]
    fn statements_end_at_their_bounds() {
        let kind = thing();
        let lengths = |rows: &[Row]| -> Vec<usize> {
            let rows: Vec<&Row> = rows.iter().collect();
            let statements = statements(&kind.table, &rows, STATEMENT_BYTES);
            statements.iter().map(|rows| rows.len()).collect()
        };
        assert_eq!(lengths(&[]), [0; 0]);
        let max_rows = PARAMETERS_MAX / kind.table.columns.len();
        let small: Vec<Row> = (0..max_rows + 5).map(|_| row(&kind, 1)).collect();
        assert_eq!(lengths(&small), [max_rows, 5]);
        let sizes = [5, 2 << 20, 600 << 10, 300 << 10, 300 << 10];
        let large = sizes.map(|n_bytes| row(&kind, n_bytes));
        assert_eq!(lengths(&large), [1, 1, 2, 1]);
    }

    #[test]
    fn halves_have_all_rows_in_order() {
        let kind = thing();
        let rows: Vec<Row> = (0..7).map(|_| row(&kind, 1)).collect();
        let part = vec![("a", &rows[..2]), ("b", &rows[2..5]), ("c", &rows[5..])];
        let lengths = |part: &Part<'_>| -> Vec<(String, usize)> {
            let lengths = part
                .iter()
                .map(|(kind, rows)| ((*kind).to_owned(), rows.len()));
            lengths.collect()
        };
        let of = |kind: &str, n: usize| (kind.to_owned(), n);
        let [second, first] = halves(part, 7);
        assert_eq!(lengths(&first), [of("a", 2), of("b", 1)]);
        assert_eq!(lengths(&second), [of("b", 2), of("c", 2)]);
        let [second, first] = halves(second[..1].to_vec(), 2);
        assert_eq!(lengths(&first), [of("b", 1)]);
        assert_eq!(lengths(&second), [of("b", 1)]);
    }
}
