//! The certificates of the table `[tls]`.

use std::time::Duration;

use crate::app::node_tls::NodeTls;
use crate::cli::doctor::{DoctorOptions, Finding};
use crawler_api::tls::TlsError;

const CHECK: &str = "certificates";

/// Time within which a certificate should not expire.
const SOON: Duration = Duration::from_secs(7 * 24 * 60 * 60);

pub(super) async fn check(options: &DoctorOptions) -> Finding {
    let tls = &options.place.config.tls;
    if let Err(error) = NodeTls::load(tls, None) {
        return Finding::of_error(CHECK, &error);
    }
    let Some(identity) = tls.identity() else {
        return Finding::ok(
            CHECK,
            "[tls] names none: listeners speak TLS only with a certificate of the cluster itself",
        );
    };
    let file = identity.certificate.display();
    match identity.check(SOON) {
        Ok(()) => {}
        Err(TlsError::Expired { at, .. }) => {
            let found = format!("{file} expires soon, at {at}");
            return Finding::warning(CHECK, found, "renew the certificate");
        }
        Err(error) => return Finding::failed(CHECK, error.to_string(), error.hint()),
    }
    let listener = options.grpc.ip();
    let host = match &options.advertise {
        Some(host) => host.clone(),
        None if listener.is_unspecified() => {
            let found = format!("{file} can be used; nobody says for which host");
            return Finding::warning(CHECK, found, "name the host with --advertise");
        }
        None => listener.to_string(),
    };
    match identity.is_of(&host) {
        Ok(true) => Finding::ok(CHECK, format!("{file} can be used, and is one of {host}")),
        Ok(false) => Finding::warning(
            CHECK,
            format!("{file} is no certificate of {host}, where other nodes call this one"),
            "name that host in the certificate, or another one with --advertise",
        ),
        Err(error) => Finding::failed(CHECK, error.to_string(), error.hint()),
    }
}
