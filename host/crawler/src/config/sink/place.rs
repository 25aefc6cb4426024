//! Places of sinks, of which no two may have the same files or tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{SinkConfig, SinkPlace};
use crawler_data::DataPlace;
use crawler_sql_sink::OtherSink;

/// Folder or prefix that is for the files of one sink alone.
#[derive(PartialEq, Eq)]
struct OwnPlace {
    /// Folders have their paths without symbolic links.
    place: DataPlace,
    /// Server of a bucket, if the settings name one.
    server: Option<String>,
}

impl OwnPlace {
    /// Returns the place of a sink that writes files.
    fn of(place: &SinkPlace) -> Option<Self> {
        let own = match place {
            SinkPlace::Folder { folder, .. } => DataPlace::Folder(folder.clone()),
            SinkPlace::Files(files) => files.place.clone(),
            SinkPlace::Database(_) | SinkPlace::Stream(_) | SinkPlace::Post(_) => return None,
        };
        Some(Self {
            place: match own {
                DataPlace::Folder(folder) => DataPlace::Folder(without_links(&folder)),
                bucket @ DataPlace::Bucket(_) => bucket,
            },
            server: place.server(),
        })
    }

    /// Returns what it is, in a word.
    fn what(&self) -> &'static str {
        match self.place {
            DataPlace::Folder(_) => "folder",
            DataPlace::Bucket(_) => "prefix",
        }
    }

    /// Returns true if the other place is this one, or within it.
    fn contains(&self, other: &Self) -> bool {
        match (&self.place, &other.place) {
            (DataPlace::Folder(own), DataPlace::Folder(other)) => other.starts_with(own),
            (DataPlace::Bucket(own), DataPlace::Bucket(inner)) => {
                self.server == other.server
                    && (own.provider, &own.name) == (inner.provider, &inner.name)
                    && inner.prefix.prefix_matches(&own.prefix)
            }
            (DataPlace::Folder(_), DataPlace::Bucket(_))
            | (DataPlace::Bucket(_), DataPlace::Folder(_)) => false,
        }
    }
}

/// Returns true if `crawler sink compact` goes through all folders of a sink.
fn is_compacted(place: &SinkPlace) -> bool {
    matches!(place, SinkPlace::Files(_))
}

/// Returns a path without symbolic links, as far as its folders exist.
fn without_links(folder: &Path) -> PathBuf {
    let resolved = folder.ancestors().find_map(|ancestor| {
        let real = ancestor.canonicalize().ok()?;
        Some(real.join(folder.strip_prefix(ancestor).ok()?))
    });
    resolved.unwrap_or_else(|| folder.to_owned())
}

