//! Landlock: limits the files that a process reaches. A right that no rule grants is gone for good.

use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::OnceLock;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus,
    PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _,
    RulesetError, Scope,
};

use super::access::{MissingPart, PathAccess};

/// Version whose rights are given up. Rights of later versions are not given up, so that a new kernel changes
/// nothing. Linux 6.12 has it.
const VERSION: ABI = ABI::V6;

/// Entries of `/proc` that a process reads: its own, and the state of the machine.
const PROC: [&str; 5] = [
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/self",
    "/proc/stat",
    "/proc/sys/vm/overcommit_memory",
];

/// Open entries of `/proc`. A rule is about an inode, and `/proc` makes a new one for an entry that nobody
/// has open.
static HELD: OnceLock<Vec<PathFd>> = OnceLock::new();

/// Restricts this process to `access`.
pub(super) fn process(access: &PathAccess) -> Result<(), MissingPart> {
    // Under version 1 no file can be moved from one folder to another, which line files need.
    let moving = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer);
    let ruleset = moving.map_err(|_too_old| MissingPart {
        part: "Landlock",
        why: "the kernel has none, or version 1, under which files cannot be moved; 2 is needed \
              (Linux 5.19): files are not confined"
            .to_owned(),
    })?;
    let held = HELD.get_or_init(|| {
        PROC.into_iter()
            .filter_map(|entry| PathFd::new(entry).ok())
            .collect()
    });
    let restrict = || {
        let mut rules = ruleset
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(VERSION))?
            .scope(Scope::from_all(VERSION))?
            .create()?;
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        for entry in held {
            rules = rules.add_rule(PathBeneath::new(entry, read))?;
        }
        let write = AccessFs::from_all(VERSION) & !AccessFs::Execute;
        let granted = [
            (&access.read, read),
            (&access.write, write),
            (&access.execute, AccessFs::ReadFile | AccessFs::Execute),
        ];
        for (paths, access) in granted {
            for path in paths {
                rules = grant(rules, path, access)?;
            }
        }
        rules.restrict_self()
    };
    enforced(restrict())
}

/// Takes all files, TCP ports and signals to others from this process.
pub(super) fn compiler() -> Result<(), MissingPart> {
    let restrict = || {
        Ruleset::default()
            .handle_access(AccessFs::from_all(VERSION))?
            .handle_access(AccessNet::from_all(VERSION))?
            .scope(Scope::from_all(VERSION))?
            .create()?
            .restrict_self()
    };
    enforced(restrict())
}

/// Adds a rule for a path. A path that does not exist cannot be reached, and needs no rule.
fn grant(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(handle) = PathFd::new(path) else {
        return Ok(rules);
    };
    let access = match path.metadata() {
        Ok(found) if found.is_dir() => access,
        // Pipes and sockets have no rules, and need none.
        Ok(found) if found.file_type().is_fifo() || found.file_type().is_socket() => {
            return Ok(rules);
        }
        _ => access & AccessFs::from_file(VERSION),
    };
    rules.add_rule(PathBeneath::new(handle, access))
}

fn enforced(
    restricted: Result<landlock::RestrictionStatus, RulesetError>,
) -> Result<(), MissingPart> {
    let missing = |why: String| MissingPart {
        part: "Landlock",
        why,
    };
    match restricted {
        Ok(status) => unguarded(status.landlock).map_or(Ok(()), |why| Err(missing(why))),
        Err(error) => Err(missing(format!("{error}: files are not confined"))),
    }
}

/// Returns what the kernel's version does not guard of what is asked for.
fn unguarded(status: LandlockStatus) -> Option<String> {
    let version = match status {
        LandlockStatus::NotImplemented => {
            return Some("the kernel is built without it: files are not confined".to_owned());
        }
        LandlockStatus::NotEnabled => {
            return Some(
                "it is not among the kernel's security modules (lsm=): files are not confined"
                    .to_owned(),
            );
        }
        LandlockStatus::Available { effective_abi, .. } => effective_abi,
    };
    let later = [
        (ABI::V3, "cutting files"),
        (ABI::V4, "TCP of the compiling process"),
        (ABI::V5, "control of devices"),
        (ABI::V6, "signals and abstract sockets"),
    ];
    let later = later.into_iter().filter(|(since, _)| version < *since);
    let later: Vec<&str> = later.map(|(_, what)| what).collect();
    (!later.is_empty()).then(|| {
        format!(
            "the kernel has version {version} of {VERSION}: it does not guard {}",
            later.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_lacks_is_told() {
        let available = |effective_abi| LandlockStatus::Available {
            effective_abi,
            kernel_abi: None,
        };
        assert_eq!(unguarded(available(ABI::V6)), None);
        assert_eq!(unguarded(available(ABI::V10)), None);
        assert_eq!(
            unguarded(available(ABI::V4)).as_deref(),
            Some(
                "the kernel has version 4 of 6: it does not guard control of devices, signals and abstract sockets"
            )
        );
        for (status, said) in [
            (
                LandlockStatus::NotImplemented,
                "the kernel is built without it",
            ),
            (
                LandlockStatus::NotEnabled,
                "it is not among the kernel's security modules",
            ),
        ] {
            let why = unguarded(status).unwrap();
            assert!(why.starts_with(said), "{why}");
        }
    }
}
