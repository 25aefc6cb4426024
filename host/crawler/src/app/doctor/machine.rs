//! This machine: tools, limits, and what the kernel has for the confinement.

use std::path::Path;

use rustix::process::{Resource, getrlimit};

use crate::cli::doctor::Finding;
use crate::cli::place::ClusterPlace;
use crate::cli::plugin::has_rust_target;
use crawler_process::confine::{self, Confinement, MissingPart};
use crawler_process::task::blocking;

/// Number of open files below which a listener takes fewer connections than its default: they get a quarter.
const FEW_FILES: u64 = 4 * 4_096;
/// Number of open files below which crawls of many hosts fail.
const TOO_FEW_FILES: u64 = 1_024;

/// Checks that plugins in Rust can be built here. Other machines may do that.
pub(super) async fn check_target() -> Finding {
    const CHECK: &str = "wasm target";
    match has_rust_target(Path::new(".")).await {
        Some(true) => Finding::ok(CHECK, "wasm32-wasip2 is installed"),
        Some(false) => Finding::warning(
            CHECK,
            "wasm32-wasip2 is not installed, so no plugin in Rust is built here",
            "rustup target add wasm32-wasip2",
        ),
        None => Finding::warning(
            CHECK,
            "rustup is not there, so it is not known if plugins in Rust can be built here",
            "to build them, install it from https://rustup.rs",
        ),
    }
}

/// Checks the number of files that this process may have open. It is raised to the limit of its user at each start.
pub(super) fn check_open_files() -> Finding {
    of_open_files(getrlimit(Resource::Nofile).current)
}

fn of_open_files(files: Option<u64>) -> Finding {
    const CHECK: &str = "open files";
    const ADVICE: &str = "raise the limit: ulimit -n, or LimitNOFILE of the service";
    let Some(files) = files else {
        return Finding::ok(CHECK, "there is no limit");
    };
    let found = format!("{files} may be open at the same time");
    match files {
        files if files < TOO_FEW_FILES => Finding::failed(CHECK, found, ADVICE),
        files if files < FEW_FILES => Finding::warning(CHECK, found, ADVICE),
        _ => Finding::ok(CHECK, found),
    }
}

/// Checks that the kernel has all parts of the confinement.
pub(super) async fn check_confinement(place: &ClusterPlace) -> Finding {
    if place.config.confinement == Some(Confinement::Off) {
        return of_missing(true, &[]);
    }
    match blocking(confine::missing).await {
        Ok(missing) => of_missing(false, &missing),
        Err(error) => Finding::of_error("confinement", &error.into()),
    }
}

fn of_missing(is_off: bool, missing: &[MissingPart]) -> Finding {
    const CHECK: &str = "confinement";
    if is_off {
        let found = "the config file turns it off";
        return Finding::warning(CHECK, found, "remove confinement = \"off\" from it");
    }
    if missing.is_empty() {
        return Finding::ok(CHECK, "the kernel has all parts of it");
    }
    let missing: Vec<String> = missing.iter().map(MissingPart::to_string).collect();
    let advice = "use a newer kernel; processes start without these parts";
    Finding::warning(CHECK, missing.join("; "), advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::Verdict;

    #[test]
    fn few_open_files_are_told() {
        let of = |files| of_open_files(files).result;
        assert_eq!(of(None), Verdict::Ok);
        assert_eq!(of(Some(FEW_FILES)), Verdict::Ok);
        assert_eq!(of(Some(FEW_FILES - 1)), Verdict::Warning);
        assert_eq!(of(Some(TOO_FEW_FILES - 1)), Verdict::Failed);
    }

    #[test]
    fn parts_that_the_kernel_lacks_are_named() {
        assert_eq!(of_missing(false, &[]).result, Verdict::Ok);
        assert_eq!(of_missing(true, &[]).result, Verdict::Warning);
        let missing = MissingPart {
            part: "seccomp",
            why: "x".to_owned(),
        };
        let found = of_missing(false, &[missing]);
        assert_eq!(
            (found.result, found.found.as_str()),
            (Verdict::Warning, "seccomp: x")
        );
    }
}
