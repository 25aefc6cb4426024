//! `crawler resource hosts`: the state of each host of a crawl.

use std::time::Duration;

use clap::{Args, ValueEnum};
use crawler_proto as proto;

use crate::cli::args::{Format, OutputArgs};
use crate::cli::table;
use crawler_api::client::Client;
use crawler_model::frontier::{DelaySource, HostEntry};
use crawler_model::id::ResourceName;

/// Number of hosts that one call asks for.
const PAGE: u32 = 1_000;

#[derive(Debug, Args)]
pub(in crate::cli) struct HostsArgs {
    /// The resource
    name: ResourceName,
    /// Only those in this state
    #[arg(long)]
    state: Option<State>,
    /// Number of hosts at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    #[command(flatten)]
    output: OutputArgs,
}

/// States that can be asked for.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum State {
    /// Nothing: it may be asked now
    Ready,
    /// Its delay, or the time that it has asked for
    Waiting,
    /// Another try after it could not be reached
    BackingOff,
    /// Another try, which decides whether its URLs are given up
    GivenUp,
    /// Links to it: nothing of it is left to fetch
    Idle,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Waiting => "waiting",
            State::BackingOff => "backing-off",
            State::GivenUp => "given-up",
            State::Idle => "idle",
        }
    }
}

pub(super) async fn list(client: &Client, args: HostsArgs) -> anyhow::Result<()> {
    let HostsArgs {
        name,
        state,
        limit,
        output,
    } = args;
    let state = state.map_or("", State::as_str);
    let (mut all, mut n_shown, mut token) = (Vec::new(), 0, String::new());
    loop {
        let wanted = u32::try_from(limit - n_shown).unwrap_or(PAGE).min(PAGE);
        let page = client.hosts(&name, state, wanted, token).await?;
        n_shown += page.hosts.len() as u64;
        match output.format {
            Format::Table => {
                for host in &page.hosts {
                    table::print_line(&line(host))?;
                }
            }
            Format::Json => all.extend(page.hosts),
        }
        token = page.next_page_token;
        if token.is_empty() || n_shown >= limit {
            break;
        }
    }
    if output.format == Format::Json {
        return table::print_json(&proto::ListHostsResponse {
            hosts: all,
            next_page_token: token,
        });
    }
    if !token.is_empty() {
        let more = limit.saturating_mul(10);
        eprintln!("hint: there are more; show them with --limit {more}");
    }
    Ok(())
}

/// Formats one host: its state, its URLs, its name, and its details.
pub(in crate::cli) fn line(host: &proto::HostEntry) -> String {
    let due = due(host);
    let in_flight = match host.in_flight() {
        0 => String::new(),
        n => format!(", {n} in flight"),
    };
    let delay = match host.delay_ms {
        0 => String::new(),
        millis => {
            let delay = humantime::format_duration(Duration::from_millis(millis));
            format!(", delay {delay}{}", origin(&host.delay_by))
        }
    };
    let until = match host.state.as_str() {
        "ready" | "idle" => String::new(),
        _ => format!(", not before {}", table::time(host.not_before)),
    };
    let failures = match (host.failures, host.reason.as_str()) {
        (0, _) => String::new(),
        (1, why) => format!(", 1 failure: {why}"),
        (n, why) => format!(", {n} failures on end: {why}"),
    };
    let (state, name) = (&host.state, &host.name);
    format!("{state:<11} {due:>5} due  {name}{in_flight}{delay}{until}{failures}")
}

/// Formats the number of URLs of a host that wait, which is counted up to a bound.
pub(in crate::cli) fn due(host: &proto::HostEntry) -> String {
    match host.due {
        HostEntry::MAX_DUE.. => format!("{}+", HostEntry::MAX_DUE),
        due => due.to_string(),
    }
}

/// Returns the origin of a delay in words; empty for the resource's own setting.
fn origin(by: &str) -> String {
    let source = DelaySource::ALL
        .into_iter()
        .find(|source| source.as_str() == by);
    let words = source.and_then(DelaySource::explanation);
    words.map_or_else(String::new, |words| format!(" ({words})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_what_a_host_waits_for() {
        let host = |state: &str| proto::HostEntry {
            name: "a.test:80".into(),
            state: state.into(),
            due: 12,
            in_flight: Some(0),
            not_before: 1_700_000_000_000,
            delay_ms: 1_500,
            ..proto::HostEntry::default()
        };
        assert_eq!(
            line(&host("waiting")),
            "waiting        12 due  a.test:80, delay 1s 500ms, not before 2023-11-14T22:13:20Z"
        );
        let robots = proto::HostEntry {
            delay_by: "robots".into(),
            ..host("waiting")
        };
        assert_eq!(
            line(&robots),
            "waiting        12 due  a.test:80, delay 1s 500ms (crawl-delay of its robots.txt), not before 2023-11-14T22:13:20Z"
        );
        let asked = proto::HostEntry {
            in_flight: Some(2),
            ..host("ready")
        };
        assert_eq!(
            line(&asked),
            "ready          12 due  a.test:80, 2 in flight, delay 1s 500ms"
        );
        let given_up = proto::HostEntry {
            due: 1_000,
            delay_ms: 0,
            failures: 5,
            reason: "resolve".into(),
            ..host("given-up")
        };
        assert_eq!(
            line(&given_up),
            "given-up    1000+ due  a.test:80, not before 2023-11-14T22:13:20Z, 5 failures on end: resolve"
        );
        let idle = proto::HostEntry {
            due: 0,
            delay_ms: 0,
            ..host("idle")
        };
        assert_eq!(line(&idle), "idle            0 due  a.test:80");
    }

    #[test]
    fn every_state_can_be_asked_for() {
        use crawler_model::frontier::HostState;
        let states: Vec<_> = State::value_variants().iter().map(|s| s.as_str()).collect();
        assert_eq!(states, HostState::ALL.map(HostState::as_str));
    }
}
