//! Options that decide who may call the listeners of a process.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::Failure;
use crawler_access::audit::AuditSettings;
use crawler_model::plugin::parse_bytes;

/// Smallest size of the record of who did what.
const AUDIT_SIZE_MIN: u64 = 1 << 20;

/// Rule by which the listeners of a process decide who may call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exposure {
    /// True if listeners that other machines reach ask for no token.
    pub is_insecure: bool,
    /// True if all listeners ask for a token.
    pub requires_tokens: bool,
    /// File for the first token of the cluster, with the role admin. If `None`, none is made.
    pub first_token: Option<PathBuf>,
    /// Bounds of the record of who did what.
    pub audit: AuditSettings,
}

#[derive(Debug, Args)]
pub(super) struct ExposureArgs {
    /// Listen without TLS on addresses that other machines reach, and let everybody call a master unless --require-tokens
    /// is given
    #[arg(long)]
    insecure: bool,
}

/// Options of a process with a master.
#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    /// Ask callers of this machine for an access token too
    #[arg(long)]
    require_tokens: bool,
    /// If the cluster has never had an access token, make one with the role admin, and write it to this file, which only
    /// this user can read
    #[arg(long, value_name = "FILE")]
    first_token: Option<PathBuf>,
    /// Bytes of the record of who did what, in the data root; the oldest entries go
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = audit_size)]
    audit_size: u64,
}

/// Parses the size of the record. A smaller one would be a single object.
fn audit_size(text: &str) -> Result<u64, String> {
    match parse_bytes(text) {
        Some(n_bytes) if n_bytes >= AUDIT_SIZE_MIN => Ok(n_bytes),
        Some(_) => Err("the record has at least 1MiB".to_owned()),
        None => Err("write a size like 64MiB".to_owned()),
    }
}

impl Exposure {
    /// True if a listener at this address asks for a token.
    pub fn asks_for_tokens(&self, address: SocketAddr) -> bool {
        self.requires_tokens || !(self.is_insecure || address.ip().is_loopback())
    }
}

impl ExposureArgs {
    /// Checks that tokens cannot be read on the way: listeners that other machines reach need TLS, unless the user
    /// wants it otherwise.
    pub(super) fn into_exposure(
        self,
        (http, grpc): (SocketAddr, SocketAddr),
        is_encrypted: bool,
    ) -> Result<Exposure, Failure> {
        for (flag, address) in [("--http", http), ("--grpc", grpc)] {
            if !self.insecure && !address.ip().is_loopback() && !is_encrypted {
                let port = address.port();
                return Err(Failure::new(
                    format!("{flag} {address} is reached by other machines, and has no TLS"),
                    format!(
                        "listen on this machine only, {flag} :{port}, name a certificate in [tls] of the config file, or add --insecure"
                    ),
                ));
            }
        }
        Ok(Exposure {
            is_insecure: self.insecure,
            ..Exposure::default()
        })
    }
}

impl TokenArgs {
    /// Adds these options to those of the listeners.
    pub(super) fn into_exposure(self, of_listeners: Exposure) -> Exposure {
        Exposure {
            requires_tokens: self.require_tokens,
            first_token: self.first_token,
            audit: AuditSettings {
                max_bytes: self.audit_size,
            },
            ..of_listeners
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_asks_for_tokens_where_others_reach_it_or_the_user_wants_it() {
        let asks =
            |exposure: &Exposure, address: &str| exposure.asks_for_tokens(address.parse().unwrap());
        let usual = Exposure::default();
        assert!(!asks(&usual, "127.0.0.1:1") && !asks(&usual, "[::1]:1"));
        assert!(asks(&usual, "10.0.0.1:1") && asks(&usual, "0.0.0.0:1"));
        let insecure = Exposure {
            is_insecure: true,
            ..Exposure::default()
        };
        assert!(!asks(&insecure, "10.0.0.1:1"));
        let strict = Exposure {
            requires_tokens: true,
            ..insecure
        };
        assert!(asks(&strict, "127.0.0.1:1") && asks(&strict, "10.0.0.1:1"));
    }
}
