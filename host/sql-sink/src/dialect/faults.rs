//! Causes of errors, by the codes of each server.

use sqlx::Error;
use sqlx::mysql::MySqlDatabaseError;

use super::Dialect;
use crate::trouble::Cause;

impl Dialect {
    /// Returns the cause of an error, as far as it decides what follows.
    pub(crate) fn cause(self, error: &Error) -> Cause {
        match error {
            // The driver has no RSA, by which it would protect a password where there is no TLS.
            Error::Configuration(why) if self == Self::MySql && why.to_string().contains("RSA") => {
                Cause::Unprotected
            }
            Error::Io(_) | Error::Tls(_) | Error::Protocol(_) | Error::WorkerCrashed => Cause::Away,
            Error::Database(error) => match self {
                Self::Sqlite => of_sqlite(error.code().as_deref().unwrap_or(""), error.message()),
                Self::Postgres => of_postgres(error.code().as_deref().unwrap_or("")),
                Self::MySql => match error.try_downcast_ref::<MySqlDatabaseError>() {
                    Some(error) => of_mysql(error.number(), error.code().unwrap_or("")),
                    None => Cause::Other,
                },
            },
            _ => Cause::Other,
        }
    }

    /// Returns the cause of an error of a statement that makes or changes a table. No row is at fault there.
    pub(crate) fn cause_of_change(self, error: &Error) -> Cause {
        let code = error.as_database_error().and_then(|error| error.code());
        of_change(self.cause(error), code.as_deref().unwrap_or(""))
    }
}

fn of_change(cause: Cause, code: &str) -> Cause {
    match (cause, code) {
        // Two workers add the same entry to the catalogue of PostgreSQL.
        (Cause::Unfit, "23505") => Cause::Changed,
        (Cause::Unfit, _) => Cause::Refused,
        (cause, _) => cause,
    }
}

/// Result codes: <https://www.sqlite.org/rescode.html>. The lowest byte has the primary one.
fn of_sqlite(code: &str, message: &str) -> Cause {
    /// Row without a value that its column demands.
    const NOT_NULL: i32 = 1299;
    /// Transaction that has read before another one wrote.
    const BUSY_SNAPSHOT: i32 = 517;
    let code: i32 = code.parse().unwrap_or(0);
    match code {
        NOT_NULL => return Cause::NoValue,
        BUSY_SNAPSHOT => return Cause::Conflict,
        _ => {}
    }
    match code & 0xff {
        // An unknown table or column has no code of its own.
        1 if message.starts_with("no such table")
            || message.contains("no column named")
            || message.starts_with("no such column")
            || message.starts_with("duplicate column name") =>
        {
            Cause::Changed
        }
        3 | 23 => Cause::Denied,
        // It has waited for the lock already.
        5 | 6 => Cause::Slow,
        8 => Cause::ReadOnly,
        10 | 14 => Cause::Away,
        13 => Cause::Full,
        17 => Cause::Changed,
        18..=20 => Cause::Unfit,
        _ => Cause::Other,
    }
}

/// Codes: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn of_postgres(code: &str) -> Cause {
    match code {
        "40001" | "40P01" => Cause::Conflict,
        "55P03" | "57014" => Cause::Slow,
        "25006" => Cause::ReadOnly,
        "53100" => Cause::Full,
        "53300" | "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => Cause::Away,
        "42501" | "3D000" => Cause::Denied,
        // Tables and columns that are not there or there already, and a key that is not unique.
        "42P01" | "42P07" | "42701" | "42703" | "42P10" | "42710" => Cause::Changed,
        "23502" => Cause::NoValue,
        // An error that a trigger has raised.
        "P0001" => Cause::Unfit,
        _ => match code.get(..2) {
            Some("08") => Cause::Away,
            Some("28") => Cause::Denied,
            // Values, constraints, and sizes of rows.
            Some("22" | "23" | "54") => Cause::Unfit,
            _ => Cause::Other,
        },
    }
}

