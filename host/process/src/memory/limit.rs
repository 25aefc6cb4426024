//! The default of `--memory`: four fifths of the limit of this process's cgroup, or of the machine's memory
//! if no cgroup allows less.
//!
//! A limit of any cgroup above its own binds a process too, so all of them are read: `memory.max` of version
//! 2, `memory.limit_in_bytes` of version 1. In a container the path of the cgroup may be that of the host, of
//! which only the end, or nothing, is visible; the mounted root counts then.

use std::path::{Component, Path, PathBuf};

/// Folder at which cgroups of version 2 are mounted, and those of version 1 one folder below.
const CGROUPS: &str = "/sys/fs/cgroup";

/// Returns the bytes that this process may use by default; `None` if the system does not tell.
pub fn usual() -> Option<u64> {
    usual_of(|path| std::fs::read_to_string(path).ok())
}

/// Returns the same, from the files that `read` finds.
fn usual_of(read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| of_machine(&text));
    let cgroups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = limit_files(&cgroups)
        .into_iter()
        .filter_map(|file| read(&file)?.trim().parse::<u64>().ok());
    // Without a limit, version 2 has "max", and version 1 a number larger than any machine's memory.
    let least = limits.chain(machine).min()?;
    Some(least / 5 * 4)
}

/// Returns the files with the limits of the cgroups that `/proc/self/cgroup` names, and of all above them.
fn limit_files(cgroups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in cgroups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => (PathBuf::from(CGROUPS), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (Path::new(CGROUPS).join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let names = Path::new(path).components().filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        let own: PathBuf = names.collect();
        files.extend(own.ancestors().map(|above| root.join(above).join(file)));
    }
    files
}

/// Returns the memory of the machine according to `/proc/meminfo`.
fn of_machine(meminfo: &str) -> Option<u64> {
    let total = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib = total.trim().strip_suffix("kB")?.trim();
    kib.parse::<u64>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const MACHINE: (&str, &str) = (
        "/proc/meminfo",
        "MemTotal:       10485760 kB\nMemFree:   1 kB\n",
    );
    const GIB: u64 = 1 << 30;

    /// Checks the limit, before a fifth of it is left free, that follows from these files.
    #[track_caller]
    fn check(files: &[(&str, &str)], expected: Option<u64>) {
        let files: HashMap<&Path, &str> = files
            .iter()
            .map(|(path, text)| (Path::new(*path), *text))
            .collect();
        let found = usual_of(|path| files.get(path).map(|text| (*text).to_owned()));
        assert_eq!(found, expected.map(|all| all / 5 * 4));
    }

    #[test]
    fn without_a_cgroup_the_machine_counts() {
        check(&[MACHINE], Some(10 * GIB));
        check(&[MACHINE, ("/proc/self/cgroup", "0::/\n")], Some(10 * GIB));
        check(&[], None);
        check(&[("/proc/meminfo", "MemFree: 1 kB\n")], None);
    }

    #[test]
    fn the_least_limit_of_a_version_2_cgroup_and_those_above_counts() {
        let own = ("/proc/self/cgroup", "0::/system.slice/crawler.service\n");
        let max = "/sys/fs/cgroup/system.slice/crawler.service/memory.max";
        let above = "/sys/fs/cgroup/system.slice/memory.max";
        check(&[MACHINE, own, (max, "1073741824\n")], Some(GIB));
        check(
            &[MACHINE, own, (max, "max\n"), (above, "2147483648\n")],
            Some(2 * GIB),
        );
        check(
            &[MACHINE, own, (max, "3221225472\n"), (above, "2147483648\n")],
            Some(2 * GIB),
        );
        check(&[MACHINE, own, (max, "max\n")], Some(10 * GIB));
    }

    #[test]
    fn in_a_container_the_mounted_root_counts() {
        let root = ("/sys/fs/cgroup/memory.max", "536870912\n");
        for own in ["0::/\n", "0::/docker/0123\n", "0::/../../kubepods/pod1\n"] {
            let own = ("/proc/self/cgroup", own);
            check(&[MACHINE, own, root], Some(GIB / 2));
        }
    }

    #[test]
    fn the_limit_of_a_version_1_cgroup_counts() {
        let own = (
            "/proc/self/cgroup",
            "12:cpu,cpuacct:/docker/01\n5:memory:/docker/01\n1:name=systemd:/docker/01\n0::/\n",
        );
        let limit = "/sys/fs/cgroup/memory/docker/01/memory.limit_in_bytes";
        let root = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
        check(&[MACHINE, own, (limit, "1073741824\n")], Some(GIB));
        check(&[MACHINE, own, (root, "1073741824\n")], Some(GIB));
        check(
            &[MACHINE, own, (limit, "9223372036854771712\n")],
            Some(10 * GIB),
        );
    }
}
