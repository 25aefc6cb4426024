//! Check that hosts were given their time. It is pure: requests in, requests that came too soon out.
//!
//! A worker gives each host the delay between the end of any answer and its next request, whichever resource wants
//! it and however often the worker is killed, stopped and restarted. A resource that moves from one worker to
//! another gives it too, with one exception: a worker that was stopped in the middle of a request, and has lost
//! the resource by the time it wakes, may still send it, once for each host and such loss.
//!
//! Two workers that crawl at the same time share the delay of each host, whichever resources they have. If one of
//! them is killed, or is stopped for long, the other does not know its last requests, and asks alone until it is
//! told who owns the hosts: a few requests to each host may be too soon then.
//!
//! A request for a robots.txt counts like any other request to its host. It belongs to the resource whose page the
//! worker asks of the host next.

use std::collections::BTreeMap;
use std::time::Duration;

/// Tolerance for the clocks of two processes' timers, and for the time that a request is on its way.
pub(crate) const TOLERANCE: Duration = Duration::from_millis(20);

/// Time since the beginning of the run, by the clock of the fake web.
pub(crate) type Moment = Duration;

/// A request that the fake web received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) host: String,
    /// Name of the worker, the same over all its lives.
    pub(crate) worker: String,
    /// Resource that made the request. If `None`, it was for the robots.txt.
    pub(crate) resource: Option<String>,
    pub(crate) start: Moment,
    /// End of the answer. If `None`, the answer is not there yet.
    pub(crate) end: Option<Moment>,
}

/// Settings of the run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Terms {
    /// Delay between the end of an answer and the next request to its host.
    pub(crate) delay: Duration,
    /// Number of times that a resource was taken from a worker that was stopped, and woke again.
    pub(crate) takeovers: BTreeMap<String, usize>,
    /// Times in which several workers crawled.
    pub(crate) together: Vec<Together>,
}

/// A time in which several workers crawled the same hosts.
#[derive(Debug, Clone)]
pub(crate) struct Together {
    pub(crate) from: Moment,
    pub(crate) until: Moment,
    /// Number of requests to each host that may be too soon after another worker's.
    pub(crate) n_allowed: usize,
}

/// Two requests that were too close to each other.
type Early<'a> = (&'a Request, &'a Request);

/// Returns all requests that came too soon, in words.
pub(crate) fn early_requests(requests: &[Request], terms: &Terms) -> Vec<String> {
    let mut sorted: Vec<&Request> = requests.iter().collect();
    sorted.sort_by_key(|request| request.start);
    let mut found = Vec::new();
    for ((worker, host), lane) in lanes(&sorted, |request| Some(&request.worker)) {
        let early = early(&lane, terms.delay).into_iter();
        found.extend(early.map(|pair| format!("{worker} at {host}: {}", told(pair))));
    }
    let with_robots = for_whom(&sorted);
    let with_robots: Vec<&Request> = with_robots.iter().collect();
    for ((resource, host), lane) in lanes(&with_robots, |request| request.resource.as_ref()) {
        let mut early = early(&lane, terms.delay);
        // Requests of one worker were found above.
        early.retain(|(last, request)| last.worker != request.worker);
        let n_allowed = terms.takeovers.get(resource).copied().unwrap_or_default();
        if early.len() > n_allowed {
            let early: Vec<String> = early.into_iter().map(told).collect();
            let early = early.join("; ");
            found.push(format!(
                "{resource} at {host}, taken over {n_allowed} times: {early}"
            ));
        }
    }
    for together in &terms.together {
        let times = together.from..together.until;
        let then = sorted.iter().copied();
        let then: Vec<&Request> = then
            .filter(|request| times.contains(&request.start))
            .collect();
        let all = String::new();
        for ((_, host), lane) in lanes(&then, |_| Some(&all)) {
            let mut early = early(&lane, terms.delay);
            early.retain(|(last, request)| last.worker != request.worker);
            let (n, n_allowed) = (early.len(), together.n_allowed);
            if n > n_allowed {
                let early: Vec<String> = early.into_iter().map(told).collect();
                let early = early.join("; ");
                found.push(format!(
                    "both workers at {host}, {n} times where {n_allowed} are allowed: {early}"
                ));
            }
        }
    }
    found
}