/// Numbers: <https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html> and
/// <https://mariadb.com/kb/en/mariadb-error-code-reference/>.
fn of_mysql(number: u16, state: &str) -> Cause {
    match number {
        // Record changed, deadlock.
        1020 | 1213 => Cause::Conflict,
        // Waits for locks and times of statements.
        1205 | 1969 | 3024 => Cause::Slow,
        1290 | 1792 | 1836 => Cause::ReadOnly,
        1021 | 1114 => Cause::Full,
        1044 | 1045 | 1049 | 1142 | 1143 | 1227 | 1698 => Cause::Denied,
        // Too many connections, shutdown, and killed, idle or torn connections.
        1040
        | 1053
        | 1077..=1080
        | 1129
        | 1152
        | 1158..=1161
        | 1184
        | 1203
        | 1226
        | 1317
        | 1927
        | 3168
        | 3169
        | 4031 => Cause::Away,
        1153 => Cause::TooLarge,
        // Tables, columns and indices that are not there or there already.
        1050 | 1054 | 1060 | 1061 | 1146 => Cause::Changed,
        1048 | 1364 => Cause::NoValue,
        // Values that are cut off or not text, constraints, errors that a trigger has raised, and sizes of rows.
        1118 | 1265 | 1366 | 1644 | 3819 | 4025 => Cause::Unfit,
        _ => match state.get(..2) {
            Some("08") => Cause::Away,
            Some("40") => Cause::Conflict,
            Some("22" | "23") => Cause::Unfit,
            _ => Cause::Other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_tell_whether_a_row_or_the_server_is_at_fault() {
        for (code, cause) in [
            ("22021", Cause::Unfit),
            ("22P05", Cause::Unfit),
            ("23505", Cause::Unfit),
            ("23502", Cause::NoValue),
            ("42P07", Cause::Changed),
            ("54000", Cause::Unfit),
            ("40001", Cause::Conflict),
            ("40P01", Cause::Conflict),
            ("25006", Cause::ReadOnly),
            ("53100", Cause::Full),
            ("57P01", Cause::Away),
            ("08006", Cause::Away),
            ("28P01", Cause::Denied),
            ("42P01", Cause::Changed),
            ("57014", Cause::Slow),
            ("XX000", Cause::Other),
            ("", Cause::Other),
        ] {
            assert_eq!(of_postgres(code), cause, "{code}");
        }
        for (number, state, cause) in [
            (1213, "40001", Cause::Conflict),
            (1205, "HY000", Cause::Slow),
            (1062, "23000", Cause::Unfit),
            (1406, "22001", Cause::Unfit),
            (1366, "HY000", Cause::Unfit),
            (4025, "23000", Cause::Unfit),
            (1364, "HY000", Cause::NoValue),
            (1061, "42000", Cause::Changed),
            (1146, "42S02", Cause::Changed),
            (1153, "08S01", Cause::TooLarge),
            (1053, "08S01", Cause::Away),
            (1203, "42000", Cause::Away),
            (3169, "HY000", Cause::Away),
            (4031, "HY000", Cause::Away),
            (1290, "HY000", Cause::ReadOnly),
            (1114, "HY000", Cause::Full),
            (1045, "28000", Cause::Denied),
            (1105, "HY000", Cause::Other),
        ] {
            assert_eq!(of_mysql(number, state), cause, "{number}");
        }
        for (code, message, cause) in [
            ("5", "database is locked", Cause::Slow),
            ("517", "database is locked", Cause::Conflict),
            ("8", "attempt to write a readonly database", Cause::ReadOnly),
            ("13", "database or disk is full", Cause::Full),
            ("14", "unable to open database file", Cause::Away),
            ("1299", "NOT NULL constraint failed: t.c", Cause::NoValue),
            ("2067", "UNIQUE constraint failed: t.c", Cause::Unfit),
            ("18", "string or blob too big", Cause::Unfit),
            ("1", "no such table: t", Cause::Changed),
            ("1", "table t has no column named c", Cause::Changed),
            ("1", "near \"x\": syntax error", Cause::Other),
            ("11", "database disk image is malformed", Cause::Other),
        ] {
            assert_eq!(of_sqlite(code, message), cause, "{code}: {message}");
        }
    }

    #[test]
    fn a_change_that_can_never_be_made_is_refused() {
        assert_eq!(of_change(Cause::Unfit, "23505"), Cause::Changed);
        assert_eq!(of_change(Cause::Changed, "42P07"), Cause::Changed);
        assert_eq!(of_change(Cause::Unfit, "54011"), Cause::Refused);
        assert_eq!(of_change(Cause::Denied, "42501"), Cause::Denied);
    }

    #[test]
    fn a_torn_connection_is_no_fault_of_a_row() {
        let torn = Error::Io(std::io::ErrorKind::ConnectionReset.into());
        assert_eq!(Dialect::Postgres.cause(&torn), Cause::Away);
        assert_eq!(Dialect::MySql.cause(&Error::RowNotFound), Cause::Other);
    }

    #[test]
    fn a_login_that_needs_tls_is_told() {
        let refused = Error::Configuration("RSA auth backend disabled".into());
        assert_eq!(Dialect::MySql.cause(&refused), Cause::Unprotected);
        let other = Error::Configuration("something else".into());
        assert_eq!(Dialect::MySql.cause(&other), Cause::Other);
    }
}
