//! Messages of the calls that look into a frontier.

use crawler_proto as proto;

use crate::api::answer::CountsAnswer;
use crate::api::frontier::{
    ExplanationAnswer, FrontierAnswer, HostAnswer, HostsAnswer, RedriveAnswer, UrlAnswer,
    UrlsAnswer,
};
use crate::master::control::frontier::Asked;

impl From<FrontierAnswer> for proto::FrontierStats {
    fn from(answer: FrontierAnswer) -> Self {
        let counts = CountsAnswer {
            totals: answer.counts,
            // Only the owner knows which URLs are in flight: they count as waiting.
            in_flight: 0,
        };
        Self {
            run: answer.run,
            seeded: answer.seeded,
            root_hosts: answer.root_hosts,
            hosts: answer.hosts,
            hosts_by_state: answer.hosts_by_state.into_iter().collect(),
            undelivered: answer.undelivered,
            dead_letters: answer.dead_letters,
            suspects: answer.suspects,
            unclean_stops: answer.unclean_stops,
            counts: Some(counts.into()),
        }
    }
}

impl From<proto::FrontierStats> for FrontierAnswer {
    fn from(message: proto::FrontierStats) -> Self {
        let counts = CountsAnswer::from(message.counts.unwrap_or_default());
        Self {
            run: message.run,
            seeded: message.seeded,
            root_hosts: message.root_hosts,
            hosts: message.hosts,
            hosts_by_state: message.hosts_by_state.into_iter().collect(),
            undelivered: message.undelivered,
            dead_letters: message.dead_letters,
            suspects: message.suspects,
            unclean_stops: message.unclean_stops,
            counts: counts.totals,
        }
    }
}

impl From<UrlsAnswer> for proto::ListUrlsResponse {
    fn from(answer: UrlsAnswer) -> Self {
        Self {
            urls: answer.urls.into_iter().map(Into::into).collect(),
            next_page_token: answer.next_page_token,
        }
    }
}

impl From<proto::ListUrlsResponse> for UrlsAnswer {
    fn from(message: proto::ListUrlsResponse) -> Self {
        Self {
            urls: message.urls.into_iter().map(Into::into).collect(),
            next_page_token: message.next_page_token,
        }
    }
}

impl From<HostsAnswer> for proto::ListHostsResponse {
    fn from(answer: HostsAnswer) -> Self {
        Self {
            hosts: answer.hosts.into_iter().map(Into::into).collect(),
            next_page_token: answer.next_page_token,
        }
    }
}

impl From<proto::ListHostsResponse> for HostsAnswer {
    fn from(message: proto::ListHostsResponse) -> Self {
        Self {
            hosts: message.hosts.into_iter().map(Into::into).collect(),
            next_page_token: message.next_page_token,
        }
    }
}

impl From<HostAnswer> for proto::HostEntry {
    fn from(answer: HostAnswer) -> Self {
        Self {
            name: answer.name,
            state: answer.state,
            due: answer.due,
            not_before: answer.not_before,
            delay_ms: answer.delay_ms,
            delay_by: answer.delay_by,
            has_answered: answer.has_answered,
            failures: answer.failures,
            reason: answer.reason,
        }
    }
}

impl From<proto::HostEntry> for HostAnswer {
    fn from(message: proto::HostEntry) -> Self {
        Self {
            name: message.name,
            state: message.state,
            due: message.due,
            not_before: message.not_before,
            delay_ms: message.delay_ms,
            delay_by: message.delay_by,
            has_answered: message.has_answered,
            failures: message.failures,
            reason: message.reason,
        }
    }
}

impl From<UrlAnswer> for proto::UrlEntry {
    fn from(answer: UrlAnswer) -> Self {
        Self {
            url: answer.url,
            method: answer.method,
            body: answer.body,
            rule: answer.rule,
            depth: answer.depth,
            run: answer.run,
            state: answer.state,
            outcome: answer.outcome,
            reason: answer.reason,
            detail: answer.detail,
            attempt: answer.attempt,
            at: answer.at,
            since: answer.since,
        }
    }
}

impl From<proto::UrlEntry> for UrlAnswer {
    fn from(message: proto::UrlEntry) -> Self {
        Self {
            url: message.url,
            method: message.method,
            body: message.body,
            rule: message.rule,
            depth: message.depth,
            run: message.run,
            state: message.state,
            outcome: message.outcome,
            reason: message.reason,
            detail: message.detail,
            attempt: message.attempt,
            at: message.at,
            since: message.since,
        }
    }
}

impl From<ExplanationAnswer> for proto::UrlExplanation {
    fn from(answer: ExplanationAnswer) -> Self {
        Self {
            state: answer.state,
            text: answer.text,
            entry: answer.entry.map(Into::into),
        }
    }
}

impl From<proto::UrlExplanation> for ExplanationAnswer {
    fn from(message: proto::UrlExplanation) -> Self {
        Self {
            state: message.state,
            text: message.text,
            entry: message.entry.map(Into::into),
        }
    }
}

impl From<RedriveAnswer> for proto::RedriveResponse {
    fn from(answer: RedriveAnswer) -> Self {
        Self {
            dead_letters: answer.dead_letters,
        }
    }
}

/// Parses the request that is to be explained.
pub(crate) fn asked(message: proto::ExplainUrlRequest) -> Asked {
    Asked {
        url: message.url,
        method: message.method,
        body: message.body.into(),
    }
}
