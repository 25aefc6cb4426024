//! Log lines as JSON: one flat object each, with `ts`, `level`, `target`, `msg` and the fields.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

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
        _context: &FmtContext<'_, S, N>,
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
        event.record(&mut line);
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
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use serde_json::json;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn a_line_is_one_flat_object_whatever_its_fields_are_called() {
        let lines = Lines::default();
        let log = tracing_subscriber::fmt()
            .event_format(JsonLines)
            .with_writer(lines.clone());
        tracing::subscriber::with_default(log.finish(), || {
            let quoted = "a \"b\"\n";
            let nothing: Option<&str> = None;
            tracing::info!(n = 7, ok = true, quoted, nothing, level = "low", at = %"x", "{} words", 2);
        });
        let written = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(written.matches('\n').count(), 1, "{written}");
        let mut line: Value = serde_json::from_str(&written).unwrap();
        let ts = line["ts"].take();
        humantime::parse_rfc3339(ts.as_str().unwrap()).unwrap();
        let target = module_path!();
        let expected = json!({
            "ts": null, "level": "INFO", "target": target, "msg": "2 words",
            "n": 7, "ok": true, "quoted": "a \"b\"\n", "level_": "low", "at": "x",
        });
        assert_eq!(line, expected);
    }
}
