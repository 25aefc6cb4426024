//! Sinks of items that resources can name: the tables `[sink.NAME]` of the config file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde::Deserialize;
use url::Url;

use super::fetch::values::some_bytes;
use crawler_model::settings::SinkName;
use crawler_sink::feed::Feed;
use crawler_sink::lines::LineSettings;
use crawler_sink::selection::{Condition, FieldChoice, Selection, SelectionError};

mod database;
mod files;
mod keys;
mod place;
mod post;
mod stream;

pub use database::DatabaseConfig;
pub use files::FilesConfig;
use keys::Kind;
pub(super) use place::check_place;
pub use post::PostConfig;
pub use stream::StreamConfig;

/// Largest number of declared sinks.
const MAX_SINKS: usize = 32;
/// Smallest size of a file that may be set: with less there would be a file for each write.
const MIN_FILE: u64 = 64 << 10;

/// Values of the key `what`.
const ITEMS: &str = "items";
const CHANGES: &str = "changes";

/// A sink that resources can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkConfig {
    /// Name by which resources choose it.
    pub name: SinkName,
    /// Destination of its items.
    pub place: SinkPlace,
    /// Choice between items and their changes.
    pub feed: Feed,
    /// Items that it gets, and their fields.
    pub selection: Selection,
}

impl SinkConfig {
    /// Returns the fields by which rows of a kind are identified.
    pub fn keys(&self) -> BTreeMap<String, Vec<String>> {
        match &self.place {
            SinkPlace::Database(database) => database.settings.keys.clone(),
            SinkPlace::Folder { .. }
            | SinkPlace::Files(_)
            | SinkPlace::Stream(_)
            | SinkPlace::Post(_) => BTreeMap::new(),
        }
    }

    /// Returns a kind, and a field of its key that items do not have at the sink.
    fn missing_key(&self) -> Option<(String, String)> {
        let chosen = self.selection.fields();
        let is_missing = |field: &String| {
            !chosen.is_empty() && chosen.iter().all(|choice| choice.target() != field)
        };
        let mut keys = self.keys().into_iter();
        keys.find_map(|(kind, fields)| Some((kind, fields.into_iter().find(is_missing)?)))
    }
}

/// Destination of a declared sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkPlace {
    /// A folder of this machine, for files of JSON lines.
    Folder {
        /// Path of the folder. It exists, or is missing for a while.
        folder: PathBuf,
        /// Size in bytes beyond which the next file follows.
        max_file_bytes: u64,
    },
    /// Files in partitions, in a folder of this machine or in a bucket.
    Files(Box<FilesConfig>),
    /// Tables of a database.
    Database(Box<DatabaseConfig>),
    /// Streams of NATS JetStream.
    Stream(Box<StreamConfig>),
    /// URL that items are posted to.
    Post(Box<PostConfig>),
}

impl SinkPlace {
    /// Returns the kind of the sink, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            SinkPlace::Folder { .. } => "lines",
            SinkPlace::Files(files) => files.settings.format.as_str(),
            SinkPlace::Database(_) => "tables",
            SinkPlace::Stream(_) => "messages",
            SinkPlace::Post(_) => "posts",
        }
    }

    /// Returns the destination without secrets, as people read it.
    pub fn shown(&self) -> String {
        match self {
            SinkPlace::Folder { folder, .. } => folder.display().to_string(),
            SinkPlace::Files(files) => files.place.to_string(),
            SinkPlace::Database(database) => database.shown().to_owned(),
            SinkPlace::Stream(stream) => stream.shown().to_owned(),
            SinkPlace::Post(post) => post.shown(),
        }
    }

    /// Returns the folder of this machine that is for the files of this sink alone.
    pub fn own_folder(&self) -> Option<&Path> {
        match self {
            SinkPlace::Folder { folder, .. } => Some(folder),
            SinkPlace::Files(files) => files.folder(),
            SinkPlace::Database(_) | SinkPlace::Stream(_) | SinkPlace::Post(_) => None,
        }
    }

    /// Returns the folder of this machine that the sink writes to.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            SinkPlace::Folder { folder, .. } => Some(folder),
            SinkPlace::Files(files) => files.folder(),
            SinkPlace::Database(database) => database.folder(),
            SinkPlace::Stream(_) | SinkPlace::Post(_) => None,
        }
    }

    /// Returns the place of the secret that the sink has, in words such as "password from /etc/secret".
    pub fn secret_place(&self) -> Option<String> {
        match self {
            SinkPlace::Folder { .. } | SinkPlace::Files(_) => None,
            SinkPlace::Database(database) => {
                let place = database.password_place()?;
                Some(format!("password from {place}"))
            }
            SinkPlace::Stream(stream) => stream.secret_place(),
            SinkPlace::Post(post) => Some(post.secret_place()),
        }
    }

    /// Returns the address of the server that the items go to as `HOST:PORT`, if the settings name one.
    pub fn server(&self) -> Option<String> {
        match self {
            SinkPlace::Folder { .. } => None,
            SinkPlace::Files(files) => files.server(),
            SinkPlace::Database(database) => database.server(),
            SinkPlace::Stream(stream) => stream.server(),
            // It may share its address with websites, which crawls may reach.
            SinkPlace::Post(_) => None,
        }
    }

    /// Returns the files that the sink reads, such as the one with its password.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            SinkPlace::Folder { .. } => Vec::new(),
            SinkPlace::Files(files) => files.files(),
            SinkPlace::Database(database) => database.files().map(Path::to_owned).collect(),
            SinkPlace::Stream(stream) => stream.files().map(Path::to_owned).collect(),
            SinkPlace::Post(post) => post.secret_files().map(Path::to_owned).collect(),
        }
    }
}

