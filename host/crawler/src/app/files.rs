//! The limit on files and connections that the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the number of files that the process may have open to the limit of its user. Systems begin with 1
/// 024, for programs that wait by `select`; a crawl of many hosts has a connection to each.
pub fn open_more_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::debug!(%error, "the number of open files stays as it is");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_may_open_as_many_files_as_its_user() {
        open_more_files();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
    }
}
