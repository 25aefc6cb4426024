//! Settings for reaching etcd.

use std::fmt;
use std::time::Duration;

use crate::keys::Keys;

/// Settings for reaching etcd. The keys used there are in [`keys`](crate::keys).
#[derive(Clone)]
pub struct EtcdSettings {
    /// Endpoints of the members, as `http://HOST:PORT`, or `https://` with [`EtcdSettings::tls`].
    pub endpoints: Vec<String>,
    /// Name and password, if the server asks for them.
    pub user: Option<(String, String)>,
    /// Certificates, if the server has one.
    pub tls: Option<TlsSettings>,
    /// Deadline of a connection to a member.
    pub connect_timeout: Duration,
    /// Deadline of one member's answer to a read. Other members are asked after it.
    pub call_timeout: Duration,
    /// Deadline of one member's answer to a write. A short one finds the next leader sooner.
    pub write_timeout: Duration,
    /// Time for finding out the outcome of a write whose answer was lost.
    pub settle_timeout: Duration,
    /// Interval at which the readers of a watch are told to list again.
    pub relist_interval: Duration,
    /// Key that is read to check whether reading works; the user must be allowed to read it.
    pub probe_key: String,
}

impl Default for EtcdSettings {
    fn default() -> Self {
        Self {
            endpoints: vec!["http://127.0.0.1:2379".to_owned()],
            user: None,
            tls: None,
            connect_timeout: Duration::from_secs(1),
            call_timeout: Duration::from_secs(3),
            write_timeout: Duration::from_secs(1),
            settle_timeout: Duration::from_secs(10),
            relist_interval: Duration::from_secs(600),
            probe_key: Keys::default().cluster(),
        }
    }
}

impl fmt::Debug for EtcdSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdSettings")
            .field("endpoints", &self.endpoints)
            .field("user", &self.user.as_ref().map(|(name, _password)| name))
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// Certificates and keys, in PEM.
#[derive(Clone)]
pub struct TlsSettings {
    /// Certificates of the authorities that vouch for the server.
    pub ca: Vec<u8>,
    /// Client certificate and its key, if the server asks for one.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSettings")
            .field("client", &self.client.is_some())
            .finish_non_exhaustive()
    }
}
