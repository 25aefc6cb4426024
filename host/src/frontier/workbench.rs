//! Whose turn it is: which host may be asked next, and which of its URLs comes first.
//!
//! Every operation costs the logarithm of what is kept, whatever the mix of hosts: a host with a
//! million URLs is one entry among the hosts. Hosts are ordered by how many of their URLs are in
//! flight and then by the moment they may be asked, so that free places go round; URLs of one host
//! by priority, then by the moment they are due, then by age.
//!
//! This is arithmetic on moments that are handed in. Seen URLs, items and locks are for the caller.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::model::crawl::{Fingerprint, Request, UnixMillis};

/// A URL that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Grows with each URL stored: what claims are known by, and what age is told from.
    pub(crate) entry: u64,
    /// Not before.
    pub(crate) due: UnixMillis,
    /// What is to be fetched.
    pub(crate) request: Request,
    /// Of the request.
    pub(crate) fingerprint: Fingerprint,
    /// Of the request that first stored the URL.
    pub(crate) depth: u32,
    /// Of the next attempt, from 1.
    pub(crate) attempt: u32,
    /// How often the URL was stored anew.
    pub(crate) visit: u32,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next {
    /// This, and it counts as in flight.
    Url(Box<Waiting>),
    /// Nothing before this moment.
    At(UnixMillis),
    /// Every host that has a URL has as many in flight as it may.
    Full,
}

/// Hosts, their clocks, and the URLs that wait for each.
#[derive(Debug, Default)]
pub(crate) struct Workbench {
    hosts: Vec<Host>,
    by_name: HashMap<String, usize>,
    /// By URLs in flight, then by the moment the host has something to fetch and may be asked.
    /// Only hosts with a URL that waits; no more levels than there are places in flight.
    turns: BTreeMap<u32, BTreeSet<(UnixMillis, usize)>>,
    n_waiting: u64,
    /// The latest moment heard of.
    latest: UnixMillis,
}

#[derive(Debug, Default)]
struct Host {
    /// Not asked before.
    clock: UnixMillis,
    n_in_flight: u32,
    /// Due, best first.
    ready: BTreeMap<(Reverse<i32>, UnixMillis, u64), Waiting>,
    /// Not known to be due, by when they are.
    later: BTreeMap<(UnixMillis, u64), Waiting>,
}

impl Host {
    /// When it has something to fetch and may be asked. None: nothing waits.
    fn turn(&self) -> Option<UnixMillis> {
        if !self.ready.is_empty() {
            return Some(self.clock);
        }
        let (&(due, _), _) = self.later.first_key_value()?;
        Some(self.clock.max(due))
    }

    fn put(&mut self, waiting: Waiting, latest: UnixMillis) {
        if waiting.due <= latest {
            let key = (
                Reverse(waiting.request.priority),
                waiting.due,
                waiting.entry,
            );
            self.ready.insert(key, waiting);
        } else {
            self.later.insert((waiting.due, waiting.entry), waiting);
        }
    }

    fn pop(&mut self, latest: UnixMillis) -> Option<Waiting> {
        while let Some(first) = self.later.first_entry() {
            if first.key().0 > latest {
                break;
            }
            let waiting = first.remove();
            self.put(waiting, latest);
        }
        self.ready.pop_first().map(|(_, waiting)| waiting)
    }
}

impl Workbench {
    /// URLs that wait.
    pub(crate) fn n_waiting(&self) -> u64 {
        self.n_waiting
    }

    /// The latest moment heard of: when a URL that is stored now is due.
    pub(crate) fn latest(&self) -> UnixMillis {
        self.latest
    }

    /// Lets a URL wait.
    pub(crate) fn put(&mut self, waiting: Waiting) {
        let latest = self.latest;
        self.n_waiting += 1;
        let host = self.index(&waiting.request);
        self.change(host, |host| host.put(waiting, latest));
    }

    /// The next URL, from a host with fewer than `per_host` in flight.
    pub(crate) fn take(&mut self, now: UnixMillis, per_host: u32) -> Next {
        self.latest = self.latest.max(now);
        let latest = self.latest;
        let heads = || {
            let levels = self.turns.range(..per_host);
            levels.filter_map(|(_, turns)| turns.first().copied())
        };
        let Some((_, host)) = heads().find(|&(at, _)| at <= now) else {
            return heads().map(|(at, _)| at).min().map_or(Next::Full, Next::At);
        };
        let popped = self.change(host, |host| {
            host.n_in_flight += 1;
            host.pop(latest)
        });
        let waiting = popped.expect("a host has a turn only while something there is due");
        self.n_waiting -= 1;
        Next::Url(Box::new(waiting))
    }

