//! Record of a run's totals.

use prost::Message;

use crawler_model::crawl::Counts;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReasonCount {
    #[prost(string, tag = "1")]
    pub(crate) reason: String,
    #[prost(uint64, tag = "2")]
    pub(crate) n: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Totals {
    #[prost(uint64, tag = "1")]
    pub(crate) parsed: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) other_done: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) dead: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) retries: u64,
    #[prost(uint64, tag = "5")]
    pub(crate) items: u64,
    #[prost(uint64, tag = "6")]
    pub(crate) bytes: u64,
    #[prost(uint64, tag = "7")]
    pub(crate) due: u64,
    #[prost(message, repeated, tag = "8")]
    pub(crate) refused_links: Vec<ReasonCount>,
    #[prost(message, repeated, tag = "9")]
    pub(crate) dead_by_reason: Vec<ReasonCount>,
    #[prost(uint64, tag = "10")]
    pub(crate) hosts: u64,
    /// Pages of `other_done` by outcome; absent in records of earlier versions, like the fields below.
    #[prost(message, repeated, tag = "11")]
    pub(crate) outcomes: Vec<ReasonCount>,
    #[prost(uint64, tag = "12")]
    pub(crate) began_at: u64,
    #[prost(uint64, tag = "13")]
    pub(crate) ended_at: u64,
    #[prost(uint64, tag = "14")]
    pub(crate) kept_bytes: u64,
    #[prost(uint64, tag = "15")]
    pub(crate) held: u64,
}

impl From<&Counts> for Totals {
    fn from(counts: &Counts) -> Self {
        let reasons = |map: &std::collections::BTreeMap<String, u64>| {
            let count = |(reason, n): (&String, &u64)| ReasonCount {
                reason: reason.clone(),
                n: *n,
            };
            map.iter().map(count).collect()
        };
        Self {
            parsed: counts.parsed,
            other_done: counts.other_done,
            dead: counts.dead,
            retries: counts.retries,
            items: counts.items,
            held: counts.held,
            bytes: counts.bytes,
            kept_bytes: counts.kept_bytes,
            due: counts.due,
            hosts: counts.hosts,
            refused_links: reasons(&counts.refused_links),
            dead_by_reason: reasons(&counts.dead_by_reason),
            outcomes: reasons(&counts.outcomes),
            began_at: counts.began_at,
            ended_at: counts.ended_at,
        }
    }
}

impl From<Totals> for Counts {
    fn from(totals: Totals) -> Self {
        let map =
            |reasons: Vec<ReasonCount>| reasons.into_iter().map(|r| (r.reason, r.n)).collect();
        Self {
            parsed: totals.parsed,
            other_done: totals.other_done,
            dead: totals.dead,
            retries: totals.retries,
            items: totals.items,
            held: totals.held,
            bytes: totals.bytes,
            kept_bytes: totals.kept_bytes,
            due: totals.due,
            hosts: totals.hosts,
            refused_links: map(totals.refused_links),
            dead_by_reason: map(totals.dead_by_reason),
            outcomes: map(totals.outcomes),
            began_at: totals.began_at,
            ended_at: totals.ended_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_an_earlier_version_have_no_outcomes() {
        // Two pages done in another way, one given up.
        let totals = Totals::decode(&[0x10, 2, 0x18, 1][..]).unwrap();
        let counts = Counts::from(totals);
        let expected = Counts {
            other_done: 2,
            dead: 1,
            ..Counts::default()
        };
        assert_eq!(counts, expected);
        assert!(!counts.has_no_page(), "one may have been unchanged");
        assert_eq!(counts.lost_roots(), None);
    }
}
