//! Samples of the heap as jemalloc writes them: a text with a head, and the stacks of memory in use.
//!
//! Large allocations are more likely to be recorded than small ones. The allocator writes numbers from which the formula of
//! pprof gives its estimates of all that there was; those of [`StackInUse`] are the estimates. The text, which may be large, is
//! read line by line, so that no copy of it is in memory.

use std::io::{self, BufRead};

/// Samples of a profile.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dump {
    /// Mean number of bytes for which one sample was taken.
    pub(super) period: u64,
    pub(super) stacks: Vec<StackInUse>,
}

/// Stack that has allocated memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StackInUse {
    /// Addresses in code, innermost first.
    pub(super) addresses: Vec<usize>,
    /// Estimate of the number of allocations in use.
    pub(super) n_objects: u64,
    /// Estimate of their bytes.
    pub(super) n_bytes: u64,
}

impl Dump {
    /// Reads a text up to the end of the stacks. What follows may be no text, and is not read.
    ///
    /// ```text
    /// heap_v2/524288
    ///   t*: 3: 3145728 [0: 0]
    ///   t0: 3: 3145728 [0: 0]
    /// @ 0x55d0 0x55e0
    ///   t*: 3: 3145728 [0: 0]
    ///   t0: 3: 3145728 [0: 0]
    ///
    /// MAPPED_LIBRARIES:
    /// ```
    ///
    /// # Errors
    ///
    /// The text cannot be read, or has another form.
    pub(super) fn read(text: impl BufRead) -> io::Result<Self> {
        let unknown = || io::Error::new(io::ErrorKind::InvalidData, "they have an unknown form");
        let mut lines = text.lines();
        let head = lines.next().transpose()?.unwrap_or_default();
        let period = head.strip_prefix("heap_v2/").map(str::parse::<u64>);
        let period = period.and_then(Result::ok).ok_or_else(unknown)?;
        let mut stacks = Vec::new();
        while let Some(line) = lines.next().transpose()? {
            if line == "MAPPED_LIBRARIES:" {
                break;
            }
            let Some(addresses) = line.strip_prefix('@') else {
                // Numbers of one thread, or of all stacks.
                continue;
            };
            // The numbers of all threads come first.
            let numbers = lines.next().transpose()?.unwrap_or_default();
            let stack = StackInUse::parse(addresses, &numbers, period);
            stacks.push(stack.ok_or_else(unknown)?);
        }
        Ok(Self { period, stacks })
    }
}

impl StackInUse {
    /// Reads the addresses of a stack, and the line with its numbers. Returns `None` if they have another form.
    fn parse(addresses: &str, numbers: &str, period: u64) -> Option<Self> {
        let addresses = addresses.split_whitespace().map(address);
        let addresses: Vec<usize> = addresses.collect::<Option<_>>()?;
        let numbers = numbers.trim_start().strip_prefix("t*: ")?;
        let (n_objects, n_bytes) = numbers.split_once(" [")?.0.split_once(": ")?;
        let recorded = (n_objects.parse().ok()?, n_bytes.parse().ok()?);
        let (n_objects, n_bytes) = estimate(recorded, period);
        Some(Self {
            addresses,
            n_objects,
            n_bytes,
        })
    }
}

fn address(text: &str) -> Option<usize> {
    usize::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Estimates the number and the bytes of allocations, of which these were recorded. One of `n` bytes is recorded with a
/// probability of 1 − e^(−n / period).
fn estimate((n_objects, n_bytes): (u64, u64), period: u64) -> (u64, u64) {
    if n_objects == 0 || n_bytes == 0 || period == 0 {
        return (n_objects, n_bytes);
    }
    let size = n_bytes as f64 / n_objects as f64;
    let probability = -(-size / period as f64).exp_m1();
    let all = |n: u64| (n as f64 / probability).round() as u64;
    (all(n_objects), all(n_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "heap_v2/524288\n  t*: 3: 1049600 [0: 0]\n  t0: 2: 1048576 [0: 0] worker\n  t7: 1: 1024 [0: 0]\n\
        @ 0x10 0xff00ff\n  t*: 2: 1048576 [0: 0]\n  t0: 2: 1048576 [0: 0]\n\
        @ 0x20\n  t*: 1: 1024 [0: 0]\n  t7: 1: 1024 [0: 0]\n\n\
        MAPPED_LIBRARIES:\n@ no stack\n";

    #[test]
    fn stacks_are_read_and_their_numbers_estimated() {
        // The name of a mapped file may be no text.
        let text = [TEXT.as_bytes(), b"\xff\n"].concat();
        let dump = Dump::read(text.as_slice()).unwrap();
        let expected = [
            // 1 / (1 − 1/e) allocations of 512 KiB for each that is recorded.
            StackInUse {
                addresses: vec![0x10, 0xff_00ff],
                n_objects: 3,
                n_bytes: 1_658_823,
            },
            // A small one stands for the memory of a whole period.
            StackInUse {
                addresses: vec![0x20],
                n_objects: 513,
                n_bytes: 524_800,
            },
        ];
        assert_eq!(dump.period, 524_288);
        assert_eq!(dump.stacks, expected);
    }

    #[test]
    fn a_heap_without_samples_has_no_stacks() {
        let text = "heap_v2/524288\n  t*: 0: 0 [0: 0]\n";
        let dump = Dump::read(text.as_bytes()).unwrap();
        assert_eq!(dump.stacks, []);
    }

    #[test]
    fn a_text_of_another_form_is_refused() {
        for text in [
            "",
            "heap_v3/1\n",
            "heap_v2/x\n",
            "heap_v2/1\n@ 0x1\n",
            "heap_v2/1\n@ 1\n  t*: 1: 1 [0: 0]\n",
            "heap_v2/1\n@ 0x1\n  t1: 1: 1 [0: 0]\n",
            "heap_v2/1\n@ 0x1\n  t*: 1 [0: 0]\n",
        ] {
            let error = Dump::read(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), "they have an unknown form", "{text:?}");
        }
    }
}
