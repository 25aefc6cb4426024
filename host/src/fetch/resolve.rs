//! Names to addresses, each judged by the guard: what this resolver lets through is what the client
//! connects to, so a name cannot change its address between the judgement and the connection.
//!
//! The client resolves a name without telling the port. A request therefore says what it wants
//! before it is sent ([`GuardedResolver::want`]), and an address passes only if the guard lets it
//! pass for every port that is wanted of its name.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use super::FetchError;
use super::guard::{Denial, Guard};

/// Names remembered as lying inside the allowed networks.
const MAX_INSIDE: usize = 10_000;

/// Resolves names for the client.
#[derive(Debug, Clone)]
pub(super) struct GuardedResolver {
    guard: Arc<Guard>,
    /// Names whose addresses are known.
    fixed: Arc<BTreeMap<String, Vec<IpAddr>>>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Of each name, the ports of requests in flight, once for each.
    wanted: HashMap<String, Vec<u16>>,
    /// Names that were last seen to lie wholly inside the allowed networks.
    inside: HashSet<String>,
}

/// A request in flight to a name and port; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Want {
    resolver: GuardedResolver,
    name: String,
    port: u16,
}

/// Why a name gave no address. It travels through the client's own error.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum ResolveError {
    /// It has addresses, and none may be reached.
    #[error("{name} is at {address}, which may not be reached")]
    Denied {
        /// As asked for.
        name: String,
        /// The first.
        address: IpAddr,
        /// Why that one.
        denial: Denial,
    },
    /// It has no address.
    #[error("{name} cannot be resolved: {why}")]
    Unknown {
        /// As asked for.
        name: String,
        /// What the system said.
        why: String,
    },
}

impl ResolveError {
    pub(super) fn into_fetch_error(self) -> FetchError {
        match self {
            ResolveError::Denied {
                name,
                address,
                denial,
            } => denial.into_error(&name, address),
            ResolveError::Unknown { name, why } => FetchError::Resolve { host: name, why },
        }
    }
}

impl GuardedResolver {
    pub(super) fn new(guard: Arc<Guard>, fixed: BTreeMap<String, Vec<IpAddr>>) -> Self {
        Self {
            guard,
            fixed: Arc::new(fixed),
            state: Arc::default(),
        }
    }

    /// Says that a request to this URL's host and port is about to be sent.
    pub(super) fn want(&self, url: &Url) -> Want {
        let name = url.host_str().unwrap_or_default().to_owned();
        let port = url.port_or_known_default().unwrap_or_default();
        let mut state = self.state();
        state.wanted.entry(name.clone()).or_default().push(port);
        Want {
            resolver: self.clone(),
            name,
            port,
        }
    }

