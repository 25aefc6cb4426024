//! Why a call was not carried out, and what can be done about it.

use std::collections::BTreeMap;

use super::WorkerCallError;
use crate::frontier::FrontierError;
use crate::model::id::{Digest, PluginRef, PluginVersion, ResourceName, Run, Shard};
use crate::plugin::PluginError;
use crate::sink::SinkError;
use crate::store::StoreError;
use crate::store::election::Standing;

/// What a caller can do about an error; the API maps each to one gRPC and one HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of the gRPC status codes")]
pub enum Code {
    InvalidArgument,
    NotFound,
    AlreadyExists,
    FailedPrecondition,
    ResourceExhausted,
    Unavailable,
    Internal,
}

/// Why a call was not carried out. Nothing is half-written.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// A field that cannot be meant.
    #[error("{why}")]
    Invalid {
        /// The field, as the API calls it.
        field: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// No resource of this name.
    #[error("there is no resource {name}")]
    NoResource {
        /// As asked for.
        name: String,
    },
    /// One of this name is there.
    #[error("resource {name} exists already")]
    ResourceExists {
        /// As asked for.
        name: ResourceName,
    },
    /// The very call added or changed it, and it was deleted since.
    #[error("resource {name} was added or changed by this call, and deleted since")]
    DeletedSince {
        /// As asked for.
        name: ResourceName,
    },
    /// The plugin that a resource should run is not there.
    #[error("there is no plugin {plugin}")]
    NoPluginFor {
        /// As asked for.
        plugin: PluginRef,
        /// The resource that wants it.
        resource: ResourceName,
    },
    /// No plugin of this name or version.
    #[error("there is no plugin {plugin}")]
    NoPlugin {
        /// As asked for.
        plugin: String,
    },
    /// A name and version never change their bytes.
    #[error("plugin {plugin} exists with other bytes: digest {present}, pushed {pushed}")]
    OtherBytes {
        /// Name and version.
        plugin: Box<PluginRef>,
        /// Of what is there.
        present: Digest,
        /// Of what was pushed.
        pushed: Digest,
    },
    /// Readers of the items of the version before could stumble over those of this one.
    #[error(
        "the items of {plugin} differ from those of version {before}: {}",
        told(changes)
    )]
    ItemsDiffer {
        /// Name and version.
        plugin: Box<PluginRef>,
        /// The highest version below it.
        before: PluginVersion,
        /// What is otherwise, a line for each.
        changes: Vec<String>,
    },
    /// A resource runs it.
    #[error("plugin {plugin} is used by resource {resource}")]
    PluginInUse {
        /// Name and version.
        plugin: PluginRef,
        /// One of those that use it.
        resource: ResourceName,
    },
    /// A change that a run cannot take.
    #[error("{field} of resource {name} cannot be changed while a run goes on")]
    NeedsRestart {
        /// The resource.
        name: ResourceName,
        /// The field, as the API calls it.
        field: &'static str,
        /// What the command that does it says of the field.
        argument: String,
    },
    /// No worker of this id.
    #[error("there is no worker {id}")]
    NoWorker {
        /// As asked for.
        id: String,
    },
    /// More bytes than a plugin may have.
    #[error("the plugin has more than {max} bytes")]
    PluginTooLarge {
        /// The limit `plugin-size`.
        max: u64,
    },
    /// The bytes of a pushed plugin went before they had a record.
    #[error("the bytes of plugin {digest} are not in the data root any more")]
    PluginGone {
        /// Of the bytes.
        digest: Digest,
    },
    /// The bytes are not a plugin, or this host cannot look at them.
    #[error("cannot take the plugin")]
    Plugin(#[from] PluginError),
    /// Written at the same time by somebody else, again and again.
    #[error("{what} was changed by others at the same time")]
    Contended {
        /// What was to be written.
        what: String,
    },
    /// This master does not lead, and only the leader changes anything.
    #[error("this master does not lead, and {leader}")]
    NotLeading {
        /// Who does, in words.
        leader: String,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The data root.
    #[error(transparent)]
    Data(#[from] crate::data::DataError),
    /// The data root takes too long.
    #[error("the data root gave no answer within {seconds} s")]
    DataSlow {
        /// The limit.
        seconds: u64,
    },
    /// The items.
    #[error(transparent)]
    Items(#[from] SinkError),
    /// Nobody has opened a frontier yet.
    #[error("resource {name} was never crawled: it has no frontier yet")]
    NoFrontier {
        /// The resource.
        name: ResourceName,
    },
    /// Nothing that could be tried again.
    #[error("run {run} of resource {name} has no dead letters{}", given_up(.reason.as_deref()))]
    NoDeadLetters {
        /// The resource.
        name: ResourceName,
        /// Its present run.
        run: Run,
        /// As asked for.
        reason: Option<String>,
        /// Those there are, by reason.
        present: BTreeMap<String, u64>,
    },
    /// A run with fewer shards, while one that would go may have something that is nowhere else.
    #[error(
        "shard {shard} of resource {name} is at work, or has items that its sink does not have yet; a run with fewer shards begins when this one is over"
    )]
    ShardBusy {
        /// The resource.
        name: ResourceName,
        /// The one that would go.
        shard: Shard,
        /// As many as there are.
        shards: u32,
    },
    /// A frontier that was to be read, with the name of the state it is in.
    #[error("{condition}: {_0}", condition = .0.condition())]
    Frontier(FrontierError),
    /// The worker that has the answer.
    #[error(transparent)]
    Worker(#[from] WorkerCallError),
}

// By hand: the message has the cause in it, so the cause is not a source as well.
impl From<FrontierError> for ControlError {
    fn from(error: FrontierError) -> Self {
        ControlError::Frontier(error)
    }
}

/// As many changes as a message takes.
fn told(changes: &[String]) -> String {
    const MOST: usize = 8;
    const LENGTH: usize = 150;
    let told = changes.iter().take(MOST);
    let told = told.map(|change| change.chars().take(LENGTH).collect());
    let told = told.collect::<Vec<String>>().join("; ");
    match changes.len().saturating_sub(MOST) {
        0 => told,
        n => format!("{told}; and {n} more"),
    }
}

impl ControlError {
    /// A call that only the leader carries out, by a master for which the election stands so.
    pub fn not_leading(standing: &Standing) -> Self {
        let leader = match (&standing.leader, &standing.fault) {
            // What it knew of itself is over.
            (Some(leader), _) if standing.own.is_none() => {
                format!("{} at {} does", leader.id, leader.address)
            }
            (_, Some(fault)) => format!("who does is not known: {fault}"),
            (_, None) => "nobody does at present".to_owned(),
        };
        ControlError::NotLeading { leader }
    }

    /// What a caller can do about it.
    pub fn code(&self) -> Code {
        match self {
            ControlError::Invalid { .. } | ControlError::Plugin(PluginError::Refused { .. }) => {
                Code::InvalidArgument
            }
            ControlError::NoResource { .. }
            | ControlError::NoWorker { .. }
            | ControlError::DeletedSince { .. }
            | ControlError::NoPlugin { .. } => Code::NotFound,
            ControlError::ResourceExists { .. } | ControlError::OtherBytes { .. } => {
                Code::AlreadyExists
            }
            ControlError::NoPluginFor { .. }
            | ControlError::PluginInUse { .. }
            | ControlError::ItemsDiffer { .. }
            | ControlError::NoFrontier { .. }
            | ControlError::NoDeadLetters { .. }
            | ControlError::ShardBusy { .. }
            | ControlError::NeedsRestart { .. } => Code::FailedPrecondition,
            ControlError::PluginTooLarge { .. } => Code::ResourceExhausted,
            ControlError::Contended { .. }
            | ControlError::NotLeading { .. }
            | ControlError::PluginGone { .. }
            | ControlError::DataSlow { .. }
            | ControlError::Worker(_) => Code::Unavailable,
            ControlError::Frontier(e) => match e {
                FrontierError::Unavailable { .. }
                | FrontierError::Fenced { .. }
                | FrontierError::Closed { .. }
                | FrontierError::LinkGap { .. }
                | FrontierError::Unseeded { .. }
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

    /// What to do, in a sentence; empty where the message says it all.
    pub fn hint(&self) -> String {
        match self {
            ControlError::NoResource { .. } => {
                "`crawler resource list` shows those there are".into()
            }
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
                "raise the version in the plugin's Cargo.toml, or push with --as NAME@VERSION"
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
                format!("`crawler resource restart {name} {argument}` begins a new run with it")
            }
            ControlError::NoWorker { .. } => "`crawler node list` shows those there are".into(),
            ControlError::PluginTooLarge { .. } => {
                "build it in release mode, or raise --plugin-size".into()
            }
            ControlError::Contended { .. }
            | ControlError::NotLeading { .. }
            | ControlError::DataSlow { .. }
            | ControlError::Worker(_) => "try again".into(),
            ControlError::PluginGone { .. } => {
                "push it again, and see that --data is the same on all masters".into()
            }
            ControlError::NoFrontier { name } => {
                format!("`crawler resource get {name}` shows what it waits for")
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
            ControlError::Frontier(_) if self.code() == Code::Unavailable => {
                "try again; the master's log and `crawler resource get` tell more".into()
            }
            // What is wrong with a frontier says what can be done about it.
            ControlError::Frontier(_)
            | ControlError::Invalid { .. }
            | ControlError::Plugin(_)
            | ControlError::Store(_)
            | ControlError::Data(_)
            | ControlError::Items(_) => String::new(),
        }
    }
}

fn given_up(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(" given up for {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::ResourceId;
    use crate::model::resource::ShardId;

    #[track_caller]
    fn check(error: FrontierError, code: Code, text: &str) {
        let error = ControlError::from(error);
        assert_eq!((error.code(), error.to_string().as_str()), (code, text));
        assert!(std::error::Error::source(&error).is_none(), "said twice");
    }

    #[test]
    fn a_frontier_that_cannot_be_read_is_named_by_its_condition_and_cause() {
        let shard = ShardId::only(ResourceId(7));
        let why = "no space left".to_owned();
        check(
            FrontierError::Unavailable {
                doing: "read",
                shard,
                why,
            },
            Code::Unavailable,
            "StorageUnavailable: cannot read the frontier 7/0: no space left",
        );
        check(
            FrontierError::Damaged {
                shard,
                why: "a batch is missing".to_owned(),
            },
            Code::FailedPrecondition,
            "FrontierDamaged: the frontier 7/0 is damaged: a batch is missing; \
             restore it from a copy, or delete the resource and add it again",
        );
    }
}
