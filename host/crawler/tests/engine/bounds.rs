//! Tests that the host's work for a guest is bounded, however the guest is made.

use super::*;

/// Returns the peak of the process's memory so far, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    let kib: Option<u64> = kib.and_then(|kib| kib.parse().ok());
    kib.expect("it is told in kB") << 10
}

/// The symbol of the function that traps would have gigabytes if it were demangled.
#[tokio::test]
async fn r01_a_trap_in_a_function_with_a_hostile_name_is_cheap() {
    assert_a_good_page_is_parsed().await;
    let before = peak_memory();
    let report = killed(parse("trap-in-long-name").await);
    // Other tests run at the same time; without the bound, the memory would be a hundred times more.
    let more = peak_memory() - before;
    assert!(more < 100 << 20, "{more} bytes");
    assert_eq!(report.kill, Kill::Trapped);
    let innermost = &report.backtrace[0].name;
    assert!(
        innermost.starts_with("hostile.wasm!_Z1f1AIiii"),
        "{innermost}"
    );
    assert!(report.backtrace.iter().all(|frame| frame.name.len() <= 512));
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn r06_each_entry_of_a_list_to_wait_for_is_charged() {
    let report = parse_with("poll-long", |limits| {
        limits.cpu = Duration::from_secs(60);
        limits.log_lines = 1_000_000;
    })
    .await;
    let n_asked = report.logs.len() as u64;
    // 200 units for each of 4 000 entries.
    let most = Limits::default().fuel / 800_000 + 1;
    assert!((2..=most).contains(&n_asked), "{n_asked} of {most}");
    let report = killed(report);
    assert_eq!(report.kill, Kill::OutOfFuel, "{report:?}");
    assert_a_good_page_is_parsed().await;
}

#[tokio::test]
async fn r06_a_list_of_more_handles_than_a_guest_may_hold_ends_the_call() {
    let report = killed(parse("poll-too-long").await);
    assert_eq!(report.kill, Kill::Trapped, "{report:?}");
    assert!(report.message.contains("handle limit"), "{report:?}");
    assert_a_good_page_is_parsed().await;
}

/// Each host call reads 16 MiB of JSON, which takes as long as many ticks of the epoch.
#[tokio::test]
async fn r06_a_long_host_call_counts_for_all_its_time() {
    let report = parse_with("emit-slow", |limits| {
        limits.fuel = u64::MAX / 2;
        limits.cpu = Duration::from_millis(200);
        limits.item_bytes = 1 << 30;
    })
    .await;
    let n_emitted = report.logs.len();
    // If each were counted as a tick of 10 ms, there would be about twenty.
    assert!(n_emitted <= 10, "{n_emitted}");
    let report = killed(report);
    assert_eq!(report.kill, Kill::OutOfCpu, "{report:?}");
    assert_a_good_page_is_parsed().await;
}