    /// A URL of this request's host is no longer in flight, and the host is not asked before
    /// `not_before`.
    pub(crate) fn land(&mut self, request: &Request, not_before: UnixMillis) {
        let host = self.index(request);
        self.change(host, |host| {
            host.n_in_flight = host.n_in_flight.saturating_sub(1);
            host.clock = host.clock.max(not_before);
        });
    }

    fn index(&mut self, request: &Request) -> usize {
        let name = request.host();
        if let Some(&index) = self.by_name.get(&name) {
            return index;
        }
        self.hosts.push(Host::default());
        self.by_name.insert(name, self.hosts.len() - 1);
        self.hosts.len() - 1
    }

    /// Changes a host and its place among the turns with it.
    fn change<T>(&mut self, index: usize, change: impl FnOnce(&mut Host) -> T) -> T {
        let host = &mut self.hosts[index];
        let before = host.turn().map(|at| (host.n_in_flight, at));
        let result = change(host);
        let after = host.turn().map(|at| (host.n_in_flight, at));
        if before != after {
            if let Some((level, at)) = before
                && let Some(turns) = self.turns.get_mut(&level)
            {
                turns.remove(&(at, index));
                if turns.is_empty() {
                    self.turns.remove(&level);
                }
            }
            if let Some((level, at)) = after {
                self.turns.entry(level).or_default().insert((at, index));
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(entry: u64, url: &str, priority: i32, due: UnixMillis) -> Waiting {
        let mut request = Request::get(url.parse().unwrap(), "page");
        request.priority = priority;
        Waiting {
            entry,
            due,
            fingerprint: request.fingerprint(),
            request,
            depth: 0,
            attempt: 1,
            visit: 0,
        }
    }

    #[track_caller]
    fn check(bench: &mut Workbench, now: UnixMillis, per_host: u32, expected: &str) {
        let found = match bench.take(now, per_host) {
            Next::Url(waiting) => waiting.request.url.to_string(),
            Next::At(at) => format!("at {at}"),
            Next::Full => "full".to_owned(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn urls_of_a_host_come_by_priority_then_due_time_then_age() {
        let mut bench = Workbench::default();
        bench.put(waiting(1, "http://a/old", 0, 0));
        bench.put(waiting(2, "http://a/young", 0, 0));
        bench.put(waiting(3, "http://a/first", 5, 0));
        bench.put(waiting(4, "http://a/due-later", 9, 70));
        for expected in ["http://a/first", "http://a/old"] {
            check(&mut bench, 50, 9, expected);
        }
        check(&mut bench, 70, 9, "http://a/due-later");
        check(&mut bench, 70, 9, "http://a/young");
        check(&mut bench, 70, 9, "full");
    }

    #[test]
    fn free_places_go_round_the_hosts() {
        let mut bench = Workbench::default();
        for n in 0..4 {
            bench.put(waiting(n, &format!("http://a/{n}"), 0, 0));
        }
        bench.put(waiting(9, "http://b/9", 0, 0));
        for expected in ["http://a/0", "http://b/9", "http://a/1"] {
            check(&mut bench, 0, 2, expected);
        }
        check(&mut bench, 0, 2, "full");
        check(&mut bench, 0, 3, "http://a/2");
    }

    #[test]
    fn a_host_waits_for_its_clock_and_no_commit_turns_it_back() {
        let mut bench = Workbench::default();
        for n in 0..3 {
            bench.put(waiting(n, &format!("http://a/{n}"), 0, 0));
        }
        check(&mut bench, 0, 2, "http://a/0");
        check(&mut bench, 0, 2, "http://a/1");
        let landed = Request::get("http://a/0".parse().unwrap(), "page");
        bench.land(&landed, 900);
        bench.land(&landed, 300);
        check(&mut bench, 899, 1, "at 900");
        check(&mut bench, 900, 1, "http://a/2");
        assert_eq!(bench.n_waiting(), 0);
        check(&mut bench, 901, 1, "full");
    }
}
