//! Class of an error, and a hint: what a caller can do about it.

use super::ControlError;
use crawler_data::DataError;
use crawler_frontier::FrontierError;
use crawler_model::suggest;
use crawler_plugin::PluginError;
use crawler_sink::SinkError;
use crawler_store::StoreError;

/// Class of an error, by what a caller can do; the API maps each to one gRPC and one HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of the gRPC status codes")]
pub enum Code {
    InvalidArgument,
    NotFound,
    AlreadyExists,
    FailedPrecondition,
    ResourceExhausted,
    /// The caller has not shown who it is.
    Unauthenticated,
    /// The caller may not do this.
    PermissionDenied,
    Aborted,
    Unavailable,
    Internal,
}

impl ControlError {
    /// Returns the class of the error.
    pub fn code(&self) -> Code {
        match self {
            ControlError::Invalid { .. }
            | ControlError::NoKind { .. }
            | ControlError::Params { .. }
            | ControlError::Plugin(PluginError::Refused { .. }) => Code::InvalidArgument,
            ControlError::NoResource { .. }
            | ControlError::NoRun { .. }
            | ControlError::RunForgotten { .. }
            | ControlError::NoSchedule { .. }
            | ControlError::NoWorker { .. }
            | ControlError::NoNode { .. }
            | ControlError::DeletedSince { .. }
            | ControlError::NoPlugin { .. }
            | ControlError::Data(DataError::NoFile { .. }) => Code::NotFound,
            ControlError::ResourceExists { .. } | ControlError::OtherBytes { .. } => {
                Code::AlreadyExists
            }
            ControlError::NoPluginFor { .. }
            | ControlError::PluginInUse { .. }
            | ControlError::ItemsDiffer { .. }
            | ControlError::NoFrontier { .. }
            | ControlError::NotCompared { .. }
            | ControlError::NoDeadLetters { .. }
            | ControlError::NothingHeld { .. }
            | ControlError::HeldDecided { .. }
            | ControlError::DecisionsWait { .. }
            | ControlError::ShardBusy { .. }
            | ControlError::ShardHolds { .. }
            | ControlError::UnknownSchedule { .. }
            | ControlError::NeedsRestart { .. }
            | ControlError::Items(SinkError::Permanent { .. }) => Code::FailedPrecondition,
            ControlError::OtherResource { .. } | ControlError::OtherGeneration { .. } => {
                Code::Aborted
            }
            ControlError::PluginTooLarge { .. } => Code::ResourceExhausted,
            ControlError::Contended { .. }
            | ControlError::NotLeading { .. }
            | ControlError::NotFollowing
            | ControlError::PluginGone { .. }
            | ControlError::DataSlow { .. }
            | ControlError::Worker(_) => Code::Unavailable,
            ControlError::Frontier(e) => match e {
                FrontierError::Unavailable { .. }
                | FrontierError::Fenced { .. }
                | FrontierError::Closed { .. }
                | FrontierError::LinkGap { .. }
                | FrontierError::Unseeded { .. }
                | FrontierError::NoSink { .. }
                | FrontierError::NotInFlight { .. } => Code::Unavailable,
                FrontierError::Missing { .. }
                | FrontierError::Damaged { .. }
                | FrontierError::Format { .. }
                | FrontierError::Foreign { .. } => Code::FailedPrecondition,
            },
            ControlError::Store(e) if e.is_transient() => Code::Unavailable,
            ControlError::Store(StoreError::TooLarge { .. }) => Code::InvalidArgument,
            ControlError::Plugin(PluginError::Host { .. })
            | ControlError::Store(_)
            | ControlError::Data(_)
            | ControlError::Items(_) => Code::Internal,
        }
    }

