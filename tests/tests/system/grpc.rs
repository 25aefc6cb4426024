//! Clients of the original interface: its four fields, written here by hand, and the information that a client
//! without any `.proto` gets by reflection.

use std::process::Command;

use crawler_tests::python::python;
use crawler_tests::repository;
use crawler_tests::web::Method;
use prost::Message;
use prost_types::FileDescriptorProto;
use serde_json::json;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use crate::server::{Server, block_on, text};
use crate::sites;

#[derive(Clone, PartialEq, Message)]
struct ResourceSpec {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    assigned_node: String,
    #[prost(int64, tag = "4")]
    creation_time: i64,
}

#[derive(Clone, PartialEq, Message)]
struct NodeSpec {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    address: String,
}

fn spec(name: &str) -> ResourceSpec {
    ResourceSpec {
        id: "zjx".to_owned(),
        name: name.to_owned(),
        assigned_node: "worker-9|10.0.0.9:9089".to_owned(),
        creation_time: 12,
    }
}

async fn connect(server: &Server) -> Channel {
    let endpoint: Endpoint = format!("http://{}", server.grpc())
        .parse()
        .expect("an address");
    endpoint.connect().await.expect("gRPC listens")
}

async fn call<A: Message + Default + 'static>(
    channel: &Channel,
    path: &'static str,
    message: ResourceSpec,
) -> Result<A, Status> {
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await.expect("the connection is open");
    let codec = tonic_prost::ProstCodec::<ResourceSpec, A>::default();
    let path = PathAndQuery::from_static(path);
    let answer = client.unary(Request::new(message), path, codec).await?;
    Ok(answer.into_inner())
}

/// Client with code that was generated from the `.proto` file.
const PYTHON_CLIENT: &str = r#"
import sys, grpc
import crawler_pb2 as messages, crawler_pb2_grpc as services
with grpc.insecure_channel(sys.argv[1]) as channel:
    master = services.CrawlerMasterStub(channel)
    spec = messages.ResourceSpec(id="zjx", name="task-test-4")
    node = master.AddResource(spec, timeout=30)
    print(node.id, node.Address)
    print(master.GetResource(messages.ResourceRequest(name=spec.name), timeout=30).spec.name)
    master.DeleteResource(spec, timeout=30)
    try:
        master.DeleteResource(spec, timeout=30)
    except grpc.RpcError as error:
        print(error.code().name)
"#;

#[test]
fn s11_a_python_client_that_is_generated_from_the_proto_file_adds_and_deletes() {
    const PACKAGES: [&str; 2] = ["grpcio-tools==1.76.0", "grpcio==1.76.0"];
    let folder = tempfile::tempdir().expect("a folder can be made");
    let Some(python) = python(folder.path(), "grpcio", &PACKAGES) else {
        return;
    };
    let run = |arguments: &[&str]| {
        let ended = Command::new(&python)
            .args(arguments)
            .current_dir(folder.path())
            .output();
        let ended = ended.expect("Python starts");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}");
        String::from_utf8(ended.stdout).expect("it is text")
    };
    let proto = repository().join("proto/proto");
    let include = format!("-I{}", proto.display());
    run(&[
        "-m",
        "grpc_tools.protoc",
        &include,
        "--python_out=.",
        "--grpc_python_out=.",
        "crawler.proto",
    ]);
    let server = Server::with_puppet();
    server.push("puppet", &["--as=task-test-4@1.0.0"]);
    let said = run(&["-c", PYTHON_CLIENT, server.grpc()]);
    let expected = ["worker-1 ", server.grpc(), "\ntask-test-4\nNOT_FOUND\n"].concat();
    assert_eq!(said, expected);
}

#[test]
fn s11_calls_that_name_the_format_of_their_messages_are_answered() {
    let server = Server::with_puppet();
    server.push("puppet", &["--as=task-test-4@1.0.0"]);
    // The message follows its five bytes of length, as gRPC frames it.
    let message = spec("task-test-4").encode_to_vec();
    let length = u32::try_from(message.len()).expect("it is short");
    let framed = [&[0][..], &length.to_be_bytes(), &message].concat();
    let call = async |path: &str| {
        let client = reqwest::Client::builder().http2_prior_knowledge();
        let client = client.build().expect("a client without TLS");
        let request = client
            .post(format!("http://{}{path}", server.grpc()))
            .header("content-type", "application/grpc+proto")
            .header("te", "trailers")
            .body(framed.clone());
        let answer = request.send().await.expect("gRPC listens");
        let refusal = answer.headers().get("grpc-status").cloned();
        assert_eq!(refusal, None, "{path}");
        answer.bytes().await.expect("there is an answer")
    };
    block_on(async {
        let added = call("/CrawlerMaster/AddResource").await;
        let node = NodeSpec::decode(&added[5..]).expect("a node");
        assert_eq!(
            (node.id.as_str(), node.address.as_str()),
            ("worker-1", server.grpc())
        );
        call("/CrawlerMaster/DeleteResource").await;
    });
}

