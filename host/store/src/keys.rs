//! Keys of the store; no other module spells them. Their layout is documented in `lib.rs`.
//!
//! The name of a resource ends its key and is spelled as it is, so keys have the order of names. Where more follows a
//! name, its slashes are escaped: the prefix of plugin `team` is not one of plugin `team/books`.

use super::LeaseId;
use crawler_model::access::{Subject as AccessSubject, TokenId};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::{
    NodeId, PluginName, PluginVersion, RequestId, ResourceId, ResourceName, Shard, WebhookName,
};
use crawler_model::node::Role;
use crawler_model::resource::ShardId;

/// Subject of a key, among those that masters base decisions on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The registration of a worker.
    Worker(NodeId),
    /// The order that a worker drain.
    Draining(NodeId),
    /// A plugin version.
    Plugin,
    /// A resource.
    Resource(ResourceName),
    /// A shard.
    Shard(ShardId),
    /// The assignment of a shard to a worker.
    Assignment(NodeId, ShardId),
    /// A resource that is being removed.
    Deleting(ResourceId),
}

/// Layout of the keys, under a prefix that lets several clusters share a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    prefix: String,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            prefix: "/crawler".to_owned(),
        }
    }
}

impl Keys {
    /// Prefix of all keys.
    pub fn all(&self) -> String {
        format!("{}/", self.prefix)
    }

    /// Key of the cluster's identity.
    pub fn cluster(&self) -> String {
        format!("{}/cluster", self.prefix)
    }

    /// Key of the id of the store.
    pub fn store_id(&self) -> String {
        format!("{}/store-id", self.prefix)
    }

    /// Prefix of all masters that lead or are ready to lead.
    pub fn election(&self) -> String {
        format!("{}/election/", self.prefix)
    }

    /// Key of one contender, for as long as its lease lives.
    pub fn contender(&self, lease: LeaseId) -> String {
        format!("{}/election/{:x}", self.prefix, lease.0)
    }

    /// Prefix of all nodes.
    pub fn all_nodes(&self) -> String {
        format!("{}/nodes/", self.prefix)
    }

    /// Prefix of all nodes of a role.
    pub fn nodes(&self, role: Role) -> String {
        format!("{}/nodes/{role}/", self.prefix)
    }

    /// Key of one node's registration.
    pub fn node(&self, role: Role, id: &NodeId) -> String {
        format!("{}/nodes/{role}/{id}", self.prefix)
    }

    /// Prefix of all ids of a role that processes are about to register under.
    pub fn reserved_all(&self, role: Role) -> String {
        format!("{}/reserved/{role}/", self.prefix)
    }

    /// Key of one such id, for as long as its lease lives.
    pub fn reserved(&self, role: Role, id: &NodeId) -> String {
        format!("{}{id}", self.reserved_all(role))
    }

    /// Prefix of all workers that are told to drain.
    pub fn draining_all(&self) -> String {
        format!("{}/draining/", self.prefix)
    }

    /// Key of one worker that is told to drain.
    pub fn draining(&self, worker: &NodeId) -> String {
        format!("{}/draining/{worker}", self.prefix)
    }

    /// Prefix of all plugin versions.
    pub fn plugins(&self) -> String {
        format!("{}/plugins/", self.prefix)
    }

    /// Prefix of all versions of one plugin.
    pub fn plugin_versions(&self, name: &PluginName) -> String {
        format!("{}{}/", self.plugins(), escaped(name.as_str()))
    }

    /// Key of one plugin version.
    pub fn plugin(&self, name: &PluginName, version: &PluginVersion) -> String {
        format!("{}{version}", self.plugin_versions(name))
    }

    /// Prefix of all resources.
    pub fn resources(&self) -> String {
        format!("{}/resources/", self.prefix)
    }

    /// Key of one resource.
    pub fn resource(&self, name: &ResourceName) -> String {
        format!("{}/resources/{name}", self.prefix)
    }

    /// Prefix of the schedules of all resources.
    pub fn schedules(&self) -> String {
        format!("{}/schedules/", self.prefix)
    }

    /// Key of the schedule of one resource.
    pub fn schedule(&self, name: &ResourceName) -> String {
        format!("{}{name}", self.schedules())
    }

