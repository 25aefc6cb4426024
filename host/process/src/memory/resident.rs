//! The memory that this process uses, from `/proc/self/status`, which takes some microseconds to read.
//!
//! Anonymous pages are counted, which the kernel cannot take away. Pages of files (the program itself, mapped
//! files) are left out, and so is the page cache, which belongs to no process: the kernel drops both before
//! it ends a process. Shared memory is left out too: it holds the first pages of plugins, once for all
//! sandboxes, but the kernel counts them once for each. The processes that compile plugins have limits of
//! their own, `--compile-memory`.

/// Returns the bytes that this process uses now; `None` if the system does not tell.
pub fn now() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    of_status(&status)
}

/// Parses `/proc/self/status`. For kernels that do not tell kinds of pages apart, the whole counts.
fn of_status(status: &str) -> Option<u64> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kib = line.trim().strip_suffix("kB")?.trim();
        kib.parse::<u64>().ok()?.checked_mul(1 << 10)
    };
    field("RssAnon:").or_else(|| field("VmRSS:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_pages_are_counted() {
        let status = "Name:\tcrawler\nVmRSS:\t  300000 kB\nRssAnon:\t  100 kB\nRssFile:\t  200 kB\nRssShmem:\t   10 kB\nThreads:\t3\n";
        assert_eq!(of_status(status), Some(100 << 10));
        let old = "Name:\tcrawler\nVmRSS:\t  3000 kB\n";
        assert_eq!(of_status(old), Some(3_000 << 10));
        assert_eq!(of_status("Name:\tcrawler\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_system_tells_what_a_process_uses() {
        let before = now().expect("it tells");
        let more = vec![1_u8; 64 << 20];
        let after = now().expect("it tells");
        assert!(after >= before + (32 << 20), "{before} {after}");
        drop(std::hint::black_box(more));
    }
}
