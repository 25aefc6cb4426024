//! URL of a database: which server it names, and how the connection is protected.

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use sqlx::ConnectOptions as _;
use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use url::{Host, Url};

use crate::dialect::Dialect;

/// Parameters that a URL of PostgreSQL may have. Each has one spelling, so that none of them is there twice.
const OF_POSTGRES: [&str; 8] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "host",
    "options",
    "options[search_path]",
    "application_name",
];
/// Parameters that a URL of MySQL may have.
const OF_MYSQL: [&str; 5] = ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "socket"];
/// Port of PostgreSQL, if the URL has none.
const POSTGRES_PORT: u16 = 5432;
/// User of a server, if the URL has none.
const USER: &str = "crawler";
/// Parameters that the driver takes from the environment, and that nothing can take from it again.
const OF_ENVIRONMENT: [&str; 3] = ["sslrootcert", "sslcert", "sslkey"];

/// Parameters that name a file.
const FILES: [&str; 6] = [
    "sslrootcert",
    "sslcert",
    "sslkey",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
];

/// Database that items go to.
#[derive(Clone)]
pub struct Target {
    pub(crate) server: Server,
    /// Name for messages: the URL without user, password and parameters.
    label: String,
    /// Files with certificates and keys that a connection reads.
    files: Vec<PathBuf>,
}

/// Way to a server.
#[derive(Clone)]
pub(crate) enum Server {
    /// File, and the options that open it.
    Sqlite(PathBuf, Box<SqliteConnectOptions>),
    Postgres(Box<PgConnectOptions>),
    MySql(Box<MySqlConnectOptions>),
}

/// Fault of the URL of a database. The message does not repeat the URL, which may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The URL is not one.
    #[error("the URL of the database cannot be read")]
    NoUrl(#[from] url::ParseError),
    /// There is no such kind of database.
    #[error(
        "a database has a URL that begins with sqlite:, postgres:// or mysql://, and this one begins with {0:?}"
    )]
    Scheme(String),
    /// The URL names no database.
    #[error("the URL names no database: it ends with its name, as in postgres://HOST/DATABASE")]
    NoDatabase,
    /// The URL names no server.
    #[error("the URL names no host: write postgres://HOST/DATABASE, or mysql://HOST/DATABASE")]
    NoHost,
    /// The URL names no file.
    #[error(
        "the URL names no file: write sqlite:///PATH, or sqlite:PATH for one below the folder of the config file"
    )]
    NoFile,
    /// The URL has a parameter that nothing would look at.
    #[error("the URL has a parameter {0:?}; there are: {1}")]
    Parameter(String, String),
    /// The URL has a parameter twice.
    #[error("the URL has the parameter {0:?} twice")]
    Repeated(String),
    /// The connection would not be protected.
    #[error(
        "a password for MySQL is protected by TLS only: leave out ssl-mode={0}, or name a local socket with socket=PATH"
    )]
    Unprotected(String),
    /// A file is named from a folder that nobody can know.
    #[error("the file that {0} names needs a path from the root, such as /etc/crawler/ca.pem")]
    RelativeFile(String),
    /// A variable of the environment would change the connection.
    #[error(
        "a variable of PostgreSQL in the environment, such as PGSSLROOTCERT or PGOPTIONS, sets {0}: unset it, and write {0} into the URL if it is needed"
    )]
    Environment(&'static str),
    /// A parameter has a value that the driver refuses.
    #[error("the URL of the database has a value that cannot be used")]
    Value(#[source] sqlx::Error),
}

impl Target {
    /// Parses the URL of a database. `password` takes the place of one in the URL. A path of SQLite that is not absolute
    /// is below `folder`; other files have absolute paths.
    ///
    /// Without a mode of TLS in the URL, a server on another machine has to show a certificate for its name. MySQL is
    /// reached over TLS or a local socket only.
    ///
    /// # Errors
    ///
    /// The URL names no database that items can go to.
    pub fn parse(url: &str, password: Option<&str>, folder: &Path) -> Result<Self, TargetError> {
        if let Some(rest) = url.strip_prefix("sqlite:") {
            return sqlite(rest, folder);
        }
        let url = Url::parse(url)?;
        let is_postgres = match url.scheme() {
            "postgres" | "postgresql" => true,
            "mysql" | "mariadb" => false,
            other => return Err(TargetError::Scheme(other.to_owned())),
        };
        if url.path().trim_start_matches('/').is_empty() {
            return Err(TargetError::NoDatabase);
        }
        let known: &[&str] = if is_postgres { &OF_POSTGRES } else { &OF_MYSQL };
        check_parameters(&url, known)?;
        let named = url.host_str().is_some_and(|host| !host.is_empty());
        if !named && parameter(&url, "host").is_none() {
            return Err(TargetError::NoHost);
        }
        let server = match is_postgres {
            true => postgres(&url, password)?,
            false => mysql(&url, password)?,
        };
        let files = files(&url)?;
        let mut shown = url;
        // Neither can fail for a URL with a host, and one without has nothing to hide there.
        let _ = shown.set_password(None);
        let _ = shown.set_username("");
        shown.set_query(None);
        let label = shown.into();
        Ok(Self {
            server,
            label,
            files,
        })
    }

    /// Returns the database in a file, which is opened with these options.
    pub(crate) fn of_file(path: &Path, options: SqliteConnectOptions) -> Self {
        Self {
            label: format!("sqlite:{}", path.display()),
            server: Server::Sqlite(path.to_owned(), Box::new(options)),
            files: Vec::new(),
        }
    }

    /// Returns the file of SQLite, which has other files beside it while it is open.
    pub fn file(&self) -> Option<&Path> {
        match &self.server {
            Server::Sqlite(path, _) => Some(path),
            Server::Postgres(_) | Server::MySql(_) => None,
        }
    }

    /// Returns the files with certificates and keys that each new connection reads.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match &self.server {
            Server::Sqlite(..) => Dialect::Sqlite,
            Server::Postgres(_) => Dialect::Postgres,
            Server::MySql(_) => Dialect::MySql,
        }
    }
}

