//! Databases that declared sinks write to. The URL has no password: the table names the place of one, so that the file
//! can be shown to others.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use super::super::fetch::values::{some_bytes, time};
use super::super::secret::SecretRef;
use super::SinkTable;
use crawler_process::telemetry;
use crawler_sql_sink::{SqlSettings, TableTemplate, Target};

/// Database that items go to.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseConfig {
    /// URL with a user, which is not shown.
    url: String,
    /// Folder of the config file, at which the relative path of a file of SQLite starts.
    folder: PathBuf,
    password: Option<SecretRef>,
    /// URL without user and parameters.
    shown: String,
    /// File of SQLite.
    file: Option<PathBuf>,
    /// Files with certificates and keys.
    certificates: Vec<PathBuf>,
    /// Settings of tables and writes.
    pub settings: SqlSettings,
}

impl DatabaseConfig {
    /// Returns the database, with the password that the table names; an error is a sentence for the user.
    pub fn target(&self) -> Result<Target, String> {
        let password = self.password.as_ref().map(SecretRef::read).transpose()?;
        let target = Target::parse(&self.url, password.as_deref(), &self.folder);
        target.map_err(|error| telemetry::chain(&error))
    }

    /// Returns the URL without user and parameters.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns true if both are one database, as far as their URLs tell.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.place() == other.place()
    }

    /// Returns true if both have the same tables, as far as their URLs tell.
    pub(super) fn has_tables_of(&self, other: &Self) -> bool {
        self.is_same(other) && self.settings.table == other.settings.table
    }

    /// Returns what tells apart databases: a file; host, port, path, and parameters that name another place.
    fn place(&self) -> String {
        if let Some(file) = &self.file {
            // Its components tell nothing of `.` and of a second `/`.
            let file: PathBuf = file.components().collect();
            return format!("sqlite {}", file.display());
        }
        let Ok(url) = Url::parse(&self.url) else {
            return self.shown.clone();
        };
        let (kind, port) = kind_and_port(&url);
        let mut places: Vec<_> = url.query_pairs().collect();
        places.retain(|(name, _)| {
            matches!(
                &**name,
                "host" | "socket" | "options" | "options[search_path]"
            )
        });
        places.sort();
        format!(
            "{kind} {:?} {port} {} {places:?}",
            url.host_str(),
            url.path()
        )
    }

    /// Returns the address of the server as `HOST:PORT`, if the URL has one.
    pub(super) fn server(&self) -> Option<String> {
        if self.file.is_some() {
            return None;
        }
        let url = Url::parse(&self.url).ok()?;
        let host = url.host_str().filter(|host| !host.is_empty())?;
        Some(format!("{host}:{}", kind_and_port(&url).1))
    }

    /// Returns the place of the password, in words.
    pub fn password_place(&self) -> Option<String> {
        self.password.as_ref().map(SecretRef::place)
    }

    /// Returns the folder that SQLite writes to: files beside that of the database come and go.
    pub fn folder(&self) -> Option<&Path> {
        match self.file.as_ref()?.parent()? {
            current if current.as_os_str().is_empty() => Some(Path::new(".")),
            folder => Some(folder),
        }
    }

    /// Returns the files that are read: the one with the password, certificates and keys.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let password = self.password.as_ref().and_then(SecretRef::file);
        password
            .into_iter()
            .chain(self.certificates.iter().map(PathBuf::as_path))
    }
}

/// Returns the kind of a server by the scheme of its URL, and its port.
fn kind_and_port(url: &Url) -> (&'static str, u16) {
    let (kind, usual) = match url.scheme() {
        "postgres" | "postgresql" => ("postgres", 5432),
        _ => ("mysql", 3306),
    };
    (kind, url.port().unwrap_or(usual))
}

impl fmt::Debug for DatabaseConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseConfig")
            .field("shown", &self.shown)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Parses the table of a database; an error is a sentence for the user.
