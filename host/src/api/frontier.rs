//! The calls that look into a frontier: their answers, and their form that gRPC and HTTP share.

use std::collections::BTreeMap;

use serde::Serialize;

use super::client::Client;
use super::forward::Origin;
use super::problem::Problem;
use super::spec::{invalid, resource_name};
use super::{Api, CALL_DEADLINE, page_max};
use crate::config::suggest;
use crate::master::ControlError;
use crate::master::control::frontier::{Asked, HostsFrom, HostsPage, UrlsFrom, UrlsPage};
use crate::master::explain::Explanation;
use crate::model::crawl::Counts;
use crate::model::frontier::{FrontierStats, HostEntry, HostState, UrlEntry, UrlFilter, UrlState};
use crate::model::id::Shard;

/// Bytes of a body that an entry shows.
const BODY_SHOWN: usize = 256;
/// States by which a list of URLs can be filtered.
const STATES: [(&str, UrlFilter); 3] = [
    ("due", UrlFilter::Due),
    ("done", UrlFilter::Done),
    ("dead", UrlFilter::Dead),
];

/// Totals of a frontier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields of the message FrontierStats")]
pub struct FrontierAnswer {
    pub run: u64,
    pub seeded: bool,
    pub root_hosts: Vec<String>,
    pub hosts: u64,
    pub hosts_by_state: BTreeMap<String, u64>,
    pub undelivered: u64,
    pub dead_letters: u64,
    pub suspects: u64,
    pub unclean_stops: u32,
    pub counts: Counts,
}

/// One page of the list of URLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UrlsAnswer {
    /// URLs, state by state.
    pub urls: Vec<UrlAnswer>,
    /// Token of the next page; empty on the last one.
    pub next_page_token: String,
}

/// A URL that a frontier has stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[expect(missing_docs, reason = "the fields of the message UrlEntry")]
pub struct UrlAnswer {
    pub url: String,
    pub method: String,
    pub body: String,
    pub rule: String,
    pub depth: u32,
    pub run: u64,
    pub state: String,
    pub outcome: String,
    pub reason: String,
    pub detail: String,
    pub attempt: u32,
    pub at: u64,
    pub since: u64,
}

/// One page of the list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostsAnswer {
    /// Hosts, shard by shard.
    pub hosts: Vec<HostAnswer>,
    /// Token of the next page; empty on the last one.
    pub next_page_token: String,
}

/// A host of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[expect(missing_docs, reason = "the fields of the message HostEntry")]
pub struct HostAnswer {
    pub name: String,
    pub state: String,
    pub due: u64,
    pub not_before: u64,
    pub delay_ms: u64,
    pub delay_by: String,
    pub has_answered: bool,
    pub failures: u32,
    pub reason: String,
}

/// Explanation why a URL was or was not fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplanationAnswer {
    /// State of the URL: due, done, dead, refused or unseen.
    pub state: String,
    /// Explanation in a sentence.
    pub text: String,
    /// Stored entry of the URL.
    pub entry: Option<UrlAnswer>,
}

/// Outcome of a redrive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RedriveAnswer {
    /// Number of dead letters when the call was answered.
    pub dead_letters: u64,
}

impl Api {
    pub(crate) async fn frontier_stats(&self, name: &str) -> Result<FrontierAnswer, Problem> {
        let call = async { self.control.frontier_stats(&resource_name(name)?).await };
        Ok(self.within(CALL_DEADLINE, Box::pin(call)).await?.into())
    }

    pub(crate) async fn urls(
        &self,
        name: &str,
        state: &str,
        page_size: u32,
        page_token: &str,
    ) -> Result<UrlsAnswer, Problem> {
        let call = async {
            let name = resource_name(name)?;
            let only = match state {
                "" => None,
                state => Some(filter(state)?),
            };
            let from = match page_token {
                "" => None,
                token => Some(place(token, only)?),
            };
            let page = self.control.urls(&name, only, from, page_max(page_size));
            Ok::<_, Problem>(page.await?.into())
        };
        self.within(CALL_DEADLINE, Box::pin(call)).await
    }

    pub(crate) async fn hosts(
        &self,
        name: &str,
        state: &str,
        page_size: u32,
        page_token: &str,
    ) -> Result<HostsAnswer, Problem> {
        let call = async {
            let name = resource_name(name)?;
            let only = match state {
                "" => None,
                state => Some(host_state(state)?),
            };
            let from = match page_token {
                "" => None,
                token => Some(hosts_from(token).ok_or_else(bad_token)?),
            };
            let page = self.control.hosts(&name, only, from, page_max(page_size));
            Ok::<_, Problem>(page.await?.into())
        };
        self.within(CALL_DEADLINE, Box::pin(call)).await
    }

