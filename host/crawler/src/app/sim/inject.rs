//! Injects faults of the nodes for a while.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::cluster::Cluster;
use super::fault::Fault;
use super::node::{Node, Part};
use super::times::LEASE_TTL;
use super::world::Partition;

/// Longest time in milliseconds that a process stands still: longer than two leases.
const LONGEST_STOP: u32 = 25_000;

impl Cluster {
    /// Chooses a machine: sometimes the one whose master leads or contends, otherwise any.
    fn victim(&self) -> usize {
        let machines = self.machines.lock().unwrap();
        let world = &self.services.world;
        let leader = machines.iter().position(|machine| match &machine.node {
            Some(Node {
                part: Part::Master(control),
                ..
            }) => control.election_status().borrow().own.is_some(),
            _ => false,
        });
        let any = world.below(u32::try_from(machines.len()).expect("a few")) as usize;
        match leader {
            Some(leader) if world.chance(20) => leader,
            _ => any,
        }
    }

    fn fault(self: &Arc<Self>) {
        let world = self.services.world.clone();
        let machine = self.victim();
        let machines = self.machines.lock().unwrap();
        let label = machines[machine]
            .node
            .as_ref()
            .map(|node| node.label.clone());
        let clock = machines[machine].clock.clone();
        drop(machines);
        let time = world.millis(500, LONGEST_STOP);
        let Some(label) = label else {
            return;
        };
        match world.below(12) {
            0 | 1 => {
                world.occurs(Fault::Stop);
                world.note(format_args!("stop {label} for {time:?}"));
                let stopped = self.process(machine);
                stopped.stop();
                self.later(time, move |_| stopped.go_on());
            }
            2 => {
                world.note(format_args!("stop {label} for {time:?} and start it anew"));
                let Some(node) = self.take(machine) else {
                    return;
                };
                world.occurs(Fault::StopAndReplace);
                let process = node.process.clone();
                process.stop();
                self.replaced.lock().unwrap().push(node);
                self.start_on(machine);
                self.later(time, move |_| process.go_on());
            }
            3 | 4 => {
                let time = world.millis(0, 12_000);
                world.occurs(Fault::Kill);
                world.note(format_args!("kill {label} for {time:?}"));
                drop(self.take(machine));
                self.later(time, move |cluster| cluster.start_on(machine));
            }
            5 => {
                world.note(format_args!("end {label} for {time:?}"));
                let Some(node) = self.take(machine) else {
                    return;
                };
                world.occurs(Fault::End);
                let stop = self.scope.stop_signal();
                self.scope.spawn("end of a process", async move {
                    stop.run_until_cancelled(node.stop()).await;
                });
                self.later(time, move |cluster| cluster.start_on(machine));
            }
            6 => {
                let (cut, fault) = match world.chance(50) {
                    true => (Partition::Requests, Fault::CutRequests),
                    false => (Partition::Answers, Fault::CutAnswers),
                };
                world.occurs(fault);
                world.note(format_args!("cut {label} off for {time:?}: {cut:?}"));
                world.cut(&label, Some(cut));
                self.later(time, move |cluster| {
                    cluster.services.world.cut(&label, None)
                });
            }
            7 => {
                let time = world.millis(500, 15_000);
                world.occurs(Fault::StoreAway);
                world.note(format_args!("the store is away for {time:?}"));
                world.cut("", Some(Partition::Requests));
                self.later(time, |cluster| cluster.services.world.cut("", None));
            }
            8 => {
                let millis = i64::from(world.below(240_000)) - 120_000;
                world.note(format_args!("set the clock of {label} by {millis} ms"));
                world.occurs(Fault::ClockStep);
                clock.set_by(millis);
                world.checker().on_clock(&label);
            }
            9 => {
                let keep = world.below(20);
                world.occurs(Fault::Compaction);
                world.note(format_args!("forget all but {keep} revisions"));
                self.services.store.forget(u64::from(keep));
            }
            10 => {
                world.note(format_args!("drain {label} for {time:?}"));
                let id = self.machines.lock().unwrap()[machine].id.clone();
                if label.starts_with("worker") {
                    world.occurs(Fault::Drain);
                }
                self.drains.lock().unwrap().insert(id.clone());
                drop(self.drain(&id, false));
                self.later(time, move |cluster| drop(cluster.drain(&id, true)));
            }
            _ => {
                world.note(format_args!(
                    "no watch of {label} says anything for {time:?}"
                ));
                world.occurs(Fault::NoAnswer);
                world.silence(&label, true);
                self.later(time, move |cluster| {
                    cluster.services.world.silence(&label, false)
                });
            }
        }
    }
}

/// Lets faults happen for a while, some of them at the same time.
pub(super) async fn inject_faults(cluster: &Arc<Cluster>) {
    let world = &cluster.services.world;
    // Most histories begin with a cluster that is complete.
    if world.chance(80) {
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    world.set_faults(true);
    let end = Instant::now() + world.millis(20_000, 90_000);
    while Instant::now() < end {
        let late = world.below(4);
        cluster.services.store.set_lateness(LEASE_TTL / 16 * late);
        cluster.fault();
        tokio::time::sleep(world.millis(100, 6_000)).await;
        cluster.remove_ended();
        if world.chance(30) {
            cluster.start_missing();
        }
    }
}
