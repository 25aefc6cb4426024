//! Sending of one hop when its host has its turn.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::Instant;
use url::Url;

use super::hop::{Exchange, Hop, Outcome};
use super::sent::{OPEN_FILES_WAIT, Sent};
use super::{HttpFetcher, host_signal};
use crate::FetchError;
use crate::throttle::after;
use crate::throttle::{Address, MAX_WAIT, Pace, Paused, Permit, Requester, SharedAddress};
use crate::turns::call::LEASE;
use crate::turns::{TurnInUse, Turns};
use crawler_model::crawl::clock_of;
use crawler_model::settings::USUAL_AGENT;
use crawler_process::stage::Stage;
use crawler_process::traces;

/// A host that may be asked now.
pub(super) struct Entered {
    pub(super) permit: Permit,
    /// Turn of the host over all workers. If `None`, turns are not shared.
    pub(super) turn: Option<TurnInUse>,
}

/// Number of delays of a host for which a request that is not retried later waits for its turn over all workers.
const MAX_TURN_DELAYS: u32 = 64;

/// The longest wait in the throttle while holding a lease. A lease that is unused for longer goes back to its
/// owner.
const MAX_THROTTLE_WAIT: Duration = Duration::from_millis(100);

/// Returns how long the page has to wait for proxies or open files, if that is why it was not sent.
fn pause_of(error: &FetchError) -> Duration {
    match error {
        FetchError::NoProxy { pause, .. } => *pause,
        FetchError::OpenFiles => OPEN_FILES_WAIT,
        _ => Duration::ZERO,
    }
}

impl HttpFetcher {
    /// Shares the turns of hosts with other workers from now on, where a delay is kept. Only the first call
    /// has an effect.
    pub fn share_turns(&self, turns: Turns) {
        self.turns.get_or_init(|| turns);
    }

    /// Sends one hop.
    pub(super) async fn send(
        &self,
        hop: &Hop,
        max_body: u64,
        pace: &Pace,
        requester: Requester,
    ) -> Sent {
        if let Err(denied) = self.address_policy.check(&hop.url) {
            return Sent::nothing(denied, 0);
        }
        // What the cache has needs no proxy.
        if hop.cache.is_none()
            && let Some(resting) = self.resting(hop)
        {
            return resting;
        }
        let may_look_up = !self.is_proxys_to_resolve(hop);
        // The port is open nearly always, and then no timer is needed.
        if !self.resolver.is_port_open(&hop.url, hop.names_port) {
            let check = (self.resolver).check_port(&hop.url, hop.names_port, may_look_up);
            if let Err(denied) = self.while_connecting(check).await {
                return Sent::nothing(denied, 0);
            }
        }
        if hop.cache.is_some() {
            if let Some(outcome) = hop.cached(&self.settings, max_body).boxed().await {
                return Sent::unasked(outcome, 0);
            }
            if let Some(resting) = self.resting(hop) {
                return resting;
            }
        }
        let host = clock_of(&hop.url);
        let asked = Instant::now();
        let turn = self.turn(&host, pace, hop, requester);
        let entered = Stage::Guard
            .charged(traces::child("turn").around(pin!(turn)))
            .await;
        let Entered { permit, turn } = match entered {
            Ok(entered) => entered,
            Err(paused) => {
                let host_ready_at = paused.ready_at(self.clock.unix_millis());
                return Sent::nothing(paused.into_error(host), host_ready_at);
            }
        };
        let Exchange {
            mut outcome,
            took,
            was_not_connected,
            draft,
        } = Stage::Fetch.timed(pin!(self.exchange(hop, max_body))).await;
        // The warning comes now, because the address of the host is known.
        if outcome.is_ok() {
            self.want_contact(&hop.url);
        }
        if let Ok(Outcome::Received(answer)) = &mut outcome {
            answer.record.waited = permit.entered().duration_since(asked);
        }
        let now = self.clock.unix_millis();
        let error = outcome.as_ref().err();
        let pause = error.map(pause_of).unwrap_or_default();
        // Proxies may be to blame for one page and not for the next.
        let is_held = error.is_some_and(FetchError::is_held);
        let is_of_host = hop.pool.is_none()
            && was_not_connected
            && !is_held
            && error.is_some_and(FetchError::is_transient);
        // The caller puts off a host that was not reached, because another port of the name may answer.
        let signal = match is_of_host || is_held {
            true => None,
            false => host_signal::of(&outcome, took, now),
        };
        let host_delay = permit.finish(signal);
        if let Some(turn) = turn {
            turn.finish(host_delay.time);
        }
        // The host has its turn back already, so it is not left alone for longer.
        if let Some(draft) = draft {
            hop.keep(draft, &outcome).boxed().await;
        }
        Sent {
            is_of_host,
            outcome,
            host_ready_at: after(now, host_delay.time.max(pause)),
            delay_by: host_delay.by,
        }
    }

