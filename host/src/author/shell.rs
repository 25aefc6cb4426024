//! Trying on a page what a plan could read of it.
//!
//! ```text
//! line     what was typed: a command, or what to read
//! found    what the page gives for it, as a table
//! code     the same as a struct for the SDK
//! links    the addresses that the page links to
//! names    what the page has that a line may name
//! ```

mod code;
mod found;
mod line;
mod links;
mod names;

pub use code::rust;
pub use found::{Found, Shown};
pub use line::{COMMANDS, Command, Line, Query, TAKES, is_open};
pub use links::{Links, links};
pub use names::Names;
