//! When a host may be asked: one gate for each process, shared by all resources.
//!
//! A request waits for its host's turn, in order of arrival. The delay counts from the end of one
//! answer to the next request, and while it is above zero there is one request at a time. Resources
//! that ask for different delays on one host all keep the longest of them, for as long as the one
//! that asked for it keeps coming (it is forgotten [`STRICT_FOR`] and twice itself after it was last
//! asked for).
//!
//! Giving up a wait loses nothing: the next in line takes its place. A host that nobody waits for is
//! forgotten once its delay is over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a delay is kept by all, beyond twice itself.
pub const STRICT_FOR: Duration = Duration::from_secs(60);

/// Hosts known when the first sweep is due.
const FIRST_SWEEP: usize = 1_024;

/// Bounds of the gate.
#[derive(Debug, Clone)]
pub struct GateSettings {
    /// Requests to one host at once where no delay is asked for.
    pub parallel: u32,
}

impl Default for GateSettings {
    fn default() -> Self {
        Self { parallel: 64 }
    }
}

/// The clocks and connections of all hosts.
#[derive(Debug, Default)]
pub struct Gate {
    settings: GateSettings,
    hosts: Mutex<Hosts>,
}

#[derive(Debug, Default)]
struct Hosts {
    by_name: HashMap<String, Arc<HostGate>>,
    /// As many as were left by the last sweep; it pays to look again at twice that.
    n_swept: usize,
}

#[derive(Debug, Default)]
struct HostGate {
    /// Held by the first in line while it waits; it is handed on in order of arrival.
    line: tokio::sync::Mutex<()>,
    state: Mutex<HostState>,
    /// A place was freed.
    freed: Notify,
}

#[derive(Debug, Default)]
struct HostState {
    n_in_use: u32,
    /// Of the last answer.
    ended: Option<Instant>,
    /// The longest delay asked for lately, and until when it binds the others.
    strictest: Option<(Duration, Instant)>,
}

/// A place at a host. The host's delay starts when it is dropped.
#[derive(Debug)]
#[must_use = "dropping it frees the place"]
pub struct Permit {
    host: Arc<HostGate>,
    delay: Duration,
}

impl Gate {
    /// A gate that has seen no host.
    pub fn new(settings: GateSettings) -> Self {
        Self {
            settings,
            hosts: Mutex::default(),
        }
    }

    /// Requests to one host at once, at this delay.
    pub fn parallel(&self, delay: Duration) -> u32 {
        if delay.is_zero() {
            self.settings.parallel.max(1)
        } else {
            1
        }
    }

    /// Waits for the turn of a host (`name:port`).
    pub async fn enter(&self, host: &str, delay: Duration) -> Permit {
        let host = self.host(host);
        host.state().ask(delay);
        let turn = host.line.lock().await;
        loop {
            let ready_at = {
                let mut state = host.state();
                let delay = state.ask(delay);
                let ready_at = state.ended.map(|ended| ended + delay);
                if state.n_in_use >= self.parallel(delay) {
                    None
                } else if ready_at.is_none_or(|at| at <= Instant::now()) {
                    state.n_in_use += 1;
                    break;
                } else {
                    ready_at
                }
            };
            match ready_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => host.freed.notified().await,
            }
        }
        drop(turn);
        Permit { host, delay }
    }

    fn host(&self, name: &str) -> Arc<HostGate> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = hosts.by_name.get(name) {
            return Arc::clone(host);
        }
        if hosts.by_name.len() >= FIRST_SWEEP.max(2 * hosts.n_swept) {
            let now = Instant::now();
            hosts.by_name.retain(|_, host| !host.is_forgettable(now));
            hosts.n_swept = hosts.by_name.len();
        }
        let host = Arc::<HostGate>::default();
        hosts.by_name.insert(name.to_owned(), Arc::clone(&host));
        host
    }
}

impl Permit {
    /// Ends the use of the place and tells how long the host is left alone from now on.
    pub fn finish(self) -> Duration {
        self.host.state().delay(self.delay)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        {
            let mut state = self.host.state();
            state.n_in_use -= 1;
            state.ended = Some(Instant::now());
        }
        self.host.freed.notify_one();
    }
}

impl HostGate {
    fn state(&self) -> MutexGuard<'_, HostState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody holds or awaits a place (they would share it), and no delay is running.
    fn is_forgettable(self: &Arc<Self>, now: Instant) -> bool {
        let state = self.state();
        let is_over = state.strictest.is_none_or(|(delay, until)| {
            until <= now && state.ended.is_none_or(|ended| ended + delay <= now)
        });
        is_over && Arc::strong_count(self) == 1
    }
}

impl HostState {
    /// The delay that one who asks for `delay` has to keep.
    fn delay(&self, delay: Duration) -> Duration {
        match self.strictest {
            Some((strictest, until)) if Instant::now() < until => delay.max(strictest),
            Some(_) | None => delay,
        }
    }

