//! Explanation of a URL's fate, in one sentence for every URL, known or not.
//!
//! The functions are pure: the frontier's records go in, the explanation comes out.

use std::time::Duration;

use crawler_model::crawl::{Done, Request, UnixMillis};
use crawler_model::frontier::{FrontierStats, HostWait, UrlEntry, UrlState};
use crawler_model::id::{ResourceName, Run};
use crawler_model::resource::{Resource, ShardRecord, ShardState, Waits};
use crawler_model::scope::{DISK, HOSTS, PATTERN_URLS, Refusal};
use crawler_model::settings::{CrawlSettings, Rates};

/// Refusals that depend on data stored before, or on the page that the link is on. From the URL alone, one
/// cannot tell whether it was among those refused.
const UNSURE: [&str; 5] = ["max-depth", PATTERN_URLS, HOSTS, DISK, "frontier-urls"];

/// A question about a URL, with the records about it.
#[derive(Debug)]
pub(super) struct Question<'a> {
    /// Name of the resource.
    pub(super) resource: &'a ResourceName,
    /// The present run.
    pub(super) run: Run,
    /// The request that a link to the URL would lead to.
    pub(super) request: &'a Request,
    /// Totals of the frontier. If `None`, there is no frontier yet.
    pub(super) stats: Option<&'a FrontierStats>,
    /// The frontier's record of the request.
    pub(super) entry: Option<UrlEntry>,
    /// Rule that refuses links to the URL; considered only if `root` ran.
    pub(super) refusal: Option<Refusal>,
    /// Settings of the crawl.
    pub(super) settings: &'a CrawlSettings,
    /// Reason why nothing of the shard is fetched at present, if so.
    pub(super) held_up: Option<String>,
    /// The present time.
    pub(super) now: UnixMillis,
}

/// Returns the reason why nothing of a shard is fetched, according to its records, or `None` while it is
/// crawled.
pub(super) fn held_up(resource: &Resource, shard: &ShardRecord) -> Option<String> {
    let name = &resource.spec.name;
    match &shard.state {
        ShardState::Failed { reason } => Some(format!("the run cannot go on: {reason}")),
        ShardState::Finished => Some(format!(
            "run {} is over, for --max-pages or --max-bytes left no room; raise the one that binds, and `crawler resource restart {name}` begins anew",
            resource.run
        )),
        _ if resource.paused => Some(format!(
            "the crawl is paused; `crawler resource resume {name}` goes on"
        )),
        ShardState::Free => Some("no worker has its shard".to_owned()),
        ShardState::Assigned | ShardState::Idle | ShardState::Revoking => {
            let waits = shard.waits.as_ref();
            waits.map(|Waits { condition, why }| format!("{condition}: {why}"))
        }
    }
}

/// State of a URL in the present run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlStatus {
    /// The URL waits, or is in flight.
    Due,
    /// The URL came to an end that is not a failure.
    Done,
    /// The URL was given up.
    Dead,
    /// The URL belongs to another shard.
    Sent,
    /// Links to the URL are refused.
    Refused,
    /// No page has led to the URL.
    Unseen,
}

impl UrlStatus {
    /// Returns the word that the API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            UrlStatus::Due => "due",
            UrlStatus::Done => "done",
            UrlStatus::Dead => "dead",
            UrlStatus::Sent => "sent",
            UrlStatus::Refused => "refused",
            UrlStatus::Unseen => "unseen",
        }
    }
}

/// Explanation of a URL's fate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// State of the URL.
    pub status: UrlStatus,
    /// Explanation in one sentence.
    pub text: String,
    /// The frontier's record of the URL; that of an earlier run if the present one has not reached it.
    pub entry: Option<UrlEntry>,
}

/// Answers a question.
pub(super) fn explain(question: Question<'_>) -> Explanation {
    let entry = question.entry.as_ref();
    let (status, text) = match entry.filter(|entry| entry.run == question.run) {
        Some(entry) => stored(&question, entry),
        None => not_stored(&question),
    };
    Explanation {
        status,
        text,
        entry: question.entry,
    }
}

