//! Log lines for people: time, level, message and fields, with colours on a terminal.

use std::fmt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::VisitOutput as _;
use tracing_subscriber::fmt::format::{DefaultVisitor, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::fields::Fields;

const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Formats each event as a line of text.
pub(super) struct TextLines;

impl<S, N> FormatEvent<S, N> for TextLines
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
        let level = *event.metadata().level();
        if writer.has_ansi_escapes() {
            writer.write_str(DIM)?;
            SystemTime.format_time(&mut writer)?;
            write!(writer, "{PLAIN} {}{level:>5}{PLAIN} ", colour(level))?;
        } else {
            SystemTime.format_time(&mut writer)?;
            write!(writer, " {level:>5} ")?;
        }
        let mut visitor = DefaultVisitor::new(writer.by_ref(), true);
        Fields::of(context, event).record(&mut visitor);
        visitor.finish()?;
        writeln!(writer)
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        Level::DEBUG => "\x1b[34m",
        Level::TRACE => "\x1b[35m",
    }
}

#[cfg(test)]
mod tests {
    use tracing::field::{Empty, display};
    use tracing::{error_span, info, info_span};

    use crate::telemetry::testing::told;

    /// Returns the line without its time.
    fn line(settings: &str, tell: impl FnOnce()) -> String {
        let lines = told(settings, tell);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let (_time, line) = lines[0].split_once(' ').unwrap();
        line.to_owned()
    }

    #[test]
    fn a_line_has_the_fields_of_its_spans_before_its_own() {
        let line = line("info", || {
            let crawl = error_span!("crawl", resource = %"books", shard = %"7/0");
            crawl.in_scope(|| info!(why = "it is finished", n = 2, "crawl ends"));
        });
        let expected = r#" INFO crawl ends resource=books shard=7/0 why="it is finished" n=2"#;
        assert_eq!(line, expected);
    }

    #[test]
    fn a_name_is_shown_once_with_its_innermost_value() {
        let tell = |own: bool| {
            let page = info_span!("page", url = %"/a", attempt = 1);
            let request = info_span!(parent: &page, "request", url = %"/b");
            request.in_scope(|| match own {
                true => info!(attempt = 2, "fetched"),
                false => info!("fetched"),
            });
        };
        assert_eq!(
            line("info", || tell(false)),
            " INFO fetched url=/b attempt=1"
        );
        assert_eq!(
            line("info", || tell(true)),
            " INFO fetched url=/b attempt=2"
        );
    }

    #[test]
    fn a_value_that_is_known_later_is_shown_from_then_on() {
        let line = line("info", || {
            let crawl = error_span!("crawl", resource = %"books", run = Empty);
            crawl.record("run", display(3));
            info!(parent: &crawl, "crawl starts");
        });
        assert_eq!(line, " INFO crawl starts resource=books run=3");
    }

    #[test]
    fn a_warning_tells_its_crawl_though_only_warnings_are_shown() {
        let line = line("warn", || {
            let crawl = error_span!("crawl", resource = %"books");
            let page = info_span!(parent: &crawl, "page", url = %"/a");
            page.in_scope(|| crawl.in_scope(|| tracing::warn!("the crawl waits")));
        });
        assert_eq!(line, " WARN the crawl waits resource=books");
    }
}
