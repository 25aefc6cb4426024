//! The store: etcd, or the records of `crawler up` in the data root.

use std::time::Duration;

use crate::app::parts;
use crate::cli::doctor::Finding;
use crate::cli::place::ClusterPlace;
use crate::config::EtcdConfig;
use crawler_data::{DataPlace, STORE};
use crawler_store::etcd::{EtcdHealth, EtcdStore};

const CHECK: &str = "store";

/// Time of a read from which crawls are slowed down: leases are renewed several times within seconds.
const SLOW: Duration = Duration::from_millis(200);

pub(super) async fn check(place: &ClusterPlace) -> Finding {
    match &place.etcd {
        Some(etcd) => match health(etcd).await {
            Ok(health) => of_health(&health),
            Err(error) => Finding::of_error(CHECK, &error),
        },
        None => embedded(place),
    }
}

async fn health(etcd: &EtcdConfig) -> anyhow::Result<EtcdHealth> {
    let store = EtcdStore::connect(parts::etcd_settings(etcd)?).await?;
    Ok(store.health().await?)
}

fn of_health(health: &EtcdHealth) -> Finding {
    let EtcdHealth {
        version,
        latency,
        n_bytes,
        errors,
    } = health;
    let found = format!(
        "etcd {version} answers in {} ms; its database has {} MB",
        latency.as_millis(),
        n_bytes / 1_000_000
    );
    if !errors.is_empty() {
        let found = format!("{found}; it tells {}", errors.join(", "));
        let advice = "for NOSPACE: compact and defragment etcd, then run etcdctl alarm disarm";
        return Finding::failed(CHECK, found, advice);
    }
    match *latency < SLOW {
        true => Finding::ok(CHECK, found),
        false => Finding::warning(CHECK, found, "give etcd a faster disk, or a shorter way"),
    }
}

/// Returns where `crawler up` keeps its records. They are not opened: that takes them from a process that runs.
fn embedded(place: &ClusterPlace) -> Finding {
    match place.data.parse::<DataPlace>() {
        Ok(DataPlace::Folder(folder)) => {
            let store = folder.join(STORE);
            let found = match store.is_dir() {
                true => format!("crawler up has its records in {}", store.display()),
                false => "crawler up makes it at its first start; no etcd is named".to_owned(),
            };
            Finding::ok(CHECK, found)
        }
        Ok(DataPlace::Bucket(_)) => Finding::failed(
            CHECK,
            "no etcd is named, and a bucket cannot hold the records of crawler up",
            "name etcd with --etcd or in [etcd] of the config file",
        ),
        Err(error) => Finding::of_error(CHECK, &error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::Verdict;

    #[test]
    fn alarms_and_slow_answers_are_told() {
        let healthy = EtcdHealth {
            version: "3.5.1".to_owned(),
            latency: Duration::from_millis(3),
            n_bytes: 5_000_000,
            errors: Vec::new(),
        };
        let found = of_health(&healthy);
        let expected = "etcd 3.5.1 answers in 3 ms; its database has 5 MB";
        assert_eq!(
            (found.result, found.found.as_str()),
            (Verdict::Ok, expected)
        );
        let slow = EtcdHealth {
            latency: SLOW,
            ..healthy.clone()
        };
        assert_eq!(of_health(&slow).result, Verdict::Warning);
        let full = EtcdHealth {
            errors: vec!["NOSPACE".to_owned()],
            ..healthy
        };
        assert_eq!(of_health(&full).result, Verdict::Failed);
    }
}
