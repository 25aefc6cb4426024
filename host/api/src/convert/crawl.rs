//! Conversion of what a worker tells a master of its crawls: totals, log lines and status.

use std::collections::BTreeMap;

use crawler_proto as proto;

use crate::spec::resource_name;
use crawler_master::ControlError;
use crawler_model::crawl::Counts;
use crawler_model::frontier::HostState;
use crawler_model::id::{Epoch, ResourceId, Run, Shard};
use crawler_model::plugin::LimitName;
use crawler_model::resource::Waits;
use crawler_model::status::{CrawlStatus, LimitUse, LogLine, PresentHosts};

pub(crate) fn counts_message(totals: Counts, in_flight: u64) -> proto::Counts {
    proto::Counts {
        parsed: totals.parsed,
        other_done: totals.other_done,
        dead: totals.dead,
        retries: totals.retries,
        items: totals.items,
        held: totals.held,
        bytes: totals.bytes,
        kept_bytes: totals.kept_bytes,
        due: totals.due,
        in_flight,
        hosts: totals.hosts,
        refused_links: totals.refused_links,
        dead_by_reason: totals.dead_by_reason,
        outcomes: totals.outcomes,
        began_at: totals.began_at,
        ended_at: totals.ended_at,
    }
}

/// Returns the totals in a message, without the pages in flight, which are none.
pub fn totals(message: proto::Counts) -> Counts {
    Counts {
        parsed: message.parsed,
        other_done: message.other_done,
        dead: message.dead,
        retries: message.retries,
        items: message.items,
        held: message.held,
        bytes: message.bytes,
        kept_bytes: message.kept_bytes,
        due: message.due,
        hosts: message.hosts,
        refused_links: message.refused_links,
        dead_by_reason: message.dead_by_reason,
        outcomes: message.outcomes,
        began_at: message.began_at,
        ended_at: message.ended_at,
    }
}

pub(crate) fn line_message(line: LogLine) -> proto::LogLine {
    proto::LogLine {
        at: line.at,
        level: line.level.to_owned(),
        url: line.url,
        rule: line.rule,
        message: line.message,
        run: line.run.0,
        shard: line.shard.0,
        number: line.number,
        more: line.more,
    }
}

pub(crate) fn line(message: proto::LogLine) -> LogLine {
    LogLine {
        at: message.at,
        level: LogLine::level(&message.level),
        url: message.url,
        rule: message.rule,
        message: message.message,
        run: Run(message.run),
        shard: Shard(message.shard),
        number: message.number,
        more: message.more,
    }
}

pub(crate) fn status_message(status: CrawlStatus) -> proto::CrawlStatus {
    // Nothing is in flight where there are no counts.
    let counts = status.counts;
    proto::CrawlStatus {
        name: status.name.to_string(),
        resource_id: status.id.0,
        shard: status.shard.0,
        epoch: status.epoch.0,
        run: status.run.0,
        counts: counts.map(|totals| counts_message(totals, status.in_flight)),
        waits: status.waits.map(|waits| proto::Waits {
            condition: waits.condition,
            why: waits.why,
        }),
        last_errors: status.last_errors.into_iter().map(line_message).collect(),
        hosts: status.hosts.map(|hosts| proto::PresentHosts {
            by_state: by_state_message(hosts.by_state),
            in_flight: hosts.in_flight.into_iter().collect(),
        }),
        limits_used: limits_used_message(status.limits_used),
    }
}

/// Returns uses of limits by the names of the limits.
pub(crate) fn limits_used_message(
    limits_used: BTreeMap<LimitName, LimitUse>,
) -> BTreeMap<String, proto::LimitUse> {
    let limits_used = limits_used.into_iter();
    let limits_used = limits_used.map(|(name, LimitUse { used, limit })| {
        (name.to_string(), proto::LimitUse { used, limit })
    });
    limits_used.collect()
}

/// Parses the use of a limit. A limit that only later versions know is left out.
fn limit_use((name, message): (String, proto::LimitUse)) -> Option<(LimitName, LimitUse)> {
    let mut known = LimitName::ALL.into_iter();
    let name = known.find(|known| known.as_str() == name)?;
    let proto::LimitUse { used, limit } = message;
    Some((name, LimitUse { used, limit }))
}

/// Returns numbers of hosts by the words of their states.
pub(crate) fn by_state_message(by_state: BTreeMap<HostState, u64>) -> BTreeMap<String, u64> {
    let by_state = by_state.into_iter();
    let by_state = by_state.map(|(state, n)| (state.as_str().to_owned(), n));
    by_state.collect()
}

/// Parses a state and the number of its hosts. A state that only later versions know is left out.
fn in_state((word, n): (String, u64)) -> Option<(HostState, u64)> {
    let mut known = HostState::ALL.into_iter();
    let state = known.find(|state| state.as_str() == word)?;
    Some((state, n))
}

/// Parses the status of a crawl.
pub(crate) fn status(message: proto::CrawlStatus) -> Result<CrawlStatus, ControlError> {
    let in_flight = message.counts.as_ref().map_or(0, |counts| counts.in_flight);
    Ok(CrawlStatus {
        name: resource_name(&message.name)?,
        id: ResourceId(message.resource_id),
        shard: Shard(message.shard),
        epoch: Epoch(message.epoch),
        run: Run(message.run),
        in_flight,
        counts: message.counts.map(totals),
        waits: message.waits.map(|waits| Waits {
            condition: waits.condition,
            why: waits.why,
        }),
        last_errors: message.last_errors.into_iter().map(line).collect(),
        hosts: message.hosts.map(|hosts| PresentHosts {
            by_state: hosts.by_state.into_iter().filter_map(in_state).collect(),
            in_flight: hosts.in_flight.into_iter().collect(),
        }),
        limits_used: message
            .limits_used
            .into_iter()
            .filter_map(limit_use)
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_later_versions_know_of_a_crawl_is_left_out() {
        let hosts = PresentHosts {
            by_state: HostState::ALL.map(|state| (state, 3)).into(),
            in_flight: [(u64::MAX, 2)].into(),
        };
        let limits_used = BTreeMap::from([(LimitName::Fuel, LimitUse { used: 3, limit: 7 })]);
        let crawl = CrawlStatus {
            name: "books".parse().unwrap(),
            id: ResourceId(1),
            shard: Shard(0),
            epoch: Epoch(1),
            run: Run(1),
            counts: None,
            in_flight: 0,
            hosts: Some(hosts.clone()),
            limits_used: limits_used.clone(),
            waits: None,
            last_errors: Vec::new(),
        };
        let mut message = status_message(crawl);
        let told = message.hosts.as_mut().unwrap();
        told.by_state.insert("asleep".to_owned(), 1);
        let unknown = proto::LimitUse { used: 1, limit: 1 };
        message.limits_used.insert("patience".to_owned(), unknown);
        let parsed = status(message).unwrap();
        assert_eq!(parsed.hosts, Some(hosts));
        assert_eq!(parsed.limits_used, limits_used);
    }
}
