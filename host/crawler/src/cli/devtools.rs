//! The commands for authors of rules: `crawler plugin new|sdk|check|test|diff|fetch` and `crawler shell`. They
//! call no master, except for pushed plugins that `diff` compares.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};

use super::args::{OutputArgs, RuleArgs};
use super::called_masters::CalledMasters;
use super::engine::{AdmissionArgs, EngineArgs, EngineOptions};
use super::options::NO_PORT;
use crate::config::Environment;
use crawler_devtools::mutation::Copies;
use crawler_devtools::saved::CallName;
use crawler_devtools::template::Language;
use crawler_model::id::PluginName;
use crawler_model::plugin::LimitOverrides;
use crawler_process::confine::Confinement;

mod cached;
mod diff;
mod fetch;
mod lines;
mod mutations;
mod pages;
mod shell;
mod show;
mod written;

use diff::DiffArgs;
pub use diff::{ComparedCall, DiffOptions, Side, diff_report};
use fetch::FetchArgs;
pub use fetch::{FetchOptions, FetchSetup, check_scheme};
pub use lines::{Lines, Terminal};
use pages::pages_of;
pub(super) use shell::ShellArgs;
pub use shell::{ShellOptions, ShellOutput, ShellPage};
pub use show::{CallResult, check_report, fetch_report, test_report};
pub use written::{new_report, sdk_report};

/// Command for authors, with its options.
#[derive(Debug)]
pub enum DevtoolsOptions {
    /// Makes a new plugin.
    New(NewOptions),
    /// Renews the SDK in the folder of a plugin.
    Sdk(PathBuf),
    /// Checks a plugin as a master does.
    Check(CheckOptions),
    /// Makes saved calls again.
    Test(TestOptions),
    /// Compares two plugins.
    Diff(Box<DiffOptions>),
    /// Saves a page.
    Fetch(Box<FetchOptions>),
    /// Tries selectors on a page.
    Shell(Box<ShellOptions>),
}

/// Options of `crawler plugin new`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOptions {
    /// Name of the plugin.
    pub name: PluginName,
    /// Folder of the plugin.
    pub folder: PathBuf,
    /// Language of the rules.
    pub language: Language,
}

/// Options of `crawler plugin check`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOptions {
    /// Folder of source, or a .wasm file.
    pub plugin: PathBuf,
    /// Largest size of the plugin, in bytes.
    pub plugin_size: u64,
    /// Time that compiling the plugin may take.
    pub compile_time: Duration,
    /// Bytes of memory that compiling the plugin may take.
    pub compile_memory: u64,
    /// Confinement of the process that compiles the plugin.
    pub confinement: Confinement,
    /// True if the output is JSON, not a table.
    pub is_json: bool,
}

