//! Files in partitions that declared sinks write to, in a folder of this machine or in a bucket.

use std::path::{Path, PathBuf};

use url::Url;

use super::super::data::{self, DataConfig, DataTable};
use super::super::fetch::values::{some_bytes, time};
use super::{SinkTable, folder_of};
use crawler_data::{DataPlace, RemoteSettings};
use crawler_file_sink::{FileSettings, Format, Partition};

/// Files that items go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesConfig {
    /// Folder, which exists or is missing for a while, or bucket.
    pub place: DataPlace,
    /// Access to the bucket.
    access: DataConfig,
    /// Format, partitions, and bounds of the files.
    pub settings: FileSettings,
}

impl FilesConfig {
    /// Returns the settings of the connection to the bucket, with the secrets that the table names and the variables of
    /// the environment; an error is a sentence for the user.
    pub fn remote(&self) -> Result<RemoteSettings, String> {
        self.access.remote(&self.place)
    }

    /// Returns the folder of this machine.
    pub fn folder(&self) -> Option<&Path> {
        match &self.place {
            DataPlace::Folder(folder) => Some(folder),
            DataPlace::Bucket(_) => None,
        }
    }

    /// Returns the address of the object store, if the table or the environment names one.
    pub(super) fn server(&self) -> Option<String> {
        match &self.place {
            DataPlace::Folder(_) => None,
            DataPlace::Bucket(_) => self.access.endpoint(),
        }
    }

    /// Returns the files that are read: those with credentials of a bucket.
    pub fn files(&self) -> Vec<PathBuf> {
        match &self.place {
            DataPlace::Folder(_) => Vec::new(),
            DataPlace::Bucket(_) => self.access.files(),
        }
    }
}

/// Returns true if files of a folder are in partitions, and not line files that grow.
pub(super) fn is_wanted(table: &SinkTable) -> Result<bool, String> {
    let format = format(table)?;
    Ok(format != Format::Lines || table.partition.is_some())
}

/// Parses a sink of files in a folder; an error is a sentence for the user.
pub(super) fn in_folder(url: &Url, table: SinkTable) -> Result<FilesConfig, String> {
    let place = DataPlace::Folder(folder_of(url, &table.url)?);
    Ok(FilesConfig {
        place,
        access: DataConfig::default(),
        settings: settings(table)?,
    })
}

/// Parses a sink of files in a bucket; an error is a sentence for the user.
pub(super) fn in_bucket(
    url: &Url,
    mut table: SinkTable,
    folder: &Path,
) -> Result<FilesConfig, String> {
    let is_plain = url.query().is_none() && url.fragment().is_none();
    let place: Option<DataPlace> = table.url.parse().ok();
    let place = place.filter(|_| is_plain).ok_or(
        "its url is s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX, without a user",
    )?;
    let access = match table.bucket.take() {
        Some(access) => of_bucket(access, folder).map_err(|why| format!("bucket: {why}"))?,
        None => DataConfig::default(),
    };
    Ok(FilesConfig {
        place,
        access,
        settings: settings(table)?,
    })
}

/// Parses the access to a bucket, whose keys are those of `[data]`.
fn of_bucket(table: toml::Table, folder: &Path) -> Result<DataConfig, String> {
    let unknown = table
        .keys()
        .find(|key| !data::ACCESS_KEYS.contains(&key.as_str()));
    if let Some(key) = unknown {
        let known = data::ACCESS_KEYS.join(", ");
        return Err(format!("there is no key {key:?}; there are: {known}"));
    }
    let table: Result<DataTable, _> = toml::Value::Table(table).try_into();
    let table = table.map_err(|error| error.message().to_owned())?;
    let access = table.into_config(folder)?;
    access.check()?;
    Ok(access)
}

fn format(table: &SinkTable) -> Result<Format, String> {
    let Some(text) = &table.format else {
        return Ok(Format::Lines);
    };
    let parsed = text.parse::<Format>();
    parsed.map_err(|error| format!("format {error}"))
}