fn stored(question: &Question<'_>, entry: &UrlEntry) -> (UrlStatus, String) {
    let since = time(entry.since);
    match &entry.state {
        UrlState::Due {
            at,
            attempt,
            failure,
            host,
        } => {
            let at = host.as_ref().map_or(*at, |host| host.until.max(*at));
            let when = match at {
                at if at > question.now => format!("not before {}", time(at)),
                _ => format!("as soon as its turn comes{}", pace(question.settings)),
            };
            let mut text = match failure.as_str() {
                "" => format!("due: not tried yet, {when}"),
                failure => format!("due: attempt {attempt} {when}, after {failure}"),
            };
            if let Some(host) = host {
                text.push_str(&of_host(host, question.now));
            }
            if let Some(why) = &question.held_up {
                text.push_str(&format!("; nothing is fetched now: {why}"));
            }
            (UrlStatus::Due, text)
        }
        UrlState::Done(done) => {
            let run = entry.run;
            let text = match entry.since {
                // The URL itself was never stored, so the time is not known.
                0 => format!("done: a redirect led to it in run {run}"),
                _ => {
                    let why = match done {
                        Done::Denied => " (setting content-types leaves out what it is)",
                        _ => "",
                    };
                    format!("done: {}{why} at {since} in run {run}", done.as_str())
                }
            };
            (UrlStatus::Done, text)
        }
        UrlState::Dead { reason, detail } => {
            let name = question.resource;
            let detail = match detail.as_str() {
                "" => String::new(),
                detail => format!(" ({detail})"),
            };
            let text = format!(
                "dead: {reason}{detail}, given up at {since} in run {}; `crawler frontier redrive {name} --reason {reason}` tries again",
                entry.run
            );
            (UrlStatus::Dead, text)
        }
        UrlState::Sent { to } => {
            let text = format!("sent to shard {to}, to which its host belongs");
            (UrlStatus::Sent, text)
        }
    }
}

/// Returns the settings by which a crawl begins pages more slowly than its hosts allow; empty if there are none.
fn pace(settings: &CrawlSettings) -> String {
    let rates = |option: &str, rates: Option<&Rates>| {
        let rates = rates.filter(|rates| !rates.is_empty())?;
        Some(format!("{option} {rates}"))
    };
    let hours = settings.hours.as_ref().filter(|hours| !hours.is_empty());
    let all = [
        rates("--rate", settings.rate.as_ref()),
        rates("--host-rate", settings.host_rate.as_ref()),
        hours.map(|hours| format!("--hours {hours}")),
    ];
    match &all.into_iter().flatten().collect::<Vec<String>>()[..] {
        [] => String::new(),
        all => format!(", within {}", all.join(", ")),
    }
}

/// Returns what a URL waits for at its host; empty if that is nothing.
fn of_host(host: &HostWait, now: UnixMillis) -> String {
    let reason = &host.reason;
    match host.n_failures {
        0 if host.until <= now => String::new(),
        0 => {
            let delay = humantime::format_duration(Duration::from_millis(host.delay_ms));
            let by = host.delay_by.explanation();
            let by = by.map_or_else(String::new, |by| format!(" ({by})"));
            let delay = match host.delay_ms {
                0 => String::new(),
                _ => format!(", with a delay of {delay}{by}"),
            };
            format!("; its host is left alone until {}{delay}", time(host.until))
        }
        1 => format!("; its host could not be reached 1 time ({reason})"),
        n => format!("; its host could not be reached {n} times on end ({reason})"),
    }
}

fn not_stored(question: &Question<'_>) -> (UrlStatus, String) {
    let run = question.run;
    let stats = question
        .stats
        .filter(|stats| stats.run == run && stats.seeded);
    let Some(stats) = stats else {
        let text = format!("unseen: root has not run in run {run} yet, so no URL of it is known");
        return (UrlStatus::Unseen, earlier(question, text));
    };
    if let Some(rule) = question.refusal {
        let text = format!("refused: {}", refused(question, rule, stats));
        return (UrlStatus::Refused, earlier(question, text));
    }
    let mut text = format!("unseen: no page of run {run} has led to it so far");
    let unsure = UNSURE.iter().filter_map(|rule| {
        let n_links = stats.counts.refused_links.get(*rule)?;
        (*n_links > 0).then(|| format!("{rule} {n_links}"))
    });
    let unsure: Vec<String> = unsure.collect();
    if !unsure.is_empty() {
        let unsure = unsure.join(", ");
        text.push_str(&format!(
            ", unless it was among the links that were refused: {unsure}"
        ));
    }
    (UrlStatus::Unseen, earlier(question, text))
}

/// Returns the reason why a rule refuses a link, and a setting that would admit it.
fn refused(question: &Question<'_>, rule: Refusal, stats: &FrontierStats) -> String {
    let Refusal::OutOfScope = rule else {
        return rule.to_string();
    };
    let host = question.request.url.host_str().unwrap_or_default();
    let scope = question.settings.scope.iter().map(ToString::to_string);
    let scope: Vec<String> = scope.collect();
    let wider = [&scope[..], &[host.to_owned()]].concat().join(",");
    format!(
        "{host} is out of scope, which is {}; `crawler resource update {} --scope {wider}` widens it",
        few(&[&stats.root_hosts[..], &scope].concat()),
        question.resource
    )
}

