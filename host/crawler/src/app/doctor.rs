//! `crawler doctor`: checks what a node needs, and changes nothing.
//!
//! All checks run at once, each with a deadline, and are printed in one order. Each is a function that returns its
//! [`Finding`]; formatting is in `cli`.

use std::pin::Pin;
use std::time::Duration;

use futures::future::join_all;

use crate::cli::doctor::{self, DoctorOptions, Finding};

mod certificates;
mod data;
mod machine;
mod masters;
mod ports;
mod store;

/// Time that a check may take. Clients of object stores try for a while before they give up.
const DEADLINE: Duration = Duration::from_secs(20);

/// Runs all checks and prints what they have found. The error says how many have failed.
pub(super) async fn run(options: DoctorOptions) -> anyhow::Result<()> {
    let findings = Box::pin(check(&options)).await;
    doctor::print(&findings, options.json)
}

async fn check(options: &DoctorOptions) -> Vec<Finding> {
    let place = &options.place;
    let checks: [Check<'_>; 10] = [
        within("store", store::check(place)),
        within("data root", data::check(place)),
        within("clock", data::check_clock(place)),
        within(
            "http port",
            ports::check("http port", "--http", options.http),
        ),
        within(
            "grpc port",
            ports::check("grpc port", "--grpc", options.grpc),
        ),
        within("certificates", certificates::check(options)),
        within("token", masters::check(&options.masters)),
        within("wasm target", machine::check_target()),
        within("open files", async { machine::check_open_files() }),
        within("confinement", machine::check_confinement(place)),
    ];
    join_all(checks).await
}

/// A check that is under way.
type Check<'a> = Pin<Box<dyn Future<Output = Finding> + Send + 'a>>;

/// Gives a check its deadline.
fn within<'a>(name: &'static str, check: impl Future<Output = Finding> + Send + 'a) -> Check<'a> {
    Box::pin(async move {
        let found = tokio::time::timeout(DEADLINE, check).await;
        found.unwrap_or_else(|_elapsed| {
            let found = format!("no answer within {DEADLINE:?}");
            Finding::failed(
                name,
                found,
                "look at the network between this machine and it",
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_check_that_hangs_has_failed_at_its_deadline() {
        let found = within("etcd", std::future::pending()).await;
        assert_eq!(found.found, "no answer within 20s");
        assert_eq!(found.result, doctor::Verdict::Failed);
    }
}
