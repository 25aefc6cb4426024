//! Queries that are tried on a page, as a plan would read it.
//!
//! ```text
//! line          what was typed: a command, or what to read
//! query_result  what the page gives for it, as a table
//! code          the same as a struct for the SDK
//! links         the addresses that the page links to
//! completions   what the page has that a line may name
//! ```

mod code;
mod completions;
mod line;
mod links;
mod plan;
mod query_result;

pub use code::rust;
pub use completions::Completions;
pub use line::{COMMANDS, Command, Line, Query, TAKES, is_open};
pub use links::{Links, links};
pub use query_result::{QueryResult, Table};
