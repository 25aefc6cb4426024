//! Schedule of faults: drawn from a seed, one after the other, a few at a time and never two of one target.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use crawler_tests::etcd::Isolation;
use crawler_tests::proxy::NetworkFaults;
use crawler_tests::random::Random;

use crate::fleet::{self, Fault, Fleet, LEASE_TTL, N_MEMBERS, N_PROCESSES};

/// Largest number of faults at a time.
const N_AT_ONCE: usize = 3;

/// Summary of the faults that have happened.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// Number of processes that found the record of the one before them for longer than they wait.
    pub(crate) n_started_again: usize,
    pub(crate) n_by_kind: std::collections::BTreeMap<&'static str, usize>,
}

/// Lets faults happen for this time, and repairs everything.
#[expect(
    clippy::print_stdout,
    reason = "what has happened is part of the result"
)]
pub(crate) fn happen(
    fleet: &mut Fleet,
    random: &mut Random,
    time: Duration,
    account: &mut Account,
) {
    let begun = Instant::now();
    let mut active: Vec<(Instant, Fault)> = Vec::new();
    let mut next = begun;
    while begun.elapsed() < time {
        let now = Instant::now();
        let (due, left) = active.into_iter().partition(|(until, _)| *until <= now);
        active = left;
        let due: Vec<(Instant, Fault)> = due;
        for (_, fault) in due {
            fleet.end(&fault);
        }
        if now >= next && active.len() < N_AT_ONCE {
            let (fault, lasts) = draw(random);
            next = now + Duration::from_millis(200 + random.below(1_800));
            if active.iter().all(|(_, f)| f.target() != fault.target()) {
                println!("{:>8.1?} {fault} for {lasts:?}", begun.elapsed());
                fleet.begin(&fault);
                *account.n_by_kind.entry(kind(&fault)).or_default() += 1;
                active.push((now + lasts, fault));
            }
        }
        fleet.read();
        account.n_started_again += fleet.start_again();
        crawler_tests::pass(Duration::from_millis(50));
    }
    for (_, fault) in active {
        fleet.end(&fault);
    }
    fleet.cluster.etcd.wait();
}

fn draw(random: &mut Random) -> (Fault, Duration) {
    let process = index(random, N_PROCESSES);
    let member = index(random, N_MEMBERS);
    let short = LEASE_TTL / 4 + millis(random, LEASE_TTL * 2);
    let two_leases = LEASE_TTL * 2 + Duration::from_millis(200);
    match random.below(18) {
        0..=2 => (Fault::Kill(process), millis(random, LEASE_TTL * 2)),
        3..=5 => (Fault::Freeze(process), two_leases),
        6..=10 => {
            let members: BTreeSet<usize> = match random.below(2) {
                0 => (0..N_MEMBERS).collect(),
                _ => [member].into(),
            };
            let mut network_faults = NetworkFaults::default();
            match random.below(5) {
                0 | 1 => network_faults.is_cut = true,
                2 => network_faults.holds_calls = true,
                3 => network_faults.holds_answers = true,
                _ => {
                    network_faults.delay = Duration::from_millis(50) + millis(random, LEASE_TTL / 6)
                }
            }
            let members = members.into_iter().collect();
            (Fault::Network(process, members, network_faults), short)
        }
        11 | 12 => {
            let isolations = [Isolation::Whole, Isolation::Inward, Isolation::Outward];
            let isolation = isolations[index(random, isolations.len())];
            (Fault::Isolate(member, isolation), short)
        }
        13 => (Fault::KillMember(member), short),
        14 => (Fault::FreezeMember(member), short),
        15 | 16 => (Fault::Terminate(process), millis(random, LEASE_TTL * 2)),
        _ => (Fault::Compact, Duration::ZERO),
    }
}

fn index(random: &mut Random, n: usize) -> usize {
    usize::try_from(random.below(n as u64)).expect("below a number of this type")
}

fn millis(random: &mut Random, below: Duration) -> Duration {
    let below = u64::try_from(below.as_millis()).expect("a short time");
    Duration::from_millis(random.below(below))
}

/// Kinds of faults that are drawn.
pub(crate) const KINDS: [&str; 10] = [
    "compaction",
    "cut",
    "delay",
    "freeze",
    "kill",
    "member frozen",
    "member isolated",
    "member killed",
    "one-way loss",
    "terminate",
];

fn kind(fault: &Fault) -> &'static str {
    match fault {
        Fault::Kill(_) => "kill",
        Fault::Terminate(_) => "terminate",
        Fault::Freeze(_) => "freeze",
        Fault::Network(_, _, network_faults) => {
            match (network_faults.is_cut, network_faults.delay.is_zero()) {
                (true, _) => "cut",
                (false, true) => "one-way loss",
                (false, false) => "delay",
            }
        }
        Fault::Isolate(..) => "member isolated",
        Fault::KillMember(_) => "member killed",
        Fault::FreezeMember(_) => "member frozen",
        Fault::Compact => "compaction",
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Network(n, members, network_faults) => {
                let NetworkFaults {
                    is_cut,
                    holds_calls,
                    holds_answers,
                    delay,
                    ..
                } = network_faults;
                let what = match (is_cut, holds_calls, holds_answers) {
                    (true, _, _) => "is cut off".to_owned(),
                    (_, true, _) => "is not heard".to_owned(),
                    (_, _, true) => "hears nothing".to_owned(),
                    _ => format!("is {delay:?} away"),
                };
                write!(f, "{} {what} by members {members:?}", fleet::name(*n))
            }
            Fault::Kill(n) => write!(f, "{} is killed", fleet::name(*n)),
            Fault::Terminate(n) => write!(f, "{} is told to end", fleet::name(*n)),
            Fault::Freeze(n) => write!(f, "{} is frozen", fleet::name(*n)),
            fault => write!(f, "{fault:?}"),
        }
    }
}