/// Sink in the form of the file.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SinkTable {
    url: String,
    what: Option<String>,
    #[serde(default)]
    only: Vec<String>,
    #[serde(default)]
    fields: Vec<String>,
    max_file: Option<String>,
    format: Option<String>,
    partition: Option<String>,
    bucket: Option<toml::Table>,
    password_file: Option<PathBuf>,
    password_env: Option<String>,
    table: Option<String>,
    reject_table: Option<String>,
    keys: Option<BTreeMap<String, Vec<String>>>,
    history: Option<bool>,
    batch_items: Option<usize>,
    batch_bytes: Option<String>,
    max_wait: Option<String>,
    timeout: Option<String>,
    connections: Option<usize>,
    subject: Option<String>,
    reject_subject: Option<String>,
    token_file: Option<PathBuf>,
    token_env: Option<String>,
    creds_file: Option<PathBuf>,
    ca: Option<PathBuf>,
    secret_file: Option<PathBuf>,
    secret_env: Option<String>,
    previous_secret_file: Option<PathBuf>,
    previous_secret_env: Option<String>,
    #[serde(default)]
    allow_networks: Vec<IpNet>,
    max_retry_wait: Option<String>,
}

/// Refuses more sinks than a process has; an error is a sentence for the user.
pub(super) fn check_number<T>(tables: &BTreeMap<String, T>) -> Result<(), String> {
    match tables.len() {
        n if n > MAX_SINKS => Err(format!(
            "there are {n} sinks; at most {MAX_SINKS} are allowed"
        )),
        _ => Ok(()),
    }
}

impl SinkTable {
    /// Parses the table; an error is a sentence for the user.
    pub(super) fn into_config(self, name: &str, folder: &Path) -> Result<SinkConfig, String> {
        let sink: SinkName = name.parse().map_err(|_: String| misnamed(name))?;
        if sink.is_lines() {
            let why = "sink lines is the data root, which every process has; choose another name";
            return Err(why.to_owned());
        }
        let of_sink = |why: String| format!("sink {name}: {why}");
        let selection = selection(&self.only, &self.fields);
        let config = SinkConfig {
            name: sink,
            feed: self.feed().map_err(of_sink)?,
            selection: selection.map_err(|error| of_sink(error.to_string()))?,
            place: place(self, folder).map_err(of_sink)?,
        };
        match config.missing_key() {
            None => Ok(config),
            Some((kind, field)) => Err(of_sink(format!(
                "keys of {kind} have the field {field:?}, which is none of its fields; add it there, or leave it out"
            ))),
        }
    }
}

impl SinkTable {
    /// Returns what the sink gets; an error is the end of a sentence about it.
    fn feed(&self) -> Result<Feed, String> {
        let is_history = self.history == Some(true);
        match self.what.as_deref() {
            None | Some(ITEMS) if is_history => Ok(Feed::History),
            None | Some(ITEMS) => Ok(Feed::Items),
            Some(CHANGES) if is_history => Err(
                "history is that of items, and what = \"changes\" tells changes; leave out one of them, or declare two sinks".to_owned(),
            ),
            Some(CHANGES) if self.keys.is_some() => Err(
                "keys identify rows of items, and each change is a row of its own; leave out keys".to_owned(),
            ),
            Some(CHANGES) => Ok(Feed::Changes),
            Some(other) => Err(format!("what is \"items\" or \"changes\", not {other:?}")),
        }
    }

    /// Returns true if the sink gets changes in the place of items.
    fn has_changes(&self) -> bool {
        self.what.as_deref() == Some(CHANGES)
    }
}

/// Returns the message about a table whose name no sink can have.
fn misnamed(name: &str) -> String {
    let max = SinkName::MAX_BYTES;
    let shown = &name[..name.floor_char_boundary(max + 1)];
    format!("[sink.{shown}]: a name of a sink has 1 to {max} characters of a-z, 0-9, -, _ and .")
}

