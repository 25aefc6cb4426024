//! `crawler plugin diff`: compares two plugins.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;

use super::pages::{PAGES, pages_of};
use crate::cli::CalledMasters;
use crate::cli::args::{OutputArgs, RuleArgs};
use crate::cli::engine::{EngineArgs, EngineOptions};
use crate::cli::options::NO_PORT;
use crate::config::Environment;
use crawler_devtools::saved::CallName;
use crawler_model::id::{Digest, PluginRef};
use crawler_model::plugin::LimitOverrides;

mod show;

pub use show::{ComparedCall, diff_report};

/// Options of `crawler plugin diff`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffOptions {
    /// First plugin.
    pub before: Side,
    /// Second plugin.
    pub after: Side,
    /// Folder of the saved calls. If `None`, it is the first of `likely_pages` that has some.
    pub pages: Option<PathBuf>,
    /// Folders that may have saved calls.
    pub likely_pages: Vec<PathBuf>,
    /// Names of the calls to make; all if empty.
    pub calls: Vec<CallName>,
    /// Number of times that each call is made.
    pub n_times: u32,
    /// Params that replace those that a call was saved with.
    pub params: BTreeMap<String, String>,
    /// Limits of one call.
    pub limits: LimitOverrides,
    /// Options of the sandbox.
    pub engine: EngineOptions,
    /// Masters that are asked for plugins that were pushed.
    pub masters: CalledMasters,
    /// True if the output is JSON, not a table.
    pub is_json: bool,
}

/// Source of one of the plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Side {
    /// Folder of source, or a .wasm file.
    Path(PathBuf),
    /// Plugin that was pushed, by name.
    Pushed(PluginRef),
    /// Plugin that was pushed, by digest.
    Digest(Digest),
}

impl Side {
    /// Parses a source. A path of a file or folder is that; anything else is a plugin that was pushed. A text with a
    /// slash that is no name, such as `../books`, is a path, whether or not something is there.
    fn of(text: &str) -> anyhow::Result<Self> {
        let path = Path::new(text);
        if path.exists() || text.ends_with(".wasm") {
            return Ok(Self::Path(path.to_owned()));
        }
        if let Ok(digest) = text.parse::<Digest>() {
            return Ok(Self::Digest(digest));
        }
        match text.parse::<PluginRef>() {
            Ok(plugin) => Ok(Self::Pushed(plugin)),
            Err(_no_name) if text.contains('/') => Ok(Self::Path(path.to_owned())),
            Err(error) => Err(error.into()),
        }
    }

    fn pages(&self) -> Option<PathBuf> {
        match self {
            Self::Path(path) => Some(pages_of(path)),
            Self::Pushed(_) | Self::Digest(_) => None,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Pushed(plugin) => plugin.fmt(f),
            Self::Digest(digest) => digest.fmt(f),
        }
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler plugin diff books@1.2.0 plugins/books\n  crawler plugin diff old.wasm new.wasm --pages plugins/books/pages --repeat 50\n  crawler plugin diff books@1.2.0 books@1.3.0 -o json\n\nIt ends with 0 where they declare the same and the same comes of all saved calls, whatever these cost, and with 1\nwhere something differs or they cannot be compared."
)]
pub(in crate::cli) struct DiffArgs {
    /// A plugin: a folder of source, a .wasm file, or one that was pushed, by NAME[@VERSION] or digest
    #[arg(value_name = "A")]
    before: String,
    /// The plugin to compare it with
    #[arg(value_name = "B")]
    after: String,
    /// Where saved calls lie [default: pages in the folder of B or A, or here, if there are any]
    #[arg(long, value_name = "DIR")]
    pages: Option<PathBuf>,
    /// Only the call of this name; may be given several times
    #[arg(long = "call", value_name = "NAME")]
    calls: Vec<CallName>,
    /// How often each call is made; the time is the median
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: u32,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

impl DiffArgs {
    pub(super) fn into_options(
        self,
        environment: &Environment,
        masters: CalledMasters,
    ) -> anyhow::Result<DiffOptions> {
        let (before, after) = (Side::of(&self.before)?, Side::of(&self.after)?);
        let here = Some(PathBuf::from(PAGES));
        let likely = [after.pages(), before.pages(), here];
        Ok(DiffOptions {
            before,
            after,
            pages: self.pages,
            likely_pages: likely.into_iter().flatten().collect(),
            calls: self.calls,
            n_times: self.repeat,
            params: self.rules.params(),
            limits: self.rules.limits(),
            engine: self.engine.into_options(environment, "run", NO_PORT, None),
            masters,
            is_json: self.output.is_json(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_is_a_path_or_what_was_pushed() {
        let path = |text: &str| Side::Path(text.into());
        assert_eq!(Side::of("src").unwrap(), path("src"));
        assert_eq!(Side::of("gone.wasm").unwrap(), path("gone.wasm"));
        for gone in ["../gone", "./gone", "/gone", "gone/"] {
            assert_eq!(Side::of(gone).unwrap(), path(gone));
        }
        for name in ["team/books@1.2.0", "team/books"] {
            let pushed = Side::Pushed(name.parse().unwrap());
            assert_eq!(Side::of(name).unwrap(), pushed);
        }
        let pushed = Side::of("books@1.2.0").unwrap();
        assert_eq!(pushed, Side::Pushed("books@1.2.0".parse().unwrap()));
        let digest = Digest::of(b"x");
        assert_eq!(Side::of(&digest.to_string()).unwrap(), Side::Digest(digest));
        assert!(Side::of("a b").is_err());
    }
}