    /// Returns the resource that the key of a schedule names.
    pub fn parse_schedule(&self, key: &str) -> Option<ResourceName> {
        key.strip_prefix(&self.schedules())?.parse().ok()
    }

    /// Key of the runs of one resource that are over.
    pub fn runs(&self, id: ResourceId) -> String {
        format!("{}/runs/{id}", self.prefix)
    }

    /// Prefix of the events of all resources and nodes.
    pub fn events(&self) -> String {
        format!("{}/events/", self.prefix)
    }

    /// Prefix of the events of one resource.
    pub fn events_of(&self, id: ResourceId) -> String {
        format!("{}{id}/", self.events())
    }

    /// Key of the events of one write. Keys of one resource are in the order of their times, for readers of the store;
    /// `number` tells apart those of one millisecond.
    pub fn event(&self, id: ResourceId, at: UnixMillis, number: u64) -> String {
        format!("{}{at:013}-{number:016x}", self.events_of(id))
    }

    /// Returns the resource that the key of an event names. `None` for an event of a node.
    pub fn parse_event(&self, key: &str) -> Option<ResourceId> {
        let (id, _rest) = key.strip_prefix(&self.events())?.split_once('/')?;
        Some(ResourceId(id.parse().ok()?))
    }

    /// Prefix of the events of all nodes. No resource has an id like that, so earlier versions pass them over.
    pub fn node_events(&self) -> String {
        format!("{}node/", self.events())
    }

    /// Prefix of the events of one node.
    pub fn node_events_of(&self, node: &NodeId) -> String {
        format!("{}{node}/", self.node_events())
    }

    /// Key of the events of one write that are about a node.
    pub fn node_event(&self, node: &NodeId, at: UnixMillis, number: u64) -> String {
        format!("{}{at:013}-{number:016x}", self.node_events_of(node))
    }

    /// Returns the node that the key of an event names. `None` for an event of a resource.
    pub fn parse_node_event(&self, key: &str) -> Option<NodeId> {
        let (node, _rest) = key.strip_prefix(&self.node_events())?.split_once('/')?;
        node.parse().ok()
    }

    /// Prefix of the states of nodes that their events tell.
    pub fn told_nodes(&self) -> String {
        format!("{}/told/", self.prefix)
    }

    /// Key of the state of one node that its events tell.
    pub fn told_node(&self, node: &NodeId) -> String {
        format!("{}{node}", self.told_nodes())
    }

    /// Prefix of all shards of all resources.
    pub fn shards(&self) -> String {
        format!("{}/shards/", self.prefix)
    }

    /// Prefix of all shards of one resource.
    pub fn shards_of(&self, id: ResourceId) -> String {
        format!("{}/shards/{id}/", self.prefix)
    }

    /// Key of one shard.
    pub fn shard(&self, id: ShardId) -> String {
        format!("{}/shards/{id}", self.prefix)
    }

    /// Returns the shard that a key names.
    pub fn parse_shard(&self, key: &str) -> Option<ShardId> {
        parse_shard_id(key.strip_prefix(&self.shards())?)
    }

    /// Prefix of all assignments.
    pub fn assignments(&self) -> String {
        format!("{}/assignments/", self.prefix)
    }

    /// Prefix of the assignments of one worker.
    pub fn assignments_of(&self, worker: &NodeId) -> String {
        format!("{}/assignments/{worker}/", self.prefix)
    }

    /// Key of one worker's assignment of one shard.
    pub fn assignment(&self, worker: &NodeId, id: ShardId) -> String {
        format!("{}/assignments/{worker}/{id}", self.prefix)
    }

    /// Returns the worker and the shard that an assignment key names.
    pub fn parse_assignment(&self, key: &str) -> Option<(NodeId, ShardId)> {
        let (worker, shard) = key.strip_prefix(&self.assignments())?.split_once('/')?;
        Some((worker.parse().ok()?, parse_shard_id(shard)?))
    }

    /// Key of the totals of one worker.
    pub fn status(&self, worker: &NodeId) -> String {
        format!("{}{worker}", self.statuses())
    }

    /// Prefix of the totals of all workers.
    pub fn statuses(&self) -> String {
        format!("{}/status/", self.prefix)
    }

