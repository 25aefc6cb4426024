//! Lists of things to wait for that are longer than any rule needs.

use std::hint::black_box;

use wasip2::clocks::monotonic_clock::subscribe_duration;
use wasip2::io::poll::poll;

use crate::crawler::rules::log;
use crate::exports::crawler::rules::rules::RuleError;

/// Asks without end which of `n_moments` moments have come; logs a line before each time.
pub(crate) fn ask(n_moments: usize) -> Result<(), RuleError> {
    let moment = subscribe_duration(0);
    let list = vec![&moment; n_moments];
    loop {
        log::write(log::Level::Info, "asked");
        black_box(poll(&list));
    }
}
