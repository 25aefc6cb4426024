//! The calls that look into a frontier, and their answers.

use crawler_proto as proto;

use super::client::Client;
use super::convert::crawl::{by_state_message, counts_message};
use super::convert::statistics::statistics_message;
use super::forward::Origin;
use super::lists::bad_token;
use super::problem::Problem;
use super::{Api, CALL_DEADLINE, page_max};
use crawler_master::ControlError;
use crawler_master::control::frontier::{HostCursor, HostsPage, UrlCursor, UrlQuery, UrlsPage};
use crawler_master::explain::Explanation;
use crawler_model::frontier::{FrontierStats, HostEntry, HostState, UrlEntry, UrlFilter, UrlState};
use crawler_model::id::Shard;
use crawler_model::suggest;

/// Bytes of a body that an entry shows.
const BODY_SHOWN: usize = 256;
/// States by which a list of URLs can be filtered.
const STATES: [(&str, UrlFilter); 3] = [
    ("due", UrlFilter::Due),
    ("done", UrlFilter::Done),
    ("dead", UrlFilter::Dead),
];

impl Api {
    pub(crate) async fn frontier_stats(&self, name: &str) -> Result<proto::FrontierStats, Problem> {
        let call = async {
            let name = self.resource_name(name)?;
            Ok::<_, Problem>(self.control.frontier_stats(&name).await?)
        };
        Ok(stats(self.within(CALL_DEADLINE, Box::pin(call)).await?))
    }

    pub(crate) async fn statistics(&self, name: &str) -> Result<proto::RunStatistics, Problem> {
        let call = async {
            let name = self.resource_name(name)?;
            Ok::<_, Problem>(self.control.statistics(&name).await?)
        };
        let found = self.within(CALL_DEADLINE, Box::pin(call)).await?;
        Ok(statistics_message(found))
    }

    pub(crate) async fn urls(
        &self,
        name: &str,
        state: &str,
        page_size: u32,
        page_token: &str,
    ) -> Result<proto::ListUrlsResponse, Problem> {
        let call = async {
            let name = self.resource_name(name)?;
            let only = match state {
                "" => None,
                state => Some(filter(state)?),
            };
            let from = match page_token {
                "" => None,
                token => Some(url_cursor(token, only)?),
            };
            let page = self.control.urls(&name, only, from, page_max(page_size));
            Ok::<_, Problem>(urls(page.await?))
        };
        self.within(CALL_DEADLINE, Box::pin(call)).await
    }

    pub(crate) async fn hosts(
        &self,
        name: &str,
        state: &str,
        page_size: u32,
        page_token: &str,
    ) -> Result<proto::ListHostsResponse, Problem> {
        let call = async {
            let name = self.resource_name(name)?;
            let only = match state {
                "" => None,
                state => Some(host_state(state)?),
            };
            let from = match page_token {
                "" => None,
                token => Some(host_cursor(token).ok_or_else(bad_token)?),
            };
            let page = self.control.hosts(&name, only, from, page_max(page_size));
            Ok::<_, Problem>(hosts(page.await?))
        };
        self.within(CALL_DEADLINE, Box::pin(call)).await
    }

    pub(crate) async fn explain_url(
        &self,
        name: &str,
        query: UrlQuery,
    ) -> Result<proto::UrlExplanation, Problem> {
        let call = async {
            let name = self.resource_name(name)?;
            Ok::<_, Problem>(self.control.explain_url(&name, query).await?)
        };
        let explained = self.within(CALL_DEADLINE, Box::pin(call)).await?;
        Ok(explanation(explained))
    }