    /// Prefix of all resources whose name is already free and whose data is being removed.
    pub fn deleting_all(&self) -> String {
        format!("{}/deleting/", self.prefix)
    }

    /// Key of one such resource.
    pub fn deleting(&self, id: ResourceId) -> String {
        format!("{}/deleting/{id}", self.prefix)
    }

    /// Key of one call about an ended life of this name, for as long as its deletion is remembered.
    pub fn ended(&self, name: &ResourceName, request: &RequestId) -> String {
        let name = escaped(name.as_str());
        format!("{}/ended/{name}/{}", self.prefix, request.as_str())
    }

    /// Prefix of the positions of all webhooks.
    pub fn webhook_positions(&self) -> String {
        format!("{}/webhooks/", self.prefix)
    }

    /// Key of the position up to which a webhook has told events.
    pub fn webhook_position(&self, name: &WebhookName) -> String {
        format!("{}{name}", self.webhook_positions())
    }

    /// Prefix of all that decides who may do what.
    pub fn access(&self) -> String {
        format!("{}/access/", self.prefix)
    }

    /// Key of the secret that nodes show to masters.
    pub fn node_secret(&self) -> String {
        format!("{}node-secret", self.access())
    }

    /// Key of the id of the first access token, which stays when the token is revoked.
    pub fn first_token(&self) -> String {
        format!("{}first-token", self.access())
    }

    /// Prefix of all access tokens.
    pub fn access_tokens(&self) -> String {
        format!("{}tokens/", self.access())
    }

    /// Key of one access token.
    pub fn access_token(&self, id: &TokenId) -> String {
        format!("{}{id}", self.access_tokens())
    }

    /// Key of the CA that issues the certificates of nodes.
    pub fn cluster_ca(&self) -> String {
        format!("{}ca", self.access())
    }

    /// Prefix of all join tokens.
    pub fn join_tokens(&self) -> String {
        format!("{}join-tokens/", self.access())
    }

    /// Key of one join token.
    pub fn join_token(&self, id: &TokenId) -> String {
        format!("{}{id}", self.join_tokens())
    }

    /// Prefix of all times before which the tokens of a subject are void.
    pub fn void_before_all(&self) -> String {
        format!("{}void/", self.access())
    }

    /// Key of the time before which the tokens of this subject are void.
    pub fn void_before(&self, subject: &AccessSubject) -> String {
        format!("{}{subject}", self.void_before_all())
    }

    /// Prefix of all times before which the certificates of a node are void.
    pub fn void_nodes(&self) -> String {
        format!("{}void-nodes/", self.access())
    }

    /// Key of the time before which the certificates of this node are void.
    pub fn void_node(&self, node: &NodeId) -> String {
        format!("{}{node}", self.void_nodes())
    }

    /// Returns the subject of a key, or `None` if masters do not base decisions on it.
    pub fn subject(&self, key: &str) -> Option<Subject> {
        let rest = key.strip_prefix(&self.prefix)?.strip_prefix('/')?;
        let (kind, name) = rest.split_once('/')?;
        Some(match kind {
            "nodes" => Subject::Worker(name.strip_prefix("worker/")?.parse().ok()?),
            "draining" => Subject::Draining(name.parse().ok()?),
            "plugins" => Subject::Plugin,
            "resources" => Subject::Resource(name.parse().ok()?),
            "shards" => Subject::Shard(parse_shard_id(name)?),
            "assignments" => {
                let (worker, shard) = name.split_once('/')?;
                Subject::Assignment(worker.parse().ok()?, parse_shard_id(shard)?)
            }
            "deleting" => Subject::Deleting(ResourceId(name.parse().ok()?)),
            _ => return None,
        })
    }

    /// Returns true if a key lives under the lease of a process, and goes with it.
    pub fn is_leased(&self, key: &str) -> bool {
        let reserved = [Role::Master, Role::Worker].map(|role| self.reserved_all(role));
        let leased = [self.election(), self.all_nodes(), self.statuses()];
        let mut leased = leased.iter().chain(&reserved);
        leased.any(|prefix| key.starts_with(prefix))
    }

