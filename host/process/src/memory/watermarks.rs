//! Decides from samples of the memory in use what is to be done. It is pure, and counts samples instead of
//! time.

/// Number of samples between two times that caches shrink.
const SHRINK_EVERY: u32 = 5;
/// Number of samples in a row at the hard mark before a crawl is put back: shrinking caches may be enough.
const N_HARD: u32 = 2;
/// Number of samples between two crawls that are put back: the memory that the first one frees must be seen.
const SETTLE: u32 = 5;
/// Number of samples for which memory may stay short. After that a crawl is put back even below the hard
/// mark, or pages are taken again below the soft mark.
const STUCK: u32 = 50;

/// Watermarks, in bytes, at which something changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermarks {
    /// Mark from which on no page is taken, and caches shrink.
    pub soft: u64,
    /// Mark below which pages are taken again.
    pub resume: u64,
    /// Mark from which on crawls are put back, one after the other.
    pub hard: u64,
}

impl Watermarks {
    /// Returns the marks of a process that may use `allowed` bytes.
    pub fn of(allowed: u64) -> Self {
        Self {
            soft: allowed / 8 * 7,
            resume: allowed / 4 * 3,
            hard: allowed,
        }
    }
}

/// Actions after a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Advice {
    /// True if no page is taken.
    pub is_short: bool,
    /// True if caches are to be made smaller now.
    pub shrinks: bool,
    /// True if the crawl that uses most is to be put back now.
    pub puts_back: bool,
}

/// Watermarks, and counts of the samples so far.
#[derive(Debug)]
pub(super) struct WatermarkWatch {
    marks: Watermarks,
    is_short: bool,
    /// Number of samples since memory became short.
    n_short: u32,
    /// Number of samples in a row at the hard mark.
    n_hard: u32,
    /// Number of samples since a crawl was put back last, or since memory became short.
    n_since: u32,
}

impl WatermarkWatch {
    pub(super) fn new(marks: Watermarks) -> Self {
        Self {
            marks,
            is_short: false,
            n_short: 0,
            n_hard: 0,
            n_since: 0,
        }
    }

    pub(super) fn marks(&self) -> Watermarks {
        self.marks
    }

    /// Takes the next sample.
    pub(super) fn step(&mut self, resident: u64) -> Advice {
        if resident < self.marks.resume {
            *self = Self::new(self.marks);
            return Advice::default();
        }
        if !self.is_short && resident < self.marks.soft {
            return Advice::default();
        }
        self.is_short = true;
        let shrinks = self.n_short.is_multiple_of(SHRINK_EVERY);
        self.n_short = self.n_short.wrapping_add(1);
        self.n_since = self.n_since.saturating_add(1);
        self.n_hard = match resident >= self.marks.hard {
            true => self.n_hard.saturating_add(1),
            false => 0,
        };
        if self.n_since >= STUCK && resident < self.marks.soft {
            // No crawl can give back the rest: waiting for less would never end.
            *self = Self::new(self.marks);
            return Advice::default();
        }
        let is_settled = self.n_since >= SETTLE || self.n_short == self.n_since;
        let puts_back = self.n_hard >= N_HARD && is_settled || self.n_since >= STUCK;
        if puts_back {
            // The samples since then are fewer than those since memory became short.
            self.n_since = 0;
        }
        Advice {
            is_short: true,
            shrinks,
            puts_back,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: Watermarks = Watermarks {
        soft: 70,
        resume: 60,
        hard: 80,
    };

    /// Returns one letter for each sample: `.` if pages are taken, `s` if none is, `S` if caches shrink too,
    /// `b` and `B` if a crawl is put back as well.
    fn advice(samples: impl IntoIterator<Item = u64>) -> String {
        let mut watch = WatermarkWatch::new(MARKS);
        let letter = |advice: Advice| match (advice.is_short, advice.shrinks, advice.puts_back) {
            (false, false, false) => '.',
            (true, false, false) => 's',
            (true, true, false) => 'S',
            (true, false, true) => 'b',
            (true, true, true) => 'B',
            (false, ..) => '?',
        };
        samples.into_iter().map(|n| letter(watch.step(n))).collect()
    }

    #[track_caller]
    fn check(samples: &[u64], expected: &str) {
        assert_eq!(advice(samples.iter().copied()), expected, "{samples:?}");
    }

    #[test]
    fn pages_wait_from_the_soft_mark_until_memory_is_free() {
        check(&[0, 69, 70, 69, 61, 60, 59, 69, 70], "..Ssss..S");
        // Caches shrink again while memory stays short.
        check(&[75; 12], "SssssSssssSs");
    }

    #[test]
    fn at_the_hard_mark_a_crawl_is_put_back_unless_caches_help() {
        check(&[80, 80], "Sb");
        check(&[75, 75, 80, 80], "Sssb");
        check(&[80, 79, 80, 79, 50], "Ssss.");
        // The next crawl is put back only after the first had time to free something.
        check(&[90; 13], "SbsssSbsssSbs");
    }

    #[test]
    fn memory_that_stays_short_puts_a_crawl_back_too() {
        let all = advice(std::iter::repeat_n(75, 120));
        let at: Vec<usize> = all
            .char_indices()
            .filter(|(_, letter)| "bB".contains(*letter))
            .map(|(n, _)| n)
            .collect();
        assert_eq!(at, [49, 99]);
    }

    #[test]
    fn pages_are_taken_again_where_less_memory_is_never_used() {
        let all = advice([75].into_iter().chain(std::iter::repeat_n(65, 60)));
        assert!(!all.contains(['b', 'B']), "{all}");
        assert_eq!(all.find('.'), Some(49), "{all}");
    }

    #[test]
    fn what_was_short_before_is_forgotten_once_memory_is_free() {
        let samples = [75; 49].into_iter().chain([59]).chain([75; 49]);
        assert!(!advice(samples).contains(['b', 'B']));
    }

    #[test]
    fn marks_are_parts_of_what_is_allowed() {
        let expected = Watermarks {
            soft: 700 << 20,
            resume: 600 << 20,
            hard: 800 << 20,
        };
        assert_eq!(Watermarks::of(800 << 20), expected);
    }
}
