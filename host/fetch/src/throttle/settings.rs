//! Settings of the throttle, and its fixed times.

use std::time::Duration;

use crawler_model::settings::Rate;

/// Time for which all resources keep a delay, in addition to twice that delay.
pub const STRICT_FOR: Duration = Duration::from_secs(60);

/// The longest wait in the throttle for a request that is not retried later.
pub const MAX_WAIT: Duration = Duration::from_secs(5);

/// Limits of the throttle.
#[derive(Debug, Clone)]
pub struct ThrottleSettings {
    /// Requests to one host at once where no delay is asked for: setting `parallel` of `[fetch]`.
    pub parallel: u32,
    /// Consecutive failures after which a host is left alone: setting `host-failures` of `[fetch]`.
    pub host_failures: u32,
    /// The longest time that a host in trouble is left alone: setting `max-host-pause` of `[fetch]`.
    pub max_host_pause: Duration,
    /// Limit up to which the delay grows with the time that answers take: setting `max-adaptive-delay` of
    /// `[fetch]`.
    pub max_adaptive_delay: Duration,
    /// Requests to one address, over all of its hosts, evenly spaced: setting `address-rate` of `[fetch]`. If
    /// `None`, addresses are not limited.
    pub address_rate: Option<Rate>,
}

impl Default for ThrottleSettings {
    fn default() -> Self {
        Self {
            parallel: 64,
            host_failures: 5,
            max_host_pause: Duration::from_secs(5 * 60),
            max_adaptive_delay: Duration::from_secs(60),
            address_rate: Some(Rate {
                n: 4,
                per: Duration::from_secs(1),
            }),
        }
    }
}

impl ThrottleSettings {
    /// Returns the time between the starts of two requests to one address.
    pub(super) fn address_interval(&self) -> Option<Duration> {
        self.address_rate.map(|rate| rate.per / rate.n.max(1))
    }
}
