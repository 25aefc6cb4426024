//! Bounds on the calls of each caller, so that one caller leaves room for the others.
//!
//! Callers that have shown a token are told apart by its subject, all others by their address. Each has a bucket of
//! calls, which fills at the rate and holds a burst of [`BURST_SECONDS`], and a number of calls in hand. A call that answers
//! with a stream is in hand until the stream is open, and counts as an open stream from before that until the stream
//! is over.
//!
//! The table has at most [`CALLERS_MAX`] callers. One whose bucket is full and who has no call in hand and no stream open is
//! forgotten without a loss. Callers that still find no room share one bucket.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::time::Instant;

use super::call_counts::CallCounts;
use super::problem::{Problem, Reason};
use crawler_master::Code;
use crawler_model::access::Subject;
use crawler_model::number;

/// Number of seconds whose calls a caller may make at once after a pause.
const BURST_SECONDS: u32 = 2;
/// Largest number of callers that are told apart.
const CALLERS_MAX: usize = 10_000;
/// Pause between two looks for callers that can be forgotten.
const SWEEP_PAUSE: Duration = Duration::from_millis(100);
/// Bits of an IPv6 address that tell callers apart: a site may have all addresses behind them.
const IPV6_PREFIX: u32 = 64;

/// Bounds on the calls of each caller of a master.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallerLimits {
    /// Calls a second: setting `api-rate`. 0 means any number.
    pub rate: u32,
    /// Calls in hand at once: setting `api-concurrency`. 0 means any number.
    pub concurrency: u32,
    /// Streams open at once: setting `api-streams`. 0 means any number.
    pub streams: u32,
}

impl Default for CallerLimits {
    fn default() -> Self {
        Self {
            rate: 500,
            concurrency: 128,
            streams: 64,
        }
    }
}

/// Identity by which the calls of a caller are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum CallerKey {
    /// Subject of the token that was shown.
    Subject(Subject),
    /// Address of the connection; the first half of an IPv6 address.
    Address(IpAddr),
    /// Callers without an address, and those that the table has no room for.
    Others,
}

impl CallerKey {
    /// Returns the key of a caller that has shown a token of this subject, or calls from this address.
    pub(crate) fn of(subject: Option<&Subject>, address: Option<SocketAddr>) -> Self {
        if let Some(subject) = subject {
            return Self::Subject(subject.clone());
        }
        match address.map(|address| address.ip().to_canonical()) {
            Some(IpAddr::V4(address)) => Self::Address(address.into()),
            Some(IpAddr::V6(address)) => {
                let mask = u128::MAX << (u128::BITS - IPV6_PREFIX);
                Self::Address(Ipv6Addr::from_bits(address.to_bits() & mask).into())
            }
            None => Self::Others,
        }
    }
}

impl fmt::Display for CallerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subject(subject) => f.write_str(subject.as_str()),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "{address}/{IPV6_PREFIX}"),
            Self::Others => f.write_str("callers that are not told apart"),
        }
    }
}

/// Counter of the calls of all callers. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct CallerLimiter {
    table: Arc<Mutex<Table>>,
    /// Counts of the calls that have ended, for metrics.
    counts: Arc<CallCounts>,
}

/// Call in hand, which counts until this is dropped.
#[derive(Debug)]
pub(crate) struct InHand {
    limiter: CallerLimiter,
    key: CallerKey,
}

/// Open stream, which counts until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream {
    limiter: CallerLimiter,
    key: CallerKey,
}

impl CallerLimiter {
    /// Creates a counter with no call in hand.
    pub(crate) fn new(limits: CallerLimits) -> Self {
        Self {
            table: Arc::new(Mutex::new(Table::new(limits))),
            counts: Arc::default(),
        }
    }

    /// Returns the counts of the calls that have ended.
    pub(crate) fn counts(&self) -> Arc<CallCounts> {
        self.counts.clone()
    }

    /// Begins a call of this caller, unless that would be more than it may make.
    pub(crate) fn begin(&self, key: CallerKey) -> Result<InHand, Problem> {
        let mut table = self.lock();
        let limits = table.limits;
        let begun = table.begin(key, Instant::now());
        drop(table);
        match begun {
            Ok(key) => Ok(InHand {
                limiter: self.clone(),
                key,
            }),
            Err((exceeded, key)) => Err(refused(&key, exceeded, limits)),
        }
    }

