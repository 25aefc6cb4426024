//! A test that runs part of itself in a process of its own, because that process is to be killed.
//!
//! The test asks for its [`role`] first. In the process that [`again`] starts, the role is the one given there;
//! then the test does its part and returns, and writes about it to stderr.

use std::process::Command;

use crate::process::Process;
use crate::setting;

const ROLE: &str = "CRAWLER_TEST_ROLE";

/// Role that this process was started with. `None` in the test itself.
pub fn role() -> Option<String> {
    setting(ROLE).and_then(|role| role.into_string().ok())
}

/// Starts this test again, by its full name, in a process of its own and with a role.
#[track_caller]
pub fn again(test: &str, role: &str) -> Process {
    let program = std::env::current_exe().unwrap_or_else(|e| panic!("where is this program: {e}"));
    let mut command = Command::new(program);
    command
        .args(["--exact", test, "--nocapture"])
        .env(ROLE, role);
    Process::start(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PATIENCE;

    #[test]
    fn a_test_is_its_own_child() {
        if let Some(role) = role() {
            eprintln!("i am {role}");
            std::process::abort();
        }
        let mut child = again("child::tests::a_test_is_its_own_child", "somebody");
        child.line("role", PATIENCE, |line| line == "i am somebody");
        assert_eq!(child.wait(PATIENCE).code, None);
    }
}
