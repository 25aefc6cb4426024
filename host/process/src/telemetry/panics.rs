//! Panics in the file of the log.
//!
//! A panic is told on stderr by Rust itself, which nobody may keep if the log goes to a file. So the file gets the text
//! and the place too, and stderr stays as it was.

use std::panic::PanicHookInfo;

/// Logs each panic of this process from here on, and does what was done about it before.
pub(super) fn log_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        log(panic);
        before(panic);
    }));
}

fn log(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    tracing::error!(
        thread = thread.name().unwrap_or_default(),
        location = panic.location().map(tracing::field::display),
        reason = panic.payload_as_str().unwrap_or("a value that is no text"),
        "panicked"
    );
}