fn settings(table: SinkTable) -> Result<FileSettings, String> {
    let default = FileSettings::default();
    let partition = table.partition.as_ref().map(|text| {
        let parsed = text.parse::<Partition>();
        parsed.map_err(|error| format!("partition {error}"))
    });
    let max_file = table.max_file.as_ref();
    let max_file = max_file.map(|text| some_bytes("max-file", text));
    let max_wait = table.max_wait.as_ref();
    let max_wait = max_wait.map(|text| time("max-wait", text));
    let settings = FileSettings {
        format: format(&table)?,
        partition: partition.transpose()?.unwrap_or(default.partition),
        only: table.only,
        max_file_bytes: match max_file.transpose()? {
            Some(n_bytes) => n_bytes as u64,
            None => default.max_file_bytes,
        },
        max_wait: max_wait.transpose()?.unwrap_or(default.max_wait),
    };
    settings.check().map_err(|error| error.to_string())?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::parse;
    use super::super::{SinkPlace, check_place};
    use super::*;

    fn files(toml: &str) -> FilesConfig {
        match parse("out", toml).unwrap().place {
            SinkPlace::Files(files) => *files,
            other => panic!("{other:?} are no files"),
        }
    }

    #[test]
    fn a_format_or_a_partition_makes_files() {
        let books = files("url = 'file:///srv/items'\nformat = 'parquet'");
        assert_eq!(books.settings.format, Format::Parquet);
        assert_eq!(books.folder(), Some(Path::new("/srv/items")));
        assert_eq!(books.files(), Vec::<PathBuf>::new());
        let books = files("url = 'file:///srv/items'\npartition = '{kind}'");
        assert_eq!(books.settings.format, Format::Lines);
        let place = parse("out", "url = 'file:///srv/items'\nformat = 'jsonl'");
        assert_eq!(place.unwrap().place.kind(), "lines");
    }

    #[test]
    fn a_bucket_has_files_and_an_access_of_its_own() {
        let books = files("url = 's3://b/items'");
        assert_eq!(books.settings, FileSettings::default());
        assert_eq!(books.place.to_string(), "s3://b/items");
        assert_eq!(books.folder(), None);
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        std::fs::write(&key, "T0KEN\n").unwrap();
        let text = format!(
            "url = 's3://b/items'\nformat = 'csv'\n[bucket]\nendpoint = 'http://127.0.0.1:9000'\n\
             access-key = 'id'\nsecret-key-file = '{}'\nrequest-timeout = '3s'",
            key.display()
        );
        let books = files(&text);
        let remote = books.remote().unwrap();
        assert_eq!(remote.endpoint.as_deref(), Some("http://127.0.0.1:9000"));
        assert_eq!(remote.access_key.unwrap().id, "id");
        assert_eq!(remote.request_timeout, Duration::from_secs(3));
        assert!(books.files().contains(&key));
        assert!(!format!("{books:?}").contains("T0KEN"));
    }

    #[test]
    fn every_key_of_files_has_its_place() {
        let books = files(
            "url = 'file:///srv/items'\nformat = 'csv'\npartition = '{kind}/{run}'\nonly = ['kind=book']\n\
             max-file = '1MiB'\nmax-wait = '5m'",
        );
        let settings = books.settings;
        assert_eq!(settings.partition.to_string(), "{kind}/{run}");
        assert_eq!(settings.only, ["kind=book"]);
        assert_eq!(settings.max_file_bytes, 1 << 20);
        assert_eq!(settings.max_wait, Duration::from_secs(300));
    }

    #[test]
    fn what_makes_no_sense_of_files_is_named() {
        let folder = |line: &str| format!("url = 'file:///srv'\nformat = 'csv'\n{line}");
        let bucket = |line: &str| format!("url = 's3://b/items'\n{line}");
        for (text, why) in [
            (
                "url = 'file:///srv'\nformat = 'xml'".to_owned(),
                "format \"xml\" is no format: there are jsonl, csv and parquet",
            ),
            (
                folder("partition = '../{kind}'"),
                "partition \"../{kind}\" is no template of folders: \"..\" begins with a character with which readers skip files",
            ),
            (
                folder("max-file = '1GiB'"),
                "max-file is 1GiB; it goes from 64KiB to 8MiB",
            ),
            (
                folder("max-wait = '2h'"),
                "max-wait is 2h; it goes from 0s to 1h",
            ),
            (
                folder("batch-items = 3"),
                "batch-items is for a database, a stream or a webhook, and its url names a folder",
            ),
            (
                folder("[bucket]"),
                "bucket is for a bucket, and its url names a folder",
            ),
            (
                "url = 'file:///srv'\nmax-wait = '1s'".to_owned(),
                "max-wait is for a database, or for files with a partition; add partition, or leave it out",
            ),
            (
                bucket("table = '{kind}'"),
                "table is for a database, and its url names a bucket",
            ),
            (
                "url = 's3://user:T0KEN@b/items'".to_owned(),
                "its url is s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX, without a user",
            ),
            (
                "url = 's3://b/items?T0KEN'".to_owned(),
                "its url is s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX, without a user",
            ),
            (
                bucket("[bucket]\naccess-key = 'id'"),
                "bucket: access-key and secret-key-file or secret-key-env come together",
            ),
            (
                bucket("[bucket]\nregion = 7"),
                "bucket: invalid type: integer `7`, expected a string",
            ),
            (
                "url = 'sqlite:items.db'\nformat = 'csv'".to_owned(),
                "format is for a folder, a bucket or a webhook, and its url names a database",
            ),
            (
                "url = 'sqlite:items.db'\n[bucket]".to_owned(),
                "bucket is for a bucket, and its url names a database",
            ),
        ] {
            let expected = format!("sink out: {why}");
            assert_eq!(parse("out", &text), Err(expected), "{text}");
        }
        let error = parse("out", &bucket("[bucket]\npart-size = '1MiB'")).unwrap_err();
        let expected = "sink out: bucket: there is no key \"part-size\"; there are: endpoint, ";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn each_sink_needs_a_place_of_its_own() {
        let parse = |name: &str, text: &str| parse(name, text).unwrap();
        let others = [
            parse("a", "url = 'file:///srv/a'"),
            parse("b", "url = 's3://b/items'"),
        ];
        for (text, why) in [
            (
                "url = 'file:///srv/a'\nformat = 'csv'",
                Some("its folder is that of sink a; each needs one of its own"),
            ),
            (
                "url = 's3://b/items/'\nformat = 'csv'",
                Some("its prefix is that of sink b; each needs one of its own"),
            ),
            ("url = 's3://b/others'", None),
            ("url = 'gs://b/items'", None),
        ] {
            let refused = check_place(&others, parse("c", text)).err();
            let expected = why.map(|why| format!("sink c: {why}"));
            assert_eq!(refused, expected, "{text}");
        }
    }
}