#[test]
fn s11_a_client_of_the_original_interface_adds_and_deletes() {
    const ADD: &str = "/CrawlerMaster/AddResource";
    const DELETE: &str = "/CrawlerMaster/DeleteResource";
    let web = sites::chain(1).open();
    let server = Server::with_puppet();
    server.push("puppet", &["--as=task-test-4@1.0.0"]);
    block_on(async {
        let channel = connect(&server).await;
        let node: NodeSpec = call(&channel, ADD, spec("task-test-4"))
            .await
            .expect("added");
        assert_eq!(
            (node.id.as_str(), node.address.as_str()),
            ("worker-1", server.grpc())
        );
        let again = call::<NodeSpec>(&channel, ADD, spec("task-test-4"))
            .await
            .unwrap_err();
        assert_eq!(again.code(), Code::AlreadyExists);
        let without = call::<NodeSpec>(&channel, ADD, spec("other"))
            .await
            .unwrap_err();
        assert_eq!(without.code(), Code::FailedPrecondition);
        let nameless = call::<NodeSpec>(&channel, ADD, ResourceSpec::default()).await;
        assert_eq!(nameless.unwrap_err().code(), Code::InvalidArgument);
    });
    // The master sets id, node and time, whatever the client sends.
    let given = server.resource("task-test-4")["spec"].clone();
    assert_ne!(given["id"], "zjx");
    assert_eq!(
        text(&given["assigned_node"]),
        format!("worker-1|{}", server.grpc())
    );
    assert!(
        text(&given["creation_time"])
            .parse::<u64>()
            .expect("a number")
            > 1 << 60
    );

    block_on(async {
        let channel = connect(&server).await;
        call::<()>(&channel, DELETE, spec("task-test-4"))
            .await
            .expect("deleted");
        let again = call::<()>(&channel, DELETE, spec("task-test-4"))
            .await
            .unwrap_err();
        assert_eq!(again.code(), Code::NotFound);
    });
    assert_eq!(
        server
            .http(Method::GET, "/crawler/resource/task-test-4", None)
            .status,
        404
    );
    // The server works as before for clients that know more fields.
    server.add("books", &web.url("/0"), &[]);
    server.finished("books");
}

#[test]
fn s11_reflection_and_health_tell_clients_without_a_proto_file() {
    let server = Server::start();
    block_on(async {
        let channel = connect(&server).await;
        let mut health = HealthClient::new(channel.clone());
        for service in ["", "CrawlerMaster", "CrawlerWorker", "joined"] {
            let service = service.to_owned();
            let answer = health
                .check(HealthCheckRequest { service })
                .await
                .expect("health answers");
            assert_eq!(answer.into_inner().status(), ServingStatus::Serving);
        }
        let asked = MessageRequest::ListServices(String::new());
        let Some(MessageResponse::ListServicesResponse(services)) = reflect(&channel, asked).await
        else {
            panic!("no list of services");
        };
        let services = services.service.into_iter().map(|service| service.name);
        let services: Vec<String> = services.collect();
        for wanted in ["CrawlerMaster", "CrawlerWorker", "grpc.health.v1.Health"] {
            assert!(services.iter().any(|name| name == wanted), "{services:?}");
        }
        let asked = MessageRequest::FileContainingSymbol("CrawlerMaster.AddResource".to_owned());
        let Some(MessageResponse::FileDescriptorResponse(files)) = reflect(&channel, asked).await
        else {
            panic!("no file of the service");
        };
        let files = files.file_descriptor_proto.into_iter();
        let mut files = files.map(|bytes| FileDescriptorProto::decode(bytes.as_slice()));
        let file = files.find_map(|file| {
            let file = file.expect("a descriptor");
            (!file.service.is_empty()).then_some(file)
        });
        let file = file.expect("the file with the service");
        assert_eq!(file.package(), "");
        assert_eq!(
            fields(&file, "ResourceSpec", 4),
            json!([
                ["id", 1],
                ["name", 2],
                ["assigned_node", 3],
                ["creation_time", 4]
            ])
        );
        assert_eq!(
            fields(&file, "NodeSpec", 9),
            json!([["id", 1], ["Address", 2]])
        );
    });
}

async fn reflect(channel: &Channel, asked: MessageRequest) -> Option<MessageResponse> {
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(asked),
    };
    let mut client = ServerReflectionClient::new(channel.clone());
    let requests = futures::stream::iter([request]);
    let answers = client
        .server_reflection_info(requests)
        .await
        .expect("reflection answers");
    let answer: Option<ServerReflectionResponse> = answers
        .into_inner()
        .message()
        .await
        .expect("reflection goes on");
    answer?.message_response
}

/// Returns names and numbers of the first fields of a message.
fn fields(file: &FileDescriptorProto, message: &str, n: usize) -> serde_json::Value {
    let message = file
        .message_type
        .iter()
        .find(|found| found.name() == message);
    let fields = message.expect("the message is there").field.iter().take(n);
    fields
        .map(|field| json!([field.name(), field.number()]))
        .collect()
}
