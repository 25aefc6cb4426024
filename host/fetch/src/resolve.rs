//! Resolution of names to addresses, each judged by the address policy. The client connects to the very addresses
//! that this resolver lets through, so a name cannot change its address between the judgement and the connection.
//!
//! The client resolves a name without telling the port. A request therefore announces its port before it is sent
//! ([`FilteringResolver::announce_port`]), and an address passes only if the address policy lets it pass for every
//! port that is wanted of its name.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use super::FetchError;
use super::address_policy::{AddressPolicy, Denial};
use super::phases;
pub(super) use error::ResolveError;
use names::Names;
pub use names::{NameSettings, Resolver};

mod error;
mod names;

/// Maximum number of names remembered as lying inside the allowed networks.
const MAX_INSIDE: usize = 10_000;

/// Resolver of names for the client.
#[derive(Clone)]
pub(super) struct FilteringResolver {
    address_policy: Arc<AddressPolicy>,
    /// Names with fixed addresses.
    fixed: Arc<BTreeMap<String, Vec<IpAddr>>>,
    names: Names,
    /// Name of the proxy of this resolver's client. The operator chose it, so its addresses are not judged.
    proxy: Option<Arc<str>>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Ports of the requests in flight by name, one entry for each request.
    wanted: HashMap<Arc<str>, Vec<Port>>,
    /// Names that were last seen to lie wholly inside the allowed networks.
    inside: HashSet<String>,
}

/// Port that a request goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Port {
    number: u16,
    /// True if the port may be fetched from outside the allowed networks, too.
    is_open: bool,
}

/// A request in flight to a name and port. Dropping this ends it.
pub(super) struct WantedPort {
    state: Arc<Mutex<State>>,
    name: Arc<str>,
    port: Port,
}

impl FilteringResolver {
    /// Creates a resolver that looks up names as the settings say, unless they are fixed.
    pub(super) fn new(
        address_policy: Arc<AddressPolicy>,
        fixed: BTreeMap<String, Vec<IpAddr>>,
        settings: &NameSettings,
    ) -> Self {
        Self::asking(Names::new(settings), address_policy, fixed)
    }

    /// Returns the same resolver for a client that goes through this proxy.
    pub(super) fn for_proxy(&self, proxy: &Url) -> Self {
        Self {
            proxy: proxy.host_str().map(Into::into),
            ..self.clone()
        }
    }

    fn asking(
        names: Names,
        address_policy: Arc<AddressPolicy>,
        fixed: BTreeMap<String, Vec<IpAddr>>,
    ) -> Self {
        Self {
            address_policy,
            fixed: Arc::new(fixed),
            names,
            proxy: None,
            state: Arc::default(),
        }
    }

    /// Announces a request to this URL's host and port. If its resource names the port, any address may be
    /// reached on it.
    pub(super) fn announce_port(&self, url: &Url, names_port: bool) -> WantedPort {
        let name: Arc<str> = url.host_str().unwrap_or_default().into();
        let port = self.port(url, names_port);
        let mut state = self.state();
        let wanted = state.wanted.entry(Arc::clone(&name)).or_default();
        wanted.push(port);
        drop(state);
        let state = Arc::clone(&self.state);
        WantedPort { state, name, port }
    }

    /// Returns true if the port of a URL needs no further judgement.
    pub(super) fn is_port_open(&self, url: &Url, names_port: bool) -> bool {
        self.port(url, names_port).is_open || self.is_inside(url)
    }

    /// Judges the port of a URL. A name is resolved for that if its addresses are not known: there may be a
    /// connection already, made for a resource that names the port. Nothing is announced meanwhile, so
    /// another request for the name is not judged by this port. If the name may not be looked up, it counts
    /// as outside of the allowed networks.
    pub(super) async fn check_port(
        &self,
        url: &Url,
        names_port: bool,
        may_look_up: bool,
    ) -> Result<(), FetchError> {
        if self.is_port_open(url, names_port) {
            return Ok(());
        }
        let port = self.port(url, names_port);
        if may_look_up && let Some(Host::Domain(name)) = url.host() {
            let found = self.found(name).await;
            let admitted = found.and_then(|found| self.admit_at(name, &found, &[Some(port)]));
            admitted.map_err(ResolveError::into_fetch_error)?;
            if self.is_inside(url) {
                return Ok(());
            }
        }
        Err(FetchError::Port {
            host: url.host_str().unwrap_or_default().to_owned(),
            port: port.number,
        })
    }

    /// Judges the addresses of a URL's name, for a request that goes to a proxy. The proxy may connect to any
    /// of them, so all have to pass.
    pub(super) async fn check_name(&self, url: &Url, names_port: bool) -> Result<(), FetchError> {
        let Some(Host::Domain(name)) = url.host() else {
            return Ok(());
        };
        let port = Some(self.port(url, names_port));
        let found = self.found(name).await;
        let judged = found.and_then(|found| {
            self.note_inside(name, &found);
            let mut each = found.iter();
            each.try_for_each(|&ip| self.check_address(name, ip, &[port]))
        });
        judged.map_err(ResolveError::into_fetch_error)
    }

    fn port(&self, url: &Url, names_port: bool) -> Port {
        let number = url.port_or_known_default().unwrap_or_default();
        Port {
            number,
            is_open: names_port || self.address_policy.is_open(number),
        }
    }

