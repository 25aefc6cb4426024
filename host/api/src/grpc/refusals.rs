//! Refused calls of nodes, as others learn of them: entries of the record of who did what or, on a process that keeps
//! none, lines of the log.
//!
//! Neither can be filled by calling again and again. The record sees to that itself. In the log, refused calls of one
//! caller to one call for one reason are a line at once, and then at most one a minute, with their number.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::Peer;
use crate::caller_limits::CallerKey;
use crate::problem::Problem;
use crawler_access::audit::{AuditEntry, AuditLog};
use crawler_access::node::NodeName;

/// Time between two lines about one caller, call and reason.
const INTERVAL: Duration = Duration::from_secs(60);
/// Largest number of callers, calls and reasons that are told apart. Those beyond share a line.
const KNOWN_MAX: usize = 256;
/// Words for callers whose certificate names no node. No subject of a token has blanks.
const NAMELESS: &str = "callers without the certificate of a node";

/// Place where refused calls are told. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Refusals {
    /// Record of who did what; `None` if this process keeps none.
    audit: Option<AuditLog>,
    lines: Arc<Mutex<Lines>>,
}

/// Caller, call and code of refused calls; `None` stands for all that found no room.
type Kind = Option<(Who, &'static str, &'static str)>;

/// Caller whose calls are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Who {
    /// Node that a certificate names, by its URI.
    Node(String),
    /// Machine of a caller without such a certificate.
    Machine(CallerKey),
}

/// Refused calls that had a line.
#[derive(Debug, Default)]
struct Lines(HashMap<Kind, Told>);

#[derive(Debug)]
struct Told {
    /// Time of the last line.
    at: Instant,
    /// Calls since then.
    n_untold: u64,
}

impl Refusals {
    pub(super) fn new(audit: Option<AuditLog>) -> Self {
        Self {
            audit,
            lines: Arc::default(),
        }
    }

    /// Tells that a call of this node was refused, and returns the reason. `None` is a caller without the certificate
    /// of a node.
    pub(super) fn refused(
        &self,
        call: &'static str,
        (node, peer): (Option<&NodeName>, &Peer),
        problem: Problem,
    ) -> Problem {
        let uri = node.map(NodeName::uri);
        if let Some(audit) = &self.audit {
            audit.record_refused(AuditEntry {
                subject: uri.map_or_else(|| NAMELESS.to_owned(), |uri| format!("a node: {uri}")),
                address: peer.address,
                method: call.to_owned(),
                result: problem.code_name().to_owned(),
                detail: problem.detail.clone(),
                ..AuditEntry::default()
            });
            return problem;
        }
        let machine = || Who::Machine(CallerKey::of(None, peer.address));
        let who = uri.clone().map_or_else(machine, Who::Node);
        let kind = (who, call, problem.code_name());
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let times = lines.count(kind, Instant::now());
        drop(lines);
        if let Some(times) = times {
            tracing::warn!(
                node = uri,
                caller = peer.address.map(tracing::field::display),
                call,
                reason = problem.detail,
                times,
                "refused a call of a node"
            );
        }
        problem
    }
}

impl Lines {
    /// Counts a refused call. Returns the number of calls that its line stands for; `None` if it has no line.
    fn count(&mut self, kind: (Who, &'static str, &'static str), now: Instant) -> Option<u64> {
        let mut kind = Some(kind);
        if !self.0.contains_key(&kind) && self.0.len() >= KNOWN_MAX {
            self.forget(now);
            if self.0.len() >= KNOWN_MAX {
                kind = None;
            }
        }
        let Some(told) = self.0.get_mut(&kind) else {
            let n_untold = 0;
            self.0.insert(kind, Told { at: now, n_untold });
            return Some(1);
        };
        if now < told.at + INTERVAL {
            told.n_untold += 1;
            return None;
        }
        told.at = now;
        Some(std::mem::take(&mut told.n_untold) + 1)
    }

    /// Forgets those whose last line was long ago. If they call again, they have a line at once.
    fn forget(&mut self, now: Instant) {
        self.0
            .retain(|kind, told| kind.is_none() || now < told.at + INTERVAL);
    }
}

impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusals").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr, SocketAddr};

    use super::*;
    use crawler_master::Code;
    use crawler_process::telemetry::testing::Log;

    const SECOND: Duration = Duration::from_secs(1);

    fn machine(n: usize) -> (Who, &'static str, &'static str) {
        let address = IpAddr::from(u32::try_from(n).unwrap().to_be_bytes());
        (
            Who::Machine(CallerKey::Address(address)),
            "GetStatus",
            "PERMISSION_DENIED",
        )
    }

    #[tokio::test(start_paused = true)]
    async fn refused_calls_of_one_node_are_a_line_a_minute() {
        let (log, _guard) = Log::of_this_thread("warn");
        let refusals = Refusals::default();
        let refuse = |uri: &str, call| {
            let node = NodeName::of_uri(uri).unwrap();
            let problem = Problem::new(Code::PermissionDenied, "it is no master", "");
            refusals.refused(call, (Some(&node), &Peer::default()), problem);
        };
        let (first, second) = (
            "crawler://c1/worker/worker-1",
            "crawler://c1/worker/worker-2",
        );
        for _ in 0..10 {
            refuse(first, "GetStatus");
        }
        refuse(first, "ReadLogs");
        refuse(second, "GetStatus");
        tokio::time::advance(INTERVAL - SECOND).await;
        refuse(first, "GetStatus");
        assert_eq!(log.lines().len(), 3);
        tokio::time::advance(SECOND).await;
        refuse(first, "GetStatus");
        let lines = log.lines();
        assert_eq!(lines.len(), 4);
        let last = &lines[3];
        assert!(last.contains("times=11"), "{last}");
        assert!(last.contains("worker-1") && last.contains("it is no master"));
    }

    #[tokio::test(start_paused = true)]
    async fn all_addresses_of_a_site_are_one_refused_caller() {
        let (log, _guard) = Log::of_this_thread("warn");
        let refusals = Refusals::default();
        let refuse = |address: u128| {
            let peer = Peer {
                address: Some(SocketAddr::from((Ipv6Addr::from_bits(address), 7))),
                ..Peer::default()
            };
            let problem = Problem::new(Code::Unauthenticated, "it shows none", "");
            refusals.refused("GetStatus", (None, &peer), problem);
        };
        let site = 0x2001_0db8_0000_0007_u128 << 64;
        for n in 0..1_000 {
            refuse(site + n);
        }
        assert_eq!(log.lines().len(), 1);
        refuse(site + (1 << 64));
        assert_eq!(log.lines().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn many_refused_callers_do_not_grow_the_table() {
        let mut lines = Lines::default();
        let n_all = 4 * KNOWN_MAX;
        let times: Vec<u64> = (0..n_all)
            .filter_map(|n| lines.count(machine(n), Instant::now()))
            .collect();
        assert_eq!(times, [1; KNOWN_MAX + 1], "the rest share one line");
        assert_eq!(lines.0.len(), KNOWN_MAX + 1);
        tokio::time::advance(INTERVAL).await;
        let now = Instant::now();
        let times = (0..n_all).filter_map(|n| lines.count(machine(n_all + n), now));
        let most = times.max();
        let n_others = n_all - KNOWN_MAX;
        assert_eq!(
            most,
            Some(n_others as u64),
            "the line tells how many it is for"
        );
        assert!(lines.0.len() <= KNOWN_MAX + 1);
    }
}
