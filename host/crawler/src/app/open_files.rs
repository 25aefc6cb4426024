//! The number of files that this process may have open; connections count as files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of files to ask for on systems that refuse a limit without a bound.
const WANTED: u64 = 1 << 16;

/// Raises the number of files that the process may have open to the limit of its user. Systems begin with
/// 1 024, for programs that wait by `select`; a crawl of many hosts has a connection to each.
pub fn open_more_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    let raise = |current| setrlimit(Resource::Nofile, Rlimit { current, maximum });
    let raised = raise(maximum).or_else(|_| raise(current.max(Some(WANTED))));
    if let Err(error) = raised {
        tracing::warn!(%error, "cannot raise the number of open files");
    }
}

/// Returns how many connections a listener may have: the wanted number, but at most a quarter of the files, so
/// that frontiers, fetches and the store find some whatever clients do.
pub(super) fn connections(wanted: usize) -> usize {
    let Some(files) = getrlimit(Resource::Nofile).current else {
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
        // Another test may raise the limit meanwhile.
        open_more_files();
        assert_eq!(connections(3), 3);
        let files = getrlimit(Resource::Nofile).current;
        let quarter = files.map_or(usize::MAX, |files| files as usize / 4);
        assert_eq!(connections(usize::MAX), quarter);
    }

    #[test]
    fn the_process_may_open_as_many_files_as_its_user() {
        open_more_files();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
    }
}