    /// Returns true if a URL's host is known, without a lookup, to lie inside the allowed networks.
    pub(super) fn is_inside(&self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Ipv4(ip)) => self.address_policy.is_inside(ip.into()),
            Some(Host::Ipv6(ip)) => self.address_policy.is_inside(ip.into()),
            Some(Host::Domain(name)) => match self.fixed.get(name) {
                Some(fixed) => fixed.iter().all(|&ip| self.address_policy.is_inside(ip)),
                None if name == "localhost" => {
                    self.address_policy.is_inside(Ipv4Addr::LOCALHOST.into())
                }
                None => self.state().inside.contains(name),
            },
            None => false,
        }
    }

    /// Returns the addresses of a name that may be connected to.
    fn admit(&self, name: &str, found: &[IpAddr]) -> Result<Vec<IpAddr>, ResolveError> {
        // The client may go on connecting for a request that was given up; no port is known then.
        let ports = match self.state().wanted.get(name) {
            Some(ports) => ports.iter().copied().map(Some).collect(),
            None => vec![None],
        };
        self.admit_at(name, found, &ports)
    }

    /// Returns the addresses of a name that may be reached at all of these ports.
    fn admit_at(
        &self,
        name: &str,
        found: &[IpAddr],
        ports: &[Option<Port>],
    ) -> Result<Vec<IpAddr>, ResolveError> {
        self.note_inside(name, found);
        let (mut admitted, mut denied) = (Vec::new(), None);
        for &ip in found {
            match self.check_address(name, ip, ports) {
                Ok(()) => admitted.push(ip),
                Err(error) => denied = denied.or(Some(error)),
            }
        }
        match denied {
            _ if !admitted.is_empty() => Ok(admitted),
            Some(first) => Err(first),
            None => Err(ResolveError::Unknown {
                name: name.to_owned(),
                why: "it has no address".to_owned(),
            }),
        }
    }

    /// Checks that one address of a name may be reached at all of these ports.
    fn check_address(
        &self,
        name: &str,
        ip: IpAddr,
        ports: &[Option<Port>],
    ) -> Result<(), ResolveError> {
        let at = |&port: &Option<Port>| {
            self.address_policy
                .check_address(ip, port.map(|port| port.number))?;
            match port {
                Some(port) if !port.is_open && !self.address_policy.is_inside(ip) => {
                    Err(Denial::Port(port.number))
                }
                _ => Ok(()),
            }
        };
        let judged = ports.iter().try_for_each(at);
        judged.map_err(|denial| ResolveError::Denied {
            name: name.to_owned(),
            address: ip,
            denial,
        })
    }

    /// Records if a name lies wholly inside the allowed networks.
    fn note_inside(&self, name: &str, found: &[IpAddr]) {
        let is_inside =
            !found.is_empty() && found.iter().all(|&ip| self.address_policy.is_inside(ip));
        let mut state = self.state();
        if !is_inside {
            state.inside.remove(name);
        } else if state.inside.len() < MAX_INSIDE {
            state.inside.insert(name.to_owned());
        }
    }

    /// Returns all addresses of a name.
    pub(super) async fn found(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        // The client also asks for literal addresses, where it hands them to a proxy.
        if let Ok(ip) = name.trim_matches(['[', ']']).parse() {
            return Ok(vec![ip]);
        }
        match self.fixed.get(name) {
            Some(fixed) => Ok(fixed.clone()),
            None => self.names.addresses(name).await,
        }
    }

    /// Returns the address where a connection to a URL's host is tried first: the first that the address policy
    /// lets through, in the order of its records, which counts for as long as they do. A name that is not known is
    /// looked up. Returns `None` if lookups are not remembered, because each connection may find another order.
    pub(super) async fn first_address(&self, url: &Url, names_port: bool) -> Option<IpAddr> {
        let name = match url.host()? {
            Host::Ipv4(ip) => return Some(ip.into()),
            Host::Ipv6(ip) => return Some(ip.into()),
            Host::Domain(name) => name,
        };
        if !self.fixed.contains_key(name) && !self.names.are_remembered() {
            return None;
        }
        let found = match self.names.known(name).await {
            Some(found) => found,
            // The connection reports why there is none.
            None => self.found(name).await.ok()?,
        };
        let port = [Some(self.port(url, names_port))];
        let mut admitted = found.into_iter();
        admitted.find(|&ip| self.check_address(name, ip, &port).is_ok())
    }

    /// Returns true if the addresses of a URL's host are known, or are looked up with each connection anyway.
    pub(super) fn is_known(&self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Domain(name)) => self.fixed.contains_key(name) || self.names.is_known(name),
            Some(Host::Ipv4(_) | Host::Ipv6(_)) | None => true,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Resolve for FilteringResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let name = name.as_str();
            let found = phases::lookup(resolver.found(name)).await?;
            let admitted = match resolver.proxy.as_deref() == Some(name) {
                true => found,
                false => resolver.admit(name, &found)?,
            };
            // The client replaces port 0 by that of the URL.
            let addresses = admitted.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

impl Drop for WantedPort {
    fn drop(&mut self) {
        let mut state = locked(&self.state);
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
pub(super) mod tests;
