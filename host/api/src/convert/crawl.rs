//! Conversion of what a worker tells a master of its crawls: totals, log lines and status.

use crawler_proto as proto;

use crate::spec::resource_name;
use crawler_master::ControlError;
use crawler_model::crawl::Counts;
use crawler_model::id::{Epoch, ResourceId, Run, Shard};
use crawler_model::resource::Waits;
use crawler_model::status::{CrawlStatus, LogLine};

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
    }
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
    })
}