    /// Begins a stream of this caller, unless that would be more than it may have open.
    pub(crate) fn begin_stream(&self, key: CallerKey) -> Result<OpenStream, Problem> {
        let mut table = self.lock();
        let limits = table.limits;
        let begun = table.begin_stream(key, Instant::now());
        drop(table);
        match begun {
            Ok(key) => Ok(OpenStream {
                limiter: self.clone(),
                key,
            }),
            Err((exceeded, key)) => Err(refused(&key, exceeded, limits)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.limiter.lock().end(&self.key);
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.limiter.lock().end_stream(&self.key);
    }
}

fn refused(key: &CallerKey, exceeded: Exceeded, limits: CallerLimits) -> Problem {
    let (detail, hint) = match exceeded {
        Exceeded::Rate => (
            format!(
                "{key} calls faster than --api-rate allows: {} a second",
                number(limits.rate.into(), "call")
            ),
            "call again in a second, or raise --api-rate",
        ),
        Exceeded::Concurrency => (
            format!(
                "{key} has {} in hand, as many as --api-concurrency allows",
                number(limits.concurrency.into(), "call")
            ),
            "call again in a second, or raise --api-concurrency",
        ),
        Exceeded::Streams => (
            format!(
                "{key} has {} open, as many as --api-streams allows",
                number(limits.streams.into(), "stream")
            ),
            "end one of them, or raise --api-streams",
        ),
    };
    Problem::new(Code::ResourceExhausted, detail, hint)
        .with_status(StatusCode::TOO_MANY_REQUESTS)
        .because(Reason::CallerLimit)
        .passes()
}

/// Bound that a call would have exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exceeded {
    Rate,
    Concurrency,
    Streams,
}

/// Calls of each caller. It knows no clock; whoever calls it tells the time.
#[derive(Debug)]
struct Table {
    limits: CallerLimits,
    callers: HashMap<CallerKey, Usage>,
    /// Time from which on a look for callers that can be forgotten is worth while.
    next_sweep: Option<Instant>,
}

#[derive(Debug)]
struct Usage {
    /// Time at which the bucket is full. Every call moves it on by the time in which one call flows in.
    full_at: Instant,
    n_in_hand: u32,
    n_streams: u32,
}

impl Usage {
    /// Returns the use of a caller that has done nothing yet.
    fn none(now: Instant) -> Self {
        Self {
            full_at: now,
            n_in_hand: 0,
            n_streams: 0,
        }
    }
}

impl Table {
    fn new(limits: CallerLimits) -> Self {
        Self {
            limits,
            callers: HashMap::new(),
            next_sweep: None,
        }
    }

    /// Counts a call, and returns the key under which it counts. A call that is refused takes nothing.
    fn begin(&mut self, key: CallerKey, now: Instant) -> Result<CallerKey, (Exceeded, CallerKey)> {
        let key = self.with_room(key, now);
        let CallerLimits {
            rate, concurrency, ..
        } = self.limits;
        let usage = self.callers.entry(key.clone());
        let usage = usage.or_insert(Usage::none(now));
        if concurrency > 0 && usage.n_in_hand >= concurrency {
            return Err((Exceeded::Concurrency, key));
        }
        // Without a rate there is no such time.
        if let Some(each) = Duration::from_secs(1).checked_div(rate) {
            let full_at = usage.full_at.max(now) + each;
            if full_at > now + each * rate.saturating_mul(BURST_SECONDS) {
                return Err((Exceeded::Rate, key));
            }
            usage.full_at = full_at;
        }
        usage.n_in_hand += 1;
        Ok(key)
    }

    fn end(&mut self, key: &CallerKey) {
        if let Some(usage) = self.callers.get_mut(key) {
            usage.n_in_hand = usage.n_in_hand.saturating_sub(1);
        }
    }

    /// Counts an open stream, and returns the key under which it counts.
    fn begin_stream(
        &mut self,
        key: CallerKey,
        now: Instant,
    ) -> Result<CallerKey, (Exceeded, CallerKey)> {
        let key = self.with_room(key, now);
        let max = self.limits.streams;
        let usage = self.callers.entry(key.clone());
        let usage = usage.or_insert(Usage::none(now));
        if max > 0 && usage.n_streams >= max {
            return Err((Exceeded::Streams, key));
        }
        usage.n_streams += 1;
        Ok(key)
    }