    /// Returns true if a key means something in this store alone, and nothing in one that a backup is restored into: the id of
    /// the store, the positions of webhooks, which are revisions, and what was told of nodes, which are others there.
    pub fn is_of_this_store(&self, key: &str) -> bool {
        let of_this_store = [self.webhook_positions(), self.told_nodes()];
        let mut of_this_store = of_this_store.iter();
        key == self.store_id() || of_this_store.any(|prefix| key.starts_with(prefix))
    }

    /// Key of the mark below which no id is issued again.
    pub fn ids(&self) -> String {
        format!("{}/ids", self.prefix)
    }
}

/// Returns a name as one segment of a key. No name has a percent sign, so no two names become the same.
fn escaped(name: &str) -> String {
    name.replace('/', "%2F")
}

fn parse_shard_id(text: &str) -> Option<ShardId> {
    let (resource, shard) = text.split_once('/')?;
    Some(ShardId {
        resource: ResourceId(resource.parse().ok()?),
        shard: Shard(shard.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f13_no_prefix_reaches_into_a_longer_name() {
        let keys = Keys::default();
        let (short, long) = ("a".parse().unwrap(), "ab".parse().unwrap());
        let version = "1.0.0".parse().unwrap();
        assert!(
            !keys
                .plugin(&long, &version)
                .starts_with(&keys.plugin_versions(&short))
        );
        let (one, eleven) = (ResourceId(1), ShardId::only(ResourceId(11)));
        assert!(!keys.shard(eleven).starts_with(&keys.shards_of(one)));
        let (one, eleven) = ("worker-1".parse().unwrap(), "worker-11".parse().unwrap());
        let shard = ShardId::only(ResourceId(1));
        assert!(
            !keys
                .assignment(&eleven, shard)
                .starts_with(&keys.assignments_of(&one))
        );
    }

    #[test]
    fn the_key_of_an_event_names_its_resource_and_its_time() {
        let keys = Keys::default();
        let key = keys.event(ResourceId(7), 1_700_000_000_000, 0xab);
        assert_eq!(key, "/crawler/events/7/1700000000000-00000000000000ab");
        assert_eq!(keys.parse_event(&key), Some(ResourceId(7)));
        assert!(key.starts_with(&keys.events_of(ResourceId(7))));
        assert!(!key.starts_with(&keys.events_of(ResourceId(70))));
        assert!(keys.event(ResourceId(7), 9, 0) < keys.event(ResourceId(7), 10, 0));
        assert_eq!(keys.parse_event(&keys.events()), None);
        assert_eq!(keys.subject(&key), None);
    }

    #[test]
    fn the_key_of_an_event_of_a_node_names_no_resource() {
        let keys = Keys::default();
        let [one, eleven] = ["worker-1", "worker-11"].map(|id| id.parse::<NodeId>().unwrap());
        let key = keys.node_event(&one, 1_700_000_000_000, 0xab);
        let expected = "/crawler/events/node/worker-1/1700000000000-00000000000000ab";
        assert_eq!(key, expected);
        assert!(key.starts_with(&keys.events()));
        assert_eq!(keys.parse_node_event(&key), Some(one.clone()));
        assert_eq!(keys.parse_event(&key), None);
        assert_eq!(
            keys.parse_node_event(&keys.event(ResourceId(7), 1, 1)),
            None
        );
        let other = keys.node_event(&eleven, 1, 1);
        assert!(!other.starts_with(&keys.node_events_of(&one)));
        assert_eq!(keys.subject(&keys.told_node(&one)), None);
    }

    #[test]
    fn no_prefix_of_a_name_reaches_into_its_namespace() {
        let keys = Keys::default();
        let (team, books) = ("team".parse().unwrap(), "team/books".parse().unwrap());
        let version = "1.0.0".parse().unwrap();
        let inside = keys.plugin(&books, &version);
        assert_eq!(inside, "/crawler/plugins/team%2Fbooks/1.0.0");
        assert!(inside.starts_with(&keys.plugin_versions(&books)));
        assert!(!inside.starts_with(&keys.plugin_versions(&team)));
        let outside = keys.plugin(&team, &version);
        assert_eq!(outside, "/crawler/plugins/team/1.0.0");
        // The id of a call may have slashes too.
        let (team, books) = ("team".parse().unwrap(), "team/books".parse().unwrap());
        let (short, long) = ("x".parse().unwrap(), "books/x".parse().unwrap());
        assert_ne!(keys.ended(&books, &short), keys.ended(&team, &long));
        assert_eq!(keys.ended(&team, &short), "/crawler/ended/team/x");
    }

    #[test]
    fn keys_of_resources_have_the_order_of_their_names() {
        let keys = Keys::default();
        let names = ["team", "team-2", "team/books", "team/sub/x", "team4"];
        let made = names.map(|name| keys.resource(&name.parse().unwrap()));
        assert!(made.is_sorted(), "{made:?}");
        let names = names.map(|name| name.parse::<ResourceName>().unwrap());
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(made[2], "/crawler/resources/team/books");
    }

    #[test]
    fn the_subject_of_a_key_is_what_it_was_made_of() {
        let keys = Keys::default();
        let shard = ShardId {
            resource: ResourceId(7),
            shard: Shard(3),
        };
        let worker: NodeId = "worker-1".parse().unwrap();
        let books: ResourceName = "books".parse().unwrap();
        let inside: ResourceName = "team/books".parse().unwrap();
        let plugin = keys.plugin(&"team/books".parse().unwrap(), &"1.0.0".parse().unwrap());
        for (key, subject) in [
            (
                keys.node(Role::Worker, &worker),
                Subject::Worker(worker.clone()),
            ),
            (keys.draining(&worker), Subject::Draining(worker.clone())),
            (plugin, Subject::Plugin),
            (keys.resource(&books), Subject::Resource(books.clone())),
            (keys.resource(&inside), Subject::Resource(inside)),
            (keys.shard(shard), Subject::Shard(shard)),
            (
                keys.assignment(&worker, shard),
                Subject::Assignment(worker.clone(), shard),
            ),
            (
                keys.deleting(ResourceId(7)),
                Subject::Deleting(ResourceId(7)),
            ),
        ] {
            assert_eq!(keys.subject(&key), Some(subject), "{key}");
        }
        let master = keys.node(Role::Master, &"master-1".parse().unwrap());
        for key in [
            keys.cluster(),
            keys.store_id(),
            keys.ids(),
            keys.status(&worker),
            master,
        ] {
            assert_eq!(keys.subject(&key), None, "{key}");
        }
    }

    #[test]
    fn keys_of_processes_are_told_from_those_that_stay() {
        let keys = Keys::default();
        let worker = "worker-1".parse().unwrap();
        for leased in [
            keys.contender(LeaseId(7)),
            keys.node(Role::Master, &worker),
            keys.reserved(Role::Worker, &worker),
            keys.status(&worker),
        ] {
            assert!(keys.is_leased(&leased), "{leased}");
        }
        let assignment = keys.assignment(&worker, ShardId::only(ResourceId(1)));
        for stays in [
            keys.cluster(),
            keys.ids(),
            keys.draining(&worker),
            keys.node_secret(),
            keys.schedule(&"books".parse().unwrap()),
            assignment,
        ] {
            assert!(!keys.is_leased(&stays), "{stays}");
            assert!(!keys.is_of_this_store(&stays), "{stays}");
        }
        let position = keys.webhook_position(&"chat".parse().unwrap());
        for of_this_store in [keys.store_id(), position, keys.told_node(&worker)] {
            assert!(keys.is_of_this_store(&of_this_store), "{of_this_store}");
        }
    }

    #[test]
    fn keys_are_read_back() {
        let keys = Keys::default();
        let shard = ShardId {
            resource: ResourceId(7),
            shard: Shard(3),
        };
        assert_eq!(keys.parse_shard(&keys.shard(shard)), Some(shard));
        let worker: NodeId = "worker-1".parse().unwrap();
        assert_eq!(
            keys.parse_assignment(&keys.assignment(&worker, shard)),
            Some((worker, shard))
        );
        assert_eq!(keys.parse_shard("/crawler/shards/x/0"), None);
        let inside: ResourceName = "team/books".parse().unwrap();
        let key = keys.schedule(&inside);
        assert_eq!(keys.parse_schedule(&key), Some(inside));
        assert_eq!(keys.parse_schedule(&keys.schedules()), None);
    }
}
