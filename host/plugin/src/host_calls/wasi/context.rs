//! WASI context of one call: clocks that stand at the time of its page, random numbers that follow from a seed,
//! and standard output that becomes log lines.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{SeedableRng as _, TryRng};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx};

use crate::LogLevel;
use crate::host_calls::fuel::{Meter, PER_BYTE};
use crate::host_calls::logs::{LogStream, Logs};
use crawler_model::crawl::UnixMillis;

/// Random bytes that one host call may ask for.
const RANDOM_MAX: u64 = 64 << 10;

/// Step of the monotonic clock between two readings.
const CLOCK_STEP_NANOS: u64 = 1_000;

/// Returns the WASI context of one call.
pub(crate) fn context(now: UnixMillis, seed: [u8; 32], logs: &Logs, meter: &Meter) -> WasiCtx {
    let stream = |level| LogStream {
        logs: logs.clone(),
        level,
        meter: meter.clone(),
    };
    let random = |domain: u8| {
        let mut seed = seed;
        seed[0] ^= domain;
        MeteredRandom {
            random: StdRng::from_seed(seed),
            meter: meter.clone(),
        }
    };
    let mut insecure_seed = [0; 16];
    insecure_seed.copy_from_slice(&seed[16..]);
    WasiCtx::builder()
        .stdout(stream(LogLevel::Info))
        .stderr(stream(LogLevel::Warn))
        .wall_clock(FixedClock(Duration::from_millis(now)))
        .monotonic_clock(SteppingClock::default())
        .secure_random(random(1))
        .insecure_random(random(2))
        .insecure_random_seed(u128::from_le_bytes(insecure_seed))
        .max_random_size(RANDOM_MAX)
        .allow_tcp(false)
        .allow_udp(false)
        .build()
}

/// Clock that stands at the time that the call is about, however long the call takes.
struct FixedClock(Duration);

impl HostWallClock for FixedClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        self.0
    }
}

/// Clock that advances with each reading, so that loops that wait for it to advance end.
#[derive(Default)]
struct SteppingClock(AtomicU64);

impl HostMonotonicClock for SteppingClock {
    fn resolution(&self) -> u64 {
        CLOCK_STEP_NANOS
    }

    fn now(&self) -> u64 {
        self.0.fetch_add(CLOCK_STEP_NANOS, Ordering::Relaxed)
    }
}

struct MeteredRandom {
    random: StdRng,
    meter: Meter,
}

impl TryRng for MeteredRandom {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.meter.charge(4 * PER_BYTE);
        self.random.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.meter.charge(8 * PER_BYTE);
        self.random.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.meter.charge(bytes.len() as u64 * PER_BYTE);
        self.random.try_fill_bytes(bytes)
    }
}