    /// Redrives the dead letters of a reason; an empty reason means all.
    pub(crate) async fn redrive_frontier(
        &self,
        origin: &Origin,
        name: &str,
        reason: String,
    ) -> Result<proto::RedriveResponse, Problem> {
        let call = async {
            let name = &self.resource_name(name)?;
            let reason = &Some(reason).filter(|reason| !reason.is_empty());
            let own = || async move {
                let redriven =
                    self.control
                        .redrive_frontier(name, reason.clone(), self.asked(origin));
                Ok(redriven.await?)
            };
            let theirs =
                |leader: Client| async move { leader.redrive_frontier(name, reason.clone()).await };
            let dead_letters = self.change(origin, own, theirs).await?;
            Ok(proto::RedriveResponse { dead_letters })
        };
        self.logged(origin, "RedriveFrontier", name, call).await
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

/// Parses a page token of hosts: the shard, and the position in it.
fn host_cursor(token: &str) -> Option<HostCursor> {
    let (shard, place) = token.split_once(':')?;
    let place = hex::decode(place).ok()?;
    Some(HostCursor {
        shard: Shard(shard.parse().ok()?),
        place: Some(place).filter(|place| !place.is_empty()),
    })
}

fn host_token(from: HostCursor) -> String {
    let place = hex::encode(from.place.unwrap_or_default());
    format!("{}:{place}", from.shard)
}

/// Parses a page token of URLs: the state, the shard, and the position in it.
fn url_cursor(token: &str, only: Option<UrlFilter>) -> Result<UrlCursor, ControlError> {
    let parsed = token.split_once(':').and_then(|(state, place)| {
        let state = filter(state).ok()?;
        let (shard, place) = place.split_once(':')?;
        let place = hex::decode(place).ok()?;
        Some(UrlCursor {
            state,
            shard: Shard(shard.parse().ok()?),
            place: Some(place).filter(|place| !place.is_empty()),
        })
    });
    parsed
        .filter(|from| only.is_none_or(|only| only == from.state))
        .ok_or_else(bad_token)
}

fn token(from: UrlCursor) -> String {
    let name = STATES.into_iter().find(|(_, state)| *state == from.state);
    let name = name.map_or("", |(name, _)| name);
    let place = hex::encode(from.place.unwrap_or_default());
    format!("{name}:{}:{place}", from.shard)
}

pub(super) fn stats(stats: FrontierStats) -> proto::FrontierStats {
    proto::FrontierStats {
        run: stats.run.0,
        seeded: stats.seeded,
        root_hosts: stats.root_hosts,
        hosts: stats.n_hosts,
        hosts_by_state: by_state_message(stats.hosts_by_state),
        undelivered: stats.n_undelivered,
        dead_letters: stats.n_dead_letters,
        suspects: stats.n_suspects,
        unclean_stops: stats.n_unclean_stops,
        // Only the owner knows which URLs are in flight: they count as waiting.
        counts: Some(counts_message(stats.counts, 0)),
    }
}

pub(super) fn hosts(page: HostsPage) -> proto::ListHostsResponse {
    proto::ListHostsResponse {
        hosts: page.entries.into_iter().map(host).collect(),
        next_page_token: page.next.map(host_token).unwrap_or_default(),
    }
}

fn host(entry: HostEntry) -> proto::HostEntry {
    proto::HostEntry {
        name: entry.name,
        state: entry.state.as_str().to_owned(),
        due: entry.n_due,
        not_before: entry.not_before,
        delay_ms: entry.delay_ms,
        delay_by: entry.delay_by.as_str().to_owned(),
        has_answered: entry.has_answered,
        failures: entry.n_failures,
        reason: entry.reason,
        in_flight: entry.n_in_flight,
    }
}

pub(super) fn urls(page: UrlsPage) -> proto::ListUrlsResponse {
    proto::ListUrlsResponse {
        urls: page.entries.into_iter().map(url).collect(),
        next_page_token: page.next.map(token).unwrap_or_default(),
    }
}

fn url(entry: UrlEntry) -> proto::UrlEntry {
    let request = entry.request;
    let url = proto::UrlEntry {
        url: request.url.into(),
        method: request.method.into_owned(),
        body: shown(&request.body.unwrap_or_default()),
        rule: request.rule.to_string(),
        depth: entry.depth,
        run: entry.run.0,
        state: entry.state.as_str().to_owned(),
        since: entry.since,
        referrer: request.referrer.as_deref().unwrap_or_default().to_owned(),
        ..proto::UrlEntry::default()
    };
    match entry.state {
        UrlState::Due {
            at,
            attempt,
            failure,
            host: _,
        } => proto::UrlEntry {
            at,
            attempt,
            reason: failure,
            ..url
        },
        UrlState::Done(done) => proto::UrlEntry {
            outcome: done.as_str().to_owned(),
            ..url
        },
        UrlState::Dead { reason, detail } => proto::UrlEntry {
            reason,
            detail,
            ..url
        },
        UrlState::Sent { to } => proto::UrlEntry {
            reason: format!("shard {to}"),
            ..url
        },
    }
}

pub(super) fn explanation(explanation: Explanation) -> proto::UrlExplanation {
    proto::UrlExplanation {
        state: explanation.status.as_str().to_owned(),
        text: explanation.text,
        entry: explanation.entry.map(url),
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
    use crawler_model::crawl::{Done, Request};
    use crawler_model::id::Run;

    #[test]
    fn a_page_token_leads_back_to_the_place_it_was_made_of() {
        for from in [
            UrlCursor {
                state: UrlFilter::Dead,
                shard: Shard(0),
                place: None,
            },
            UrlCursor {
                state: UrlFilter::Due,
                shard: Shard(31),
                place: Some(vec![0, 255, 7]),
            },
        ] {
            let state = Some(from.state);
            assert_eq!(url_cursor(&token(from.clone()), state).unwrap(), from);
            assert_eq!(url_cursor(&token(from.clone()), None).unwrap(), from);
            assert!(url_cursor(&token(from), Some(UrlFilter::Done)).is_err());
        }
        for text in ["due", "due:00", "due:0:0", "lost:0:00", ":", "\0"] {
            assert!(url_cursor(text, None).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_page_token_of_hosts_leads_back_to_its_place() {
        for place in [None, Some(vec![b'h', 0, 255])] {
            let shard = Shard(3);
            let from = HostCursor { shard, place };
            assert_eq!(host_cursor(&host_token(from.clone())), Some(from));
        }
        for text in ["", "0", "x:00", "0:0", ":", "\0"] {
            assert_eq!(host_cursor(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_entry_shows_what_belongs_to_its_state() {
        let entry = |state| {
            url(UrlEntry {
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