/// Appends the record of an earlier run, if there is one.
fn earlier(question: &Question<'_>, text: String) -> String {
    match &question.entry {
        Some(entry) => format!(
            "{text}; run {} had it as {}",
            entry.run,
            entry.state.as_str()
        ),
        None => text,
    }
}

/// Joins the first few of many hosts.
fn few(hosts: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = hosts[..hosts.len().min(SHOWN)].join(", ");
    match hosts.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more hosts"),
    }
}

fn time(unix_millis: UnixMillis) -> String {
    let time = std::time::UNIX_EPOCH + Duration::from_millis(unix_millis);
    humantime::format_rfc3339_seconds(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::crawl::Done;
    use crawler_model::frontier::DelaySource;

    const URL: &str = "http://a.test/x";
    const MOMENT: UnixMillis = 1_700_000_000_000;

    fn entry(state: UrlState, run: u64) -> UrlEntry {
        UrlEntry {
            request: Request::get(URL.parse().unwrap(), "page"),
            depth: 2,
            run: Run(run),
            state,
            since: MOMENT,
        }
    }

    fn due(attempt: u32, at: UnixMillis, failure: &str) -> UrlState {
        let failure = failure.to_owned();
        UrlState::Due {
            at,
            attempt,
            failure,
            host: None,
        }
    }

    fn stats() -> FrontierStats {
        FrontierStats {
            run: Run(2),
            seeded: true,
            root_hosts: vec!["a.test".to_owned()],
            ..FrontierStats::default()
        }
    }

    /// Checks the explanation of a URL in run 2, at [`MOMENT`].
    #[track_caller]
    fn check(
        entry: Option<UrlEntry>,
        stats: Option<FrontierStats>,
        refusal: Option<Refusal>,
        status: UrlStatus,
        text: &str,
    ) {
        let url = match refusal {
            Some(_) => "http://b.test/",
            None => URL,
        };
        let explanation = explain(Question {
            resource: &"books".parse().unwrap(),
            run: Run(2),
            request: &Request::get(url.parse().unwrap(), ""),
            stats: stats.as_ref(),
            entry: entry.clone(),
            refusal,
            settings: &CrawlSettings {
                max_depth: Some(5),
                scope: vec!["*.c.test".parse().unwrap()],
                ..CrawlSettings::default()
            },
            held_up: None,
            now: MOMENT,
        });
        let expected = Explanation {
            status,
            text: text.to_owned(),
            entry,
        };
        assert_eq!(explanation, expected);
    }

    #[track_caller]
    fn check_stored(state: UrlState, status: UrlStatus, text: &str) {
        check(Some(entry(state, 2)), Some(stats()), None, status, text);
    }

    #[test]
    fn a_stored_url_is_told_its_state_and_what_comes_next() {
        check_stored(
            due(1, 0, ""),
            UrlStatus::Due,
            "due: not tried yet, as soon as its turn comes",
        );
        check_stored(
            due(3, MOMENT + 1_000, "status-503"),
            UrlStatus::Due,
            "due: attempt 3 not before 2023-11-14T22:13:21Z, after status-503",
        );
        check_stored(
            due(3, MOMENT, "status-503"),
            UrlStatus::Due,
            "due: attempt 3 as soon as its turn comes, after status-503",
        );
        let resolve = |n_failures| HostWait {
            n_failures,
            reason: "resolve".to_owned(),
            ..HostWait::default()
        };
        let robots = HostWait {
            delay_ms: 5_000,
            delay_by: DelaySource::Robots,
            ..HostWait::default()
        };
        for (wait, until, text) in [
            (
                resolve(1),
                2_000,
                "not before 2023-11-14T22:13:22Z; its host could not be reached 1 time (resolve)",
            ),
            (
                resolve(3),
                0,
                "as soon as its turn comes; its host could not be reached 3 times on end (resolve)",
            ),
            (
                robots.clone(),
                4_000,
                "not before 2023-11-14T22:13:24Z; its host is left alone until 2023-11-14T22:13:24Z, with a delay of 5s (crawl-delay of its robots.txt)",
            ),
            (robots, 0, "as soon as its turn comes"),
            (
                HostWait::default(),
                4_000,
                "not before 2023-11-14T22:13:24Z; its host is left alone until 2023-11-14T22:13:24Z",
            ),
        ] {
            let UrlState::Due {
                at,
                attempt,
                failure,
                ..
            } = due(1, 0, "")
            else {
                unreachable!()
            };
            let until = MOMENT + until;
            let host = Some(HostWait { until, ..wait });
            let state = UrlState::Due {
                at,
                attempt,
                failure,
                host,
            };
            check_stored(
                state,
                UrlStatus::Due,
                &format!("due: not tried yet, {text}"),
            );
        }
        check_stored(
            UrlState::Done(Done::Parsed),
            UrlStatus::Done,
            "done: parsed at 2023-11-14T22:13:20Z in run 2",
        );
        check_stored(
            UrlState::Done(Done::Denied),
            UrlStatus::Done,
            "done: denied (setting content-types leaves out what it is) at 2023-11-14T22:13:20Z in run 2",
        );
        let led_to = UrlEntry {
            since: 0,
            ..entry(UrlState::Done(Done::Duplicate), 2)
        };
        let text = "done: a redirect led to it in run 2";
        check(Some(led_to), Some(stats()), None, UrlStatus::Done, text);
        let dead = |reason: &str, detail: &str| UrlState::Dead {
            reason: reason.to_owned(),
            detail: detail.to_owned(),
        };
        check_stored(
            dead("timeout", ""),
            UrlStatus::Dead,
            "dead: timeout, given up at 2023-11-14T22:13:20Z in run 2; `crawler frontier redrive books --reason timeout` tries again",
        );
        check_stored(
            dead("robots", "line 3, Disallow: /x"),
            UrlStatus::Dead,
            "dead: robots (line 3, Disallow: /x), given up at 2023-11-14T22:13:20Z in run 2; `crawler frontier redrive books --reason robots` tries again",
        );
    }

    #[test]
    fn a_url_that_was_never_stored_is_told_why_it_cannot_be_or_that_nothing_led_to_it() {
        let unseen = "unseen: no page of run 2 has led to it so far";
        check(None, Some(stats()), None, UrlStatus::Unseen, unseen);
        let mut refused = stats();
        refused.counts.refused_links = [("max-depth", 14), ("scheme", 1), (PATTERN_URLS, 0)]
            .map(|(rule, n)| (rule.to_owned(), n))
            .into();
        let text =
            format!("{unseen}, unless it was among the links that were refused: max-depth 14");
        check(None, Some(refused), None, UrlStatus::Unseen, &text);
        for (rule, text) in [
            (Refusal::Scheme, "refused: only http and https are fetched"),
            (
                Refusal::OutOfScope,
                "refused: b.test is out of scope, which is a.test, *.c.test; `crawler resource update books --scope *.c.test,b.test` widens it",
            ),
            (
                Refusal::SegmentRepeats { max: 3 },
                "refused: its path has one segment more than 3 times, and setting max-segment-repeats allows no more",
            ),
        ] {
            check(None, Some(stats()), Some(rule), UrlStatus::Refused, text);
        }
    }

    #[test]
    fn before_root_has_run_nothing_is_known_and_what_an_earlier_run_knew_is_told() {
        let not_yet = "unseen: root has not run in run 2 yet, so no URL of it is known";
        check(None, None, None, UrlStatus::Unseen, not_yet);
        let unseeded = FrontierStats {
            seeded: false,
            ..stats()
        };
        check(None, Some(unseeded), None, UrlStatus::Unseen, not_yet);
        let behind = FrontierStats {
            run: Run(1),
            ..stats()
        };
        let before = || Some(entry(UrlState::Done(Done::Gone), 1));
        let text = format!("{not_yet}; run 1 had it as done");
        check(before(), Some(behind), None, UrlStatus::Unseen, &text);
        let text = "unseen: no page of run 2 has led to it so far; run 1 had it as done";
        check(before(), Some(stats()), None, UrlStatus::Unseen, text);
    }

    #[test]
    fn of_many_hosts_a_few_are_named() {
        let many = ["a", "b", "c", "d", "e"].map(str::to_owned);
        assert_eq!(few(&many), "a, b, c and 2 more hosts");
        assert_eq!(few(&many[..3]), "a, b, c");
    }

    #[test]
    fn a_due_url_is_told_what_holds_it_up() {
        let told = |settings: &CrawlSettings, held_up: Option<&str>| {
            let explanation = explain(Question {
                resource: &"books".parse().unwrap(),
                run: Run(2),
                request: &Request::get(URL.parse().unwrap(), ""),
                stats: Some(&stats()),
                entry: Some(entry(due(1, 0, ""), 2)),
                refusal: None,
                settings,
                held_up: held_up.map(str::to_owned),
                now: MOMENT,
            });
            explanation.text
        };
        assert_eq!(
            told(&CrawlSettings::default(), Some("the crawl is paused")),
            "due: not tried yet, as soon as its turn comes; nothing is fetched now: the crawl is paused"
        );
        let paced = CrawlSettings {
            host_rate: Some("100/h".parse().unwrap()),
            rate: Some("none".parse().unwrap()),
            hours: Some("22:00-06:00".parse().unwrap()),
            ..CrawlSettings::default()
        };
        assert_eq!(
            told(&paced, None),
            "due: not tried yet, as soon as its turn comes, within --host-rate 100/h, --hours 22:00-06:00"
        );
    }
}
