//! Looks at tables: how each server tells of columns and unique indices, and which of their types hold which values.

use super::Dialect;
use crate::columns::{ColumnType, Table};

/// Statements that look at a table. Each has one parameter, the table, and gives texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Looks {
    /// Name, type, whole type, `true` if a row has to give a value, `true` if the sink has made the column for a field, and
    /// `true` if it has made that take no NULL, for each column.
    pub(crate) columns: &'static str,
    /// A row for each unique index on the key alone, of all rows.
    pub(crate) keys: String,
    /// Names that an index cannot have, without a parameter.
    pub(crate) taken: Option<&'static str>,
}

impl Dialect {
    /// Returns true if a column whose type the server calls so holds values of this type.
    pub(crate) fn accepts(self, kind: ColumnType, found: &str) -> bool {
        let accepted: &[&str] = match (self, kind) {
            (Self::Sqlite, ColumnType::Boolean) => &["boolean", "bool"],
            (Self::Sqlite, ColumnType::Integer) => &["integer", "int", "bigint"],
            (Self::Sqlite, ColumnType::Number) => &["real", "double", "float"],
            (Self::Sqlite, ColumnType::Json) => &["json text"],
            (Self::Sqlite, _) => &["text"],
            (Self::Postgres, ColumnType::Boolean) => &["boolean"],
            (Self::Postgres, ColumnType::Integer) => &["bigint"],
            (Self::Postgres, ColumnType::Number) => &["double precision"],
            (Self::Postgres, ColumnType::Json) => &["jsonb", "json"],
            (Self::Postgres, ColumnType::Time) => &["timestamp with time zone"],
            (Self::Postgres, _) => &["text", "character varying"],
            (Self::MySql, ColumnType::Boolean) => &["tinyint"],
            (Self::MySql, ColumnType::Integer) => &["bigint"],
            (Self::MySql, ColumnType::Number) => &["double"],
            (Self::MySql, ColumnType::Json) => &["json"],
            (Self::MySql, ColumnType::Time) => &["datetime"],
            (Self::MySql, ColumnType::Key) => &["varchar"],
            (Self::MySql, _) => &["longtext", "mediumtext", "text", "varchar"],
        };
        accepted.contains(&found.to_lowercase().as_str())
    }

    /// Returns the table, as the statements of [`Dialect::looks`] take it.
    pub(crate) fn looked_at(self, table: &Table) -> String {
        match self {
            Self::Postgres => self.name(&table.name),
            Self::Sqlite | Self::MySql => table.name.as_str().to_owned(),
        }
    }

    /// Returns the statements that look at a table. Those of [`Dialect::forget_marks`] are run before them.
    pub(crate) fn looks(self, table: &Table) -> Looks {
        let on_key = |sql: &str| sql.replace("'_key'", &format!("'{}'", table.key));
        match self {
            Self::Sqlite => Looks {
                columns: r#"SELECT p.name, p.type, p.type, CASE WHEN p."notnull" = 1 AND p.dflt_value IS NULL THEN 'true' ELSE 'false' END, CASE WHEN EXISTS (SELECT 1 FROM crawler_columns AS c WHERE c."table" = ?1 AND c."column" = p.name) THEN 'true' ELSE 'false' END, 'false' FROM pragma_table_info(?1) AS p ORDER BY p.cid"#,
                // A column that is an expression has no name.
                keys: on_key(
                    r#"SELECT l.name FROM pragma_index_list(?) AS l WHERE l."unique" = 1 AND l.partial = 0 AND (SELECT COUNT(*) = 1 AND MAX(i.name) = '_key' FROM pragma_index_info(l.name) AS i)"#,
                ),
                taken: Some(
                    "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL",
                ),
            },
            Self::Postgres => Looks {
                columns: "SELECT attname::text, format_type(atttypid, NULL)::text, format_type(atttypid, atttypmod)::text, (attnotnull AND NOT atthasdef AND attidentity = '')::text, COALESCE(col_description(attrelid, attnum) IN ('crawler', 'crawler required'), false)::text, COALESCE(col_description(attrelid, attnum) = 'crawler required', false)::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                // Further columns of an index that are only included do not count.
                keys: on_key(
                    "SELECT a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] WHERE i.indrelid = to_regclass($1) AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = 1 AND a.attname = '_key'",
                ),
                taken: None,
            },
            Self::MySql => Looks {
                columns: "SELECT CAST(column_name AS CHAR), CAST(IF(column_comment IN ('crawler json', 'crawler json required'), 'json', data_type) AS CHAR), CAST(IF(column_comment IN ('crawler json', 'crawler json required'), 'json', CONCAT(column_type, COALESCE(CONCAT(' CHARACTER SET ', character_set_name, ' COLLATE ', collation_name), ''))) AS CHAR), IF(is_nullable = 'NO' AND column_default IS NULL AND extra NOT LIKE '%auto_increment%' AND extra NOT LIKE '%GENERATED%', 'true', 'false'), IF(column_comment IN ('crawler', 'crawler required', 'crawler json', 'crawler json required'), 'true', 'false'), IF(column_comment IN ('crawler required', 'crawler json required'), 'true', 'false') FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ? ORDER BY ordinal_position",
                // A column that is an expression has no name, and counts all the same.
                keys: on_key(
                    "SELECT CAST(index_name AS CHAR) FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? AND non_unique = 0 GROUP BY index_name HAVING COUNT(*) = 1 AND MAX(column_name) = '_key' AND MAX(sub_part) IS NULL",
                ),
                taken: None,
            },
        }
    }
}