/// Writes the URL without user, password and parameters.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// Writes the URL without user, password and parameters.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.label).finish()
    }
}

fn sqlite(rest: &str, folder: &Path) -> Result<Target, TargetError> {
    let path = rest.strip_prefix("//").unwrap_or(rest);
    let path = percent_encoding::percent_decode_str(path).decode_utf8();
    let path = path.map_err(|_| TargetError::NoFile)?;
    if path.is_empty() || path.ends_with('/') || path.contains([':', '?', '\0']) {
        return Err(TargetError::NoFile);
    }
    let path = folder.join(path.as_ref());
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        // Readers do not hold up the sink.
        .journal_mode(SqliteJournalMode::Wal)
        // A transaction is on the disk when it is committed.
        .synchronous(SqliteSynchronous::Full)
        // A confined process can make no temporary file, which SQLite wants from some hundred rows a statement on.
        .pragma("temp_store", "memory")
        .disable_statement_logging();
    Ok(Target::of_file(&path, options))
}

fn postgres(url: &Url, password: Option<&str>) -> Result<Server, TargetError> {
    let mut options = PgConnectOptions::from_url(url).map_err(TargetError::Value)?;
    options = options.port(url.port().unwrap_or(POSTGRES_PORT));
    let host = parameter(url, "host");
    if let Some(address) = ipv6(url).filter(|_| host.is_none()) {
        options = options.host(&address);
    }
    if parameter(url, "application_name").is_none() {
        options = options.application_name("crawler");
    }
    if url.username().is_empty() {
        options = options.username(USER);
    }
    // Neither ~/.pgpass nor a variable of the environment decides: a service has others than the shell of its operator.
    if password.is_some() || url.password().is_none() {
        options = options.password(password.unwrap_or_default());
    }
    refuse_environment(url, PgConnectOptions::new_without_pgpass())?;
    let host = host.or_else(|| url.host_str().map(str::to_owned));
    if parameter(url, "sslmode").is_none() {
        options = options.ssl_mode(match host.is_some_and(|host| is_local(&host)) {
            true => PgSslMode::Prefer,
            false => PgSslMode::VerifyFull,
        });
    }
    let options = options.disable_statement_logging();
    Ok(Server::Postgres(Box::new(options)))
}

/// Refuses parameters that the driver takes from the environment. `environment` are its options without a URL.
fn refuse_environment(url: &Url, environment: PgConnectOptions) -> Result<(), TargetError> {
    // It joins these to those of the URL.
    if environment.get_options().is_some() {
        return Err(TargetError::Environment("options"));
    }
    // The text cannot be made with each user and host.
    let taken = environment.username(USER).host(USER).to_url_lossy();
    let is_taken =
        |name: &&str| parameter(&taken, name).is_some() && parameter(url, name).is_none();
    match OF_ENVIRONMENT.into_iter().find(is_taken) {
        Some(name) => Err(TargetError::Environment(name)),
        None => Ok(()),
    }
}

