//! The parts that Linux has, in the order in which they are applied, and the files that every program needs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::access::{MissingPart, PathAccess};
use super::{landlock, seccomp};

/// Libraries, CA certificates, and the files that the resolver and the allocator read.
const READ: [&str; 32] = [
    "/dev/random",
    "/dev/urandom",
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/lib",
    "/lib64",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/share/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/share/pki",
    "/usr/share/zoneinfo",
];
const WRITE: [&str; 1] = ["/dev/null"];

pub(super) fn process(access: &PathAccess) -> Vec<MissingPart> {
    let mut all = access.clone();
    all.read.extend(READ.map(PathBuf::from));
    all.write.extend(WRITE.map(PathBuf::from));
    for file in loaded() {
        // The kernel starts the loader of a program before the program.
        match is_loader(&file) {
            true => all.execute.push(file),
            false => all.read.extend(file.parent().map(Path::to_owned)),
        }
    }
    let missing = [no_new_privs().err(), landlock::process(&all).err()];
    missing.into_iter().flatten().collect()
}

pub(super) fn compiler() -> Vec<MissingPart> {
    // The filter comes last, because it refuses the system calls of the other parts.
    let missing = [
        no_new_privs().err(),
        landlock::compiler().err(),
        seccomp::compiler().err(),
    ];
    missing.into_iter().flatten().collect()
}

pub(super) fn missing() -> Vec<MissingPart> {
    // Landlock and no_new_privs bind the thread that asks for them.
    let tried = std::thread::spawn(|| process(&PathAccess::default())).join();
    let lost = |_panic| {
        vec![MissingPart {
            part: "confinement",
            why: "it could not be tried".to_owned(),
        }]
    };
    let mut missing = tried.unwrap_or_else(lost);
    missing.extend(seccomp::missing());
    missing
}

fn no_new_privs() -> Result<(), MissingPart> {
    rustix::thread::set_no_new_privs(true).map_err(|e| MissingPart {
        part: "no_new_privs",
        why: format!("{e}; programs that are started may gain privileges"),
    })
}

/// Returns the shared libraries of this process, and their loader, wherever this system keeps them.
fn loaded() -> BTreeSet<PathBuf> {
    // If it cannot be read, the usual folders are left.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    libraries(&maps)
}

fn libraries(maps: &str) -> BTreeSet<PathBuf> {
    let files = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]));
    let files = files.map(PathBuf::from);
    files
        .filter(|file| is_loader(file) || is_library(file))
        .collect()
}

fn is_loader(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("ld-") || name.starts_with("ld64")
}

fn is_library(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".so") || name.contains(".so.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_where_they_are_mapped() {
        let maps = "\
55d0-55d1 r--p 00000000 08:01 12   /opt/crawler/bin/crawler
7f00-7f01 rw-p 00000000 00:00 0
7f10-7f11 r-xp 00000000 08:01 13   /nix/store/glibc-2.40/lib/libc.so.6
7f10-7f11 r-xp 00000000 08:01 13   /nix/store/glibc-2.40/lib/libc.so.6
7f20-7f21 r-xp 00000000 08:01 14   /nix/store/glibc-2.40/lib/ld-linux-x86-64.so.2
7f30-7f31 rw-p 00000000 00:00 0    [stack]
7f40-7f41 rw-s 00000000 00:01 15   /memfd:image (deleted)
";
        let found = libraries(maps);
        let expected = ["ld-linux-x86-64.so.2", "libc.so.6"];
        let expected = expected.map(|name| Path::new("/nix/store/glibc-2.40/lib").join(name));
        assert_eq!(found, expected.clone().into());
        assert_eq!(expected.map(|file| is_loader(&file)), [true, false]);
    }
}
