//! `crawler resource schedule` and `schedules`: when runs begin by themselves.

use std::time::Duration;

use clap::Args;
use crawler_proto as proto;

use crate::cli::args::{Format, OutputArgs, millis};
use crate::cli::table;
use crawler_api::client::Client;
use crawler_model::id::ResourceName;
use crawler_model::schedule::{RawSchedule, ScheduleSpec};

#[derive(Debug, Args)]
pub(in crate::cli) struct ScheduleArgs {
    /// The resource
    name: ResourceName,
    /// Begin a run at these times: minute, hour, day of the month, month and day of the week
    #[arg(long, value_name = "FIELDS", conflicts_with = "every")]
    cron: Option<String>,
    /// The time zone of --cron [default: UTC]
    #[arg(long, value_name = "ZONE", requires = "cron")]
    tz: Option<String>,
    /// Begin a run each time this has passed, from 1m to 366d
    #[arg(long, value_name = "TIME", value_parser = millis)]
    every: Option<u64>,
    /// Begin each run up to this much later, 1d at most, so that many resources do not begin at once
    #[arg(long, value_name = "TIME", value_parser = millis)]
    jitter: Option<u64>,
    /// Effect of a due time while the run before is not over: skip starts nothing, queue waits for its end, restart ends
    /// it [default: skip]
    #[arg(long, value_name = "WORD", value_parser = ["skip", "queue", "restart"])]
    overlap: Option<String>,
    /// Effect of due times that are noticed more than 5 minutes late: once starts one run for all of them, skip starts none
    /// [default: once]
    #[arg(long, value_name = "WORD", value_parser = ["once", "skip"])]
    missed: Option<String>,
    /// Take the schedule away; the present run goes on
    #[arg(long, conflicts_with_all = ["cron", "every", "jitter", "overlap", "missed"])]
    off: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl ScheduleArgs {
    /// Returns the schedule that is to be set; `None` if nothing is named.
    fn raw(&self) -> Option<RawSchedule> {
        let is_named = [&self.cron, &self.tz, &self.overlap, &self.missed]
            .iter()
            .any(|text| text.is_some())
            || self.every.is_some()
            || self.jitter.is_some();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let raw = RawSchedule {
            cron: text(&self.cron),
            tz: text(&self.tz),
            every_ms: self.every.unwrap_or_default(),
            jitter_ms: self.jitter.unwrap_or_default(),
            overlap: text(&self.overlap),
            missed: text(&self.missed),
        };
        is_named.then_some(raw)
    }
}

pub(super) async fn run(client: &Client, args: ScheduleArgs) -> anyhow::Result<()> {
    let name = &args.name;
    if args.off {
        client.delete_schedule(name).await?;
        return Ok(table::print_line(&format!(
            "resource {name} has no schedule any more"
        ))?);
    }
    let schedule = match args.raw() {
        Some(raw) => {
            client
                .set_schedule(name, ScheduleSpec::try_from(raw)?)
                .await?
        }
        None => client.schedule(name).await?,
    };
    if args.output.format == Format::Json {
        return table::print_json(&schedule);
    }
    for line in lines(&schedule) {
        table::print_line(&line)?;
    }
    Ok(())
}

/// Lists the resources that have a schedule.
pub(super) async fn list(client: &Client, output: &OutputArgs) -> anyhow::Result<()> {
    let schedules = client.schedules().await?;
    if output.format == Format::Json {
        return table::print_json(&proto::ListSchedulesResponse {
            schedules,
            next_page_token: String::new(),
        });
    }
    let rows: Vec<_> = schedules.iter().map(row).collect();
    table::print(HEAD, &rows)?;
    Ok(())
}

/// Head of the table of schedules.
const HEAD: [&str; 5] = ["RESOURCE", "TIMES", "NEXT RUN", "LAST DUE", "OUTCOME"];

/// Returns the row of a resource that has a schedule.
fn row(resource: &proto::ScheduledResource) -> [String; HEAD.len()] {
    let Some(schedule) = &resource.schedule else {
        let name = resource
            .resource
            .as_ref()
            .map(|resource| resource.spec().name);
        let why = "cannot be read: it is damaged, or of a later version".to_owned();
        let empty = String::new;
        return [name.unwrap_or_default(), why, empty(), empty(), empty()];
    };
    let next = match (schedule.due_at, schedule.waits) {
        (0, _) => "never".to_owned(),
        (_, true) => "after the present run".to_owned(),
        (_, false) => table::time(schedule.starts_at),
    };
    let (due, outcome) = match &schedule.last {
        None => (String::new(), String::new()),
        Some(last) => (table::time(last.due_at), table::plain(&last.outcome)),
    };
    [schedule.name.clone(), times(schedule), next, due, outcome]
}

/// Formats the times of a schedule.
fn times(schedule: &proto::Schedule) -> String {
    let spec = schedule.spec.clone().unwrap_or_default();
    match spec.every_ms {
        0 => format!("{} in {}", spec.cron, spec.tz),
        every => format!("every {}", length(every)),
    }
}

/// Formats a length of time in milliseconds, such as `6h`.
fn length(millis: u64) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_millis(millis))
}

