//! Fixed addresses of names, which replace those of the system's resolver.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use url::{Host, Url};

/// Addresses by name; names are in the form that URLs have.
pub type FixedHosts = BTreeMap<String, Vec<IpAddr>>;

/// One address, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Addresses {
    One(String),
    Several(Vec<String>),
}

/// Parses the table `[hosts]`; an error is a sentence for the user.
pub(super) fn fixed(table: BTreeMap<String, Addresses>) -> Result<FixedHosts, String> {
    let mut hosts = FixedHosts::new();
    for (name, addresses) in table {
        let texts = match addresses {
            Addresses::One(text) => vec![text],
            Addresses::Several(texts) => texts,
        };
        if texts.is_empty() {
            return Err(format!("{name} has no address"));
        }
        let parsed = texts.iter().map(|text| {
            let parsed = text.parse::<IpAddr>();
            parsed.map_err(|_| format!("{name} is at an IP address like 10.0.0.7, not {text:?}"))
        });
        let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
        hosts.insert(as_in_urls(&name)?, parsed);
    }
    Ok(hosts)
}

fn as_in_urls(name: &str) -> Result<String, String> {
    let is_bare = !name.contains(['/', ':', '@', '?', '#']);
    let url = Url::parse(&format!("http://{name}/")).ok();
    match url.as_ref().filter(|_| is_bare).and_then(Url::host) {
        Some(Host::Domain(name)) => Ok(name.to_owned()),
        _ => Err(format!(
            "{name:?} is no host name; write it without scheme and port, like shop.example"
        )),
    }
}
