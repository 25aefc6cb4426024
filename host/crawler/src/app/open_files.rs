//! The number of files that this process may have open; connections count as files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of files that this process asks for: more than all listeners can use.
const WANTED: u64 = 1 << 16;

/// Raises the number of open files as far as that needs no privileges. Returns how many connections a
/// listener may have: the wanted number, but at most a quarter of the files, so that frontiers, fetches and
/// the store find some whatever clients do.
pub(super) fn connections(wanted: usize) -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: Some(limit.maximum.unwrap_or(WANTED).min(WANTED)),
        ..limit
    };
    if limit
        .current
        .is_some_and(|current| Some(current) < raised.current)
    {
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit = raised,
            Err(error) => tracing::warn!(%error, "cannot raise the number of open files"),
        }
    }
    let Some(files) = limit.current else {
        return wanted;
    };
    let most = usize::try_from(files / 4).unwrap_or(usize::MAX).max(1);
    if most < wanted {
        tracing::warn!(
            files,
            connections = most,
            "a listener takes fewer connections than --connections says, for the process may open \
             few files (ulimit -n)"
        );
    }
    wanted.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_takes_no_more_than_a_quarter_of_the_files() {
        assert_eq!(connections(3), 3);
        let files = getrlimit(Resource::Nofile).current;
        let quarter = files.map_or(usize::MAX, |files| files as usize / 4);
        assert_eq!(connections(usize::MAX), quarter);
    }
}
