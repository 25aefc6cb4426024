//! Errors of the calls.

use std::collections::BTreeMap;

use super::WorkerCallError;
use crawler_frontier::FrontierError;
use crawler_model::id::{
    Digest, Generation, PluginName, PluginRef, PluginVersion, ResourceId, ResourceName, Run, Shard,
};
use crawler_model::plugin::ParamError;
use crawler_plugin::PluginError;
use crawler_sink::SinkError;
use crawler_store::StoreError;
use crawler_store::election::ElectionStatus;

mod advice;

pub use advice::Code;

/// Reason why a call was not carried out. Nothing is half-written.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// A field has a value that makes no sense.
    #[error("{why}")]
    Invalid {
        /// Name of the field in the API.
        field: &'static str,
        /// Fault of the value.
        why: String,
    },
    /// The params of a resource do not fit what its plugin declares.
    #[error("plugin {plugin} {error}")]
    Params {
        /// Name and version of the plugin.
        plugin: Box<PluginRef>,
        /// Fault of the params.
        error: Box<ParamError>,
    },
    /// No resource has this name.
    #[error("there is no resource {name}")]
    NoResource {
        /// Name of the resource.
        name: String,
    },
    /// The resource has had no such run.
    #[error("resource {name} has no run {run}: the newest is {newest}")]
    NoRun {
        /// Name or id of the resource, as it was asked for.
        name: String,
        /// Number of the run.
        run: Run,
        /// Number of its newest run.
        newest: Run,
    },
    /// The run is over, and its numbers are not remembered.
    #[error("run {run} of resource {name} is not remembered")]
    RunForgotten {
        /// Name of the resource.
        name: ResourceName,
        /// Number of the run.
        run: Run,
    },
    /// The items of the run were not compared with earlier ones, or the run is not among those whose changes are kept.
    #[error("there are no changes of run {run} of resource {name}")]
    NotCompared {
        /// Name of the resource.
        name: ResourceName,
        /// Number of the run.
        run: Run,
        /// True for the present run of a resource with setting `changes`, which may not have begun.
        is_awaited: bool,
    },
    /// No run of the resource begins by itself.
    #[error("resource {name} has no schedule")]
    NoSchedule {
        /// Name of the resource.
        name: ResourceName,
    },
    /// The schedule of the resource is there, but does not decode.
    #[error("the schedule of resource {name} was written by a later version, or is damaged")]
    UnknownSchedule {
        /// Name of the resource.
        name: ResourceName,
        /// Message of the decoder.
        #[source]
        source: StoreError,
    },
    /// No version of the plugin emits items of this kind, and the present run has none.
    #[error("plugin {plugin} has no items of kind {kind:?}")]
    NoKind {
        /// Kind, as it was asked for.
        kind: String,
        /// Name of the plugin.
        plugin: PluginName,
        /// Kinds that there are.
        kinds: Vec<String>,
    },
    /// A resource of this name exists already.
    #[error("resource {name} exists already")]
    ResourceExists {
        /// Name of the resource.
        name: ResourceName,
    },
    /// This same call added or changed the resource, which has been deleted since.
    #[error("resource {name} was added or changed by this call, and deleted since")]
    DeletedSince {
        /// Name of the resource.
        name: ResourceName,
    },
    /// The plugin that a resource should run does not exist.
    #[error("there is no plugin {plugin}")]
    NoPluginFor {
        /// The plugin, as requested.
        plugin: PluginRef,
        /// Name of the resource that should run it.
        resource: ResourceName,
    },
    /// No plugin has this name or version.
    #[error("there is no plugin {plugin}")]
    NoPlugin {
        /// The plugin, as requested.
        plugin: String,
    },
    /// The plugin version exists with other bytes; a version never changes its bytes.
    #[error("plugin {plugin} exists with other bytes: digest {present}, pushed {pushed}")]
    OtherBytes {
        /// Name and version.
        plugin: Box<PluginRef>,
        /// Digest of the existing bytes.
        present: Digest,
        /// Digest of the pushed bytes.
        pushed: Digest,
    },
    /// The items of this version could break readers of the items of the version before.
    #[error(
        "the items of {plugin} differ from those of version {before}: {}",
        told(changes)
    )]
    ItemsDiffer {
        /// Name and version.
        plugin: Box<PluginRef>,
        /// Highest version below the pushed one.
        before: PluginVersion,
        /// Differences, one line each.
        changes: Vec<String>,
    },
    /// A resource runs the plugin.
    #[error("plugin {plugin} is used by resource {resource}")]
    PluginInUse {
        /// Name and version.
        plugin: PluginRef,
        /// One of the resources that run it.
        resource: ResourceName,
    },
    /// The change needs a new run.
    #[error("{field} of resource {name} can only change with a new run")]
    NeedsRestart {
        /// Name of the resource.
        name: ResourceName,
        /// Name of the field in the API.
        field: &'static str,
        /// Argument of the command that makes the change with a new run.
        argument: String,
    },
    /// The change was meant for an earlier resource of this name.
    #[error("resource {name} has id {present}, not {wanted}: it was deleted, and added again")]
    OtherResource {
        /// Name of the resource.
        name: ResourceName,
        /// Present id.
        present: ResourceId,
        /// Id that the change was meant for.
        wanted: ResourceId,
    },
    /// The change was meant for another generation of the resource: somebody has changed it meanwhile.
    #[error("resource {name} has generation {present}, not {wanted}: it was changed meanwhile")]
    OtherGeneration {
        /// Name of the resource.
        name: ResourceName,
        /// Present generation.
        present: Generation,
        /// Generation that the change was meant for.
        wanted: Generation,
    },
    /// No worker has this id.
    #[error("there is no worker {id}")]
    NoWorker {
        /// The id, as requested.
        id: String,
    },
    /// No node has this id, and none had it lately.
    #[error("there is no node {id}, and there was none in the last day")]
    NoNode {
        /// The id, as requested.
        id: String,
    },
    /// The plugin has more bytes than allowed.
    #[error("the plugin has more than {max} bytes")]
    PluginTooLarge {
        /// Value of the setting `plugin-size`.
        max: u64,
    },
    /// The bytes of a pushed plugin disappeared before it was recorded.
    #[error("the bytes of plugin {digest} are not in the data root any more")]
    PluginGone {
        /// Digest of the bytes.
        digest: Digest,
    },
    /// The bytes are not a plugin, or this host cannot check them.
    #[error("cannot take the plugin")]
    Plugin(#[from] PluginError),
    /// Other writes changed the same record at the same time, again and again.
    #[error("{what} was changed by others at the same time")]
    Contended {
        /// Description of the record.
        what: String,
    },
    /// This master does not lead, and only the leader changes anything.
    #[error("this master does not lead, and {leader}")]
    NotLeading {
        /// Description of the leader, in words.
        leader: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This master has lost touch with the store.
    #[error("this master cannot follow the store at the moment")]
    NotFollowing,
    /// The data root failed.
    #[error(transparent)]
    Data(#[from] crawler_data::DataError),
    /// The data root did not answer in time.
    #[error("the data root gave no answer within {seconds} s")]
    DataSlow {
        /// The deadline in seconds.
        seconds: u64,
    },
    /// The items could not be read.
    #[error(transparent)]
    Items(#[from] SinkError),
    /// No frontier has been opened yet.
    #[error("resource {name} was never crawled: it has no frontier yet")]
    NoFrontier {
        /// Name of the resource.
        name: ResourceName,
    },
    /// The run has no dead letters to try again.
    #[error("run {run} of resource {name} has no dead letters{}", given_up(.reason.as_deref()))]
    NoDeadLetters {
        /// Name of the resource.
        name: ResourceName,
        /// The present run.
        run: Run,
        /// Reason of the requested dead letters, if one was given.
        reason: Option<String>,
        /// Number of dead letters by reason.
        present: BTreeMap<String, u64>,
    },
    /// Nothing is held, or no such hold is there.
    #[error("resource {name} {}", held(.hold.as_deref()))]
    NothingHeld {
        /// Name of the resource.
        name: ResourceName,
        /// The requested hold, if one was given.
        hold: Option<String>,
    },
    /// All items that a decision is about are those of an earlier one, which waits for a worker.
    #[error(
        "what is held of resource {name} was decided about before, and the first decision counts; a worker has yet to carry it out"
    )]
    HeldDecided {
        /// Name of the resource.
        name: ResourceName,
    },
    /// No worker has carried out the decisions about held items that were made before.
    #[error(
        "{n_decisions} decisions about items of resource {name} wait for a worker of shard {shard}, and no more may"
    )]
    DecisionsWait {
        /// Name of the resource.
        name: ResourceName,
        /// The shard whose worker is to carry them out.
        shard: Shard,
        /// Number of the decisions.
        n_decisions: usize,
    },
    /// A run with fewer shards was requested, but a shard that would be dropped may have something that is nowhere
    /// else.
    #[error(
        "shard {shard} of resource {name} is at work, or has items that its sink does not have yet; a run with fewer shards begins when this one is over"
    )]
    ShardBusy {
        /// Name of the resource.
        name: ResourceName,
        /// The shard that would be dropped.
        shard: Shard,
        /// Present number of shards.
        shards: u32,
    },
    /// A run with fewer shards was requested, but a shard that would be dropped holds items, which nobody would see any more.
    #[error(
        "shard {shard} of resource {name} holds items, which would stay there in a run with fewer shards"
    )]
    ShardHolds {
        /// Name of the resource.
        name: ResourceName,
        /// The shard that would be dropped.
        shard: Shard,
        /// Present number of shards.
        shards: u32,
    },
    /// The frontier cannot be read; the message names the condition that it is in.
    #[error("{condition}: {_0}", condition = .0.condition())]
    Frontier(FrontierError),
    /// The worker that knows the answer cannot be reached.
    #[error(transparent)]
    Worker(#[from] WorkerCallError),
}