    fn end_stream(&mut self, key: &CallerKey) {
        if let Some(usage) = self.callers.get_mut(key) {
            usage.n_streams = usage.n_streams.saturating_sub(1);
        }
    }

    /// Returns the key if the table has it or has room for it, and otherwise the one that the rest shares.
    fn with_room(&mut self, key: CallerKey, now: Instant) -> CallerKey {
        if self.callers.len() < CALLERS_MAX || self.callers.contains_key(&key) {
            return key;
        }
        if self.next_sweep.is_none_or(|next_sweep| now >= next_sweep) {
            self.next_sweep = Some(now + SWEEP_PAUSE);
            self.callers.retain(|_, usage| {
                usage.n_in_hand > 0 || usage.n_streams > 0 || usage.full_at > now
            });
        }
        match self.callers.len() < CALLERS_MAX {
            true => key,
            false => CallerKey::Others,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn table(rate: u32, concurrency: u32) -> Table {
        Table::new(CallerLimits {
            rate,
            concurrency,
            streams: 2,
        })
    }

    fn subject(name: &str) -> CallerKey {
        CallerKey::Subject(name.parse().unwrap())
    }

    fn address(n: u32) -> CallerKey {
        CallerKey::Address(IpAddr::V4(n.into()))
    }

    /// Makes calls that end at once until one is refused, and returns the number of those that were not.
    fn burst(table: &mut Table, key: &CallerKey, now: Instant) -> usize {
        let mut n_calls = 0;
        while let Ok(key) = table.begin(key.clone(), now) {
            table.end(&key);
            n_calls += 1;
        }
        n_calls
    }

    #[test]
    fn a_burst_is_used_up_and_flows_in_again_at_the_rate() {
        let (mut table, now) = (table(10, 0), Instant::now());
        let caller = subject("a");
        assert_eq!(burst(&mut table, &caller, now), 20);
        assert_eq!(burst(&mut table, &caller, now + SECOND / 20), 0);
        assert_eq!(burst(&mut table, &caller, now + SECOND / 10), 1);
        assert_eq!(burst(&mut table, &caller, now + SECOND), 9);
        // A longer pause gives no more than a burst.
        assert_eq!(burst(&mut table, &caller, now + 100 * SECOND), 20);
    }

    #[test]
    fn one_caller_takes_nothing_from_another() {
        let (mut table, now) = (table(10, 2), Instant::now());
        let (greedy, modest) = (subject("greedy"), subject("modest"));
        let held = [0, 1].map(|_| table.begin(greedy.clone(), now).unwrap());
        let refused = table.begin(greedy.clone(), now).unwrap_err();
        assert_eq!(refused, (Exceeded::Concurrency, greedy.clone()));
        assert_eq!(burst(&mut table, &modest, now), 20);
        // The calls that were refused have used up nothing of the rate.
        held.iter().for_each(|key| table.end(key));
        assert_eq!(burst(&mut table, &greedy, now), 18);
        let refused = table.begin(greedy.clone(), now).unwrap_err();
        assert_eq!(refused, (Exceeded::Rate, greedy));
    }

    #[test]
    fn streams_have_a_bound_of_their_own_for_each_caller() {
        let (mut table, now) = (table(10, 1), Instant::now());
        let (greedy, modest) = (subject("greedy"), subject("modest"));
        for _ in 0..2 {
            table.begin_stream(greedy.clone(), now).unwrap();
        }
        let refused = table.begin_stream(greedy.clone(), now).unwrap_err();
        assert_eq!(refused, (Exceeded::Streams, greedy.clone()));
        table.begin_stream(modest, now).unwrap();
        // Streams are neither calls in hand nor part of the rate.
        assert_eq!(burst(&mut table, &greedy, now), 20);
        table.end_stream(&greedy);
        table.begin_stream(greedy.clone(), now).unwrap();
        table.limits.streams = 0;
        for _ in 0..1_000 {
            table.begin_stream(greedy.clone(), now).unwrap();
        }
    }

    #[test]
    fn a_caller_with_an_open_stream_is_not_forgotten() {
        let (mut table, now) = (table(500, 128), Instant::now());
        let held = table.begin_stream(subject("a"), now).unwrap();
        for n in 0..CALLERS_MAX as u32 + 10 {
            if let Ok(key) = table.begin(address(n), now + SECOND * n) {
                table.end(&key);
            }
        }
        assert_eq!(table.callers[&held].n_streams, 1);
    }

    #[test]
    fn a_bound_of_zero_is_none() {
        let (mut table, now) = (table(0, 0), Instant::now());
        for _ in 0..10_000 {
            table.begin(subject("a"), now).unwrap();
        }
        assert_eq!(table.callers[&subject("a")].n_in_hand, 10_000);
    }

    #[test]
    fn many_addresses_do_not_grow_the_table() {
        let (mut table, now) = (table(500, 128), Instant::now());
        let held = table.begin(subject("a"), now).unwrap();
        for n in 0..300_000 {
            // Three times as many come at once as the table has room for.
            let now = now + SECOND * (n / 30_000);
            if let Ok(key) = table.begin(address(n), now) {
                table.end(&key);
            }
            assert!(table.callers.len() <= CALLERS_MAX + 1);
        }
        assert_eq!(table.callers[&held].n_in_hand, 1, "it still counts");
    }

    #[test]
    fn callers_without_room_share_a_bucket_until_others_are_forgotten() {
        let (mut table, now) = (table(1, 0), Instant::now());
        for n in 0..CALLERS_MAX as u32 {
            table.begin(address(n), now).unwrap();
        }
        let late = address(u32::MAX);
        for _ in 0..2 {
            assert_eq!(table.begin(late.clone(), now), Ok(CallerKey::Others));
        }
        let refused = table.begin(late.clone(), now).unwrap_err();
        assert_eq!(refused, (Exceeded::Rate, CallerKey::Others));
        // A caller that is known keeps its own bucket.
        assert_eq!(table.begin(address(7), now), Ok(address(7)));
        // The calls of all others are still in hand; they end, and their buckets fill.
        for n in 0..CALLERS_MAX as u32 {
            table.end(&address(n));
        }
        let later = now + 10 * SECOND;
        assert_eq!(table.begin(late.clone(), later), Ok(late));
        assert!(table.callers.len() <= 3);
    }

    #[test]
    fn addresses_of_one_ipv6_site_are_one_caller() {
        let key = |address: &str| CallerKey::of(None, Some(address.parse().unwrap()));
        assert_eq!(key("[2001:db8::1]:1"), key("[2001:db8::2]:2"));
        assert_ne!(key("[2001:db8::1]:1"), key("[2001:db8:0:1::1]:1"));
        assert_eq!(key("10.0.0.1:1"), key("[::ffff:10.0.0.1]:2"));
        assert_ne!(key("10.0.0.1:1"), key("10.0.0.2:1"));
        assert_eq!(key("[2001:db8::1]:1").to_string(), "2001:db8::/64");
        let subject = "a".parse().unwrap();
        assert_eq!(
            CallerKey::of(Some(&subject), Some("10.0.0.1:1".parse().unwrap())),
            CallerKey::Subject(subject)
        );
        assert_eq!(CallerKey::of(None, None), CallerKey::Others);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_names_the_caller_and_the_setting() {
        let limiter = CallerLimiter::new(CallerLimits {
            rate: 1,
            concurrency: 1,
            streams: 1,
        });
        let caller = subject("a");
        let stream = limiter.begin_stream(caller.clone()).unwrap();
        let refused = limiter.begin_stream(caller.clone()).unwrap_err();
        assert_eq!(
            refused.detail,
            "a has 1 stream open, as many as --api-streams allows"
        );
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        drop(stream);
        drop(limiter.begin_stream(caller.clone()).unwrap());
        let held = limiter.begin(caller.clone()).unwrap();
        let refused = limiter.begin(caller.clone()).unwrap_err();
        assert_eq!(
            refused.detail,
            "a has 1 call in hand, as many as --api-concurrency allows"
        );
        drop(held);
        drop(limiter.begin(caller.clone()).unwrap());
        let refused = limiter.begin(caller.clone()).unwrap_err();
        assert_eq!(
            refused.detail,
            "a calls faster than --api-rate allows: 1 call a second"
        );
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(refused.is_passing);
        tokio::time::advance(SECOND).await;
        assert!(limiter.begin(caller).is_ok());
    }
}
