//! Calls through any master, over HTTP and gRPC, repeated under the same key until they are answered.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crawler_proto as proto;
use crawler_tests::pass;
use crawler_tests::random::Random;
use crawler_tests::web::Method;
use proto::crawler_master_client::CrawlerMasterClient;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::fleet::{MasterAddress, MasterAddresses};

/// Deadline of one try: a master may be frozen.
const TRY: Duration = Duration::from_secs(5);
/// Time after which a caller gives up. Within it, faults pause for longer than a call takes.
const GIVE_UP: Duration = Duration::from_secs(150);

/// A client.
pub(crate) struct Caller {
    runtime: Runtime,
    http: reqwest::Client,
    addresses: MasterAddresses,
    random: Random,
}

/// Final answer of a master.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{self:?} is no JSON: {e}"))
    }
}

impl Caller {
    pub(crate) fn new(addresses: MasterAddresses, random: Random) -> Self {
        crawler_tests::http::install_crypto();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]);
        Self {
            runtime: runtime.expect("a runtime of one thread needs nothing that could be missing"),
            http: http
                .build()
                .expect("a client without certificates can be built"),
            addresses,
            random,
        }
    }

    /// Reads through any master.
    pub(crate) fn read(&mut self, path: &str) -> Answer {
        self.until_answered(|caller, address| caller.by_http(address, Method::GET, path, None, ""))
    }

    /// Changes something over HTTP, once.
    pub(crate) fn change(&mut self, method: Method, path: &str, body: &Value) -> Answer {
        let key = self.key();
        let body = body.to_string();
        self.until_answered(|caller, address| {
            caller.by_http(address, method.clone(), path, Some(&body), &key)
        })
    }

    /// Adds a resource, once: over HTTP or gRPC by chance, under one key.
    pub(crate) fn add(&mut self, spec: &Value) -> Answer {
        let key = self.key();
        let (body, message) = (spec.to_string(), message(spec));
        self.until_answered(|caller, address| match caller.random.below(2) {
            0 => caller.by_http(
                address,
                Method::POST,
                "/crawler/resource",
                Some(&body),
                &key,
            ),
            _ => caller.by_grpc(address, message.clone(), &key, false),
        })
    }

    /// Deletes a resource, once.
    pub(crate) fn delete(&mut self, name: &str) -> Answer {
        let key = self.key();
        let spec = json!({ "name": name });
        let (body, message) = (spec.to_string(), message(&spec));
        self.until_answered(|caller, address| match caller.random.below(2) {
            0 => caller.by_http(
                address,
                Method::DELETE,
                "/crawler/resource",
                Some(&body),
                &key,
            ),
            _ => caller.by_grpc(address, message.clone(), &key, true),
        })
    }

    fn key(&mut self) -> String {
        let [one, other] = [(); 2].map(|()| self.random.below(u64::MAX));
        format!("{one:016x}{other:016x}")
    }

    /// Repeats a call until it is answered. A status of 500 or more counts as no answer.
    fn until_answered(
        &mut self,
        mut ask: impl FnMut(&mut Self, &MasterAddress) -> Result<Answer, String>,
    ) -> Answer {
        let begun = Instant::now();
        loop {
            let address = {
                let addresses = self
                    .addresses
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                let nth = self.random.below(addresses.len() as u64);
                addresses[usize::try_from(nth).expect("a few")].clone()
            };
            let why = match ask(self, &address) {
                Ok(answer) if answer.status < 500 => return answer,
                Ok(answer) => answer.text,
                Err(why) => why,
            };
            assert!(begun.elapsed() < GIVE_UP, "no answer at all: {why}");
            pass(Duration::from_millis(100));
        }
    }

    fn by_http(
        &mut self,
        address: &MasterAddress,
        method: Method,
        path: &str,
        body: Option<&str>,
        key: &str,
    ) -> Result<Answer, String> {
        let url = format!("http://{}{path}", address.http);
        let mut request = self.http.request(method, url).timeout(TRY);
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .header("Idempotency-Key", key)
                .body(body.to_owned());
        }
        let asked = async {
            let answer = request.send().await?;
            let status = answer.status().as_u16();
            let text = answer.text().await?;
            Ok(Answer { status, text })
        };
        let answer: Result<Answer, reqwest::Error> = self.runtime.block_on(asked);
        answer.map_err(|e| format!("{e:?}"))
    }

    fn by_grpc(
        &mut self,
        address: &MasterAddress,
        message: proto::ResourceSpec,
        key: &str,
        is_delete: bool,
    ) -> Result<Answer, String> {
        let url = format!("http://{}", address.grpc);
        let asked = async {
            let client = CrawlerMasterClient::connect(url).await;
            let mut client = client.map_err(|e| tonic::Status::unavailable(e.to_string()))?;
            let mut call = tonic::Request::new(message);
            let key = key.parse().expect("it is ASCII");
            call.metadata_mut().insert("request-id", key);
            call.set_timeout(TRY);
            match is_delete {
                true => client.delete_resource(call).await.map(drop),
                false => client.add_resource(call).await.map(drop),
            }
        };
        let asked = async { tokio::time::timeout(TRY, asked).await };
        let Ok(answer) = self.runtime.block_on(asked) else {
            return Err("no answer in time".to_owned());
        };
        let status = match &answer {
            Ok(()) => 200,
            Err(status) => match status.code() {
                tonic::Code::AlreadyExists => 409,
                tonic::Code::NotFound => 404,
                tonic::Code::InvalidArgument | tonic::Code::FailedPrecondition => 412,
                _ => return Err(status.to_string()),
            },
        };
        let text = answer.err().map(|status| status.to_string());
        Ok(Answer {
            status,
            text: text.unwrap_or_default(),
        })
    }
}

/// Converts a resource from its form in HTTP to that in gRPC.
fn message(spec: &Value) -> proto::ResourceSpec {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = |field: &str| spec[field].as_object().cloned().unwrap_or_default();
    let crawl = &spec["crawl"];
    let small = |field: &str| crawl[field].as_u64().and_then(|n| u32::try_from(n).ok());
    let scope = crawl["scope"].as_array().cloned().unwrap_or_default();
    proto::ResourceSpec {
        name: text(&spec["name"]),
        plugin: text(&spec["plugin"]),
        params: object("params")
            .iter()
            .map(|(k, v)| (k.clone(), text(v)))
            .collect(),
        limits: object("limits")
            .iter()
            .map(|(k, v)| (k.clone(), v.as_u64().unwrap_or_default()))
            .collect(),
        crawl: Some(proto::CrawlSettings {
            delay_ms: crawl["delay_ms"].as_u64(),
            max_retry_wait_ms: crawl["max_retry_wait_ms"].as_u64(),
            max_depth: small("max_depth"),
            scope: scope.iter().map(text).collect(),
            ..proto::CrawlSettings::default()
        }),
        placement: Some(proto::Placement {
            shards: spec["placement"]["shards"]
                .as_u64()
                .and_then(|n| u32::try_from(n).ok()),
            ..proto::Placement::default()
        }),
        ..proto::ResourceSpec::default()
    }
}
