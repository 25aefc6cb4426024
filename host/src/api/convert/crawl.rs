//! Messages of a crawl: items, log lines and totals.

use crawler_proto as proto;

use crate::api::answer::{CountsAnswer, ItemAnswer};
use crate::api::spec::{invalid, resource_name};
use crate::master::ControlError;
use crate::model::crawl::{ItemKey, ItemRecord};
use crate::model::id::{Epoch, ResourceId, Run, Shard};
use crate::model::resource::Waits;
use crate::model::status::{CrawlStatus, LogLine};

impl From<ItemAnswer> for proto::Item {
    fn from(answer: ItemAnswer) -> Self {
        let record = answer.record;
        Self {
            position: answer.position,
            key: record.key.0,
            url: record.url,
            rule: record.rule,
            schema: record.schema,
            run: record.run.0,
            fetched_at: record.fetched_at,
            json: Box::<str>::from(record.item).into_string(),
        }
    }
}

impl TryFrom<proto::Item> for ItemAnswer {
    type Error = ControlError;

    fn try_from(message: proto::Item) -> Result<Self, ControlError> {
        let item = serde_json::value::RawValue::from_string(message.json);
        let record = ItemRecord {
            key: ItemKey(message.key),
            url: message.url,
            rule: message.rule,
            schema: message.schema,
            run: Run(message.run),
            fetched_at: message.fetched_at,
            item: item.map_err(|e| invalid("json", e))?,
        };
        Ok(Self {
            record,
            position: message.position,
        })
    }
}

impl From<LogLine> for proto::LogLine {
    fn from(line: LogLine) -> Self {
        Self {
            at: line.at,
            level: line.level.to_owned(),
            url: line.url,
            rule: line.rule,
            message: line.message,
        }
    }
}

impl From<proto::LogLine> for LogLine {
    fn from(message: proto::LogLine) -> Self {
        Self {
            at: message.at,
            level: match message.level.as_str() {
                "debug" => "debug",
                "warn" => "warn",
                "error" => "error",
                _ => "info",
            },
            url: message.url,
            rule: message.rule,
            message: message.message,
        }
    }
}

impl From<CrawlStatus> for proto::CrawlStatus {
    fn from(status: CrawlStatus) -> Self {
        // Nothing is in flight where there are no counts.
        let counts = status.counts.map(|totals| CountsAnswer {
            totals,
            in_flight: status.in_flight,
        });
        Self {
            name: status.name.to_string(),
            resource_id: status.id.0,
            shard: status.shard.0,
            epoch: status.epoch.0,
            run: status.run.0,
            counts: counts.map(Into::into),
            waits: status.waits.map(|waits| proto::Waits {
                condition: waits.condition,
                why: waits.why,
            }),
            last_errors: status.last_errors.into_iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<proto::CrawlStatus> for CrawlStatus {
    type Error = ControlError;

    fn try_from(message: proto::CrawlStatus) -> Result<Self, ControlError> {
        let counts = message.counts.map(CountsAnswer::from);
        Ok(Self {
            name: resource_name(&message.name)?,
            id: ResourceId(message.resource_id),
            shard: Shard(message.shard),
            epoch: Epoch(message.epoch),
            run: Run(message.run),
            in_flight: counts.as_ref().map_or(0, |counts| counts.in_flight),
            counts: counts.map(|counts| counts.totals),
            waits: message.waits.map(|waits| Waits {
                condition: waits.condition,
                why: waits.why,
            }),
            last_errors: message.last_errors.into_iter().map(Into::into).collect(),
        })
    }
}