// This is not derived: the message contains the cause, so the cause is not a source as well.
impl From<FrontierError> for ControlError {
    fn from(error: FrontierError) -> Self {
        ControlError::Frontier(error)
    }
}

/// Joins as many changes as fit in a message.
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
    /// Returns the error of a call that only the leader carries out, given the state of the election.
    pub fn not_leading(election_status: &ElectionStatus) -> Self {
        let leader = match (&election_status.leader, &election_status.fault) {
            // The fault is about this master's own candidacy, which is over.
            (Some(leader), _) if election_status.own.is_none() => {
                format!("{} at {} does", leader.id, leader.address)
            }
            (_, Some(fault)) => format!("who does is not known: {fault}"),
            (_, None) => "nobody does at present".to_owned(),
        };
        ControlError::NotLeading { leader }
    }
}

fn held(hold: Option<&str>) -> String {
    hold.map_or_else(
        || "holds no items".to_owned(),
        |hold| format!("has no hold {hold}"),
    )
}

fn given_up(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(" given up for {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::ResourceId;
    use crawler_model::resource::ShardId;

    #[track_caller]
    fn check(error: FrontierError, code: Code, text: &str) {
        let error = ControlError::from(error);
        assert_eq!((error.code(), error.to_string().as_str()), (code, text));
        assert!(std::error::Error::source(&error).is_none(), "said twice");
    }

    #[test]
    fn a_mark_that_cannot_be_read_is_no_fault_of_the_master() {
        let message = "cannot read the mark of items/7/0/rows".to_owned();
        let source = None;
        let error = ControlError::from(SinkError::Permanent { message, source });
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert!(error.hint().contains("version"), "{}", error.hint());
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