    pub(crate) async fn explain_url(
        &self,
        name: &str,
        asked: Asked,
    ) -> Result<ExplanationAnswer, Problem> {
        let call = async { self.control.explain_url(&resource_name(name)?, asked).await };
        Ok(self.within(CALL_DEADLINE, Box::pin(call)).await?.into())
    }

    /// Redrives the dead letters of a reason; an empty reason means all.
    pub(crate) async fn redrive_frontier(
        &self,
        origin: &Origin,
        name: &str,
        reason: String,
    ) -> Result<RedriveAnswer, Problem> {
        let call = async {
            let name = &resource_name(name)?;
            let reason = &Some(reason).filter(|reason| !reason.is_empty());
            let own = || async move {
                let redriven = self
                    .control
                    .redrive_frontier(name, reason.clone(), &origin.request);
                Ok(redriven.await?)
            };
            let theirs =
                |leader: Client| async move { leader.redrive_frontier(name, reason.clone()).await };
            let dead_letters = self.change(origin, own, theirs).await?;
            Ok(RedriveAnswer { dead_letters })
        };
        self.told(origin, "RedriveFrontier", name, call).await
    }
}

fn filter(state: &str) -> Result<UrlFilter, Problem> {
    let known = STATES.into_iter().find(|(name, _)| *name == state);
    known.map(|(_, filter)| filter).ok_or_else(|| {
        Problem::invalid(
            format!("there is no state {state:?} of URLs"),
            suggest::hint(state, &STATES.map(|(name, _)| name)),
        )
    })
}

fn host_state(state: &str) -> Result<HostState, Problem> {
    let known = HostState::ALL.into_iter();
    let mut known = known.filter(|known| known.as_str() == state);
    known.next().ok_or_else(|| {
        Problem::invalid(
            format!("there is no state {state:?} of hosts"),
            suggest::hint(state, &HostState::ALL.map(HostState::as_str)),
        )
    })
}

/// Parses a page token of hosts: the shard, and the place in it.
fn hosts_from(token: &str) -> Option<HostsFrom> {
    let (shard, place) = token.split_once(':')?;
    let place = hex::decode(place).ok()?;
    Some(HostsFrom {
        shard: Shard(shard.parse().ok()?),
        place: Some(place).filter(|place| !place.is_empty()),
    })
}

fn hosts_token(from: HostsFrom) -> String {
    let place = hex::encode(from.place.unwrap_or_default());
    format!("{}:{place}", from.shard)
}

fn bad_token() -> ControlError {
    invalid(
        "page_token",
        "page_token is not one that an answer to the same question gave",
    )
}

/// Parses a page token of URLs: the state, the shard, and the place in it.
fn place(token: &str, only: Option<UrlFilter>) -> Result<UrlsFrom, ControlError> {
    let parsed = token.split_once(':').and_then(|(state, place)| {
        let state = filter(state).ok()?;
        let (shard, place) = place.split_once(':')?;
        let place = hex::decode(place).ok()?;
        Some(UrlsFrom {
            state,
            shard: Shard(shard.parse().ok()?),
            place: Some(place).filter(|place| !place.is_empty()),
        })
    });
    parsed
        .filter(|from| only.is_none_or(|only| only == from.state))
        .ok_or_else(bad_token)
}

fn token(from: UrlsFrom) -> String {
    let name = STATES.into_iter().find(|(_, state)| *state == from.state);
    let name = name.map_or("", |(name, _)| name);
    let place = hex::encode(from.place.unwrap_or_default());
    format!("{name}:{}:{place}", from.shard)
}

impl From<FrontierStats> for FrontierAnswer {
    fn from(stats: FrontierStats) -> Self {
        Self {
            run: stats.run.0,
            seeded: stats.seeded,
            root_hosts: stats.root_hosts,
            hosts: stats.n_hosts,
            hosts_by_state: by_state(stats.hosts_by_state),
            undelivered: stats.n_undelivered,
            dead_letters: stats.n_dead_letters,
            suspects: stats.n_suspects,
            unclean_stops: stats.n_unclean_stops,
            counts: stats.counts,
        }
    }
}

fn by_state(hosts: BTreeMap<HostState, u64>) -> BTreeMap<String, u64> {
    let hosts = hosts.into_iter();
    hosts
        .map(|(state, n)| (state.as_str().to_owned(), n))
        .collect()
}

impl From<HostsPage> for HostsAnswer {
    fn from(page: HostsPage) -> Self {
        Self {
            hosts: page.entries.into_iter().map(Into::into).collect(),
            next_page_token: page.next.map(hosts_token).unwrap_or_default(),
        }
    }
}