/// Formats a schedule: its times, the next of them, and what became of the last.
fn lines(schedule: &proto::Schedule) -> Vec<String> {
    let spec = schedule.spec.clone().unwrap_or_default();
    let next = match (schedule.due_at, schedule.waits) {
        (0, _) => "never".to_owned(),
        (due, true) => format!(
            "when the present run is over; it was due at {}",
            table::time(due)
        ),
        (_, false) => table::time(schedule.starts_at),
    };
    let jitter = match spec.jitter_ms {
        0 => "none".to_owned(),
        jitter => format!("up to {}", length(jitter)),
    };
    let last = match &schedule.last {
        None => "none yet".to_owned(),
        Some(last) => {
            let due = table::time(last.due_at);
            match last.outcome.as_str() {
                "started" => format!(
                    "{due}, started run {} at {}",
                    last.run,
                    table::time(last.at)
                ),
                "skipped" => format!("{due}, started nothing: the run before was not over"),
                "paused" => format!("{due}, started nothing: the resource was paused"),
                "missed" => format!("{due}, missed: noticed at {}", table::time(last.at)),
                "failed" => format!("{due}, failed: {}", table::plain(&last.reason)),
                // A later version may have further words.
                other => format!("{due}, {}", table::plain(other)),
            }
        }
    };
    let rows = [
        ("next run", next),
        ("jitter", jitter),
        ("overlap", spec.overlap),
        ("missed", spec.missed),
        ("last due", last),
    ];
    let first = format!(
        "resource {} runs by schedule: {}",
        schedule.name,
        times(schedule)
    );
    let rows = rows.map(|(name, value)| format!("  {name:<13} {value}"));
    [first].into_iter().chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: ScheduleArgs,
    }

    fn raw(options: &[&str]) -> Option<RawSchedule> {
        let words = ["schedule", "books"].iter().chain(options).copied();
        Cli::try_parse_from(words).unwrap().args.raw()
    }

    #[test]
    fn an_empty_option_is_refused_and_not_passed_over() {
        assert_eq!(raw(&[]), None);
        for options in [["--every", "0s"], ["--cron", ""], ["--jitter", "0s"]] {
            let raw = raw(&options).unwrap();
            assert!(ScheduleSpec::try_from(raw).is_err(), "{options:?}");
        }
    }

    fn daily() -> proto::Schedule {
        proto::Schedule {
            name: "books".into(),
            spec: Some(proto::ScheduleSpec {
                cron: "0 3 * * *".into(),
                tz: "Europe/Paris".into(),
                overlap: "skip".into(),
                missed: "once".into(),
                ..proto::ScheduleSpec::default()
            }),
            due_at: 7_200_000,
            starts_at: 7_260_000,
            ..proto::Schedule::default()
        }
    }

    #[test]
    fn a_schedule_tells_its_times_and_what_became_of_the_last() {
        let expected = [
            "resource books runs by schedule: 0 3 * * * in Europe/Paris",
            "  next run      1970-01-01T02:01:00Z",
            "  jitter        none",
            "  overlap       skip",
            "  missed        once",
            "  last due      none yet",
        ];
        assert_eq!(lines(&daily()), expected);
        let mut schedule = daily();
        schedule.waits = true;
        schedule.spec = Some(proto::ScheduleSpec {
            every_ms: 21_600_000,
            jitter_ms: 600_000,
            ..proto::ScheduleSpec::default()
        });
        let check = |schedule: &proto::Schedule, n: usize, expected: &str| {
            assert_eq!(lines(schedule)[n], expected);
        };
        check(&schedule, 0, "resource books runs by schedule: every 6h");
        let waits =
            "  next run      when the present run is over; it was due at 1970-01-01T02:00:00Z";
        check(&schedule, 1, waits);
        check(&schedule, 2, "  jitter        up to 10m");
        for (outcome, expected) in [
            ("started", "started run 4 at 1970-01-01T00:00:01Z"),
            ("skipped", "started nothing: the run before was not over"),
            ("failed", "failed: no\\u{1b} room"),
            ("moved\u{1b}", "moved\\u{1b}"),
        ] {
            schedule.last = Some(proto::DueTime {
                due_at: 0,
                at: 1_000,
                outcome: outcome.into(),
                run: 4,
                reason: "no\u{1b} room".into(),
            });
            let expected = format!("  last due      1970-01-01T00:00:00Z, {expected}");
            check(&schedule, 5, &expected);
        }
    }

    #[test]
    fn a_list_has_a_row_for_a_schedule_that_cannot_be_read() {
        let mut listed = proto::ScheduledResource {
            resource: Some(proto::Resource {
                spec: Some(proto::ResourceSpec {
                    name: "books".into(),
                    ..proto::ResourceSpec::default()
                }),
                ..proto::Resource::default()
            }),
            schedule: Some(daily()),
        };
        let next = "1970-01-01T02:01:00Z";
        let expected = ["books", "0 3 * * * in Europe/Paris", next, "", ""];
        assert_eq!(row(&listed), expected);
        let schedule = listed.schedule.as_mut().unwrap();
        schedule.waits = true;
        schedule.last = Some(proto::DueTime {
            due_at: 1_000,
            outcome: "skipped\u{1b}".into(),
            ..proto::DueTime::default()
        });
        let [_, _, next, due, outcome] = row(&listed);
        assert_eq!(next, "after the present run");
        assert_eq!(due, "1970-01-01T00:00:01Z");
        assert_eq!(outcome, "skipped\\u{1b}");
        listed.schedule = None;
        let [name, times, ..] = row(&listed);
        assert_eq!(name, "books");
        assert!(times.starts_with("cannot be read"), "{times}");
    }
}
