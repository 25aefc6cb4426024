//! Rates of crawls, as far as two looks tell them.
//!
//! A master shows the numbers that a worker tells now, and those that are stored if the worker does not answer. It says
//! which they are; of the numbers of a master of an earlier version, only those with pages in flight are certainly of
//! now. A rate is the difference of two numbers of now of one shard, of one run and one owner: everything else is not
//! known.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crawler_proto as proto;

use crate::cli::pace::RecentPages;
use crawler_api::totals;

/// Time for which a rate is shown after the look that told it.
const SHOWN_FOR: Duration = Duration::from_secs(10);

/// Rates of the shards that the last look had.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// By the id of the resource and the number of the shard.
    shards: HashMap<(String, u32), Measured>,
}

/// Pages of one shard, of one run and one owner.
#[derive(Debug)]
struct Measured {
    run: u64,
    owner: String,
    epoch: u64,
    pages: RecentPages,
    /// Last rate, and the moment of the look that told it.
    last: Option<(Instant, f64)>,
}

impl Rates {
    /// Notes the resources of a look at this moment, and returns the rate of each in pages per second, as far as it is
    /// known. Resources that are not in the look are forgotten.
    pub(super) fn note(&mut self, now: Instant, resources: &[proto::Resource]) -> Vec<Option<f64>> {
        let mut before = std::mem::take(&mut self.shards);
        let rates = resources.iter().map(|resource| {
            let id = resource.spec().id;
            let is_crawled = |shard: &&proto::ShardStatus| shard.state == "assigned";
            let crawled = resource.shards.iter().filter(is_crawled);
            let mut rates = Vec::new();
            for shard in crawled.filter(|_| resource.phase == "Running") {
                let key = (id.clone(), shard.shard);
                let known = before.remove(&key);
                let known = known.filter(|known| known.is_of(resource.run, shard));
                let mut measured = known.unwrap_or_else(|| Measured::of(resource.run, shard));
                rates.push(measured.rate(now, shard));
                self.shards.insert(key, measured);
            }
            match rates.is_empty() {
                true => None,
                false => rates.into_iter().sum::<Option<f64>>(),
            }
        });
        rates.collect()
    }
}

impl Measured {
    fn of(run: u64, shard: &proto::ShardStatus) -> Self {
        Self {
            run,
            owner: shard.owner.clone(),
            epoch: shard.epoch,
            pages: RecentPages::default(),
            last: None,
        }
    }

    fn is_of(&self, run: u64, shard: &proto::ShardStatus) -> bool {
        self.run == run && self.owner == shard.owner && self.epoch == shard.epoch
    }