fn mysql(url: &Url, password: Option<&str>) -> Result<Server, TargetError> {
    let mut options = MySqlConnectOptions::from_url(url).map_err(TargetError::Value)?;
    if let Some(address) = ipv6(url) {
        options = options.host(&address);
    }
    if url.username().is_empty() {
        options = options.username(USER);
    }
    if let Some(password) = password {
        options = options.password(password);
    }
    match (parameter(url, "ssl-mode"), parameter(url, "socket")) {
        (None, Some(_)) => options = options.ssl_mode(MySqlSslMode::Disabled),
        (Some(_), Some(_)) => {}
        (None, None) => options = options.ssl_mode(MySqlSslMode::VerifyIdentity),
        (Some(mode), None) => {
            let lower = mode.to_ascii_lowercase();
            if matches!(lower.as_str(), "disabled" | "preferred") {
                return Err(TargetError::Unprotected(mode));
            }
        }
    }
    let options = options.disable_statement_logging();
    Ok(Server::MySql(Box::new(options)))
}

/// Refuses parameters that nothing would look at, and those of which only one would count.
fn check_parameters(url: &Url, known: &[&str]) -> Result<(), TargetError> {
    let mut names = HashSet::new();
    for (name, _) in url.query_pairs() {
        if !known.contains(&name.as_ref()) {
            return Err(TargetError::Parameter(name.into_owned(), known.join(", ")));
        }
        if !names.insert(name.clone()) {
            return Err(TargetError::Repeated(name.into_owned()));
        }
    }
    Ok(())
}

/// Returns the files that parameters name.
fn files(url: &Url) -> Result<Vec<PathBuf>, TargetError> {
    let named = url.query_pairs();
    let named = named.filter(|(name, _)| FILES.contains(&name.as_ref()));
    let paths = named.map(|(name, path)| match path.starts_with('/') {
        true => Ok(PathBuf::from(path.into_owned())),
        false => Err(TargetError::RelativeFile(name.into_owned())),
    });
    paths.collect()
}

fn parameter(url: &Url, wanted: &str) -> Option<String> {
    let mut pairs = url.query_pairs();
    let found = pairs.find(|(name, _)| name == wanted);
    found.map(|(_, value)| value.into_owned())
}

/// Returns the address that a URL has in brackets, which drivers take without them.
fn ipv6(url: &Url) -> Option<String> {
    match url.host()? {
        Host::Ipv6(address) => Some(address.to_string()),
        Host::Domain(_) | Host::Ipv4(_) => None,
    }
}

