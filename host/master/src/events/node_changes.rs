//! Changes of a node that are told: pure, from what was told last and what is there now.

use crawler_model::crawl::UnixMillis;
use crawler_model::event::{Event, EventKind, ToldNode};
use crawler_model::node::{Node, Role};

/// State of a node that was seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenNode<'a> {
    /// Registration. `None` if the node is gone.
    pub(super) node: Option<&'a Node>,
    /// Revision at which the leadership of the node began, if it leads.
    pub(super) leads: Option<u64>,
    /// Shards of the worker. `None` if they were not looked at.
    pub(super) shards: Option<SeenShards>,
    pub(super) now: UnixMillis,
}

/// Shards of a worker that were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SeenShards {
    /// True if the worker is to give them away.
    pub(super) is_draining: bool,
    /// Number of shards that are assigned to it.
    pub(super) n: usize,
    /// Number of these that were not when changes were told last.
    pub(super) n_came: usize,
    /// Number of those that are not any more.
    pub(super) n_left: usize,
}

/// Returns the events of a node since it was told last, and the state that they tell. Returns `None` if nothing has
/// changed.
pub(super) fn changes(
    told: Option<&ToldNode>,
    seen: SeenNode<'_>,
) -> Option<(ToldNode, Vec<Event>)> {
    let mut events = Vec::new();
    let state = match (told, seen.node) {
        (None, None) => return None,
        (Some(told), None) => {
            if told.gone_at.is_some() {
                return None;
            }
            gone(told, seen.now, &mut events)
        }
        (told, Some(node)) => present(told, node, seen, &mut events),
    };
    (told != Some(&state) || !events.is_empty()).then_some((state, events))
}

fn gone(told: &ToldNode, now: UnixMillis, events: &mut Vec<Event>) -> ToldNode {
    if told.leads.is_some() {
        events.push(Event::of_node(EventKind::LeadsNoMore));
    }
    events.push(Event::of_node(match told.leaving {
        true => EventKind::Left,
        false => EventKind::Lost,
    }));
    ToldNode {
        leads: None,
        drained: false,
        gone_at: Some(now),
        ..told.clone()
    }
}

fn present(
    told: Option<&ToldNode>,
    node: &Node,
    seen: SeenNode<'_>,
    events: &mut Vec<Event>,
) -> ToldNode {
    let before = told.filter(|told| told.gone_at.is_none());
    let same = before.filter(|told| told.incarnation == node.incarnation);
    let mut state = match same {
        Some(told) => told.clone(),
        None => {
            // A process that comes back after it has lost its lease goes on with its numbers.
            let back = told.filter(|told| told.incarnation == node.incarnation);
            if before.is_some_and(|told| told.leads.is_some()) {
                events.push(Event::of_node(EventKind::LeadsNoMore));
            }
            let joined = Event::of_node(EventKind::Joined);
            let (version, address) = (&node.version, &node.address);
            events.push(match before {
                Some(_) => joined.because(format_args!(
                    "version {version} at {address}; in the place of a process that has ended"
                )),
                None => joined.because(format_args!("version {version} at {address}")),
            });
            ToldNode {
                role: node.role,
                incarnation: node.incarnation,
                // The version before, which is compared below.
                version: told.map(|told| told.version.clone()).unwrap_or_default(),
                leaving: false,
                drained: false,
                leads: None,
                folded: back.map_or(0, |told| told.folded),
                n_writes: told.map_or(0, |told| told.n_writes),
                gone_at: None,
            }
        }
    };
    if state.version != node.version {
        if !state.version.is_empty() {
            let why = format!("{} after {}", node.version, state.version);
            events.push(Event::of_node(EventKind::Version).because(why));
        }
        state.version.clone_from(&node.version);
    }
    if node.draining && !state.leaving {
        // A master that leaves says it in the same way, and gives nothing away.
        if node.role == Role::Worker {
            events.push(Event::of_node(EventKind::Draining).because("its process is to end"));
        }
        state.leaving = true;
    }
    if state.leads != seen.leads {
        if state.leads.is_some() {
            events.push(Event::of_node(EventKind::LeadsNoMore));
        }
        if seen.leads.is_some() {
            events.push(Event::of_node(EventKind::Leads));
        }
        state.leads = seen.leads;
    }
    if let Some(shards) = seen.shards {
        tell_shards(shards, &mut state, events);
    }
    state
}