/// Options of `crawler plugin test`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestOptions {
    /// Folder of source, or a .wasm file.
    pub plugin: PathBuf,
    /// Folder of the saved calls.
    pub pages: PathBuf,
    /// Names of the calls to make; all if empty.
    pub calls: Vec<CallName>,
    /// True if the outcome of each call is kept, whatever was kept before, with `limits`.
    pub is_update: bool,
    /// True if calls of rules that are gone are removed first.
    pub is_pruning: bool,
    /// Number of times that each call is made.
    pub n_times: u32,
    /// Copies of each page with mistakes, on which its call is made too.
    pub mangled: Option<Copies>,
    /// True if the calls are made again after each change.
    pub is_watching: bool,
    /// Params that replace those that a call was saved with.
    pub params: BTreeMap<String, String>,
    /// Limits that replace those that a call was saved with.
    pub limits: LimitOverrides,
    /// Options of the sandbox.
    pub engine: EngineOptions,
    /// True if the output is JSON, not a table.
    pub is_json: bool,
    /// True if functions of libraries and interpreters are shown too.
    pub is_verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum DevtoolsCommand {
    /// Make a folder with a plugin that builds and passes its own test
    New(NewArgs),
    /// Replace the SDK in a plugin's folder by that of this program
    #[command(after_help = "Example:\n  crawler plugin sdk ../shop")]
    Sdk {
        /// Folder of the plugin
        #[arg(value_name = "DIR", default_value = ".")]
        folder: PathBuf,
    },
    /// Build a plugin if it is a folder, and look at it as a master does when it is pushed
    Check(CheckArgs),
    /// Build a plugin if it is a folder, make its saved calls again in the sandbox, and compare
    Test(TestArgs),
    /// Compare two plugins: what they declare, what comes of saved calls, and what these cost
    Diff(Box<DiffArgs>),
    /// Fetch one page as a crawl does, and save it as a call of a rule
    Fetch(Box<FetchArgs>),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler plugin new shop && cd shop && crawler plugin test\n  crawler plugin new shop --lang python"
)]
pub(super) struct NewArgs {
    /// The folder; its last part is the plugin's name
    #[arg(value_name = "NAME")]
    folder: PathBuf,
    /// What the rules are written in: rust, js or python
    #[arg(long, value_name = "LANGUAGE", default_value = "rust")]
    lang: Language,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  crawler plugin check plugins/books")]
pub(super) struct CheckArgs {
    /// A folder of source, or a .wasm file
    #[arg(value_name = "PATH_OR_WASM", default_value = ".")]
    plugin: PathBuf,
    #[command(flatten)]
    admission: AdmissionArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler plugin test\n  crawler plugin test plugins/books --call book --repeat 20\n  crawler plugin test --update\n  crawler plugin test --call index --update --limit fuel=2000000000\n  crawler plugin test --prune\n  crawler plugin test --watch\n  crawler plugin test --mangle=50 --call book\n\nWith --mangle, it fails where the sandbox ends a call, or where items change though only end tags that HTML\nlets an author leave out are gone. Other mistakes take parts of a page away: what changes is told."
)]
pub(super) struct TestArgs {
    /// A folder of source, or a .wasm file
    #[arg(value_name = "PATH_OR_WASM", default_value = ".")]
    plugin: PathBuf,
    /// Where the saved calls lie [default: pages in the plugin's folder]
    #[arg(long, value_name = "DIR")]
    pages: Option<PathBuf>,
    /// Only the call of this name; may be given several times
    #[arg(long = "call", value_name = "NAME")]
    calls: Vec<CallName>,
    /// Keep what comes of the calls, whatever was kept, and the limits that --limit gives them
    #[arg(long, conflicts_with = "params")]
    update: bool,
    /// Remove the saved calls of rules that the plugin no longer has, with their pages
    #[arg(long, conflicts_with = "watch")]
    prune: bool,
    /// How often each call is made: result and fuel have to be the same each time, as its random numbers are
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: u32,
    /// Also make each call on copies of its page that have mistakes, N for each kind of mistake by chance, and tell
    /// what becomes of its items [default of N: 10]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "10",
        conflicts_with = "update", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    mangle: Option<u32>,
    /// Seed of --mangle: the same number makes the same mistakes [default: another one each time]
    #[arg(long, value_name = "N", requires = "mangle")]
    seed: Option<u32>,
    /// Build and test again on each save, until Ctrl-C
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

impl DevtoolsCommand {
    /// Turns the arguments into options. `masters` are called for plugins that were pushed; `is_verbose` is true
    /// if `-v` was given.
    pub(super) fn into_options(
        self,
        environment: &Environment,
        masters: CalledMasters,
        is_verbose: bool,
    ) -> anyhow::Result<DevtoolsOptions> {
        Ok(match self {
            DevtoolsCommand::New(args) => DevtoolsOptions::New(args.into_options()?),
            DevtoolsCommand::Sdk { folder } => DevtoolsOptions::Sdk(folder),
            DevtoolsCommand::Check(args) => DevtoolsOptions::Check(CheckOptions {
                plugin: args.plugin,
                plugin_size: args.admission.plugin_size,
                compile_time: args.admission.compile_time,
                compile_memory: args.admission.compile_memory,
                confinement: args.admission.confinement(None),
                is_json: args.output.is_json(),
            }),
            DevtoolsCommand::Test(args) => DevtoolsOptions::Test(TestOptions {
                pages: args.pages.unwrap_or_else(|| pages_of(&args.plugin)),
                plugin: args.plugin,
                calls: args.calls,
                is_update: args.update,
                is_pruning: args.prune,
                n_times: args.repeat,
                mangled: args.mangle.map(|n_each| Copies {
                    n_each,
                    seed: args.seed.unwrap_or_else(rand::random),
                }),
                is_watching: args.watch,
                params: args.rules.params(),
                limits: args.rules.limits(),
                engine: args.engine.into_options(environment, "run", NO_PORT, None),
                is_json: args.output.is_json(),
                is_verbose,
            }),
            DevtoolsCommand::Diff(args) => {
                DevtoolsOptions::Diff(Box::new(args.into_options(environment, masters)?))
            }
            DevtoolsCommand::Fetch(args) => {
                DevtoolsOptions::Fetch(Box::new(args.into_options(environment)?))
            }
        })
    }
}

impl NewArgs {
    fn into_options(self) -> anyhow::Result<NewOptions> {
        let folder = folded(&std::path::absolute(&self.folder)?);
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        Ok(NewOptions {
            name: name.parse()?,
            folder,
            language: self.lang,
        })
    }
}

/// Removes `..` from a path. A folder that does not exist yet cannot be canonicalised.
fn folded(path: &Path) -> PathBuf {
    let mut folded = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                folded.pop();
            }
            part => folded.push(part),
        }
    }
    folded
}