/// True for a folder of sockets, and for an address that does not leave the machine.
fn is_local(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_folder = host.starts_with('/') || host.to_ascii_lowercase().starts_with("%2f");
    let address: Option<IpAddr> = host.parse().ok();
    is_folder || host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Target, TargetError> {
        Target::parse(url, Some("secret"), Path::new("/data"))
    }

    fn refused(url: &str) -> String {
        let error = parse(url).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        error.to_string()
    }

    #[test]
    fn a_relative_file_is_below_the_folder() {
        for (url, expected) in [
            ("sqlite:items.db", "/data/items.db"),
            ("sqlite://items.db", "/data/items.db"),
            ("sqlite:///srv/my%20items.db", "/srv/my items.db"),
            ("sqlite:/srv/items.db", "/srv/items.db"),
        ] {
            let target = parse(url).unwrap();
            assert_eq!(target.to_string(), format!("sqlite:{expected}"));
            assert_eq!(target.dialect(), Dialect::Sqlite);
            assert_eq!(target.file(), Some(Path::new(expected)));
        }
        for url in [
            "sqlite:",
            "sqlite::memory:",
            "sqlite:a.db?mode=ro",
            "sqlite:folder/",
        ] {
            assert!(refused(url).contains("names no file"), "{url}");
        }
    }

    #[test]
    fn messages_show_neither_user_nor_password() {
        let target = parse("postgres://user:secret@db.test:5433/items?sslmode=require").unwrap();
        assert_eq!(target.to_string(), "postgres://db.test:5433/items");
        assert_eq!(
            format!("{target:?}"),
            "Target(\"postgres://db.test:5433/items\")"
        );
    }

    #[test]
    fn files_of_certificates_are_known() {
        let url = "postgres://db.test/items?sslrootcert=/etc/ca.pem&sslkey=/etc/a%20b.key";
        let target = parse(url).unwrap();
        assert_eq!(
            target.files(),
            ["/etc/ca.pem", "/etc/a b.key"].map(PathBuf::from)
        );
        let target = parse("mysql://db.test/items?ssl-ca=/etc/ca.pem").unwrap();
        assert_eq!(target.files(), [PathBuf::from("/etc/ca.pem")]);
        assert_eq!(target.file(), None);
        let error = refused("mysql://db.test/items?ssl-ca=secret.pem");
        assert!(error.starts_with("the file that ssl-ca names"), "{error}");
    }

    #[test]
    fn servers_elsewhere_have_to_show_their_certificate() {
        let mode = |url: &str| match parse(url).unwrap().server {
            Server::Postgres(options) => format!("{:?}", options.get_ssl_mode()),
            Server::MySql(options) => format!("{:?}", options.get_ssl_mode()),
            Server::Sqlite(..) => String::new(),
        };
        for (url, expected) in [
            ("postgres://db.test/items", "VerifyFull"),
            ("postgres://db.test/items?sslmode=require", "Require"),
            ("mysql://db.test/items", "VerifyIdentity"),
            ("mysql://localhost/items", "VerifyIdentity"),
            ("mysql://db.test/items?ssl-mode=required", "Required"),
            (
                "mysql://localhost/items?socket=/run/mysqld.sock",
                "Disabled",
            ),
        ] {
            assert_eq!(mode(url), expected, "{url}");
        }
        for url in [
            "postgres://127.0.0.1/items",
            "postgres://[::1]/items",
            "postgres://%2Frun%2Fpg/items",
        ] {
            assert_eq!(mode(url), "Prefer", "{url}");
        }
    }

    #[test]
    fn addresses_lose_their_brackets() {
        let host = |url: &str| match parse(url).unwrap().server {
            Server::Postgres(options) => (options.get_host().to_owned(), options.get_port()),
            Server::MySql(options) => (options.get_host().to_owned(), options.get_port()),
            Server::Sqlite(..) => (String::new(), 0),
        };
        for (url, name, port) in [
            ("postgres://[::1]/items", "::1", 5432),
            ("postgres://[2001:db8::7]:5433/items", "2001:db8::7", 5433),
            ("mysql://[::1]:3307/items", "::1", 3307),
            ("postgres://db.test/items", "db.test", 5432),
            // TLS is chosen for the parameter.
            ("postgres://[::1]/items?host=db.test", "db.test", 5432),
        ] {
            assert_eq!(host(url), (name.to_owned(), port), "{url}");
        }
        let folder = match parse("postgres:///items?host=/run/pg").unwrap().server {
            Server::Postgres(options) => options.get_socket().cloned(),
            Server::MySql(_) | Server::Sqlite(..) => None,
        };
        assert_eq!(folder, Some(PathBuf::from("/run/pg")));
    }

    #[test]
    fn the_environment_does_not_change_a_connection() {
        let user = |url: &str| match parse(url).unwrap().server {
            Server::Postgres(options) => options.get_username().to_owned(),
            Server::MySql(options) => options.get_username().to_owned(),
            Server::Sqlite(..) => String::new(),
        };
        for scheme in ["postgres", "mysql"] {
            assert_eq!(user(&format!("{scheme}://db.test/items")), "crawler");
            let named = format!("{scheme}://somebody@db.test/items");
            assert_eq!(user(&named), "somebody");
        }
        // The options of the driver are as if variables had set them.
        let refused = |url: &str, environment: PgConnectOptions| {
            let refused = refuse_environment(&Url::parse(url).unwrap(), environment).err();
            refused.map(|error| error.to_string()).unwrap_or_default()
        };
        let bare = "postgres://db.test/items";
        let certificate = || PgConnectOptions::new_without_pgpass().ssl_root_cert("/etc/other.pem");
        let why = refused(bare, certificate().host("::1").username("a/b"));
        assert!(why.contains("sets sslrootcert: unset it"), "{why}");
        let named = "postgres://db.test/items?sslrootcert=/etc/ca.pem";
        assert_eq!(refused(named, certificate()), "");
        let options = PgConnectOptions::new_without_pgpass().options([("search_path", "mine")]);
        let why = refused("postgres://db.test/items?options[search_path]=a", options);
        assert!(why.contains("sets options: unset it"), "{why}");
    }

    #[test]
    fn a_password_of_mysql_is_never_sent_without_protection() {
        for mode in ["disabled", "PREFERRED"] {
            let error = refused(&format!("mysql://u@127.0.0.1/items?ssl-mode={mode}"));
            assert!(error.contains("is protected by TLS only"), "{error}");
        }
    }

    #[test]
    fn other_urls_are_refused() {
        for (url, why) in [
            ("items.db", "cannot be read"),
            ("oracle://db.test/items", "begins with \"oracle\""),
            ("postgres://db.test", "names no database"),
            (
                "postgres://db.test/items?password=secret",
                "has a parameter \"password\"",
            ),
            ("mysql://db.test/items?pool=3", "has a parameter \"pool\""),
            ("mysql://db.test/items?ssl-mode=often", "has a value"),
            (
                "mysql://db.test/items?sslmode=required",
                "has a parameter \"sslmode\"",
            ),
            (
                "mysql://db.test/items?ssl-mode=verify_ca&ssl-mode=disabled",
                "has the parameter \"ssl-mode\" twice",
            ),
            ("postgres:///items", "names no host"),
            ("mysql:///items?socket=/run/s", "names no host"),
        ] {
            assert!(refused(url).contains(why), "{url}: {}", refused(url));
        }
    }
}