    fn rate(&mut self, now: Instant, shard: &proto::ShardStatus) -> Option<f64> {
        let counts = shard.counts();
        // The second half is for a master of an earlier version, which does not tell the first.
        if shard.live || counts.in_flight > 0 {
            let rate = self.pages.rate(now, totals(counts).due_pages());
            self.last = rate.map(|rate| (now, rate));
        }
        let (at, rate) = self.last?;
        (now.duration_since(at) <= SHOWN_FOR).then_some(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shard whose owner has told its numbers. No page is in flight, as most of the time in a crawl with long delays.
    fn live(shard: u32, pages: u64) -> proto::ShardStatus {
        proto::ShardStatus {
            shard,
            owner: "worker-1".to_owned(),
            epoch: 7,
            state: "assigned".to_owned(),
            counts: Some(proto::Counts {
                parsed: pages,
                in_flight: 0,
                ..proto::Counts::default()
            }),
            live: true,
            ..proto::ShardStatus::default()
        }
    }

    /// A shard whose numbers may be those that are stored.
    fn stored(shard: u32, pages: u64) -> proto::ShardStatus {
        proto::ShardStatus {
            live: false,
            ..live(shard, pages)
        }
    }

    /// A shard with a page in flight, as a master of an earlier version tells it.
    fn in_flight(shard: u32, pages: u64) -> proto::ShardStatus {
        proto::ShardStatus {
            counts: Some(proto::Counts {
                parsed: pages,
                in_flight: 1,
                ..proto::Counts::default()
            }),
            ..stored(shard, pages)
        }
    }

    fn resource(shards: Vec<proto::ShardStatus>) -> proto::Resource {
        proto::Resource {
            spec: Some(proto::ResourceSpec {
                id: "5".to_owned(),
                ..proto::ResourceSpec::default()
            }),
            phase: "Running".to_owned(),
            run: 1,
            shards,
            ..proto::Resource::default()
        }
    }

    /// Checks the rates of looks at these seconds.
    #[track_caller]
    fn check(looks: Vec<(u64, proto::Resource, Option<f64>)>) {
        let (mut rates, start) = (Rates::default(), Instant::now());
        for (second, resource, expected) in looks {
            let now = start + Duration::from_secs(second);
            let told = rates.note(now, std::slice::from_ref(&resource));
            assert_eq!(told, [expected], "after {second} s");
        }
    }

    #[test]
    fn two_live_looks_tell_a_rate() {
        check(vec![
            (0, resource(vec![live(0, 100)]), None),
            (2, resource(vec![live(0, 120)]), Some(10.0)),
            (4, resource(vec![live(0, 120)]), Some(5.0)),
        ]);
    }

    #[test]
    fn pages_in_flight_are_of_now_whatever_the_master() {
        check(vec![
            (0, resource(vec![in_flight(0, 100)]), None),
            (2, resource(vec![in_flight(0, 120)]), Some(10.0)),
            (4, resource(vec![stored(0, 140)]), Some(10.0)),
            (6, resource(vec![in_flight(0, 160)]), Some(10.0)),
        ]);
    }

    #[test]
    fn numbers_that_may_be_stored_tell_no_rate() {
        check(vec![
            (0, resource(vec![stored(0, 10)]), None),
            (2, resource(vec![live(0, 500)]), None),
            (4, resource(vec![live(0, 520)]), Some(10.0)),
            // The worker does not answer: the rate is that of before, and then none.
            (6, resource(vec![stored(0, 10)]), Some(10.0)),
            (14, resource(vec![stored(0, 10)]), Some(10.0)),
            (15, resource(vec![stored(0, 10)]), None),
        ]);
    }

    #[test]
    fn numbers_that_shrink_begin_anew() {
        check(vec![
            (0, resource(vec![live(0, 100)]), None),
            (2, resource(vec![live(0, 120)]), Some(10.0)),
            (4, resource(vec![live(0, 90)]), None),
            (6, resource(vec![live(0, 100)]), Some(5.0)),
        ]);
    }

    #[test]
    fn another_run_owner_or_epoch_begins_anew() {
        let another_run = proto::Resource {
            run: 2,
            ..resource(vec![live(0, 200)])
        };
        let another_owner = proto::ShardStatus {
            owner: "worker-2".to_owned(),
            ..live(0, 200)
        };
        let another_epoch = proto::ShardStatus {
            epoch: 8,
            ..live(0, 200)
        };
        for other in [
            another_run,
            resource(vec![another_owner]),
            resource(vec![another_epoch]),
        ] {
            check(vec![
                (0, resource(vec![live(0, 100)]), None),
                (2, resource(vec![live(0, 120)]), Some(10.0)),
                (4, other, None),
            ]);
        }
    }

    #[test]
    fn a_resource_has_a_rate_if_all_crawled_shards_have_one() {
        let finished = || proto::ShardStatus {
            state: "finished".to_owned(),
            ..stored(2, 9)
        };
        check(vec![
            (
                0,
                resource(vec![live(0, 0), stored(1, 0), finished()]),
                None,
            ),
            (
                2,
                resource(vec![live(0, 20), live(1, 50), finished()]),
                None,
            ),
            (
                4,
                resource(vec![live(0, 40), live(1, 60), finished()]),
                Some(15.0),
            ),
        ]);
        let paused = proto::Resource {
            phase: "Paused".to_owned(),
            ..resource(vec![live(0, 20)])
        };
        check(vec![
            (0, resource(vec![live(0, 0)]), None),
            (2, paused, None),
            (4, resource(Vec::new()), None),
        ]);
    }

    #[test]
    fn what_is_not_looked_at_is_forgotten() {
        let mut rates = Rates::default();
        rates.note(Instant::now(), &[resource(vec![live(0, 1), live(1, 1)])]);
        assert_eq!(rates.shards.len(), 2);
        rates.note(Instant::now(), &[]);
        assert_eq!(rates.shards.len(), 0);
    }
}
