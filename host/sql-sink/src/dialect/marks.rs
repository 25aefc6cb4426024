//! Marks of columns that the sink has made: comments, or rows of a table of SQLite. All other columns are those of somebody
//! else, and stay as they are.

use super::Dialect;
use crate::columns::{Column, Table};
use crate::names::Identifier;

/// Statement that makes the table in which SQLite keeps the columns of the sink: it has no comments of columns. If a column
/// gets another name, it is one of the sink no more.
const OUR_COLUMNS: &str = r#"CREATE TABLE IF NOT EXISTS crawler_columns ("table" TEXT NOT NULL COLLATE NOCASE, "column" TEXT NOT NULL COLLATE NOCASE, PRIMARY KEY ("table", "column"))"#;

impl Dialect {
    /// Returns the statement that marks a column as one of the sink, if its definition does not.
    pub(super) fn mark(self, table: &Table, column: &Column) -> Option<String> {
        match self {
            Self::Sqlite => {
                let (table, column) = (Self::text(&table.name), Self::text(&column.name));
                Some(format!(
                    "INSERT OR IGNORE INTO crawler_columns VALUES ({table}, {column})"
                ))
            }
            Self::Postgres => {
                let required = if column.is_nullable { "" } else { " required" };
                let (table, column) = (self.name(&table.name), self.name(&column.name));
                Some(format!(
                    "COMMENT ON COLUMN {table}.{column} IS 'crawler{required}'"
                ))
            }
            Self::MySql => None,
        }
    }

    /// Returns the statements that forget marks of columns that are gone or have another name, so that a later column of
    /// somebody else with such a name is not one of the sink.
    pub(crate) fn forget_marks(self, table: &Table) -> Vec<String> {
        if self != Self::Sqlite {
            return Vec::new();
        }
        let table = Self::text(&table.name);
        let forget = format!(
            r#"DELETE FROM crawler_columns WHERE "table" = {table} AND "column" NOT IN (SELECT name FROM pragma_table_info({table}))"#
        );
        vec![OUR_COLUMNS.to_owned(), forget]
    }

    /// Returns the text that lets a column take NULL, or `None` if the server has none. `whole_type` is the type as the
    /// server itself has told it. A column of the sink stays one, and one of somebody else does not become one.
    pub(crate) fn allow_null(
        self,
        table: &Table,
        column: &str,
        whole_type: &str,
        is_ours: bool,
    ) -> Option<String> {
        let (table, column) = (self.name(&table.name), self.quote(column));
        match self {
            Self::Sqlite => None,
            Self::Postgres => {
                let change = format!("ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL");
                Some(match is_ours {
                    true => format!("{change}; COMMENT ON COLUMN {table}.{column} IS 'crawler'"),
                    false => change,
                })
            }
            Self::MySql => {
                let is_json = whole_type.eq_ignore_ascii_case("json");
                let comment = match (is_ours, is_json) {
                    (false, _) => "",
                    (true, false) => " COMMENT 'crawler'",
                    (true, true) => " COMMENT 'crawler json'",
                };
                Some(format!(
                    "ALTER TABLE {table} MODIFY COLUMN {column} {whole_type} NULL{comment}"
                ))
            }
        }
    }

    /// Returns a name as a text of SQLite.
    fn text(name: &Identifier) -> String {
        format!("'{}'", name.as_str().replace('\'', "''"))
    }
}