pub(super) fn database(
    url: &Url,
    table: SinkTable,
    folder: &Path,
) -> Result<DatabaseConfig, String> {
    if url.password().is_some() {
        let why = "its url has no password; name a file with password-file, or a variable with password-env";
        return Err(why.to_owned());
    }
    let (file, variable) = (table.password_file.clone(), table.password_env.clone());
    let password = SecretRef::of("password", file, variable, folder)?;
    let target = Target::parse(&table.url, None, folder);
    let target = target.map_err(|error| telemetry::chain(&error))?;
    if target.file().is_some() {
        for (key, is_set) in [
            ("password-file", table.password_file.is_some()),
            ("password-env", table.password_env.is_some()),
            ("connections", table.connections.is_some()),
        ] {
            if is_set {
                return Err(format!(
                    "{key} is for a server; SQLite has no password, and one connection"
                ));
            }
        }
    }
    Ok(DatabaseConfig {
        folder: folder.to_owned(),
        password,
        shown: target.to_string(),
        file: target.file().map(Path::to_owned),
        certificates: target.files().to_owned(),
        url: table.url.clone(),
        settings: settings(table)?,
    })
}

fn settings(table: SinkTable) -> Result<SqlSettings, String> {
    let mut default = SqlSettings::default();
    if table.has_changes() {
        default.table = SqlSettings::change_table();
    }
    let template = |key: &str, text: Option<String>, default: TableTemplate| match text {
        Some(text) => {
            let parsed = text.parse::<TableTemplate>();
            parsed.map_err(|error| format!("{key} {error}"))
        }
        None => Ok(default),
    };
    let a_time = |key: &str, text: Option<String>, default: Duration| match text {
        Some(text) => time(key, &text),
        None => Ok(default),
    };
    let keys = table.keys.unwrap_or_default();
    if let Some((kind, _)) = keys.iter().find(|(_, fields)| fields.is_empty()) {
        return Err(format!("keys of {kind} are empty; leave them out"));
    }
    let batch_bytes = table
        .batch_bytes
        .map(|text| some_bytes("batch-bytes", &text));
    let settings = SqlSettings {
        table: template("table", table.table, default.table)?,
        reject_table: template("reject-table", table.reject_table, default.reject_table)?,
        others: default.others,
        keys,
        history: table.history.unwrap_or(default.history),
        batch_items: table.batch_items.unwrap_or(default.batch_items),
        batch_bytes: match batch_bytes.transpose()? {
            Some(n_bytes) => n_bytes as u64,
            None => default.batch_bytes,
        },
        max_wait: a_time("max-wait", table.max_wait, default.max_wait)?,
        timeout: a_time("timeout", table.timeout, default.timeout)?,
        connections: table.connections.unwrap_or(default.connections),
    };
    settings.check().map_err(|error| error.to_string())?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;
    use super::super::{SinkConfig, SinkPlace};
    use super::*;

    fn database(toml: &str) -> DatabaseConfig {
        let config: SinkConfig = parse("db", toml).unwrap();
        match config.place {
            SinkPlace::Database(database) => *database,
            other => panic!("{other:?} is no database"),
        }
    }

    #[test]
    fn a_url_is_enough_for_a_database() {
        let books = database("url = 'postgres://user@db.test/items'");
        assert_eq!(books.settings, SqlSettings::default());
        assert_eq!(books.shown(), "postgres://db.test/items");
        assert_eq!(books.password_place(), None);
        assert_eq!((books.folder(), books.files().count()), (None, 0));
        let file = database("url = 'sqlite:items/all.db'");
        assert_eq!(file.folder(), Some(Path::new("/etc/items")));
        assert_eq!(
            file.target().unwrap().to_string(),
            "sqlite:/etc/items/all.db"
        );
        let here = DatabaseConfig {
            file: Some("items.db".into()),
            ..file
        };
        assert_eq!(here.folder(), Some(Path::new(".")));
        let mysql = "url = 'mysql://u@localhost/items?socket=/run/mysqld/mysqld.sock'";
        assert_eq!(database(mysql).shown(), "mysql://localhost/items");
    }

    #[test]
    fn every_key_of_a_database_has_its_place() {
        let books = database(
            "url = 'postgres://user@db.test/items?sslrootcert=/etc/ca.pem'\n\
             password-file = 'secret'\ntable = 'all_{kind}'\nreject-table = 'bad'\n\
             fields = ['number=isbn']\nkeys = { book = ['isbn'] }\nbatch-items = 7\nbatch-bytes = '1MiB'\nmax-wait = '0s'\n\
             timeout = '5s'\nconnections = 2",
        );
        let settings = &books.settings;
        assert_eq!(settings.table.to_string(), "all_{kind}");
        assert_eq!(settings.reject_table.to_string(), "bad");
        assert_eq!(settings.keys["book"], ["isbn"]);
        assert_eq!((settings.batch_items, settings.batch_bytes), (7, 1 << 20));
        let seconds = |n| Duration::from_secs(n);
        assert_eq!(
            (settings.max_wait, settings.timeout),
            (seconds(0), seconds(5))
        );
        assert_eq!(settings.connections, 2);
        let files: Vec<&Path> = books.files().collect();
        assert_eq!(files, ["/etc/secret", "/etc/ca.pem"].map(Path::new));
    }

    #[test]
    fn neither_user_nor_password_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "T0KEN\n").unwrap();
        let place = secret.display().to_string();
        let books = database(&format!(
            "url = 'postgres://somebody@db.test/items'\npassword-file = '{place}'"
        ));
        assert_eq!(books.shown(), "postgres://db.test/items");
        assert_eq!(books.password_place(), Some(place));
        let target = books.target().unwrap();
        for text in [format!("{books:?}"), format!("{target:?} {target}")] {
            assert!(!text.contains("T0KEN"), "{text}");
            assert!(!text.contains("somebody"), "{text}");
        }
        std::fs::remove_file(&secret).unwrap();
        let error = books.target().unwrap_err();
        assert!(error.starts_with("cannot read "), "{error}");
    }

    #[test]
    fn what_makes_no_sense_of_a_database_is_named() {
        let with = |line: &str| format!("url = 'postgres://db.test/items'\n{line}");
        let sqlite = |line: &str| format!("url = 'sqlite:items.db'\n{line}");
        for (text, why) in [
            (
                "url = 'postgres://u:T0KEN@db.test/items'".to_owned(),
                "its url has no password; name a file with password-file, or a variable with password-env",
            ),
            (
                "url = 'mysql://db.test'".to_owned(),
                "the URL names no database: it ends with its name, as in postgres://HOST/DATABASE",
            ),
            (
                "url = 'mysql://db.test/items?ssl-mode=disabled'".to_owned(),
                "a password for MySQL is protected by TLS only: leave out ssl-mode=disabled, or name a local socket with socket=PATH",
            ),
            (
                "url = 'sqlite::memory:'".to_owned(),
                "the URL names no file: write sqlite:///PATH, or sqlite:PATH for one below the folder of the config file",
            ),
            (
                with("password-file = 'a'\npassword-env = 'B'"),
                "password-file and password-env exclude each other",
            ),
            (
                sqlite("password-env = 'B'"),
                "password-env is for a server; SQLite has no password, and one connection",
            ),
            (
                sqlite("connections = 2"),
                "connections is for a server; SQLite has no password, and one connection",
            ),
            (
                with("max-file = '1MiB'"),
                "max-file is for a folder or a bucket, and its url names a database",
            ),
            (
                with("table = '{run}'"),
                "table \"{run}\" is no template of a table: it has letters from a to z, digits, _, {resource} and {kind}, such as {resource}_{kind}",
            ),
            (
                with("keys = { book = [] }"),
                "keys of book are empty; leave them out",
            ),
            (
                with("keys = { book = ['isbn'] }\nfields = ['isbn=number', 'title']"),
                "keys of book have the field \"isbn\", which is none of its fields; add it there, or leave it out",
            ),
            (
                with("batch-items = 0"),
                "batch-items is 0; it goes from 1 to 10000",
            ),
            (
                with("batch-bytes = '65MiB'"),
                "batch-bytes is 65MiB; it goes from 1 to 64MiB",
            ),
            (
                with("max-wait = 'soon'"),
                "max-wait takes a time like 30s or 5m, not \"soon\"",
            ),
            (
                with("timeout = '1ms'"),
                "timeout is 1ms; it goes from 1s to 10m",
            ),
        ] {
            let expected = format!("sink db: {why}");
            assert_eq!(parse("db", &text), Err(expected), "{text}");
        }
        let folder = "url = 'file:///srv'\nbatch-items = 3";
        let expected = "sink db: batch-items is for a database, a stream or a webhook, and its url names a folder";
        assert_eq!(parse("db", folder), Err(expected.to_owned()));
    }
}
