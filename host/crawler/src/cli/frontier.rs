//! `crawler frontier …`: the URLs of a crawl, with their states and reasons.

use std::collections::BTreeMap;

use clap::{Args, Subcommand, ValueEnum};
use crawler_proto as proto;

use super::Failure;
use super::args::{Format, OutputArgs};
use super::pace::Pace;
use super::table;
use crawler_api::client::Client;
use crawler_api::totals;
use crawler_master::control::frontier::UrlQuery;
use crawler_model::id::ResourceName;
use crawler_model::number;

/// Number of URLs that one call asks for.
const PAGE: u32 = 1_000;

#[derive(Debug, Subcommand)]
pub(super) enum FrontierCommand {
    /// Show totals: what waits, what is done, what was given up and why
    #[command(after_help = "Example:\n  crawler frontier stats books -o json")]
    Stats {
        /// The resource
        name: ResourceName,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// List URLs of the present run, each with its state
    #[command(
        after_help = "Examples:\n  crawler frontier list books --state dead\n  crawler frontier list books --state due --limit 10\n  crawler frontier list books --outcome gone"
    )]
    List {
        /// The resource
        name: ResourceName,
        /// Only those in this state
        #[arg(long)]
        state: Option<State>,
        /// Only those that ended so: an outcome like parsed or gone, or a reason like timeout
        #[arg(long, value_name = "OUTCOME")]
        outcome: Option<String>,
        /// Number of URLs at most
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
        limit: u64,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Tell why a URL was, or was not, fetched; any URL, known or not
    #[command(
        after_help = "Examples:\n  crawler frontier why books https://books.example/page-2\n  crawler frontier why books https://books.example/search --method POST --body page=2"
    )]
    Why(WhyArgs),
    /// Try again what was given up; nothing that was done is fetched again
    #[command(
        after_help = "A crawl that is over goes on in the same run.\n\nExamples:\n  crawler frontier redrive books\n  crawler frontier redrive books --reason timeout"
    )]
    Redrive {
        /// The resource
        name: ResourceName,
        /// Only what was given up for this reason, as `crawler frontier stats` names it
        #[arg(long, value_name = "REASON")]
        reason: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(super) struct WhyArgs {
    /// The resource
    name: ResourceName,
    /// The whole URL, as a link has it
    url: String,
    /// Method of the request
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// Body of the request
    #[arg(long, value_name = "TEXT", default_value = "")]
    body: String,
    #[command(flatten)]
    output: OutputArgs,
}

/// State of a URL.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum State {
    /// Waiting or in flight
    Due,
    /// Fetched, or otherwise at its end
    Done,
    /// Given up
    Dead,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            State::Due => "due",
            State::Done => "done",
            State::Dead => "dead",
        }
    }
}

pub(super) async fn run(command: FrontierCommand, client: Client) -> anyhow::Result<()> {
    match command {
        FrontierCommand::Stats { name, output } => {
            let stats = client.frontier_stats(&name).await?;
            match output.format {
                Format::Json => table::print_json(&stats)?,
                Format::Table => show(&stats)?,
            }
        }
        FrontierCommand::List {
            name,
            state,
            outcome,
            limit,
            output,
        } => {
            let state = state.map_or("", State::as_str);
            if state == "due" && outcome.is_some() {
                let hint = "leave out one of --state due and --outcome";
                return Err(Failure::new("a URL that is due has no outcome yet", hint).into());
            }
            let wanted = Wanted {
                state,
                outcome,
                limit,
            };
            list(&client, &name, &wanted, output.format).await?;
        }
        FrontierCommand::Why(args) => why(&client, args).await?,
        FrontierCommand::Redrive { name, reason } => {
            let n_dead = client.redrive_frontier(&name, reason).await?;
            let letters = if n_dead == 1 { "letter" } else { "letters" };
            table::print_line(&format!(
                "{n_dead} dead {letters} of {name} will be tried again"
            ))?;
        }
    }
    Ok(())
}

fn show(stats: &proto::FrontierStats) -> anyhow::Result<()> {
    for (name, value) in rows(stats) {
        table::print_line(&format!("{name:<12} {value}"))?;
    }
    Ok(())
}