    /// Returns advice in one sentence; empty if the message says it all.
    pub fn hint(&self) -> String {
        match self {
            ControlError::NoResource { .. } => {
                "`crawler resource list` shows those there are".into()
            }
            ControlError::NoSchedule { name } => {
                format!("`crawler resource schedule {name} --every 1d` sets one")
            }
            ControlError::UnknownSchedule { name, .. } => format!(
                "upgrade all masters, replace it, or take it away with `crawler resource schedule {name} --off`"
            ),
            ControlError::DeletedSince { .. } => "call again under another request id".into(),
            ControlError::ResourceExists { name } => {
                format!("change it with `crawler resource update {name}`, or delete it first")
            }
            ControlError::NoPluginFor { plugin, resource } => format!(
                "push it first: `crawler plugin push PATH --as {plugin}{}`, or name another with --plugin when adding {resource}",
                if plugin.version.is_some() {
                    ""
                } else {
                    "@VERSION"
                },
            ),
            ControlError::NoPlugin { .. } => "`crawler plugin list` shows those there are".into(),
            ControlError::OtherBytes { .. } => {
                "raise the version of the plugin, in its Cargo.toml or in the rules of a script, or push with --as NAME@VERSION"
                    .into()
            }
            ControlError::ItemsDiffer { .. } => {
                "raise the first number of its version that is not 0, or say that it is meant with --allow-breaking"
                    .into()
            }
            ControlError::PluginInUse { resource, .. } => {
                format!("delete the resource first: `crawler resource delete {resource}`")
            }
            ControlError::NeedsRestart { name, argument, .. } => {
                format!("`crawler resource restart {name} {argument}` begins one")
            }
            ControlError::NoKind { kind, kinds, .. } => {
                let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
                suggest::hint(kind, &kinds)
            }
            ControlError::OtherResource { name, .. }
            | ControlError::OtherGeneration { name, .. } => {
                format!("look at it again: `crawler resource get {name}`")
            }
            ControlError::NoWorker { .. } | ControlError::NoNode { .. } => {
                "`crawler node list` shows those there are".into()
            }
            ControlError::PluginTooLarge { .. } => {
                "build it in release mode, or raise --plugin-size".into()
            }
            ControlError::Contended { .. }
            | ControlError::NotLeading { .. }
            | ControlError::NotFollowing
            | ControlError::DataSlow { .. }
            | ControlError::Worker(_) => "try again".into(),
            ControlError::PluginGone { .. } => {
                "push it again, and see that --data is the same on all masters".into()
            }
            ControlError::NoFrontier { name } => {
                format!("`crawler resource get {name}` shows what it waits for")
            }
            ControlError::RunForgotten { name, .. } => {
                format!("`crawler resource runs {name}` lists those that are")
            }
            ControlError::NotCompared {
                name,
                run,
                is_awaited: true,
            } => {
                let why = "the run has not begun yet, or began before setting changes was set";
                match run.0.saturating_sub(1) {
                    0 => format!("{why}; `crawler resource get {name}` shows what it waits for"),
                    before => format!(
                        "{why}; `crawler items {name} --changes --run {before}` prints those of the run before"
                    ),
                }
            }
            ControlError::NotCompared { name, .. } => format!(
                "`crawler resource update {name} --changes 30` keeps those of 30 runs, from the next run on"
            ),
            ControlError::HeldDecided { name } | ControlError::DecisionsWait { name, .. } => format!(
                "a worker carries them out once it has the shard: `crawler resource resume {name}` if the resource is paused"
            ),
            ControlError::NothingHeld { name, .. } => {
                format!("`crawler quarantine list {name}` shows what is held")
            }
            ControlError::NoDeadLetters { name, present, .. } if present.is_empty() => {
                format!("`crawler frontier stats {name}` shows what became of its URLs")
            }
            ControlError::NoDeadLetters { present, .. } => {
                let reasons = present.iter().map(|(reason, n)| format!("{reason} ({n})"));
                format!("there are {}", reasons.collect::<Vec<_>>().join(", "))
            }
            ControlError::ShardBusy { name, shards, .. } => format!(
                "`crawler resource wait {name}` waits until then; or begin it with --shards {shards}"
            ),
            ControlError::ShardHolds { name, shards, .. } => format!(
                "`crawler quarantine list {name}` shows them; release or drop them first, or begin the run with --shards {shards}"
            ),
            ControlError::Frontier(_) if self.code() == Code::Unavailable => {
                "try again; the master's log and `crawler resource get` tell more".into()
            }
            ControlError::Params { error, .. } => error.hint(),
            ControlError::Items(SinkError::Permanent { .. }) => {
                "use the version of the crawler that wrote it, or restore the frontier from a copy"
                    .into()
            }
            // The message contains the advice.
            ControlError::Frontier(_)
            | ControlError::NoRun { .. }
            | ControlError::Invalid { .. }
            | ControlError::Plugin(_)
            | ControlError::Store(_)
            | ControlError::Data(_)
            | ControlError::Items(_) => String::new(),
        }
    }
}
