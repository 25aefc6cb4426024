//! Lines of the processes' logs that the checker uses. The logs are JSON here.

use serde_json::Value;

use crate::history::LogEvent;

/// Filter of the logs: more than the usual lines.
pub(crate) const FILTER: &str =
    "info,crawler_store::election=debug,crawler_frontier::durable=debug";

/// Reads a log line. Returns `None` if the checker does not use it.
pub(crate) fn read(line: &str) -> Option<LogEvent> {
    const WORDS: [&str; 5] = [
        "written as the leader",
        "the frontier is open",
        "batches are durable",
        "crawl starts",
        "crawl ends",
    ];
    let word = WORDS.iter().position(|word| line.contains(word))?;
    let line: Value = serde_json::from_str(line).ok()?;
    if line["msg"] != WORDS[word] {
        return None;
    }
    // Numbers with a type of their own are written as text.
    let number = |field: &str| {
        let value = &line[field];
        let parsed = value.as_str().and_then(|text| text.parse().ok());
        let number = value.as_u64().or(parsed);
        number.unwrap_or_else(|| panic!("no number {field} in {line}"))
    };
    let shard = || line["shard"].as_str().unwrap_or_default().to_owned();
    Some(match word {
        0 => LogEvent::Wrote {
            term: number("term"),
            revision: number("revision"),
        },
        1 => LogEvent::Opened {
            shard: shard(),
            epoch: number("epoch"),
            storage_epoch: number("storage_epoch"),
        },
        2 => LogEvent::Durable {
            shard: shard(),
            storage_epoch: number("storage_epoch"),
            sequence: number("sequence"),
        },
        3 => LogEvent::Starts {
            shard: shard(),
            epoch: number("epoch"),
        },
        _ => LogEvent::Ends {
            shard: shard(),
            epoch: number("epoch"),
        },
    })
}

/// Returns true if a line tells that a task or thread has panicked, which is always a bug.
pub(crate) fn tells_of_panic(line: &str) -> bool {
    line.contains("panicked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(target: &str, fields: &str, told: Option<LogEvent>) {
        let line = format!(
            r#"{{"ts":"2026-01-01T00:00:00.000000Z","level":"DEBUG",{fields},"target":"crawler_{target}"}}"#
        );
        assert_eq!(read(&line), told, "{line}");
        assert!(!tells_of_panic(&line), "{line}");
    }

    #[test]
    fn each_kind_of_line_is_read() {
        let (shard, epoch, storage_epoch) = ("7/0".to_owned(), 2, 3);
        check(
            "store::election",
            r#""msg":"written as the leader","term":5,"revision":9"#,
            Some(LogEvent::Wrote {
                term: 5,
                revision: 9,
            }),
        );
        check(
            "frontier::durable::open",
            r#""msg":"the frontier is open","shard":"7/0","epoch":"2","storage_epoch":3"#,
            Some(LogEvent::Opened {
                shard: shard.clone(),
                epoch,
                storage_epoch,
            }),
        );
        check(
            "frontier::durable::writer",
            r#""msg":"batches are durable","shard":"7/0","storage_epoch":3,"sequence":12"#,
            Some(LogEvent::Durable {
                shard: shard.clone(),
                storage_epoch,
                sequence: 12,
            }),
        );
        check(
            "worker::assigned",
            r#""msg":"crawl starts","resource":"a","shard":"7/0","epoch":"2""#,
            Some(LogEvent::Starts {
                shard: shard.clone(),
                epoch,
            }),
        );
        check(
            "worker::assigned",
            r#""msg":"crawl ends","resource":"a","shard":"7/0","epoch":"2""#,
            Some(LogEvent::Ends { shard, epoch }),
        );
        let other = r#""msg":"a line","why":"the frontier is open elsewhere""#;
        check("worker::assigned", other, None);
    }

    #[test]
    fn a_panic_is_told_by_its_thread_and_by_its_task() {
        for line in [
            r#"{"level":"ERROR","msg":"task panicked","task":"agent"}"#,
            "thread 'main' panicked at host/crawler/src/main.rs:3:5:",
        ] {
            assert!(tells_of_panic(line), "{line}");
        }
    }
}
