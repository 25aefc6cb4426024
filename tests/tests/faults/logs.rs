//! What matters of the logs of the processes, which are JSON here.

use serde_json::Value;

use crate::history::Told;

/// What the processes are to tell beside the usual.
pub(crate) const FILTER: &str =
    "info,crawler::store::election=debug,crawler::frontier::durable=debug";

/// A line that matters.
pub(crate) fn read(line: &str) -> Option<Told> {
    const WORDS: [&str; 5] = [
        "written as the leader",
        "the frontier is open",
        "batches are durable",
        "crawl starts",
        "crawl ends",
    ];
    let word = WORDS.iter().position(|word| line.contains(word))?;
    let line: Value = serde_json::from_str(line).ok()?;
    let fields = &line["fields"];
    if fields["message"] != WORDS[word] {
        return None;
    }
    // Numbers that have a type of their own are written as texts.
    let number = |field: &str| {
        let value = &fields[field];
        let parsed = value.as_str().and_then(|text| text.parse().ok());
        let number = value.as_u64().or(parsed);
        number.unwrap_or_else(|| panic!("no number {field} in {line}"))
    };
    let shard = || fields["shard"].as_str().unwrap_or_default().to_owned();
    Some(match word {
        0 => Told::Wrote {
            term: number("term"),
            revision: number("revision"),
        },
        1 => Told::Opened {
            shard: shard(),
            epoch: number("epoch"),
            storage_epoch: number("storage_epoch"),
        },
        2 => Told::Durable {
            shard: shard(),
            storage_epoch: number("storage_epoch"),
            sequence: number("sequence"),
        },
        3 => Told::Starts {
            shard: shard(),
            epoch: number("epoch"),
        },
        _ => Told::Ends { shard: shard() },
    })
}
