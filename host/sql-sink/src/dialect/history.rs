//! Statements on tables of versions.

use super::Dialect;
use crate::columns::{ColumnType, Table};
use crate::connection::Value;
use crate::history::Version;

impl Dialect {
    /// Returns the statement that ends the earlier versions of items, each at the time of the given one, with its values. A
    /// version that has ended stays as it is, and so does one that is not earlier, so that the order of writers is of no
    /// matter.
    pub(crate) fn end_versions<'v>(
        self,
        table: &Table,
        versions: &[&'v Version],
    ) -> (String, Vec<&'v Value>) {
        let name = self.name(&table.name);
        let [key, valid_to] = ["_key", "_valid_to"].map(|name| self.quote(name));
        let [operand, version] = ["_key", "_version"].map(|name| self.compared(name));
        let mut values = Vec::new();
        let mut bind = |kind: ColumnType, value: &'v Value| {
            values.push(value);
            self.parameter(kind, values.len())
        };
        let mut choice = |kind: ColumnType, of: fn(&Version) -> &Value| {
            let cases = versions.iter().copied().map(|version| {
                let when = bind(ColumnType::Key, &version.key);
                format!("WHEN {when} THEN {}", bind(kind, of(version)))
            });
            let cases: Vec<String> = cases.collect();
            format!("CASE {operand} {} END", cases.join(" "))
        };
        let ends = choice(ColumnType::Time, |version| &version.at);
        let limits = choice(ColumnType::Key, |version| &version.version);
        let all = versions.iter().copied();
        let keys = all.map(|version| bind(ColumnType::Key, &version.key));
        let keys: Vec<String> = keys.collect();
        let keys = keys.join(", ");
        // Parameters without numbers are bound in the order in which they stand.
        let sql = format!(
            "UPDATE {name} SET {valid_to} = {ends} WHERE {valid_to} IS NULL AND {version} < {limits} AND {key} IN ({keys})"
        );
        (sql, values)
    }

    /// Returns the name of a column of keys as it is compared with an expression. MySQL refuses to make the expression ASCII,
    /// as the column is, because it cannot know that it would lose nothing.
    fn compared(self, column: &str) -> String {
        let name = self.quote(column);
        match self {
            Self::Sqlite | Self::Postgres => name,
            Self::MySql => format!("CONVERT({name} USING utf8mb4) COLLATE utf8mb4_bin"),
        }
    }
}