    /// Whether a URL's host lies inside the allowed networks, as far as is known without asking.
    pub(super) fn is_inside(&self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Ipv4(ip)) => self.guard.is_inside(ip.into()),
            Some(Host::Ipv6(ip)) => self.guard.is_inside(ip.into()),
            Some(Host::Domain(name)) => match self.fixed.get(name) {
                Some(fixed) => fixed.iter().all(|&ip| self.guard.is_inside(ip)),
                None if name == "localhost" => self.guard.is_inside(Ipv4Addr::LOCALHOST.into()),
                None => self.state().inside.contains(name),
            },
            None => false,
        }
    }

    /// What may be connected to of a name's addresses.
    fn admit(&self, name: &str, found: &[IpAddr]) -> Result<Vec<IpAddr>, ResolveError> {
        let mut state = self.state();
        let is_inside = !found.is_empty() && found.iter().all(|&ip| self.guard.is_inside(ip));
        if !is_inside {
            state.inside.remove(name);
        } else if state.inside.len() < MAX_INSIDE {
            state.inside.insert(name.to_owned());
        }
        // The client may connect on for a request that was given up: then no port is known.
        let ports = match state.wanted.get(name) {
            Some(ports) => ports.iter().copied().map(Some).collect(),
            None => vec![None],
        };
        let judge = |ip: IpAddr| {
            ports
                .iter()
                .try_for_each(|&port| self.guard.judge(ip, port))
        };
        let admitted: Vec<IpAddr> = found
            .iter()
            .copied()
            .filter(|&ip| judge(ip).is_ok())
            .collect();
        if !admitted.is_empty() {
            return Ok(admitted);
        }
        match found.iter().find_map(|&ip| Some((ip, judge(ip).err()?))) {
            Some((address, denial)) => Err(ResolveError::Denied {
                name: name.to_owned(),
                address,
                denial,
            }),
            None => Err(ResolveError::Unknown {
                name: name.to_owned(),
                why: "it has no address".to_owned(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let name = name.as_str();
            let found = match resolver.fixed.get(name) {
                Some(fixed) => fixed.clone(),
                None => looked_up(name).await?,
            };
            let admitted = resolver.admit(name, &found)?;
            // The client puts the port of the URL in place of 0.
            let addresses = admitted.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// What the system's resolver says.
async fn looked_up(name: &str) -> Result<Vec<IpAddr>, ResolveError> {
    let found = tokio::net::lookup_host((name, 0)).await;
    let found = found.map_err(|e| ResolveError::Unknown {
        name: name.to_owned(),
        why: e.to_string(),
    })?;
    Ok(found.map(|address| address.ip()).collect())
}

impl Drop for Want {
    fn drop(&mut self) {
        let mut state = self.resolver.state();
        if let Some(ports) = state.wanted.get_mut(&self.name) {
            if let Some(index) = ports.iter().position(|&port| port == self.port) {
                ports.swap_remove(index);
            }
            if ports.is_empty() {
                state.wanted.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolver(networks: &[&str], own: &[&str]) -> GuardedResolver {
        let guard = Guard::new(networks.iter().map(|n| n.parse().unwrap()).collect());
        guard.set_own_nodes(own.iter().map(|&node| node.to_owned()));
        GuardedResolver::new(Arc::new(guard), BTreeMap::new())
    }

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|ip| ip.parse().unwrap()).collect()
    }

    #[track_caller]
    fn check(resolver: &GuardedResolver, found: &[&str], admitted: Result<&[&str], &str>) {
        let result = resolver
            .admit("a.test", &ips(found))
            .map_err(|e| e.into_fetch_error().reason());
        assert_eq!(result, admitted.map(ips));
    }

    #[test]
    fn only_public_addresses_of_a_name_are_connected_to() {
        let resolver = resolver(&[], &[]);
        check(&resolver, &["8.8.8.8"], Ok(&["8.8.8.8"]));
        check(&resolver, &["10.0.0.1", "8.8.8.8"], Ok(&["8.8.8.8"]));
        check(&resolver, &["::ffff:10.0.0.1"], Err("address-denied"));
        check(&resolver, &["10.0.0.1", "::1"], Err("address-denied"));
        check(&resolver, &[], Err("resolve"));
    }

    #[test]
    fn a_name_that_leads_to_an_own_node_is_refused_for_its_port_only() {
        let resolver = resolver(&["127.0.0.0/8"], &["127.0.0.1:9091"]);
        check(&resolver, &["127.0.0.1"], Err("own-node"));
        let site = resolver.want(&"http://a.test:8000/".parse().unwrap());
        check(&resolver, &["127.0.0.1"], Ok(&["127.0.0.1"]));
        let node = resolver.want(&"http://a.test:9091/".parse().unwrap());
        check(&resolver, &["127.0.0.1"], Err("own-node"));
        drop(node);
        check(&resolver, &["127.0.0.1"], Ok(&["127.0.0.1"]));
        drop(site);
        assert!(resolver.state().wanted.is_empty());
    }

    #[test]
    fn a_name_is_inside_as_long_as_all_its_addresses_are() {
        let resolver = resolver(&["10.0.0.0/8"], &[]);
        let url = "http://a.test/".parse().unwrap();
        assert!(!resolver.is_inside(&url));
        check(&resolver, &["10.0.0.1"], Ok(&["10.0.0.1"]));
        assert!(resolver.is_inside(&url));
        check(
            &resolver,
            &["10.0.0.1", "8.8.8.8"],
            Ok(&["10.0.0.1", "8.8.8.8"]),
        );
        assert!(!resolver.is_inside(&url));
    }

    #[tokio::test]
    async fn the_systems_answer_is_judged() {
        let error = resolver(&[], &[])
            .resolve("localhost".parse().unwrap())
            .await
            .err()
            .unwrap();
        assert!(error.is::<ResolveError>(), "{error}");
        let mut found = resolver(&["127.0.0.0/8", "::1/128"], &[])
            .resolve("localhost".parse().unwrap())
            .await
            .unwrap();
        assert!(found.any(|address| address.ip().is_loopback()));
    }
}
