//! The table of all calls of a master, with what each needs. A call that is not in it is refused.

use crawler_model::access::Right;

/// A call, by its name in the service `CrawlerMaster`. HTTP has the same calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) needs: Needs,
}

/// Condition for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// A valid token, whatever its role.
    Nothing,
    /// A right. The names in the call have to be those that the right holds for.
    Right(Right),
    /// A right, whatever it is limited to: the answer has nothing of a namespace.
    AnyName(Right),
    /// A right that is not limited to namespaces.
    WholeCluster(Right),
    /// A proof in the call itself, and no access token: the join token or the certificate of a node.
    OwnProof,
}

/// Service of the calls.
pub(crate) const SERVICE: &str = "CrawlerMaster";

/// The only call that nodes make to masters by themselves: workers fetch the plugins of what is assigned to them.
pub(crate) const FOR_NODES: &str = "FetchPlugin";

const fn method(name: &'static str, needs: Needs) -> Method {
    Method { name, needs }
}

/// All calls, in the order of the .proto file.
pub(crate) const METHODS: [Method; 50] = {
    use Needs::{AnyName, Right as Has, WholeCluster};
    use Right::{Administer, Operate, Publish, Read};
    [
        method("AddResource", Has(Operate)),
        method("DeleteResource", Has(Operate)),
        method("GetResource", Has(Read)),
        method("UpdateResource", Has(Operate)),
        method("RestartResource", Has(Operate)),
        method("PauseResource", Has(Operate)),
        method("ResumeResource", Has(Operate)),
        method("SetSchedule", Has(Operate)),
        method("GetSchedule", Has(Read)),
        method("DeleteSchedule", Has(Operate)),
        method("ListSchedules", Has(Read)),
        method("ListRuns", Has(Read)),
        method("DiffRuns", Has(Read)),
        method("ListResources", Has(Read)),
        method("ListNodes", AnyName(Read)),
        method("DrainNode", WholeCluster(Operate)),
        method("WatchNodes", AnyName(Read)),
        method("WatchResources", Has(Read)),
        method("PushPlugin", Has(Publish)),
        method("FetchPlugin", Has(Read)),
        method("RecordPlugin", Has(Publish)),
        method("GetPlugin", Has(Read)),
        method("ListPlugins", Has(Read)),
        method("DeletePlugin", Has(Publish)),
        method("ReadItems", Has(Read)),
        method("ListChanges", Has(Read)),
        method("ReadFile", Has(Read)),
        method("ReadLogs", Has(Read)),
        method("ReadEvents", Has(Read)),
        method("ReadNodeEvents", AnyName(Read)),
        method("GetFrontierStats", Has(Read)),
        method("GetStatistics", Has(Read)),
        method("ListUrls", Has(Read)),
        method("ListHosts", Has(Read)),
        method("ExplainUrl", Has(Read)),
        method("RedriveFrontier", Has(Operate)),
        method("ListQuarantine", Has(Read)),
        method("ReadQuarantine", Has(Read)),
        method("DecideQuarantine", Has(Operate)),
        method("IssueToken", WholeCluster(Administer)),
        method("ListTokens", WholeCluster(Administer)),
        method("RevokeTokens", WholeCluster(Administer)),
        method("ReadAudit", WholeCluster(Administer)),
        method("GetCaller", Needs::Nothing),
        method("IssueJoinToken", WholeCluster(Administer)),
        method("ListJoinTokens", WholeCluster(Administer)),
        method("RevokeJoinToken", WholeCluster(Administer)),
        method("RevokeNode", WholeCluster(Administer)),
        method("JoinCluster", Needs::OwnProof),
        method("RenewCertificate", Needs::OwnProof),
    ]
};

impl Method {
    /// Returns the call of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        METHODS.iter().find(|method| method.name == name)
    }

    /// Returns the call at this path of gRPC.
    pub(crate) fn at(path: &str) -> Option<&'static Self> {
        let (service, name) = path.strip_prefix('/')?.split_once('/')?;
        Self::named(name).filter(|_| service == SERVICE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;

    #[test]
    fn every_call_of_the_proto_file_is_in_the_table() {
        let set =
            prost_types::FileDescriptorSet::decode(crawler_proto::FILE_DESCRIPTOR_SET).unwrap();
        let services = set.file.iter().flat_map(|file| &file.service);
        let mut masters = services.filter(|service| service.name() == SERVICE);
        let master = masters.next().unwrap();
        let declared: Vec<_> = master.method.iter().map(|method| method.name()).collect();
        assert_eq!(METHODS.map(|method| method.name).to_vec(), declared);
    }

    #[test]
    fn a_path_names_a_call_of_the_service() {
        let name = |path| Method::at(path).map(|method| method.name);
        assert_eq!(name("/CrawlerMaster/AddResource"), Some("AddResource"));
        for path in [
            "",
            "/",
            "/CrawlerMaster/",
            "/CrawlerMaster/Other",
            "/Other/AddResource",
            "CrawlerMaster/AddResource",
            "/CrawlerMaster/AddResource/",
        ] {
            assert_eq!(name(path), None, "{path}");
        }
    }
}
