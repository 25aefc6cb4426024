//! Log lines as JSON: one flat object each, with `ts`, `level`, `target`, `msg` and the fields, those of the
//! spans around the line included.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::fields::Fields;
use crate::clock::{Clock as _, SystemClock};

/// Keys that every line has.
const OWN: [&str; 4] = ["ts", "level", "target", "msg"];

/// Formats each event as a line of JSON.
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Line(Map::new());
        let now = UNIX_EPOCH + Duration::from_nanos(SystemClock.unix_nanos());
        let now = humantime::format_rfc3339_micros(now).to_string();
        let metadata = event.metadata();
        let own = [
            now,
            metadata.level().to_string(),
            metadata.target().to_owned(),
        ];
        for (key, value) in OWN.into_iter().zip(own) {
            line.0.insert(key.to_owned(), value.into());
        }
        Fields::of(context, event).record(&mut line);
        let line = serde_json::to_string(&line.0).map_err(|_| fmt::Error)?;
        writeln!(writer, "{line}")
    }
}

struct Line(Map<String, Value>);

impl Line {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        let key = match field.name() {
            "message" => "msg".to_owned(),
            // Records of the crate `log` carry their target as a field.
            "log.target" => "target".to_owned(),
            name if name.starts_with("log.") => return,
            // A field of such a name does not replace a key that every line has.
            name if OWN.contains(&name) => format!("{name}_"),
            name => name.to_owned(),
        };
        self.0.insert(key, value.into());
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tracing::dispatcher::with_default;

    use super::*;
    use crate::telemetry::testing::Log;

    #[test]
    fn a_line_is_one_flat_object_whatever_its_fields_are_called() {
        let log = Log::default();
        with_default(&log.dispatch("info", true), || {
            let quoted = "a \"b\"\n";
            let nothing: Option<&str> = None;
            let crawl = tracing::error_span!("crawl", shard = %"7/0", run = 3, n = 6);
            let _crawl = crawl.enter();
            tracing::info!(n = 7, ok = true, quoted, nothing, level = "low", at = %"x", "{} words", 2);
        });
        let written = log.lines();
        assert_eq!(written.len(), 1, "{written:?}");
        let mut line: Value = serde_json::from_str(&written[0]).unwrap();
        let ts = line["ts"].take();
        humantime::parse_rfc3339(ts.as_str().unwrap()).unwrap();
        let target = module_path!();
        let expected = json!({
            "ts": null, "level": "INFO", "target": target, "msg": "2 words", "shard": "7/0", "run": 3,
            "n": 7, "ok": true, "quoted": "a \"b\"\n", "level_": "low", "at": "x",
        });
        assert_eq!(line, expected);
    }
}
