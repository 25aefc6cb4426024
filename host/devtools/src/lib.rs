//! Tools for authors of rules: calls that are saved with their outcomes, and made again in the sandbox that a
//! crawl uses.
//!
//! ```text
//! template  the files of a new plugin
//! fetching  one page for a rule, as a crawl would fetch it
//! sdk       the sources that a plugin in Rust is built with
//! saved     a call of a rule in a folder: the page, params, and what came of it
//! outcome   what came of a call, in the form that is kept, and how two of them differ
//! changes   how one outcome differs from another, counted by items, fields and requests
//! mutation  a saved call, made on copies of its page that have mistakes
//! declared  what two plugins declare, held against each other
//! side_by_side   a saved call, made by two plugins
//! place     where the source of a plugin has what a refusal quotes
//! shell     trying selectors on a page
//! watch     when source or saved calls change
//! trial     a saved call, made again: what came of it, what it used, whether it is always the same
//! ```

pub mod changes;
pub mod declared;
pub mod fetching;
pub mod mutation;
pub mod outcome;
pub mod place;
pub mod saved;
pub mod sdk;
pub mod shell;
pub mod side_by_side;
pub mod template;
pub mod trial;
pub mod watch;
