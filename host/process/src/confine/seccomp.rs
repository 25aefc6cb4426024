//! Seccomp: the system calls of the compiling process. All others fail with "Operation not permitted".
//!
//! The list has the calls that threads, memory and open pipes need, on x86-64 and on 64-bit ARM. A call that
//! is not on it fails instead of ending the process: libraries try calls that they can do without, and an
//! error tells the parent more than a signal.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use super::access::MissingPart;

/// Calls that are allowed, whatever their arguments.
const FREE: [c_long; 41] = [
    // Open pipes.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_fcntl,
    // Memory; files in memory hold the images of guests.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_membarrier,
    // Threads; clone3 is refused by a filter of its own.
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_rseq,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Signals of the process itself.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    // Time, random numbers, and the size of the machine.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_sysinfo,
];

/// Error of a filter that cannot be used.
#[derive(Debug, thiserror::Error)]
enum FilterError {
    #[error("the filter cannot be built: {0}")]
    Build(#[from] BackendError),
    #[error("the kernel does not take the filter: {0}")]
    Apply(#[from] seccompiler::Error),
}

/// File in which the kernel lists what its filters can do.
const ACTIONS: &str = "/proc/sys/kernel/seccomp/actions_avail";

/// Restricts all threads of this process to the calls of the list.
pub(super) fn compiler() -> Result<(), MissingPart> {
    apply().map_err(|e| MissingPart {
        part: "seccomp",
        why: format!("{e}: system calls of the compiling process are not confined"),
    })
}

/// Asks the kernel whether it has filters that refuse a call with an error.
pub(super) fn missing() -> Option<MissingPart> {
    let why = match std::fs::read_to_string(ACTIONS) {
        Ok(actions) if actions.split_whitespace().any(|action| action == "errno") => return None,
        Ok(_) => "the kernel refuses no call with an error".to_owned(),
        Err(error) => format!("cannot read {ACTIONS}: {error}"),
    };
    Some(MissingPart {
        part: "seccomp",
        why: format!("{why}: system calls of the compiling process are not confined"),
    })
}

fn apply() -> Result<(), FilterError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    // The flags of clone3 are in memory, where a filter does not see them. Libraries fall back to clone only
    // if clone3 is not implemented.
    let not_implemented = filter(
        [(libc::SYS_clone3, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
        arch,
    )?;
    let allowed = filter(
        rules()?,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        SeccompAction::Allow,
        arch,
    )?;
    seccompiler::apply_filter_all_threads(&not_implemented)?;
    seccompiler::apply_filter_all_threads(&allowed)?;
    Ok(())
}

fn filter(
    rules: BTreeMap<c_long, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    matched: SeccompAction,
    arch: TargetArch,
) -> Result<BpfProgram, BackendError> {
    SeccompFilter::new(rules, otherwise, matched, arch)?.try_into()
}

fn rules() -> Result<BTreeMap<c_long, Vec<SeccompRule>>, BackendError> {
    let threads = libc::CLONE_THREAD as u64;
    let own_id = u64::from(std::process::id());
    let conditional = [
        // Threads, not processes.
        (
            libc::SYS_clone,
            argument(0, Qword, SeccompCmpOp::MaskedEq(threads), threads)?,
        ),
        // A process may end itself: it aborts by a signal to its own thread.
        (
            libc::SYS_tgkill,
            argument(0, Dword, SeccompCmpOp::Eq, own_id)?,
        ),
        // Limits are read, and never set.
        (
            libc::SYS_prlimit64,
            argument(2, Qword, SeccompCmpOp::Eq, 0)?,
        ),
        // Threads are named.
        (
            libc::SYS_prctl,
            argument(0, Dword, SeccompCmpOp::Eq, libc::PR_SET_NAME as u64)?,
        ),
    ];
    let free = FREE.into_iter().map(|call| (call, Vec::new()));
    let conditional = conditional
        .into_iter()
        .map(|(call, rule)| (call, vec![rule]));
    Ok(free.chain(conditional).collect())
}

/// Builds a condition on an argument. The upper half of a register means nothing if the argument is an `int`.
fn argument(
    n: u8,
    width: SeccompCmpArgLen,
    compared: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, BackendError> {
    let condition = SeccompCondition::new(n, width, compared, value)?;
    SeccompRule::new(vec![condition])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_builds_for_both_kinds_of_processors() {
        for arch in [TargetArch::x86_64, TargetArch::aarch64] {
            let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
            let program = filter(rules().unwrap(), refused, SeccompAction::Allow, arch);
            assert!(!program.unwrap().is_empty());
        }
    }
}
