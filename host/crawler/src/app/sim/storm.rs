//! The storm: faults of the nodes for a while.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::LEASE_TTL;
use super::cluster::Cluster;
use super::fault::Fault;
use super::node::{Node, Part};
use super::sky::Cut;

/// Longest time in milliseconds that a process stands still: longer than two leases.
const LONGEST_STOP: u32 = 25_000;

impl Cluster {
    /// Chooses a machine: sometimes the one whose master leads or contends, otherwise any.
    fn victim(&self) -> usize {
        let machines = self.machines.lock().unwrap();
        let sky = &self.world.sky;
        let leader = machines.iter().position(|machine| match &machine.node {
            Some(Node {
                part: Part::Master(control),
                ..
            }) => control.election_status().borrow().own.is_some(),
            _ => false,
        });
        let any = sky.below(u32::try_from(machines.len()).expect("a few")) as usize;
        match leader {
            Some(leader) if sky.chance(20) => leader,
            _ => any,
        }
    }

    fn fault(self: &Arc<Self>) {
        let sky = self.world.sky.clone();
        let machine = self.victim();
        let machines = self.machines.lock().unwrap();
        let label = machines[machine]
            .node
            .as_ref()
            .map(|node| node.label.clone());
        let clock = machines[machine].clock.clone();
        drop(machines);
        let time = sky.millis(500, LONGEST_STOP);
        let Some(label) = label else {
            return;
        };
        match sky.below(12) {
            0 | 1 => {
                sky.occurs(Fault::Stop);
                sky.note(format_args!("stop {label} for {time:?}"));
                let stopped = self.process(machine);
                stopped.stop();
                self.later(time, move |_| stopped.go_on());
            }
            2 => {
                sky.note(format_args!("stop {label} for {time:?} and start it anew"));
                let Some(node) = self.take(machine) else {
                    return;
                };
                sky.occurs(Fault::StopAndReplace);
                let process = node.process.clone();
                process.stop();
                self.ghosts.lock().unwrap().push(node);
                self.start_on(machine);
                self.later(time, move |_| process.go_on());
            }
            3 | 4 => {
                let time = sky.millis(0, 12_000);
                sky.occurs(Fault::Kill);
                sky.note(format_args!("kill {label} for {time:?}"));
                drop(self.take(machine));
                self.later(time, move |cluster| cluster.start_on(machine));
            }
            5 => {
                sky.note(format_args!("end {label} for {time:?}"));
                let Some(node) = self.take(machine) else {
                    return;
                };
                sky.occurs(Fault::End);
                let stop = self.scope.stop_signal();
                self.scope.spawn("end of a process", async move {
                    stop.run_until_cancelled(node.stop()).await;
                });
                self.later(time, move |cluster| cluster.start_on(machine));
            }
            6 => {
                let (cut, fault) = match sky.chance(50) {
                    true => (Cut::Requests, Fault::CutRequests),
                    false => (Cut::Answers, Fault::CutAnswers),
                };
                sky.occurs(fault);
                sky.note(format_args!("cut {label} off for {time:?}: {cut:?}"));
                sky.cut(&label, Some(cut));
                self.later(time, move |cluster| cluster.world.sky.cut(&label, None));
            }
            7 => {
                let time = sky.millis(500, 15_000);
                sky.occurs(Fault::StoreAway);
                sky.note(format_args!("the store is away for {time:?}"));
                sky.cut("", Some(Cut::Requests));
                self.later(time, |cluster| cluster.world.sky.cut("", None));
            }
            8 => {
                let millis = i64::from(sky.below(240_000)) - 120_000;
                sky.note(format_args!("set the clock of {label} by {millis} ms"));
                sky.occurs(Fault::ClockStep);
                clock.set_by(millis);
                sky.checker().on_clock(&label);
            }
            9 => {
                let keep = sky.below(20);
                sky.occurs(Fault::Compaction);
                sky.note(format_args!("forget all but {keep} revisions"));
                self.world.store.forget(u64::from(keep));
            }
            10 => {
                sky.note(format_args!("drain {label} for {time:?}"));
                let id = self.machines.lock().unwrap()[machine].id.clone();
                if label.starts_with("worker") {
                    sky.occurs(Fault::Drain);
                }
                self.drains.lock().unwrap().insert(id.clone());
                drop(self.drain(&id, false));
                self.later(time, move |cluster| drop(cluster.drain(&id, true)));
            }
            _ => {
                sky.note(format_args!(
                    "no watch of {label} says anything for {time:?}"
                ));
                sky.occurs(Fault::Silence);
                sky.silence(&label, true);
                self.later(time, move |cluster| {
                    cluster.world.sky.silence(&label, false)
                });
            }
        }
    }
}

/// Lets faults happen for a while, some of them at the same time.
pub(super) async fn rage(cluster: &Arc<Cluster>) {
    let sky = &cluster.world.sky;
    // Most histories begin with a cluster that is complete.
    if sky.chance(80) {
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    sky.storm(true);
    let end = Instant::now() + sky.millis(20_000, 90_000);
    while Instant::now() < end {
        let late = sky.below(4);
        cluster.world.store.set_lateness(LEASE_TTL / 16 * late);
        cluster.fault();
        tokio::time::sleep(sky.millis(100, 6_000)).await;
        cluster.bury();
        if sky.chance(30) {
            cluster.start_missing();
        }
    }
}