    /// The same, and makes the others keep it.
    fn ask(&mut self, delay: Duration) -> Duration {
        let to_keep = self.delay(delay);
        if to_keep == delay && !delay.is_zero() {
            self.strictest = Some((delay, Instant::now() + 2 * delay + STRICT_FOR));
        }
        to_keep
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    const SECOND: Duration = Duration::from_secs(1);
    const NONE: Duration = Duration::ZERO;

    fn gate() -> Gate {
        Gate::new(GateSettings { parallel: 2 })
    }

    async fn check_wait(gate: &Gate, host: &str, delay: Duration, expected: Duration) -> Permit {
        let asked = Instant::now();
        let permit = gate.enter(host, delay).await;
        let waited = asked.elapsed();
        // The paused clock has steps of a millisecond.
        assert!(
            waited >= expected && waited <= expected + Duration::from_millis(2),
            "waited {waited:?}, expected {expected:?}"
        );
        permit
    }

    #[tokio::test(start_paused = true)]
    async fn the_delay_counts_from_the_end_of_an_answer() {
        let gate = gate();
        let permit = check_wait(&gate, "a:80", SECOND, NONE).await;
        tokio::time::advance(5 * SECOND).await;
        assert_eq!(permit.finish(), SECOND);
        drop(check_wait(&gate, "b:80", SECOND, NONE).await);
        drop(check_wait(&gate, "a:80", SECOND, SECOND).await);
        tokio::time::advance(3 * SECOND).await;
        drop(check_wait(&gate, "a:80", SECOND, NONE).await);
    }

    #[tokio::test(start_paused = true)]
    async fn with_a_delay_there_is_one_request_at_a_time() {
        let gate = gate();
        let permit = gate.enter("a:80", SECOND).await;
        let second = tokio::time::timeout(100 * SECOND, gate.enter("a:80", SECOND)).await;
        assert!(second.is_err());
        drop(permit);
        drop(check_wait(&gate, "a:80", SECOND, SECOND).await);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_delay_requests_run_side_by_side_up_to_the_bound() {
        let gate = gate();
        let one = check_wait(&gate, "a:80", NONE, NONE).await;
        let other = check_wait(&gate, "a:80", NONE, NONE).await;
        let mut third = std::pin::pin!(gate.enter("a:80", NONE));
        assert!(third.as_mut().now_or_never().is_none());
        drop(one);
        drop(third.await);
        drop(other);
    }

    #[tokio::test(start_paused = true)]
    async fn the_strictest_delay_binds_all_until_it_is_asked_for_no_more() {
        let gate = gate();
        drop(check_wait(&gate, "a:80", NONE, NONE).await);
        drop(check_wait(&gate, "a:80", 5 * SECOND, 5 * SECOND).await);
        let permit = check_wait(&gate, "a:80", NONE, 5 * SECOND).await;
        assert_eq!(permit.finish(), 5 * SECOND);
        tokio::time::advance(STRICT_FOR + 10 * SECOND).await;
        drop(check_wait(&gate, "a:80", NONE, NONE).await);
        drop(check_wait(&gate, "a:80", NONE, NONE).await);
    }

    #[tokio::test(start_paused = true)]
    async fn turns_go_in_order_of_arrival_and_one_who_leaves_holds_up_nobody() {
        let gate = gate();
        let order = Mutex::new(Vec::new());
        let permit = gate.enter("a:80", SECOND).await;
        let wait = |name: &'static str| {
            let (gate, order) = (&gate, &order);
            async move {
                let permit = gate.enter("a:80", SECOND).await;
                order.lock().unwrap().push(name);
                drop(permit);
            }
        };
        let mut leaves = Box::pin(wait("leaves"));
        let (mut first, mut second) = (Box::pin(wait("first")), Box::pin(wait("second")));
        assert!(leaves.as_mut().now_or_never().is_none());
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(permit);
        drop(leaves);
        let began = Instant::now();
        futures::join!(second, first);
        assert_eq!(*order.lock().unwrap(), ["first", "second"]);
        assert!(began.elapsed() >= 2 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_that_nobody_asks_for_are_forgotten() {
        let gate = gate();
        let kept = gate.enter("kept:80", SECOND).await;
        for n in 0..FIRST_SWEEP - 1 {
            drop(gate.enter(&format!("{n}:80"), SECOND).await);
        }
        assert_eq!(gate.hosts.lock().unwrap().by_name.len(), FIRST_SWEEP);
        tokio::time::advance(STRICT_FOR + 3 * SECOND).await;
        drop(gate.enter("new:80", NONE).await);
        let hosts = gate.hosts.lock().unwrap();
        assert_eq!(hosts.by_name.len(), 2);
        assert!(hosts.by_name.contains_key("kept:80"));
        drop(kept);
    }
}