/// Returns the totals by name.
fn rows(stats: &proto::FrontierStats) -> Vec<(&'static str, String)> {
    let counts = stats.counts();
    let run = match stats.seeded {
        true => stats.run.to_string(),
        false => format!("{}, root has not run yet", stats.run),
    };
    let due = format!("{}, on {}", counts.due, number(stats.hosts, "host"));
    let hosts = stats.hosts_by_state.iter();
    let hosts = hosts.map(|(state, n)| format!("{state} {n}"));
    let unclean = match stats.unclean_stops {
        0 => String::new(),
        n => format!("{n} in a row"),
    };
    let some = |n: u64| if n == 0 { String::new() } else { n.to_string() };
    let pace = Pace {
        rate: totals(stats.counts()).rate(),
        left: None,
    };
    let rows = [
        ("run", run),
        ("root hosts", stats.root_hosts.join(", ")),
        ("hosts", hosts.collect::<Vec<_>>().join(", ")),
        ("due", due),
        ("parsed", counts.parsed.to_string()),
        ("other done", counts.other_done.to_string()),
        ("dead", some(stats.dead_letters)),
        ("", by_reason(&counts.dead_by_reason)),
        ("retries", some(counts.retries)),
        ("items", counts.items.to_string()),
        ("rate", pace.to_string()),
        ("undelivered", some(stats.undelivered)),
        ("not followed", by_reason(&counts.refused_links)),
        ("suspects", some(stats.suspects)),
        ("unclean ends", unclean),
    ];
    rows.into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

/// Formats reasons with their counts, the most frequent first.
fn by_reason(reasons: &BTreeMap<String, u64>) -> String {
    let mut reasons: Vec<_> = reasons.iter().filter(|(_, n)| **n > 0).collect();
    reasons.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let reasons = reasons.into_iter().map(|(why, n)| format!("{why} {n}"));
    reasons.collect::<Vec<_>>().join(", ")
}

/// URLs that are to be listed.
struct Wanted {
    /// State; empty means all.
    state: &'static str,
    /// Outcome of what is done, or reason of what is dead.
    outcome: Option<String>,
    /// Largest number.
    limit: u64,
}

impl Wanted {
    fn has(&self, url: &proto::UrlEntry) -> bool {
        match (&self.outcome, url.state.as_str()) {
            (None, _) => true,
            (Some(wanted), "done") => *wanted == url.outcome,
            (Some(wanted), "dead") => *wanted == url.reason,
            (Some(_), _) => false,
        }
    }

    /// Takes those URLs of a page that are wanted, `n_left` at most. If others of them remain, also returns how
    /// many URLs of the page end with the last one taken.
    fn take(&self, urls: Vec<proto::UrlEntry>, n_left: u64) -> (Vec<proto::UrlEntry>, Option<u32>) {
        let n_left = usize::try_from(n_left).unwrap_or(usize::MAX);
        let mut wanted = (1..).zip(urls).filter(|(_, url)| self.has(url));
        let taken: Vec<_> = wanted.by_ref().take(n_left).collect();
        let n_seen = taken.last().map_or(0, |(n, _)| *n);
        let n_seen = wanted.next().map(|_left_out| n_seen);
        (taken.into_iter().map(|(_, url)| url).collect(), n_seen)
    }
}

async fn list(
    client: &Client,
    name: &ResourceName,
    wanted: &Wanted,
    format: Format,
) -> anyhow::Result<()> {
    let limit = wanted.limit;
    let (mut all, mut n_shown, mut token) = (Vec::new(), 0, String::new());
    loop {
        let n = match wanted.outcome {
            None => u32::try_from(limit - n_shown).unwrap_or(PAGE).min(PAGE),
            // Most URLs of a page may have another outcome.
            Some(_) => PAGE,
        };
        let page = client.urls(name, wanted.state, n, token.clone()).await?;
        let (urls, n_seen) = wanted.take(page.urls, limit - n_shown);
        n_shown += urls.len() as u64;
        match format {
            Format::Table => {
                for url in &urls {
                    table::print_line(&line(url))?;
                }
            }
            Format::Json => all.extend(urls),
        }
        token = match n_seen {
            None => page.next_page_token,
            // A page that ends with the last URL shown has the token of the others.
            Some(n) => {
                let shorter = client.urls(name, wanted.state, n, token).await?;
                shorter.next_page_token
            }
        };
        if token.is_empty() || n_shown >= limit {
            break;
        }
    }
    if format == Format::Json {
        return table::print_json(&proto::ListUrlsResponse {
            urls: all,
            next_page_token: token,
        });
    }
    if let Some(outcome) = &wanted.outcome
        && n_shown == 0
    {
        let those = match wanted.state {
            "" => "no URL".to_owned(),
            state => format!("no URL that is {state}"),
        };
        let way_out = match outcome.as_str() {
            state @ ("due" | "done" | "dead") => {
                format!("`--state {state}` lists those that are {state}")
            }
            _ => format!("`crawler frontier stats {name}` shows how they did"),
        };
        eprintln!("hint: {those} ended as {outcome:?}; {way_out}");
    } else if !token.is_empty() {
        let more = limit.saturating_mul(10);
        eprintln!("hint: there are more; show them with --limit {more}");
    }
    Ok(())
}

/// Formats one URL: its state, its details, and the request.
fn line(url: &proto::UrlEntry) -> String {
    let detail = match (url.state.as_str(), url.reason.as_str()) {
        ("due", "") => "not tried yet".to_owned(),
        ("due", why) => format!(
            "attempt {} at {} after {why}",
            url.attempt,
            table::time(url.at)
        ),
        ("dead", why) => format!("{why} at {}", table::time(url.since)),
        _ => format!("{} at {}", url.outcome, table::time(url.since)),
    };
    let request = match (url.method.as_str(), url.body.as_str()) {
        ("GET", "") => url.url.clone(),
        (method, "") => format!("{} {method}", url.url),
        (method, body) => format!("{} {method} {body:?}", url.url),
    };
    let more = match url.detail.as_str() {
        "" => String::new(),
        more => format!(" ({more})"),
    };
    format!("{:<5} {detail:<34} {request}{more}", url.state)
}

async fn why(client: &Client, args: WhyArgs) -> anyhow::Result<()> {
    let query = UrlQuery {
        url: args.url,
        method: args.method,
        body: args.body.into(),
    };
    let explanation = client.explain_url(&args.name, query).await?;
    if args.output.format == Format::Json {
        return table::print_json(&explanation);
    }
    table::print_line(&explanation.text)?;
    if let Some(entry) = explanation.entry {
        table::print_line(&origin(&entry))?;
    }
    Ok(())
}

/// Formats where a URL came from.
fn origin(entry: &proto::UrlEntry) -> String {
    let found = match entry.referrer.as_str() {
        "" => String::new(),
        referrer => format!(", first linked from {referrer}"),
    };
    format!("depth {}, rule {}{found}", entry.depth, entry.rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(state: &str) -> proto::UrlEntry {
        proto::UrlEntry {
            url: "http://a.test/x".into(),
            method: "GET".into(),
            state: state.into(),
            since: 1_700_000_000_000,
            ..proto::UrlEntry::default()
        }
    }

    #[test]
    fn the_referrer_of_a_url_is_shown_if_it_has_one() {
        let mut entry = url("due");
        (entry.depth, entry.rule) = (2, "page".into());
        assert_eq!(origin(&entry), "depth 2, rule page");
        entry.referrer = "http://a.test/list".into();
        let linked = "depth 2, rule page, first linked from http://a.test/list";
        assert_eq!(origin(&entry), linked);
    }

    #[test]
    fn a_line_has_state_detail_and_request() {
        let mut due = url("due");
        due.attempt = 1;
        assert_eq!(
            line(&due),
            "due   not tried yet                      http://a.test/x"
        );
        (due.attempt, due.at, due.reason) = (3, 1_700_000_000_000, "status-503".into());
        assert_eq!(
            line(&due),
            "due   attempt 3 at 2023-11-14T22:13:20Z after status-503 http://a.test/x"
        );
        let mut dead = url("dead");
        (dead.reason, dead.method, dead.body) = ("timeout".into(), "POST".into(), "a=1".into());
        assert_eq!(
            line(&dead),
            "dead  timeout at 2023-11-14T22:13:20Z    http://a.test/x POST \"a=1\""
        );
        dead.detail = "it took longer than 30s".into();
        assert!(line(&dead).ends_with("\"a=1\" (it took longer than 30s)"));
        let mut done = url("done");
        done.outcome = "parsed".into();
        assert_eq!(
            line(&done),
            "done  parsed at 2023-11-14T22:13:20Z     http://a.test/x"
        );
    }

    #[test]
    fn an_outcome_is_that_of_the_done_or_the_reason_of_the_dead() {
        let wanted = |outcome: Option<&str>| Wanted {
            state: "",
            outcome: outcome.map(str::to_owned),
            limit: 1,
        };
        let (mut done, mut dead, mut due) = (url("done"), url("dead"), url("due"));
        (done.outcome, dead.reason) = ("gone".into(), "timeout".into());
        due.reason = "timeout".into();
        let all = [done, dead, due];
        let found = |outcome| {
            all.iter()
                .map(|url| wanted(outcome).has(url))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(None), [true, true, true]);
        assert_eq!(found(Some("gone")), [true, false, false]);
        assert_eq!(found(Some("timeout")), [false, true, false]);
    }

    #[test]
    fn a_cut_page_is_known_by_the_place_of_its_last_url() {
        let wanted = Wanted {
            state: "",
            outcome: Some("gone".to_owned()),
            limit: 1,
        };
        let page = || {
            let outcomes = ["parsed", "gone", "parsed", "gone", "parsed"];
            let done = |outcome: &str| proto::UrlEntry {
                outcome: outcome.to_owned(),
                ..url("done")
            };
            Vec::from(outcomes.map(done))
        };
        let taken = |n_left| {
            let (urls, n_seen) = wanted.take(page(), n_left);
            (urls.len(), n_seen)
        };
        assert_eq!(taken(1), (1, Some(2)));
        assert_eq!(taken(2), (2, None));
        assert_eq!(taken(u64::MAX), (2, None));
    }

    #[test]
    fn totals_tell_what_there_is_and_leave_out_what_is_not() {
        let reasons = |reasons: &[(&str, u64)]| {
            let reasons = reasons.iter().map(|(why, n)| ((*why).to_owned(), *n));
            reasons.collect()
        };
        let mut stats = proto::FrontierStats {
            run: 2,
            seeded: true,
            root_hosts: vec!["a.test".into()],
            hosts: 1,
            hosts_by_state: [("ready".to_owned(), 1), ("idle".to_owned(), 4)].into(),
            undelivered: 0,
            dead_letters: 4,
            suspects: 0,
            unclean_stops: 0,
            counts: Some(proto::Counts {
                parsed: 10,
                due: 3,
                items: 9,
                dead_by_reason: reasons(&[("connection", 1), ("timeout", 3), ("redriven", 0)]),
                refused_links: reasons(&[("out-of-scope", 7)]),
                ..proto::Counts::default()
            }),
        };
        let text = |stats: &proto::FrontierStats| {
            let rows = rows(stats).into_iter();
            let rows: Vec<_> = rows
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            rows.join("|")
        };
        assert_eq!(
            text(&stats),
            "run=2|root hosts=a.test|hosts=idle 4, ready 1|due=3, on 1 host|parsed=10|other done=0|dead=4|=timeout 3, connection 1|items=9|not followed=out-of-scope 7"
        );
        let counts = stats.counts.as_mut().unwrap();
        (counts.began_at, counts.ended_at) = (1_000, 5_000);
        let said = text(&stats);
        assert!(said.contains("|items=9|rate=2.5 pages/s|"), "{said}");
        (stats.seeded, stats.unclean_stops) = (false, 2);
        let said = text(&stats);
        assert!(said.starts_with("run=2, root has not run yet|"), "{said}");
        assert!(said.ends_with("|unclean ends=2 in a row"), "{said}");
    }
}
