//! What may be reached: http and https, public addresses, never our own nodes.
//!
//! This is policy alone: it judges URLs and addresses that it is handed. That the address judged is
//! the one connected to is the work of `resolve`; that every hop is judged, of
//! [`http`](super::http).
//!
//! An address is public if it is global unicast in its canonical form *and* in every form hidden
//! within it (IPv4 mapped into IPv6, NAT64, 6to4, Teredo, ISATAP). Nothing but the operator's
//! `--allow-networks` adds to that, and not even that opens our own nodes: they are refused in every
//! such form, and by name.
//!
//! Within allowed networks every port may be fetched from. Elsewhere it is [`PORTS`], what the operator
//! adds with `--allow-ports`, and what a resource itself names: a page that links to port 25 of
//! somebody's mail server must not make us talk to it.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{PoisonError, RwLock};

use ipnet::IpNet;
use url::{Host, Url};

use super::FetchError;
use address::{forms, is_public};

mod address;

/// Where the sites of the public internet are.
pub const PORTS: [u16; 4] = [80, 443, 8080, 8443];

/// The policy of one process.
#[derive(Debug, Default)]
pub struct Guard {
    allow_networks: Vec<IpNet>,
    /// Beside [`PORTS`].
    allow_ports: Vec<u16>,
    own_nodes: RwLock<OwnNodes>,
}

#[derive(Debug, Default)]
struct OwnNodes {
    addresses: HashSet<SocketAddr>,
    /// `name:port`, in lower case.
    names: HashSet<String>,
}

/// Why an address may not be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// It is not public, and the operator did not allow it.
    NotPublic,
    /// One of the cluster's own nodes listens there.
    OwnNode,
    /// Nobody has said that this port may be fetched from.
    Port(u16),
}

impl Guard {
    /// A policy that opens these networks beside what is public.
    pub fn new(allow_networks: Vec<IpNet>) -> Self {
        Self {
            allow_networks,
            ..Self::default()
        }
    }

    /// The same policy, with these ports beside [`PORTS`].
    pub fn allowing_ports(mut self, ports: &[u16]) -> Self {
        self.allow_ports.extend(ports);
        self
    }

    /// Replaces what is known of the cluster's own listeners: `host:port`, of nodes and of etcd. A
    /// name should come together with its addresses, where they are known.
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

    /// Judges all of a URL that can be judged without resolving its name.
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
        self.judge(ip, Some(port))
            .map_err(|denial| denial.into_error(host, ip))
    }

    /// Judges an address to connect to. Without a port, it may not be that of an own node at all.
    pub fn judge(&self, ip: IpAddr, port: Option<u16>) -> Result<(), Denial> {
        let ip = ip.to_canonical();
        if self.is_own_address(ip, port) {
            Err(Denial::OwnNode)
        } else if is_public(ip) || self.is_inside(ip) {
            Ok(())
        } else {
            Err(Denial::NotPublic)
        }
    }

    /// Whether the operator opened a network with this address.
    pub fn is_inside(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.allow_networks
            .iter()
            .any(|network| network.contains(&ip))
    }

    /// Whether this port may be fetched from outside the allowed networks too.
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
    /// The error of a fetch from `host`, which is at `address`.
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

/// `host:port`, the host as URLs have it: in lower case, an address in whatever spelling as one.
fn parsed(node: &str) -> Option<(Host, u16)> {
    let (host, port) = node.rsplit_once(':')?;
    Some((Host::parse(host).ok()?, port.parse().ok()?))
}

/// Whether what is sent to this address may come to somebody who listens there.
fn is_at(listener: IpAddr, ip: IpAddr) -> bool {
    ip == listener
        || is_this_machine(listener) && is_this_machine(ip)
        || listener.is_unspecified() && is_of_an_interface(ip)
}

/// All loopback addresses can lead to one listener, and so can the unspecified ones.
fn is_this_machine(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified()
}

/// Only an address of this machine can be bound to. Asked each time, because interfaces come and go;
/// this sends nothing, and only a request to a port of our own gets here.
fn is_of_an_interface(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests;
