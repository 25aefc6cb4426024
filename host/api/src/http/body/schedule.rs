//! Body of the call that sets a schedule.

use super::Fields;
use crate::problem::Problem;
use crawler_proto::ScheduleSpec;

/// Fields of the body.
pub(in crate::http) const SCHEDULE: [&str; 6] =
    ["cron", "tz", "every_ms", "jitter_ms", "overlap", "missed"];

/// Example of a body that sets a schedule.
pub(in crate::http) const EXAMPLE: &str = r#"{"cron":"0 3 * * *","tz":"Europe/Paris"}"#;

/// Parses a schedule.
pub(in crate::http) fn schedule(bytes: &[u8]) -> Result<ScheduleSpec, Problem> {
    let mut fields = Fields::of_body(bytes, &SCHEDULE, EXAMPLE)?;
    Ok(ScheduleSpec {
        cron: fields.text("cron")?.unwrap_or_default(),
        tz: fields.text("tz")?.unwrap_or_default(),
        every_ms: fields.number("every_ms")?.unwrap_or_default(),
        jitter_ms: fields.number("jitter_ms")?.unwrap_or_default(),
        overlap: fields.text("overlap")?.unwrap_or_default(),
        missed: fields.text("missed")?.unwrap_or_default(),
    })
}
