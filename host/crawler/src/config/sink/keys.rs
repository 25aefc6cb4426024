//! Keys of the table of a sink, and the kinds of sinks that each of them is for.

use super::SinkTable;

/// Kind of a sink, as its URL names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    Bucket,
    Database,
    Stream,
    Webhook,
}

impl Kind {
    /// Returns the kind that a scheme names; an error is the end of a sentence about the sink.
    pub(super) fn of(scheme: &str) -> Result<Self, String> {
        match scheme {
            "file" => Ok(Self::Folder),
            "s3" | "gs" | "az" => Ok(Self::Bucket),
            "sqlite" | "postgres" | "postgresql" | "mysql" | "mariadb" => Ok(Self::Database),
            "nats" | "tls" => Ok(Self::Stream),
            "http" | "https" => Ok(Self::Webhook),
            scheme => Err(format!(
                "its url begins with file:///, s3://, gs://, az://, sqlite:, postgres://, mysql://, nats://, tls:// or https://, not with {scheme}:"
            )),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Folder => "a folder",
            Self::Bucket => "a bucket",
            Self::Database => "a database",
            Self::Stream => "a stream",
            Self::Webhook => "a webhook",
        }
    }
}

/// Refuses a key that is for other kinds of sinks. `max-wait` is looked at by kinds that have no use for it.
pub(super) fn check(table: &SinkTable, kind: Kind) -> Result<(), String> {
    use Kind::{Bucket, Database, Folder, Stream, Webhook};
    let keys: [(&str, bool, &[Kind]); 26] = [
        ("max-file", table.max_file.is_some(), &[Folder, Bucket]),
        ("format", table.format.is_some(), &[Folder, Bucket, Webhook]),
        ("partition", table.partition.is_some(), &[Folder, Bucket]),
        ("bucket", table.bucket.is_some(), &[Bucket]),
        (
            "password-file",
            table.password_file.is_some(),
            &[Database, Stream],
        ),
        (
            "password-env",
            table.password_env.is_some(),
            &[Database, Stream],
        ),
        ("table", table.table.is_some(), &[Database]),
        ("reject-table", table.reject_table.is_some(), &[Database]),
        ("keys", table.keys.is_some(), &[Database]),
        ("history", table.history.is_some(), &[Database]),
        (
            "batch-items",
            table.batch_items.is_some(),
            &[Database, Stream, Webhook],
        ),
        (
            "batch-bytes",
            table.batch_bytes.is_some(),
            &[Database, Stream, Webhook],
        ),
        (
            "timeout",
            table.timeout.is_some(),
            &[Database, Stream, Webhook],
        ),
        ("connections", table.connections.is_some(), &[Database]),
        ("subject", table.subject.is_some(), &[Stream]),
        ("reject-subject", table.reject_subject.is_some(), &[Stream]),
        ("token-file", table.token_file.is_some(), &[Stream]),
        ("token-env", table.token_env.is_some(), &[Stream]),
        ("creds-file", table.creds_file.is_some(), &[Stream]),
        ("ca", table.ca.is_some(), &[Stream]),
        ("secret-file", table.secret_file.is_some(), &[Webhook]),
        ("secret-env", table.secret_env.is_some(), &[Webhook]),
        (
            "previous-secret-file",
            table.previous_secret_file.is_some(),
            &[Webhook],
        ),
        (
            "previous-secret-env",
            table.previous_secret_env.is_some(),
            &[Webhook],
        ),
        (
            "allow-networks",
            !table.allow_networks.is_empty(),
            &[Webhook],
        ),
        ("max-retry-wait", table.max_retry_wait.is_some(), &[Webhook]),
    ];
    let mut keys = keys.into_iter();
    match keys.find(|(_, is_set, kinds)| *is_set && !kinds.contains(&kind)) {
        None => Ok(()),
        Some((key, _, kinds)) => Err(format!(
            "{key} is for {}, and its url names {}",
            alternatives(kinds),
            kind.as_str()
        )),
    }
}

/// Returns kinds as a part of a sentence, such as "a folder or a bucket".
fn alternatives(kinds: &[Kind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;

    #[test]
    fn a_key_of_another_kind_is_refused_with_its_kinds() {
        let urls = [
            "file:///srv",
            "s3://b/items",
            "sqlite:items.db",
            "nats://localhost",
            "https://hooks.test/",
        ];
        for (key, kinds, n_refused) in [
            ("max-file = '1MiB'", "a folder or a bucket", 3),
            ("table = 'a'", "a database", 4),
            ("password-env = 'P'", "a database or a stream", 3),
            ("timeout = '5s'", "a database, a stream or a webhook", 2),
            ("subject = 'a'", "a stream", 4),
            ("secret-env = 'S'", "a webhook", 4),
            ("allow-networks = ['10.0.0.0/8']", "a webhook", 4),
        ] {
            let name = key.split(' ').next().unwrap();
            let words = format!("sink out: {name} is for {kinds}, and its url names ");
            let refused = urls.iter().filter(|url| {
                let parsed = parse("out", &format!("url = '{url}'\n{key}"));
                parsed.is_err_and(|error| error.starts_with(&words))
            });
            assert_eq!(refused.count(), n_refused, "{key}");
        }
    }
}