/// Returns the requests to each host by their makers, in the order of their starts.
fn lanes<'a, 'w>(
    requests: &[&'a Request],
    who: impl Fn(&'a Request) -> Option<&'w String>,
) -> BTreeMap<(&'w str, &'a str), Vec<&'a Request>> {
    let mut lanes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for request in requests {
        if let Some(who) = who(request) {
            let lane = (who.as_str(), request.host.as_str());
            lanes.entry(lane).or_default().push(*request);
        }
    }
    lanes
}

/// Returns the requests that came too soon after the last one that did not.
fn early<'a>(lane: &[&'a Request], delay: Duration) -> Vec<Early<'a>> {
    let mut early = Vec::new();
    let mut last: Option<&Request> = None;
    for request in lane {
        match last {
            Some(last) if gap(last, request).is_none_or(|gap| gap + TOLERANCE < delay) => {
                early.push((last, *request));
            }
            _ => last = Some(request),
        }
    }
    early
}

/// Returns the time between two requests. `None` if the first was not answered yet.
fn gap(last: &Request, next: &Request) -> Option<Duration> {
    next.start.checked_sub(last.end?)
}

/// Returns the requests; those for a robots.txt count as requests of the resource that they were made for.
fn for_whom(sorted: &[&Request]) -> Vec<Request> {
    let mut next: BTreeMap<(&str, &str), &String> = BTreeMap::new();
    let mut requests = Vec::new();
    for request in sorted.iter().rev() {
        let lane = (request.worker.as_str(), request.host.as_str());
        if let Some(resource) = &request.resource {
            next.insert(lane, resource);
        }
        let resource = next.get(&lane).map(|resource| (*resource).clone());
        requests.push(Request {
            resource,
            ..(*request).clone()
        });
    }
    requests.reverse();
    requests
}