impl From<HostEntry> for HostAnswer {
    fn from(entry: HostEntry) -> Self {
        Self {
            name: entry.name,
            state: entry.state.as_str().to_owned(),
            due: entry.n_due,
            not_before: entry.not_before,
            delay_ms: entry.delay_ms,
            delay_by: entry.delay_by.as_str().to_owned(),
            has_answered: entry.has_answered,
            failures: entry.n_failures,
            reason: entry.reason,
        }
    }
}

impl From<UrlsPage> for UrlsAnswer {
    fn from(page: UrlsPage) -> Self {
        Self {
            urls: page.entries.into_iter().map(Into::into).collect(),
            next_page_token: page.next.map(token).unwrap_or_default(),
        }
    }
}

impl From<UrlEntry> for UrlAnswer {
    fn from(entry: UrlEntry) -> Self {
        let request = entry.request;
        let answer = Self {
            url: request.url.into(),
            method: request.method.into_owned(),
            body: shown(&request.body.unwrap_or_default()),
            rule: request.rule.to_string(),
            depth: entry.depth,
            run: entry.run.0,
            state: entry.state.as_str().to_owned(),
            since: entry.since,
            ..Self::default()
        };
        match entry.state {
            UrlState::Due {
                at,
                attempt,
                failure,
                host: _,
            } => Self {
                at,
                attempt,
                reason: failure,
                ..answer
            },
            UrlState::Done(done) => Self {
                outcome: done.as_str().to_owned(),
                ..answer
            },
            UrlState::Dead { reason, detail } => Self {
                reason,
                detail,
                ..answer
            },
            UrlState::Sent { to } => Self {
                reason: format!("shard {to}"),
                ..answer
            },
        }
    }
}

impl From<Explanation> for ExplanationAnswer {
    fn from(explanation: Explanation) -> Self {
        Self {
            state: explanation.standing.as_str().to_owned(),
            text: explanation.text,
            entry: explanation.entry.map(Into::into),
        }
    }
}

/// Returns the beginning of a body, as text.
fn shown(body: &[u8]) -> String {
    let cut = body.len() > BODY_SHOWN;
    let mut text = String::from_utf8_lossy(&body[..body.len().min(BODY_SHOWN)]).into_owned();
    if cut {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::crawl::{Done, Request};
    use crate::model::id::Run;

    #[test]
    fn a_page_token_leads_back_to_the_place_it_was_made_of() {
        for from in [
            UrlsFrom {
                state: UrlFilter::Dead,
                shard: Shard(0),
                place: None,
            },
            UrlsFrom {
                state: UrlFilter::Due,
                shard: Shard(31),
                place: Some(vec![0, 255, 7]),
            },
        ] {
            let state = Some(from.state);
            assert_eq!(place(&token(from.clone()), state).unwrap(), from);
            assert_eq!(place(&token(from.clone()), None).unwrap(), from);
            assert!(place(&token(from), Some(UrlFilter::Done)).is_err());
        }
        for text in ["due", "due:00", "due:0:0", "lost:0:00", ":", "\0"] {
            assert!(place(text, None).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_page_token_of_hosts_leads_back_to_its_place() {
        for place in [None, Some(vec![b'h', 0, 255])] {
            let shard = Shard(3);
            let from = HostsFrom { shard, place };
            assert_eq!(hosts_from(&hosts_token(from.clone())), Some(from));
        }
        for text in ["", "0", "x:00", "0:0", ":", "\0"] {
            assert_eq!(hosts_from(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_entry_shows_what_belongs_to_its_state() {
        let entry = |state| {
            UrlAnswer::from(UrlEntry {
                request: Request {
                    body: Some("x".repeat(300).into()),
                    ..Request::get("http://a.test/".parse().unwrap(), "page")
                },
                depth: 3,
                run: Run(2),
                state,
                since: 9,
            })
        };
        let dead = entry(UrlState::Dead {
            reason: "timeout".into(),
            detail: "too long".into(),
        });
        assert_eq!(
            [dead.state.as_str(), &dead.reason, &dead.detail],
            ["dead", "timeout", "too long"]
        );
        assert_eq!(dead.body.len(), BODY_SHOWN + "…".len());
        let done = entry(UrlState::Done(Done::Gone));
        assert_eq!((done.outcome.as_str(), done.since), ("gone", 9));
        let due = entry(UrlState::Due {
            at: 5,
            attempt: 2,
            failure: "status-503".into(),
            host: None,
        });
        assert_eq!(
            (due.at, due.attempt, due.reason.as_str()),
            (5, 2, "status-503")
        );
    }
}
