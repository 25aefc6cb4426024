//! Confinement by the operating system: it limits what a process can do if a plugin breaks out of
//! WebAssembly.
//!
//! The sandbox of wasmtime is the first wall. This is the second: a process gives up rights, for good, before
//! it has read a byte of a plugin. The kernel enforces that, whatever code runs then.
//!
//! | process | what it gives up | by |
//! |---|---|---|
//! | the compiling process ([`compiler`]) | new privileges; every system call that threads, memory and the open pipes do not need: it opens no file and no socket, starts no program and no process, sends no signal to others and raises no limit | `no_new_privs`, Landlock, seccomp |
//! | `worker`, `up` and `run` ([`process`]) | new privileges; files outside of its [`PathAccess`]; signals and abstract sockets to processes outside | `no_new_privs`, Landlock |
//!
//! A call that is denied fails with "Operation not permitted" or "Permission denied"; it does not end the
//! process. Libraries cope with that, and the message says what was tried.
//!
//! The network of a worker is not confined here: its work is to fetch, and the fetcher's address policy judges
//! addresses. Neither is `crawler master`, which runs no plugin: its compiling processes are confined like
//! all.
//!
//! `--confinement off` turns all of it off. If the kernel lacks a part, the others hold, and the caller gets
//! a [`MissingPart`] to log. Systems other than Linux lack all of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

mod access;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod seccomp;

pub use access::{MissingPart, PathAccess};

/// Value of the setting `confinement`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confinement {
    /// Processes give up what they do not need.
    #[default]
    On,
    /// Processes keep all rights of their user.
    Off,
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Confinement::On => "on",
            Confinement::Off => "off",
        })
    }
}

impl FromStr for Confinement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "on" => Ok(Confinement::On),
            "off" => Ok(Confinement::Off),
            _ => Err(format!("confinement is on or off, not {text:?}")),
        }
    }
}

/// Confines this process to `access`. Landlock binds the calling thread and those that it starts later, so
/// this is called before any other thread starts. Returns the parts that are missing.
pub fn process(access: &PathAccess) -> Vec<MissingPart> {
    #[cfg(target_os = "linux")]
    let missing = linux::process(access);
    #[cfg(not(target_os = "linux"))]
    let missing = {
        let _everything = access;
        vec![not_available()]
    };
    missing
}

/// Confines this process to threads, memory and the files that it has open. The compiling process calls this
/// last before it reads a plugin. Returns the parts that are missing.
pub fn compiler() -> Vec<MissingPart> {
    #[cfg(target_os = "linux")]
    let missing = linux::compiler();
    #[cfg(not(target_os = "linux"))]
    let missing = vec![not_available()];
    missing
}

/// Returns the parts that this system lacks. The process is not confined by it: what binds a thread is tried on one that
/// ends at once, and for what would bind all threads the kernel is asked.
pub fn missing() -> Vec<MissingPart> {
    #[cfg(target_os = "linux")]
    let missing = linux::missing();
    #[cfg(not(target_os = "linux"))]
    let missing = vec![not_available()];
    missing
}

#[cfg(not(target_os = "linux"))]
fn not_available() -> MissingPart {
    MissingPart {
        part: "confinement",
        why: "it is available on Linux only".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_for_missing_parts_confines_nothing() {
        let _missing = missing();
        std::fs::read("/etc/passwd").unwrap();
    }

    #[test]
    fn the_setting_is_one_of_two_words() {
        for confinement in [Confinement::On, Confinement::Off] {
            assert_eq!(confinement.to_string().parse(), Ok(confinement));
        }
        let error = "no".parse::<Confinement>().unwrap_err();
        assert_eq!(error, "confinement is on or off, not \"no\"");
    }
}