    /// Warns once a process that the user agent has no contact: the owners of a site should know whom to ask
    /// about a crawl.
    fn want_contact(&self, url: &Url) {
        let is_usual = self.settings.user_agent == USUAL_AGENT;
        if is_usual
            && !self.resolver.is_inside(url)
            && !self.is_nameless.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                "sites see {USUAL_AGENT:?} and cannot tell whom to ask about it; set contact of [fetch] in the config file"
            );
        }
    }

    /// Returns the result of a hop that is not made, because all of its proxies rest.
    fn resting(&self, hop: &Hop) -> Option<Sent> {
        let resting = hop.pool.as_ref()?.check().err()?;
        let pause = pause_of(&resting);
        let ready_at = after(self.clock.unix_millis(), pause);
        Some(Sent::nothing(resting, ready_at))
    }

    /// Returns the address that a hop counts for: the one where its connection is tried first. A connection
    /// that goes to another address of the name, or that was made when another came first, counts for this
    /// one all the same. Returns `None` where setting `address-rate` does not bind: within allowed networks,
    /// where no delay is kept, behind a proxy, and where no address is known before there is a connection.
    pub(super) async fn address(&self, hop: &Hop, pace: &Pace) -> Option<Address> {
        if !self.throttle.spaces_addresses() || hop.pool.is_some() || !pace.is_spaced() {
            return None;
        }
        let connecting = self.settings.connect_timeout;
        let first = self.resolver.first_address(&hop.url, hop.names_port);
        let ip = tokio::time::timeout(connecting, first).await.ok()??;
        (!self.address_policy.is_inside(ip)).then(|| Address::of(ip))
    }

    /// Takes the turn of a hop's host. A redirect gives up its slot among the requests in flight while it waits.
    async fn turn(
        &self,
        host: &str,
        pace: &Pace,
        hop: &Hop,
        requester: Requester,
    ) -> Result<Entered, Paused> {
        let address = self.address(hop, pace).await;
        let shared = address.map(|address| SharedAddress {
            address,
            is_begun: requester.max_wait.is_none(),
        });
        let Some(slot) = hop.slot.as_ref().filter(|_| requester.max_wait.is_none()) else {
            return self.enter(host, shared, pace, requester).await;
        };
        let requester = Requester {
            max_wait: Some(Duration::ZERO),
            ..requester
        };
        loop {
            match self.enter(host, shared, pace, requester).await {
                Err(paused) if !paused.is_in_trouble || paused.pause <= MAX_WAIT => {
                    slot.release();
                    tokio::time::sleep(paused.pause).await;
                    // The turn is taken while holding the slot, because nothing else waits for this page
                    // meanwhile.
                    slot.acquire().await;
                }
                entered => return entered,
            }
        }
    }

    /// Takes the turn of a host, first over all workers and then in the throttle of this one. Longer waits are
    /// made at neither of them, so that no lease is lost while waiting in the throttle; a lease that runs out all
    /// the same gives the place back.
    pub(super) async fn enter(
        &self,
        host: &str,
        shared: Option<SharedAddress>,
        pace: &Pace,
        requester: Requester,
    ) -> Result<Entered, Paused> {
        let Some(turns) = self.turns.get().filter(|_| pace.is_spaced()) else {
            let permit = self
                .throttle
                .enter_at(host, shared, pace, requester)
                .await?;
            return Ok(Entered { permit, turn: None });
        };
        let delay = match pace.delay {
            Duration::ZERO => pace.random,
            delay => delay,
        };
        // A host that is left alone for longer than several other requests need is left alone for another reason.
        let longest = LEASE + MAX_WAIT + delay * MAX_TURN_DELAYS;
        let asked = Instant::now();
        let in_throttle = Requester {
            max_wait: Some(
                requester
                    .max_wait
                    .unwrap_or(MAX_THROTTLE_WAIT)
                    .min(MAX_THROTTLE_WAIT),
            ),
            ..requester
        };
        loop {
            let entered = match turns.turn(host, delay) {
                Ok(()) => {
                    self.throttle
                        .enter_at(host, shared, pace, in_throttle)
                        .await
                }
                Err(pause) => Err(Paused {
                    pause,
                    is_in_trouble: pause > longest,
                    address: None,
                }),
            };
            let paused = match entered {
                Err(paused) => paused,
                Ok(permit) => match turns.begin(host, delay) {
                    Some(turn) => {
                        let turn = Some(turn);
                        return Ok(Entered { permit, turn });
                    }
                    None => {
                        permit.give_back();
                        continue;
                    }
                },
            };
            let ready_at = Instant::now() + paused.pause;
            let waits = match requester.max_wait {
                Some(max_wait) => ready_at <= asked + max_wait,
                None => !paused.is_in_trouble || paused.pause <= MAX_WAIT,
            };
            if !waits {
                return Err(paused);
            }
            tokio::time::sleep_until(ready_at).await;
        }
    }
}
