//! Plan of a post: the items that it has, and the id under which it is sent. A frontier keeps it before the first attempt.
//!
//! The id is a digest of the cluster, the name of the sink and the keys of the items. So two posts of one id have the same
//! items, whoever sends them: a receiver that has one of them need not look at the other.

use prost::Message;

use crawler_model::crawl::ItemRecord;
use crawler_model::frontier::SinkMark;
use crawler_model::settings::SinkName;
use crawler_sink::SinkError;
use crawler_sink::digest::digest;

/// Key of the mark.
const KEY: &str = "posts";

/// Range of items that is one post. Its encoding is kept over upgrades: fields are added, never changed.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Plan {
    /// Number of the first item.
    #[prost(uint64, tag = "1")]
    pub(crate) first: u64,
    /// Number of items; 0 if nothing is planned.
    #[prost(uint64, tag = "2")]
    pub(crate) n_items: u64,
    /// Id of the post.
    #[prost(string, tag = "3")]
    pub(crate) id: String,
}

impl Plan {
    /// Returns the plan of a post that has these items, the first of which has the number `first`.
    pub(crate) fn of(cluster: &str, sink: &SinkName, first: u64, items: &[ItemRecord]) -> Self {
        let keys = items.iter().map(|record| record.key.0.as_str());
        let texts = [cluster, sink.as_str()].into_iter().chain(keys);
        Self {
            first,
            n_items: items.len() as u64,
            id: format!("items_{}", digest(texts)),
        }
    }

    /// Returns the mark that a frontier keeps.
    pub(crate) fn to_mark(&self) -> SinkMark {
        SinkMark {
            key: KEY.into(),
            value: self.encode_to_vec().into(),
        }
    }

    /// Returns the plan that a frontier has kept, if its post may have been sent.
    pub(crate) fn pending(marks: &[SinkMark]) -> Result<Option<Self>, SinkError> {
        let Some(mark) = marks.iter().find(|mark| mark.key == KEY) else {
            return Ok(None);
        };
        let plan = Self::decode(&*mark.value).map_err(|error| SinkError::Permanent {
            message: "cannot read which items were posted last".to_owned(),
            source: Some(error.into()),
        })?;
        Ok(Some(plan).filter(|plan| plan.n_items > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::record;

    #[test]
    fn an_id_tells_the_items_of_its_post() {
        let all = [record(1, "{}"), record(2, "{}")];
        let sink: SinkName = "out".parse().unwrap();
        let id = |items: &[ItemRecord]| Plan::of("c1", &sink, 7, items).id;
        assert_eq!(id(&all), id(&all));
        assert_ne!(id(&all), id(&all[..1]));
        assert_ne!(id(&all[..1]), id(&all[1..]));
        let other: SinkName = "other".parse().unwrap();
        assert_ne!(Plan::of("c1", &other, 7, &all).id, id(&all));
        assert_ne!(Plan::of("c2", &sink, 7, &all).id, id(&all));
        // Fields may be chosen anew between two attempts.
        assert_eq!(id(&[record(1, "{\"a\":1}")]), id(&all[..1]));
    }

    #[test]
    fn a_plan_is_encoded_as_earlier_versions_did() {
        let plan = Plan {
            first: 300,
            n_items: 2,
            id: "ab".to_owned(),
        };
        let mark = plan.to_mark();
        assert_eq!(mark.key, "posts");
        assert_eq!(*mark.value, [8, 0xac, 2, 16, 2, 26, 2, b'a', b'b']);
        assert_eq!(Plan::pending(&[mark]).unwrap(), Some(plan));
        assert_eq!(Plan::pending(&[Plan::default().to_mark()]).unwrap(), None);
        assert_eq!(Plan::pending(&[]).unwrap(), None);
        let broken = SinkMark {
            key: KEY.into(),
            value: "?".into(),
        };
        let error = Plan::pending(&[broken]).unwrap_err();
        assert!(matches!(error, SinkError::Permanent { .. }), "{error}");
    }
}
