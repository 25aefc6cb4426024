//! `crawler doctor`: checks what a node needs, and changes nothing.
//!
//! All checks run at once and are printed in one order. Each is a function that returns its [`Finding`]; formatting is in
//! `cli`. A check has a thread, a runtime and a deadline of its own. One that is stuck, on a mount that does not answer
//! or in the look-up of a name, holds up neither the others nor the end of the process.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use crate::cli::doctor::{self, DoctorOptions, Finding};
use crawler_process::task::blocking;

mod certificates;
mod cluster;
mod data;
mod machine;
mod masters;
mod ports;
mod store;

/// Time that a check may take. Clients of object stores try for a while before they give up.
const DEADLINE: Duration = Duration::from_secs(20);

/// Runs all checks and prints what they have found. The error says how many have failed.
pub(super) async fn run(options: DoctorOptions) -> anyhow::Result<()> {
    let is_json = options.json;
    let findings = check(options).await;
    doctor::print(&findings, is_json)
}

async fn check(options: DoctorOptions) -> Vec<Finding> {
    let options = Arc::new(options);
    let checks: [Check; 10] = [
        started("store", &options, async |o: &DoctorOptions| {
            store::check(&o.place).await
        }),
        started("data root", &options, async |o: &DoctorOptions| {
            data::check(&o.place).await
        }),
        started("clock", &options, async |o: &DoctorOptions| {
            data::check_clock(&o.place).await
        }),
        started("http port", &options, async |o: &DoctorOptions| {
            ports::check("http port", "--http", o.http, &o.place).await
        }),
        started("grpc port", &options, async |o: &DoctorOptions| {
            ports::check("grpc port", "--grpc", o.grpc, &o.place).await
        }),
        started("certificates", &options, async |o: &DoctorOptions| {
            certificates::check(o).await
        }),
        started("token", &options, async |o: &DoctorOptions| {
            masters::check(&o.masters).await
        }),
        started("wasm target", &options, async |_: &DoctorOptions| {
            machine::check_target().await
        }),
        started("open files", &options, async |_: &DoctorOptions| {
            machine::check_open_files()
        }),
        started("confinement", &options, async |o: &DoctorOptions| {
            machine::check_confinement(&o.place).await
        }),
    ];
    join_all(checks).await
}

/// A check that is under way.
type Check = Pin<Box<dyn Future<Output = Finding> + Send>>;

fn started(
    name: &'static str,
    options: &Arc<DoctorOptions>,
    check: impl AsyncFnOnce(&DoctorOptions) -> Finding + Send + 'static,
) -> Check {
    let options = Arc::clone(options);
    let check = async move || check(&options).await;
    Box::pin(within(DEADLINE, name, check))
}

/// Runs a check on a thread of its own, and waits for it until its deadline. A thread that is stuck is left behind: it ends
/// with the process.
async fn within(
    deadline: Duration,
    name: &'static str,
    check: impl AsyncFnOnce() -> Finding + Send + 'static,
) -> Finding {
    let work = blocking(move || on_this_thread(deadline, name, check));
    // A check that does not hold its thread ends by itself, and a bit sooner.
    match tokio::time::timeout(deadline + deadline / 20, work).await {
        Ok(Ok(finding)) => finding,
        Ok(Err(error)) => Finding::of_error(name, &error.into()),
        Err(_elapsed) => silent(deadline, name),
    }
}

/// Runs a check in a runtime of its own, whose threads are not those of another check.
fn on_this_thread(
    deadline: Duration,
    name: &'static str,
    check: impl AsyncFnOnce() -> Finding,
) -> Finding {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Finding::of_error(name, &error.into()),
    };
    let found = runtime.block_on(async { tokio::time::timeout(deadline, Box::pin(check())).await });
    // A thread that is stuck is not waited for.
    runtime.shutdown_background();
    found.unwrap_or_else(|_elapsed| silent(deadline, name))
}

/// Returns the finding of a check that did not end in time.
fn silent(deadline: Duration, name: &'static str) -> Finding {
    Finding::failed(
        name,
        format!("no answer after {deadline:?}"),
        "look at the mount or the network between this machine and it",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_check_that_hangs_has_failed_at_its_deadline() {
        let found = within(SHORT, "etcd", async || std::future::pending().await).await;
        assert_eq!(found.found, "no answer after 20ms");
        assert_eq!(found.result, doctor::Verdict::Failed);
    }

    #[tokio::test]
    async fn a_check_that_holds_its_thread_holds_up_no_other() {
        let (release, held) = mpsc::sync_channel::<()>(0);
        let stuck = within(SHORT, "data root", async move || {
            let _released = held.recv();
            Finding::ok("data root", "too late")
        });
        let (tell, told) = tokio::sync::oneshot::channel();
        let other = within(DEADLINE, "store", async move || {
            // It ends after the one that is stuck was given up.
            Finding::ok("store", told.await.unwrap_or("nobody told"))
        });
        let stuck = async move {
            let found = stuck.await;
            let _is_waited_for = tell.send("told");
            found
        };
        let (stuck, other) = futures::join!(stuck, other);
        assert_eq!(stuck.found, "no answer after 20ms");
        assert_eq!(other.found, "told");
        drop(release);
    }
}