fn told((last, request): Early<'_>) -> String {
    let name = |request: &Request| {
        let what = request.resource.as_deref().unwrap_or("robots.txt");
        format!("{what} by {} at {:.3?}", request.worker, request.start)
    };
    let gap = match gap(last, request) {
        Some(gap) => format!("{gap:.3?} after the answer to"),
        None => "before the answer to".to_owned(),
    };
    format!("{}, {gap} {}", name(request), name(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `HOST WORKER RESOURCE START END`, in milliseconds. A resource `-` is the robots.txt; an end `-` is an
    /// answer that is not there yet.
    fn request(line: &str) -> Request {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [host, worker, resource, start, end] = words[..] else {
            panic!("{line:?} has no five words");
        };
        let moment = |word: &str| Duration::from_millis(word.parse().expect("milliseconds"));
        Request {
            host: host.to_owned(),
            worker: worker.to_owned(),
            resource: (resource != "-").then(|| resource.to_owned()),
            start: moment(start),
            end: (end != "-").then(|| moment(end)),
        }
    }

    /// Checks the number of findings with a delay of one second.
    #[track_caller]
    fn check(takeovers: &[(&str, usize)], lines: &[&str], n_found: usize) {
        let requests: Vec<Request> = lines.iter().map(|line| request(line)).collect();
        let takeovers = takeovers.iter().map(|(name, n)| ((*name).to_owned(), *n));
        let terms = Terms {
            delay: Duration::from_secs(1),
            takeovers: takeovers.collect(),
            together: Vec::new(),
        };
        let found = early_requests(&requests, &terms);
        assert_eq!(found.len(), n_found, "{found:#?}");
    }

    #[test]
    fn what_keeps_its_distance_is_fine() {
        check(&[], &[], 0);
        check(
            &[],
            &["h w1 - 0 10", "h w1 a 1010 1100", "h w1 b 2100 2150"],
            0,
        );
        // The tolerance counts exactly.
        check(&[], &["h w1 a 0 100", "h w1 a 1080 1090"], 0);
        check(&[], &["h w1 a 0 100", "h w1 a 1079 1090"], 1);
    }

    #[test]
    fn the_delay_counts_from_the_end_of_the_answer() {
        check(&[], &["h w1 a 0 600", "h w1 a 1200 1210"], 1);
    }

    #[test]
    fn the_delay_is_of_one_host() {
        check(&[], &["h w1 a 0 10", "i w1 a 20 30", "j w1 b 20 30"], 0);
    }

    #[test]
    fn resources_of_one_worker_keep_the_delay_together() {
        check(&[], &["h w1 a 0 10", "h w1 b 500 510"], 1);
        // The log may have them in any order.
        check(&[], &["h w1 b 500 510", "h w1 a 0 10"], 1);
    }

    #[test]
    fn a_request_while_another_is_under_way_is_early() {
        check(&[], &["h w1 a 0 3000", "h w1 b 2000 2010"], 1);
        check(&[], &["h w1 a 0 -", "h w1 b 2000 2010"], 1);
        check(&[], &["h w1 a 0 10", "h w1 b 2000 -"], 0);
    }

    #[test]
    fn a_robots_txt_is_a_request_like_any_other() {
        check(&[], &["h w1 - 0 10", "h w1 a 500 510"], 1);
        check(&[], &["h w1 a 0 10", "h w1 - 500 510"], 1);
        // A robots.txt that the next owner fetched counts for the resource that it was fetched for.
        let moved = ["h w1 a 0 10", "h w2 - 500 510", "h w2 a 1600 1610"];
        check(&[], &moved, 1);
        let of_another = [
            "h w1 a 0 10",
            "h w2 - 500 510",
            "h w2 b 1600 1610",
            "h w2 a 2700 2710",
        ];
        check(&[], &of_another, 0);
    }

    #[test]
    fn two_workers_ask_for_different_resources_as_they_like() {
        check(&[], &["h w1 a 0 10", "h w2 b 20 30"], 0);
    }

    /// Checks the number of findings from the first second to the tenth, where `n_allowed` requests may be early
    /// at each host.
    #[track_caller]
    fn check_together(n_allowed: usize, lines: &[&str], n_found: usize) {
        let requests: Vec<Request> = lines.iter().map(|line| request(line)).collect();
        let together = Together {
            from: Duration::from_secs(1),
            until: Duration::from_secs(10),
            n_allowed,
        };
        let terms = Terms {
            delay: Duration::from_secs(1),
            takeovers: BTreeMap::new(),
            together: vec![together],
        };
        let found = early_requests(&requests, &terms);
        assert_eq!(found.len(), n_found, "{found:#?}");
    }

    #[test]
    fn two_workers_share_the_delay_while_they_crawl_together() {
        let before = ["h w1 a 0 10", "h w2 b 20 30"];
        check_together(0, &before, 0);
        check_together(0, &["h w1 a 2000 2010", "h w2 b 3010 3020"], 0);
        let close = ["h w1 a 2000 2010", "h w2 b 2500 2510"];
        check_together(0, &close, 1);
        check_together(1, &close, 0);
        check_together(0, &["h w1 - 2000 2010", "h w2 - 2500 2510"], 1);
        check_together(0, &["h w1 a 2000 4000", "h w2 b 3500 3510"], 1);
        check_together(0, &["h w1 a 2000 2010", "i w2 b 2500 2510"], 0);
    }

    #[test]
    fn a_resource_keeps_the_delay_when_it_moves() {
        check(&[], &["h w1 a 0 10", "h w2 a 1010 1020"], 0);
        check(&[], &["h w1 a 0 10", "h w2 a 500 510"], 1);
        check(&[("b", 1)], &["h w1 a 0 10", "h w2 a 500 510"], 1);
    }

    #[test]
    fn one_request_for_each_host_and_takeover_may_be_early() {
        // The worker that was stopped sends its last request beside those of the next owner.
        let late = [
            "h w1 a 0 10",
            "h w2 a 3000 3010",
            "h w1 a 3500 3510",
            "h w2 a 4010 4020",
        ];
        check(&[("a", 1)], &late, 0);
        check(&[], &late, 1);
        let at_two = [&late[..], &["i w2 a 0 10", "i w1 a 20 30"]].concat();
        check(&[("a", 1)], &at_two, 0);
        let twice = [
            &late[..],
            &["h w1 a 4600 4610", "h w2 a 5030 5040", "i w2 a 0 10"],
        ];
        check(&[("a", 1)], &twice.concat(), 1);
        check(&[("a", 2)], &twice.concat(), 0);
    }

    #[test]
    fn no_takeover_excuses_a_worker_that_hurries() {
        check(&[("a", 9)], &["h w1 a 0 10", "h w1 a 500 510"], 1);
        check(&[("a", 9)], &["h w1 a 0 10", "h w1 - 500 510"], 1);
    }

    #[test]
    fn what_is_found_tells_who_asked_when() {
        let requests = ["h w1 a 0 10", "h w1 - 510 520"].map(request);
        let terms = Terms {
            delay: Duration::from_secs(1),
            ..Terms::default()
        };
        assert_eq!(
            early_requests(&requests, &terms),
            [
                "w1 at h: robots.txt by w1 at 510.000ms, 500.000ms after the answer to a by w1 at 0.000ns"
            ]
        );
    }
}
