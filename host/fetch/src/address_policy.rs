//! Policy of which URLs and addresses may be reached: http and https, public addresses, never the cluster's
//! own nodes.
//!
//! This module only judges URLs and addresses that it is handed. `resolve` makes sure that the address judged
//! is the one connected to, and [`http`](super::http) that every hop is judged.
//!
//! An address is public if it is global unicast in its canonical form *and* in every form hidden within it
//! (IPv4 mapped into IPv6, NAT64, 6to4, Teredo, ISATAP). Only the operator's `--allow-networks` adds to that,
//! and even that does not open the cluster's own nodes: they are refused in every such form, and by name.
//!
//! Every port may be fetched from within allowed networks. Elsewhere the allowed ports are [`PORTS`], those
//! that the operator adds with `--allow-ports`, and those that a resource itself names: a page that links to
//! port 25 of a mail server must not make the crawler talk to it.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{PoisonError, RwLock};

use ipnet::IpNet;
use url::{Host, Url};

use super::FetchError;
use address::{forms, is_public};

mod address;

/// Ports on which the sites of the public internet listen.
pub const PORTS: [u16; 4] = [80, 443, 8080, 8443];

/// The policy of one process.
#[derive(Debug, Default)]
pub struct AddressPolicy {
    allow_networks: Vec<IpNet>,
    /// Ports allowed in addition to [`PORTS`].
    allow_ports: Vec<u16>,
    own_nodes: RwLock<OwnNodes>,
}

#[derive(Debug, Default)]
struct OwnNodes {
    addresses: HashSet<SocketAddr>,
    /// Names as `name:port`, in lower case.
    names: HashSet<String>,
}

/// Reason why an address may not be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// The address is not public, and the operator did not allow it.
    NotPublic,
    /// One of the cluster's own nodes listens there.
    OwnNode,
    /// The port is allowed neither by default, nor by the operator, nor by the resource.
    Port(u16),
}

impl AddressPolicy {
    /// Creates a policy that allows these networks in addition to public addresses.
    pub fn new(allow_networks: Vec<IpNet>) -> Self {
        Self {
            allow_networks,
            ..Self::default()
        }
    }

    /// Returns the same policy with these ports allowed in addition to [`PORTS`].
    pub fn allowing_ports(mut self, ports: &[u16]) -> Self {
        self.allow_ports.extend(ports);
        self
    }

    /// Replaces the list of the cluster's own listeners: `host:port`, of nodes and of etcd. A name should
    /// come together with its addresses, where they are known.
    pub fn set_own_nodes(&self, nodes: impl IntoIterator<Item = String>) {
        let mut own = OwnNodes::default();
        for node in nodes {
            match parsed(&node) {
                Some((Host::Domain(name), port)) => {
                    let name = name.trim_end_matches('.');
                    own.names.insert(format!("{name}:{port}"))
                }
                Some((Host::Ipv4(ip), port)) => own.addresses.insert((ip, port).into()),
                Some((Host::Ipv6(ip), port)) => {
                    let ip = IpAddr::V6(ip).to_canonical();
                    own.addresses.insert((ip, port).into())
                }
                None => own.names.insert(node.to_ascii_lowercase()),
            };
        }
        *self
            .own_nodes
            .write()
            .unwrap_or_else(PoisonError::into_inner) = own;
    }

    /// Judges a URL as far as that is possible without resolving its name.
    pub fn check(&self, url: &Url) -> Result<(), FetchError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(FetchError::Scheme {
                url: url.to_string(),
            });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(FetchError::Request {
                why: "the URL holds a user name or password".to_owned(),
            });
        }
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        match url.host() {
            None => Err(FetchError::Request {
                why: "the URL has no host".to_owned(),
            }),
            Some(Host::Domain(name)) if self.is_own_name(name, port) => Err(FetchError::OwnNode {
                host: host.to_owned(),
            }),
            Some(Host::Domain(_)) => Ok(()),
            Some(Host::Ipv4(ip)) => self.check_literal(host, ip.into(), port),
            Some(Host::Ipv6(ip)) => self.check_literal(host, ip.into(), port),
        }
    }

    fn check_literal(&self, host: &str, ip: IpAddr, port: u16) -> Result<(), FetchError> {
        self.check_address(ip, Some(port))
            .map_err(|denial| denial.into_error(host, ip))
    }

    /// Judges an address to connect to. Without a port, it may not be that of an own node at all.
    pub fn check_address(&self, ip: IpAddr, port: Option<u16>) -> Result<(), Denial> {
        let ip = ip.to_canonical();
        if self.is_own_address(ip, port) {
            Err(Denial::OwnNode)
        } else if is_public(ip) || self.is_inside(ip) {
            Ok(())
        } else {
            Err(Denial::NotPublic)
        }
    }

    /// Returns true if the operator allowed a network that contains this address.
    pub fn is_inside(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.allow_networks
            .iter()
            .any(|network| network.contains(&ip))
    }

    /// Returns the networks that the operator allowed.
    pub(crate) fn allow_networks(&self) -> &[IpNet] {
        &self.allow_networks
    }

    /// Returns true if this port may be fetched from outside the allowed networks, too.
    pub fn is_open(&self, port: u16) -> bool {
        PORTS.contains(&port) || self.allow_ports.contains(&port)
    }

    fn is_own_name(&self, name: &str, port: u16) -> bool {
        let own = self
            .own_nodes
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        own.names.contains(&format!("{name}:{port}"))
    }

    fn is_own_address(&self, ip: IpAddr, port: Option<u16>) -> bool {
        let own = self
            .own_nodes
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        own.addresses.iter().any(|address| {
            port.is_none_or(|port| port == address.port())
                && forms(ip).any(|form| is_at(address.ip(), form))
        })
    }
}

impl Denial {
    /// Returns the error of a fetch from `host`, which is at `address`.
    pub fn into_error(self, host: &str, address: IpAddr) -> FetchError {
        match self {
            Denial::NotPublic => FetchError::Address {
                host: host.to_owned(),
                address: address.to_string(),
            },
            Denial::OwnNode => FetchError::OwnNode {
                host: host.to_owned(),
            },
            Denial::Port(port) => FetchError::Port {
                host: host.to_owned(),
                port,
            },
        }
    }
}

/// Parses `host:port`, with the host as URLs have it: in lower case, and all spellings of an address alike.
fn parsed(node: &str) -> Option<(Host, u16)> {
    let (host, port) = node.rsplit_once(':')?;
    Some((Host::parse(host).ok()?, port.parse().ok()?))
}

/// Returns true if a packet to this address may reach this listener.
fn is_at(listener: IpAddr, ip: IpAddr) -> bool {
    ip == listener
        || is_this_machine(listener) && is_this_machine(ip)
        || listener.is_unspecified() && is_of_an_interface(ip)
}

/// Returns true if the address is loopback or unspecified. All loopback addresses can lead to one listener,
/// and so can the unspecified ones.
fn is_this_machine(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified()
}

/// Returns true if the address is one of this machine, because only such an address can be bound to. It is
/// tested each time, because interfaces come and go. The test sends nothing, and only a request to a port of
/// an own node gets here.
fn is_of_an_interface(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests;
