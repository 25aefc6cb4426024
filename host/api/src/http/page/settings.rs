//! Table of what can be set of a resource, for the form of the page: names, forms, defaults, meanings, and when a change
//! holds. All of it comes from the tables of settings and limits; the few rows about plugin, params, placement and labels
//! are here.

use crawler_model::placement::{DEFAULT_WEIGHT, MAX_SHARDS, MAX_WEIGHT};
use crawler_model::plugin::{LimitKind, LimitName, Limits, format_bytes};
use crawler_model::settings::{Applies, Kind, SETTINGS, Setting};
use serde::Serialize;

/// One thing that can be set.
#[derive(Debug, Serialize)]
struct Row {
    /// Field of the spec in which it stands; empty for a field of the spec itself.
    part: &'static str,
    /// Name of the field.
    field: &'static str,
    /// Name for readers, as on the command line.
    name: &'static str,
    /// Form of the value: `number`, `bytes`, `time`, `text`, `texts`, or `pairs` of a key and a value.
    form: &'static str,
    /// Value that holds if none is set.
    default: String,
    /// Meaning, in plain text.
    about: String,
    /// Time at which a change counts in a crawl that runs.
    applies: String,
    /// True if only a restart can change it.
    restarts: bool,
}

/// Time at which a change of a field that only a restart changes counts.
const WITH_NEW_RUN: &str = "with a new run";

/// Returns all rows as a list in JSON, in the order in which a form shows them.
pub(super) fn table() -> String {
    let settings = SETTINGS.iter().map(of_setting);
    let limits = LimitName::ALL.into_iter().map(of_limit);
    let rows = [plugin(), params()]
        .into_iter()
        .chain(settings)
        .chain(limits);
    let rows: Vec<Row> = rows.chain(placement()).chain([labels()]).collect();
    serde_json::to_string(&rows).expect("texts and truth values are JSON")
}

fn of_setting(setting: &Setting) -> Row {
    Row {
        part: "crawl",
        field: setting.field,
        name: setting.name,
        form: match setting.kind {
            Kind::U32 | Kind::U64 => "number",
            Kind::Bytes => "bytes",
            Kind::Time => "time",
            Kind::Text => "text",
            Kind::Texts | Kind::List => "texts",
        },
        default: setting.default.to_string(),
        about: setting.help.to_owned(),
        applies: setting.applies.when(),
        restarts: false,
    }
}

fn of_limit(limit: LimitName) -> Row {
    let n = Limits::default().value(limit);
    let (form, default) = match limit.kind() {
        LimitKind::Count => ("number", n.to_string()),
        LimitKind::Bytes => ("bytes", format_bytes(n)),
        LimitKind::Time => ("time", format!("{n}ms")),
    };
    Row {
        part: "limits",
        field: limit.as_str(),
        name: limit.as_str(),
        form,
        default,
        about: format!("Limit of one call: {}", limit.book().replace('`', "")),
        applies: Applies::Pages.when(),
        restarts: false,
    }
}

fn plugin() -> Row {
    Row {
        part: "",
        field: "plugin",
        name: "plugin",
        form: "text",
        default: "the name of the resource".to_owned(),
        about: "NAME or NAME@VERSION; only a restart takes one of another name".to_owned(),
        applies: Applies::AtOnce.when(),
        restarts: false,
    }
}

fn params() -> Row {
    Row {
        part: "",
        field: "params",
        name: "params",
        form: "pairs",
        default: "none".to_owned(),
        about: "Handed to the rules as their config".to_owned(),
        applies: WITH_NEW_RUN.to_owned(),
        restarts: true,
    }
}

fn placement() -> [Row; 5] {
    let row = |field, form, default: &str, about: &str| Row {
        part: "placement",
        field,
        name: field,
        form,
        default: default.to_owned(),
        about: about.to_owned(),
        applies: Applies::AtOnce.when(),
        restarts: false,
    };
    let weight = DEFAULT_WEIGHT.to_string();
    let about_weight = format!("Load that each shard adds to its worker, 1 to {MAX_WEIGHT}");
    let about_shards =
        format!("Parts of the crawl, by host, that workers crawl side by side, 1 to {MAX_SHARDS}");
    [
        Row {
            applies: WITH_NEW_RUN.to_owned(),
            restarts: true,
            ..row("shards", "number", "1", &about_shards)
        },
        row("weight", "number", &weight, &about_weight),
        row(
            "selector",
            "pairs",
            "none",
            "Labels that the worker must have",
        ),
        row(
            "near",
            "text",
            "none",
            "Resource on whose worker it should be",
        ),
        row(
            "apart",
            "text",
            "none",
            "Resource on whose worker it must not be",
        ),
    ]
}

fn labels() -> Row {
    Row {
        part: "",
        field: "labels",
        name: "labels",
        form: "pairs",
        default: "none".to_owned(),
        about: "Labels by which lists and files select resources".to_owned(),
        applies: Applies::AtOnce.when(),
        restarts: false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn every_setting_and_limit_can_be_changed_in_the_form() {
        let rows: Vec<Value> = serde_json::from_str(&table()).unwrap();
        let fields = |part: &str| -> BTreeSet<String> {
            let rows = rows.iter().filter(|row| row["part"] == part);
            rows.map(|row| row["field"].as_str().unwrap().to_owned())
                .collect()
        };
        let settings = SETTINGS.iter().map(|setting| setting.field.to_owned());
        assert_eq!(fields("crawl"), settings.collect());
        let limits = LimitName::ALL.into_iter().map(|limit| limit.to_string());
        assert_eq!(fields("limits"), limits.collect());
        let placement = ["shards", "weight", "selector", "near", "apart"];
        assert_eq!(fields("placement"), placement.map(str::to_owned).into());
        assert_eq!(rows.len(), SETTINGS.len() + LimitName::ALL.len() + 8);
    }

    #[test]
    fn a_row_has_plain_words() {
        let rows: Vec<Value> = serde_json::from_str(&table()).unwrap();
        let row = rows
            .iter()
            .find(|row| row["field"] == "archive_size")
            .unwrap();
        assert_eq!(
            *row,
            serde_json::json!({
                "part": "crawl", "field": "archive_size", "name": "archive-size", "form": "bytes", "default": "1GiB",
                "about": SETTINGS.iter().find(|setting| setting.name == "archive-size").unwrap().help,
                "applies": "when the frontier is opened next, for example after resource pause and resume",
                "restarts": false,
            })
        );
        for row in &rows {
            assert!(!row.to_string().contains('`'), "{row}");
        }
    }
}