fn selection(only: &[String], fields: &[String]) -> Result<Selection, SelectionError> {
    let only = only.iter().map(|text| text.parse());
    let only: Vec<Condition> = only.collect::<Result<_, SelectionError>>()?;
    let fields = fields.iter().map(|text| text.parse());
    let fields: Vec<FieldChoice> = fields.collect::<Result<_, SelectionError>>()?;
    Selection::new(only, fields)
}

/// Parses the destination of a sink. Its URL is not quoted, because it may hold a secret.
fn place(table: SinkTable, folder: &Path) -> Result<SinkPlace, String> {
    let url = Url::parse(&table.url)
        .map_err(|error| format!("its url is no URL: {error}; that of a folder is file:///PATH"))?;
    let kind = Kind::of(url.scheme())?;
    keys::check(&table, kind)?;
    Ok(match kind {
        Kind::Folder if !files::is_wanted(&table)? => return lines(&url, table),
        Kind::Folder => SinkPlace::Files(Box::new(files::in_folder(&url, table)?)),
        Kind::Bucket => SinkPlace::Files(Box::new(files::in_bucket(&url, table, folder)?)),
        Kind::Database => SinkPlace::Database(Box::new(database::database(&url, table, folder)?)),
        Kind::Stream => SinkPlace::Stream(Box::new(stream::stream(table, folder)?)),
        Kind::Webhook => SinkPlace::Post(Box::new(post::post(url, table, folder)?)),
    })
}

/// Parses a sink of line files.
fn lines(url: &Url, table: SinkTable) -> Result<SinkPlace, String> {
    if table.max_wait.is_some() {
        let why = "max-wait is for a database, or for files with a partition; add partition, or leave it out";
        return Err(why.to_owned());
    }
    let default = LineSettings::default().max_file_bytes;
    let max_file = table.max_file.as_ref();
    let max_file = max_file.map(|text| max_file_bytes(text)).transpose()?;
    Ok(SinkPlace::Folder {
        folder: folder_of(url, &table.url)?,
        max_file_bytes: max_file.unwrap_or(default),
    })
}

/// Parses the URL of a folder, whose text tells forms apart that a parsed URL does not.
fn folder_of(url: &Url, text: &str) -> Result<PathBuf, String> {
    let has_path = text.starts_with("file:///");
    let is_plain = has_path && url.query().is_none() && url.fragment().is_none();
    let folder = url.to_file_path().ok().filter(|_| is_plain);
    let folder = folder.ok_or("its url is file:///, and the path of a folder")?;
    match folder.parent() {
        Some(_) => Ok(folder),
        None => Err("its url names /; name a folder in it".to_owned()),
    }
}

