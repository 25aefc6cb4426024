//! Facts that the kernel tells of processes: the signals they handle, the processes they have started, their
//! ports.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crawler_tests::process::Process;
use crawler_tests::{PATIENCE, until};
use rustix::process::{Pid, Signal, kill_process};

/// Waits until the process handles Ctrl-C itself; before, the signal ends it like any other process.
pub(crate) fn until_it_listens(process: &Process) {
    const SIGINT: u64 = 1 << 1;
    let status = format!("/proc/{}/status", process.id());
    until("handler of signals", PATIENCE, || {
        let status = fs::read_to_string(&status).ok()?;
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))?;
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        (caught & SIGINT != 0).then_some(())
    });
}

/// A process: its id, and its command line.
pub(crate) type Running = (u32, String);

/// Returns processes that have this text in their environment or belong to this process group. Dead processes that
/// nobody has reaped do not count.
pub(crate) fn left_over(mark: &Path, group: u32) -> Vec<Running> {
    let mark = mark.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let Ok(id) = name.parse() else {
            continue;
        };
        let read = |file: &str| fs::read(folder.join(file)).unwrap_or_default();
        let stat = String::from_utf8_lossy(&read("stat")).into_owned();
        let Some((_, stat)) = stat.rsplit_once(") ") else {
            continue;
        };
        let fields: Vec<&str> = stat.split(' ').collect();
        let environment = String::from_utf8_lossy(&read("environ")).into_owned();
        let is_ours = fields[2] == group.to_string() || environment.contains(mark);
        if is_ours && fields[0] != "Z" {
            let words = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            found.push((id, words));
        }
    }
    found
}

/// Returns the TCP ports on which these processes listen.
pub(crate) fn ports_of(ids: &[u32]) -> BTreeSet<u16> {
    let sockets: BTreeSet<String> = ids
        .iter()
        .filter_map(|id| fs::read_dir(format!("/proc/{id}/fd")).ok())
        .flatten()
        .filter_map(|fd| fs::read_link(fd.ok()?.path()).ok())
        .filter_map(|link| {
            let link = link.to_string_lossy().into_owned();
            Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let tcp = fs::read_to_string("/proc/net/tcp").unwrap();
    let listening = tcp.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, port) = fields[1].split_once(':')?;
        let is_open = fields[3] == "0A" && sockets.contains(fields[9]);
        is_open.then(|| u16::from_str_radix(port, 16).unwrap())
    });
    listening.collect()
}

/// Waits until a build has started a compiler, and freezes it there. It then ends only if something ends it, and
/// not because it is done.
pub(crate) fn freeze_a_compiler(mark: &Path, group: u32) {
    let (id, _) = until("compiler at work", PATIENCE, || {
        let running = left_over(mark, group);
        let compiles = |(_, words): &Running| words.contains("--crate-name");
        running.into_iter().find(compiles)
    });
    let id = Pid::from_raw(id.cast_signed()).unwrap();
    kill_process(id, Signal::STOP).unwrap();
}