/// Refuses a sink with the folder or the tables of another one: neither would know which files and rows are its own. A
/// database learns the templates of others in the same place, because different templates may give one table.
pub(in crate::config) fn check_place(
    others: &[SinkConfig],
    mut sink: SinkConfig,
) -> Result<SinkConfig, String> {
    let name = &sink.name;
    for other in others {
        if let (Some(own), Some(theirs)) = (OwnPlace::of(&sink.place), OwnPlace::of(&other.place)) {
            let what = own.what();
            if own == theirs {
                return Err(format!(
                    "sink {name}: its {what} is that of sink {}; each needs one of its own",
                    other.name
                ));
            }
            let is_shared = |place: &SinkPlace, outer: &OwnPlace, inner: &OwnPlace| {
                is_compacted(place) && outer.contains(inner)
            };
            if is_shared(&sink.place, &own, &theirs) || is_shared(&other.place, &theirs, &own) {
                return Err(format!(
                    "sink {name}: its {what} and that of sink {} are one within the other, and a compaction would go through both; give each a {what} beside that of the other",
                    other.name
                ));
            }
        }
        if let (SinkPlace::Database(database), SinkPlace::Database(own)) =
            (&other.place, &sink.place)
            && database.has_tables_of(own)
        {
            return Err(format!(
                "sink {name}: its tables are those of sink {}; give it another template with table",
                other.name
            ));
        }
    }
    if let SinkPlace::Database(own) = &mut sink.place {
        let mut in_database = BTreeMap::new();
        for other in others {
            if let SinkPlace::Database(database) = &other.place
                && database.is_same(own)
            {
                let settings = &database.settings;
                let other_sink = OtherSink {
                    table: settings.table.clone(),
                    history: settings.history,
                };
                in_database.insert(other.name.to_string(), other_sink);
            }
        }
        own.settings.others = in_database;
    }
    Ok(sink)
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;
    use super::*;

    #[test]
    fn each_sink_needs_a_folder_of_its_own() {
        let parse = |name: &str, url: &str| parse(name, &format!("url = '{url}'")).unwrap();
        let others = [parse("a", "file:///srv/a"), parse("b", "file:///srv/b")];
        check_place(&others, parse("c", "file:///srv/a/c")).unwrap();
        let error = check_place(&others, parse("c", "file:///srv//b/")).unwrap_err();
        let why = "sink c: its folder is that of sink b; each needs one of its own";
        assert_eq!(error, why);
    }

    #[test]
    fn a_link_to_the_folder_of_another_sink_is_the_same_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let of = |name: &str, folder: &Path| {
            parse(name, &format!("url = 'file://{}'", folder.display())).unwrap()
        };
        let why = "sink b: its folder is that of sink a; each needs one of its own";
        // The folders in it need not exist yet.
        for inside in ["", "lake", "lake/books"] {
            let (real, link) = (real.join(inside), link.join(inside));
            let error = check_place(&[of("a", &real)], of("b", &link)).unwrap_err();
            assert_eq!(error, why);
        }
    }

    #[test]
    fn no_place_is_within_one_that_is_compacted() {
        let lines = |name: &str, url: &str| parse(name, &format!("url = '{url}'")).unwrap();
        let csv =
            |name: &str, url: &str| parse(name, &format!("url = '{url}'\nformat = 'csv'")).unwrap();
        for (what, first, second) in [
            (
                "folder",
                csv("a", "file:///srv/a"),
                lines("b", "file:///srv/a/c"),
            ),
            (
                "folder",
                lines("a", "file:///srv/a/c"),
                csv("b", "file:///srv/a"),
            ),
            (
                "prefix",
                lines("a", "s3://lake/a"),
                lines("b", "s3://lake/a/b"),
            ),
        ] {
            let why = format!(
                "sink b: its {what} and that of sink a are one within the other, and a compaction would go through both; give each a {what} beside that of the other"
            );
            assert_eq!(check_place(&[first], second), Err(why));
        }
        let first = [csv("a", "file:///srv/a"), lines("a", "s3://lake/a")];
        check_place(&first, csv("b", "file:///srv/ab")).unwrap();
        check_place(&first, lines("b", "s3://lake/ab")).unwrap();
        check_place(&first, lines("b", "s3://other/a/b")).unwrap();
        let elsewhere = "url = 's3://lake/a/b'\nbucket = { endpoint = 'https://minio.test' }";
        check_place(&first, parse("b", elsewhere).unwrap()).unwrap();
    }

    #[test]
    fn each_sink_needs_tables_of_its_own() {
        let postgres = "url = 'postgres://u@db.test/items";
        let others = [
            parse("a", &format!("{postgres}'")).unwrap(),
            parse("b", "url = 'sqlite:items.db'\ntable = 'b_{kind}'").unwrap(),
        ];
        for (text, other) in [
            (format!("{postgres}'"), Some("a")),
            (format!("{postgres}?sslmode=require'"), Some("a")),
            (
                "url = 'postgresql://v@db.test:5432/items'".to_owned(),
                Some("a"),
            ),
            (
                "url = 'sqlite:///etc/items.db'\ntable = 'b_{kind}'".to_owned(),
                Some("b"),
            ),
            (
                "url = 'sqlite:///etc//./items.db'\ntable = 'b_{kind}'".to_owned(),
                Some("b"),
            ),
            ("url = 'postgres://u@db.test:3306/items'".to_owned(), None),
            (format!("{postgres}'\ntable = 'c_{{kind}}'"), None),
            (format!("{postgres}?options[search_path]=c'"), None),
            ("url = 'postgres://u@db.test/others'".to_owned(), None),
            ("url = 'sqlite:items.db'".to_owned(), None),
        ] {
            let refused = check_place(&others, parse("c", &text).unwrap()).err();
            let expected = other.map(|other| {
                format!("sink c: its tables are those of sink {other}; give it another template with table")
            });
            assert_eq!(refused, expected, "{text}");
        }
    }

    #[test]
    fn a_sink_learns_of_others_in_its_database() {
        let first = parse("a", "url = 'postgres://u@db.test/items'").unwrap();
        let others = |url: &str| {
            let text = format!("url = '{url}'\ntable = 'books_{{kind}}'");
            let checked = check_place(std::slice::from_ref(&first), parse("b", &text).unwrap());
            match checked.unwrap().place {
                SinkPlace::Database(database) => database.settings.others,
                other => panic!("{other:?} is no database"),
            }
        };
        let first = OtherSink {
            table: "{resource}_{kind}".parse().unwrap(),
            history: false,
        };
        let expected = BTreeMap::from([("a".to_owned(), first)]);
        assert_eq!(others("postgres://v@db.test:5432/items"), expected);
        assert!(others("postgres://u@db.test/more").is_empty());
    }
}