fn tell_shards(shards: SeenShards, state: &mut ToldNode, events: &mut Vec<Event>) {
    let SeenShards {
        is_draining,
        n,
        n_came,
        n_left,
    } = shards;
    if n_came + n_left > 0 {
        let why = format!("{n_came} came, {n_left} left, {n} now");
        events.push(Event::of_node(EventKind::Shards).because(why));
    }
    let is_drained = is_draining && n == 0;
    if is_drained && !state.drained {
        events.push(Event::of_node(EventKind::Drained));
    }
    state.drained = is_drained;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crawler_model::id::Incarnation;
    use crawler_model::node::CallToken;

    fn node(role: Role, incarnation: u64) -> Node {
        Node {
            id: format!("{role}-1").parse().unwrap(),
            role,
            address: "a:1".to_owned(),
            http: String::new(),
            pprof: String::new(),
            incarnation: Incarnation(incarnation),
            labels: BTreeMap::new(),
            capacity: 1,
            version: "1.0.0".to_owned(),
            interface: String::new(),
            draining: false,
            started_at: 0,
            call_token: CallToken::default(),
            shares_turns: false,
            tls: false,
        }
    }

    fn seen(node: Option<&Node>) -> SeenNode<'_> {
        SeenNode {
            node,
            leads: None,
            shards: None,
            now: 7,
        }
    }

    /// State that is told, and the look at which it changes.
    #[derive(Default)]
    struct Checked(Option<ToldNode>);

    impl Checked {
        /// Looks twice: what was told is not told again.
        #[track_caller]
        fn look(&mut self, seen: SeenNode<'_>, expected: &[&str]) {
            let changed = changes(self.0.as_ref(), seen);
            let (state, events) = changed.unzip();
            let events = events.unwrap_or_default();
            let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
            assert_eq!(kinds, expected);
            self.0 = state.or(self.0.take());
            let shards = seen.shards.map(|shards| SeenShards {
                n_came: 0,
                n_left: 0,
                ..shards
            });
            assert_eq!(changes(self.0.as_ref(), SeenNode { shards, ..seen }), None);
        }
    }

    #[test]
    fn a_worker_joins_drains_leaves_and_comes_back() {
        let mut told = Checked::default();
        told.look(seen(None), &[]);
        let worker = node(Role::Worker, 1);
        told.look(seen(Some(&worker)), &["joined"]);
        let leaving = Node {
            draining: true,
            ..worker.clone()
        };
        told.look(seen(Some(&leaving)), &["draining"]);
        told.look(seen(None), &["left"]);
        assert_eq!(told.0.as_ref().unwrap().gone_at, Some(7));
        told.look(seen(Some(&worker)), &["joined"]);
        told.look(seen(None), &["lost"]);
    }

    #[test]
    fn another_process_is_told_with_its_version() {
        let mut told = Checked::default();
        told.look(seen(Some(&node(Role::Worker, 1))), &["joined"]);
        told.look(seen(Some(&node(Role::Worker, 2))), &["joined"]);
        let newer = Node {
            version: "1.1.0".to_owned(),
            ..node(Role::Worker, 3)
        };
        told.look(seen(Some(&newer)), &["joined", "version"]);
        assert_eq!(told.0.unwrap().version, "1.1.0");
    }

    #[test]
    fn a_process_that_comes_back_goes_on_with_its_numbers() {
        let mut told = Checked::default();
        let worker = node(Role::Worker, 1);
        told.look(seen(Some(&worker)), &["joined"]);
        told.0.as_mut().unwrap().folded = 12;
        told.look(seen(None), &["lost"]);
        told.look(seen(Some(&worker)), &["joined"]);
        assert_eq!(told.0.as_ref().unwrap().folded, 12);
        // Another process begins anew.
        told.look(seen(Some(&node(Role::Worker, 2))), &["joined"]);
        assert_eq!(told.0.unwrap().folded, 0);
    }

    #[test]
    fn a_master_leads_until_another_does_or_it_is_gone() {
        let mut told = Checked::default();
        let master = node(Role::Master, 1);
        let leads = |term| SeenNode {
            leads: Some(term),
            ..seen(Some(&master))
        };
        told.look(leads(3), &["joined", "leads"]);
        told.look(seen(Some(&master)), &["leads-no-more"]);
        told.look(leads(5), &["leads"]);
        // Nobody has told the end of its last term.
        told.look(leads(9), &["leads-no-more", "leads"]);
        // It leaves, and gives no shards away.
        let leaving = Node {
            draining: true,
            ..master.clone()
        };
        let leads_still = SeenNode {
            leads: Some(9),
            ..seen(Some(&leaving))
        };
        told.look(leads_still, &[]);
        told.look(seen(None), &["leads-no-more", "left"]);
    }

    #[test]
    fn shards_are_counted_and_the_last_of_a_drained_worker_told() {
        let mut told = Checked::default();
        let worker = node(Role::Worker, 1);
        let with = |n, n_came, n_left, is_draining| SeenNode {
            shards: Some(SeenShards {
                is_draining,
                n,
                n_came,
                n_left,
            }),
            ..seen(Some(&worker))
        };
        told.look(with(0, 0, 0, false), &["joined"]);
        told.look(with(2, 3, 1, false), &["shards"]);
        told.look(with(1, 0, 1, true), &["shards"]);
        told.look(with(0, 0, 1, true), &["shards", "drained"]);
        told.look(with(0, 0, 0, false), &[]);
        told.look(with(0, 0, 0, true), &["drained"]);
    }
}