fn max_file_bytes(text: &str) -> Result<u64, String> {
    let n_bytes = some_bytes("max-file", text)? as u64;
    match n_bytes >= MIN_FILE {
        true => Ok(n_bytes),
        false => Err(format!("max-file is at least 64KiB, not {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn parse(name: &str, toml: &str) -> Result<SinkConfig, String> {
        let table = toml::from_str::<SinkTable>(toml);
        let table = table.map_err(|error| error.message().to_owned())?;
        table.into_config(name, Path::new("/etc"))
    }

    fn max_file_of(config: SinkConfig) -> u64 {
        match config.place {
            SinkPlace::Folder { max_file_bytes, .. } => max_file_bytes,
            other => panic!("{other:?} is no folder"),
        }
    }

    #[test]
    fn a_sink_gets_items_or_their_changes() {
        let feed = |text: &str| parse("out", text).map(|config| config.feed);
        let folder = |line: &str| format!("url = 'file:///srv'\n{line}");
        let database = |line: &str| format!("url = 'sqlite:items.db'\n{line}");
        assert_eq!(feed(&folder("")), Ok(Feed::Items));
        assert_eq!(feed(&folder("what = 'items'")), Ok(Feed::Items));
        assert_eq!(feed(&folder("what = 'changes'")), Ok(Feed::Changes));
        assert_eq!(feed(&database("history = false")), Ok(Feed::Items));
        assert_eq!(feed(&database("history = true")), Ok(Feed::History));
        for (text, why) in [
            (
                folder("what = 'all'"),
                "what is \"items\" or \"changes\", not \"all\"",
            ),
            (
                folder("history = true"),
                "history is for a database, and its url names a folder",
            ),
            (
                database("what = 'changes'\nhistory = true"),
                "history is that of items, and what = \"changes\" tells changes; leave out one of them, or declare two sinks",
            ),
            (
                database("what = 'changes'\nkeys = { book = ['isbn'] }"),
                "keys identify rows of items, and each change is a row of its own; leave out keys",
            ),
        ] {
            assert_eq!(feed(&text), Err(format!("sink out: {why}")), "{text}");
        }
    }

    #[test]
    fn changes_have_tables_and_subjects_of_their_own() {
        let place = |text: &str| {
            let config = parse("out", &format!("{text}\nwhat = 'changes'"));
            config.unwrap().place
        };
        let SinkPlace::Database(database) = place("url = 'sqlite:items.db'") else {
            panic!("it is a database");
        };
        let table = database.settings.table.to_string();
        assert_eq!(table, "{resource}_{kind}_changes");
        let SinkPlace::Stream(stream) = place("url = 'nats://n.test'") else {
            panic!("it is a stream");
        };
        let subject = stream.settings.subject.to_string();
        assert_eq!(subject, "crawler.{resource}.{kind}.changes");
    }

    #[test]
    fn what_is_not_said_is_as_usual() {
        let config = parse("out", "url = 'file:///srv/new%20items'").unwrap();
        let folder = Path::new("/srv/new items");
        assert_eq!(config.name.as_str(), "out");
        assert_eq!(config.place.folder(), Some(folder));
        assert_eq!(config.place.shown(), "/srv/new items");
        assert_eq!(config.selection, Selection::default());
        let default = LineSettings::default().max_file_bytes;
        assert_eq!(max_file_of(config), default);
        let text = "url = 'file:///srv'\nonly = ['kind=book']\nfields = ['title', 'price=preis']\nmax-file = '1MiB'";
        let config = parse("out", text).unwrap();
        assert_eq!(config.selection.only().len(), 1);
        assert_eq!(config.selection.fields()[1].to_string(), "price=preis");
        assert_eq!(max_file_of(config), 1 << 20);
    }

    #[test]
    fn the_server_of_a_sink_is_known_by_its_address() {
        let server = |toml: &str| parse("out", toml).unwrap().place.server();
        assert_eq!(server("url = 'file:///srv'"), None);
        assert_eq!(server("url = 'sqlite://srv/items.db'"), None);
        let postgres = "url = 'postgres://user@10.0.0.7/items'";
        assert_eq!(server(postgres).as_deref(), Some("10.0.0.7:5432"));
        let maria = "url = 'mysql://user@db.test:3307/items'";
        assert_eq!(server(maria).as_deref(), Some("db.test:3307"));
        let nats = "url = 'nats://10.0.0.9'\nsubject = 'items.{kind}'";
        assert_eq!(server(nats).as_deref(), Some("10.0.0.9:4222"));
        let bucket = "url = 's3://items/shop'\nbucket = { endpoint = 'http://10.0.0.8:9000' }";
        assert_eq!(server(bucket).as_deref(), Some("10.0.0.8:9000"));
    }

    #[test]
    fn what_makes_no_sense_is_named_without_the_url() {
        let folder = "url = 'file:///srv'";
        let with = |line: &str| format!("{folder}\n{line}");
        for (text, why) in [
            (
                "url = 'T0KEN'".to_owned(),
                "sink out: its url is no URL: relative URL without a base; that of a folder is file:///PATH",
            ),
            (
                "url = 'ftp://user:T0KEN@a.test/'".to_owned(),
                "sink out: its url begins with file:///, s3://, gs://, az://, sqlite:, postgres://, mysql://, nats://, tls:// or https://, not with ftp:",
            ),
            (
                "url = 'file:srv'".to_owned(),
                "sink out: its url is file:///, and the path of a folder",
            ),
            (
                "url = 'file:/srv'".to_owned(),
                "sink out: its url is file:///, and the path of a folder",
            ),
            (
                "url = 'file:///srv/..'".to_owned(),
                "sink out: its url names /; name a folder in it",
            ),
            (
                "url = 'file://other.test/srv'".to_owned(),
                "sink out: its url is file:///, and the path of a folder",
            ),
            (
                "url = 'file:///srv?T0KEN'".to_owned(),
                "sink out: its url is file:///, and the path of a folder",
            ),
            (
                with("only = ['book']"),
                "sink out: a condition is kind=NAME, not \"book\"",
            ),
            (
                with("fields = ['a', 'b=a']"),
                "sink out: two fields would have the name \"a\"",
            ),
            (
                with("max-file = '1'"),
                "sink out: max-file is at least 64KiB, not \"1\"",
            ),
        ] {
            assert_eq!(parse("out", &text), Err(why.to_owned()), "{text}");
        }
        let error = parse("lines", folder).unwrap_err();
        assert!(error.starts_with("sink lines is the data root"), "{error}");
        let error = parse("A", folder).unwrap_err();
        let why = "[sink.A]: a name of a sink has 1 to 63 characters of a-z, 0-9, -, _ and .";
        assert_eq!(error, why);
        let error = parse("out", &with("password = 'x'")).unwrap_err();
        assert!(error.contains("unknown field `password`"), "{error}");
    }
}
