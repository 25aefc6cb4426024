//! Test of the trace of a call that one master hands on to another.

use super::*;
use crate::config::TracesConfig;
use crawler_api::client::Client;
use crawler_master::control::Precondition;
use crawler_process::traces::{SampleRatio, TraceSettings};
use crawler_testing::otlp::{ReceivedSpan, Receiver};

fn traced(folder: &Path, id: &str, receiver: &Receiver) -> MasterOptions {
    let traces = TracesConfig {
        endpoint: Some(receiver.endpoint().parse().unwrap()),
        settings: TraceSettings {
            sample: SampleRatio::new(1.0).unwrap(),
            ..TraceSettings::default()
        },
        ..TracesConfig::default()
    };
    MasterOptions {
        node: NodeOptions {
            config: FileConfig {
                traces,
                ..FileConfig::default()
            },
            ..options(folder, id)
        },
        calls: CallOptions::default(),
        compaction: None,
        placement: PlacementSettings::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_handed_on_is_one_trace_over_two_masters() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(&store, Settings::default()).unwrap());
    let catalog = Catalog::new(store.clone(), Keys::default());
    let receiver = Receiver::start();
    let mut masters = Vec::new();
    for id in ["master-1", "master-2"] {
        let options = traced(folder.path(), id, &receiver);
        let master = start_master(&options, store.clone(), Arc::new(SystemClock));
        masters.push(master.await.unwrap());
    }
    let nobody = "nobody".parse().unwrap();
    let mut leader = None;
    let handed_on = async {
        while leader.is_none() {
            let found = crawler_store::election::current_leader(&catalog).await;
            leader = found.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let leader = leader.as_ref().map(|leader| leader.id.as_str());
        let follower = masters.iter().find(|master| Some(&*master.ids()) != leader);
        let follower = follower.expect("one of them does not lead");
        let client = Client::connect(&format!("http://{}", follower.grpc)).await;
        let client = client.unwrap();
        let delete = || client.delete_resource(&nobody, false, Precondition::default());
        // The lead is known to the follower a moment later.
        while delete().await.is_err_and(|error| error.is_transient()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, handed_on)
        .await
        .expect("in time");
    for master in masters {
        master.stop().await;
    }
    let leader = leader.unwrap().id.to_string();
    let spans = receiver.spans();
    let is_call = |span: &&ReceivedSpan| span.name == "DeleteResource";
    let calls: Vec<&ReceivedSpan> = spans.iter().filter(is_call).collect();
    let of = |span: &ReceivedSpan| span.resource["service.instance.id"].clone();
    // Of several tries, the last was answered by the leader.
    let answered = calls.iter().rfind(|span| of(span) == leader);
    let answered = answered.unwrap_or_else(|| panic!("not handed on: {spans:?}"));
    let of_trace: Vec<_> = spans.iter().filter(|s| s.trace == answered.trace).collect();
    let within = |id: &str| of_trace.iter().find(|span| span.id == id).copied();
    let forward = within(&answered.parent).expect("the span of the forwarding");
    assert_eq!(forward.name, "forward");
    assert_eq!(forward.attributes["crawler.leader"], leader);
    let received = within(&forward.parent).expect("the span of the call");
    assert_eq!(
        (received.name.as_str(), received.parent.as_str()),
        ("DeleteResource", "")
    );
    assert_ne!(of(received), leader);
    let mut of_answer = of_trace.iter().filter(|span| span.parent == answered.id);
    assert!(
        of_answer.any(|span| span.name == "store get"),
        "{of_trace:?}"
    );
    // The code NOT_FOUND.
    assert_eq!(answered.attributes["rpc.grpc.status_code"], "5");
}
