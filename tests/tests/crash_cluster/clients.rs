//! Clients that add, change and delete resources until the process that they call is killed, and that know what
//! may be there afterwards.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use crawler_api::client::{Client, ClientError};
use crawler_api::spec::SpecRequest;
use crawler_master::Code;
use crawler_master::control::Precondition;
use crawler_model::id::{PluginRef, ResourceName};
use crawler_model::resource::CrawlSettings;
use crawler_proto as proto;
use crawler_tests::random::Random;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Number of names of one client.
const N_NAMES: u64 = 4;

/// Reason why no answer came: the call may have been carried out.
pub(crate) struct CutOff(String);

/// Addresses of a process, and a flag that it was killed.
pub(crate) struct Interfaces<'a> {
    pub(crate) grpc: Client,
    pub(crate) http: String,
    pub(crate) killed: &'a AtomicBool,
}

impl Interfaces<'_> {
    /// Checks that the process was killed: calls cannot be cut off while it lives.
    pub(crate) fn expect_killed(&self, cut: &CutOff) {
        assert!(self.killed.load(Ordering::SeqCst), "no answer: {}", cut.0);
    }

    /// Makes one HTTP call. The inner error is the status of a refusal.
    async fn http(&self, method: &str, body: &Value) -> Result<Result<Value, u16>, CutOff> {
        let cut = |e: std::io::Error| CutOff(e.to_string());
        let mut stream = TcpStream::connect(&self.http).await.map_err(cut)?;
        let body = body.to_string();
        let request = format!(
            "{method} /crawler/resource HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.map_err(cut)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.map_err(cut)?;
        let Some((head, body)) = answer.split_once("\r\n\r\n") else {
            return Err(CutOff(format!("within the head: {answer:?}")));
        };
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status: u16 = status.unwrap_or_else(|| panic!("not HTTP: {head}"));
        if status >= 500 {
            return Err(CutOff(answer));
        }
        let Ok(value) = serde_json::from_str(body) else {
            return Err(CutOff(format!("within the body: {answer:?}")));
        };
        Ok(if status < 300 { Ok(value) } else { Err(status) })
    }
}

/// Returns the answer of a call, or that there was none. A refusal is a fault, because nobody else has these
/// names.
fn answered<T>(result: Result<T, ClientError>) -> Result<T, CutOff> {
    match result {
        Ok(answer) => Ok(answer),
        Err(ClientError::Refused(problem))
            if !matches!(problem.code, Code::Unavailable | Code::Internal) =>
        {
            panic!("refused: {problem:?}")
        }
        Err(error) => Err(CutOff(error.to_string())),
    }
}

/// Values that tell one state of a resource from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) generation: u64,
    pub(crate) max_pages: u64,
}

/// One name, which only one client uses.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Possible states: the one that was answered, or those with and without a call that was cut off.
    pub(crate) possible: Vec<Option<State>>,
    /// Number of additions that were tried.
    pub(crate) life: u64,
}

/// A client with everything that it knows.
pub(crate) struct Caller {
    random: Random,
    start: String,
    pub(crate) slots: BTreeMap<ResourceName, Slot>,
    /// Number of calls that were answered.
    pub(crate) n_answered: u64,
}

impl Caller {
    pub(crate) fn new(n: usize, random: Random, start: &str) -> Self {
        let slots = (0..N_NAMES).map(|slot| {
            let name = format!("r{n}-{slot}").parse().expect("a good name");
            let possible = vec![None];
            (name, Slot { possible, life: 0 })
        });
        Self {
            random,
            start: start.to_owned(),
            slots: slots.collect(),
            n_answered: 0,
        }
    }

    /// Makes calls until one gets no answer. All slots must be settled.
    pub(crate) async fn work(&mut self, interfaces: &Interfaces<'_>) {
        loop {
            if let Err(cut) = self.call(interfaces).await {
                return interfaces.expect_killed(&cut);
            }
            self.n_answered += 1;
        }
    }

    async fn call(&mut self, interfaces: &Interfaces<'_>) -> Result<(), CutOff> {
        let random = &mut self.random;
        let nth = usize::try_from(random.below(N_NAMES)).expect("a small number");
        let (name, slot) = self.slots.iter_mut().nth(nth).expect("it has so many");
        let max_pages = 1 + random.below(3);
        let (by_http, choice) = (random.below(2) == 0, random.below(4));
        let [present] = slot.possible[..] else {
            panic!("{name} is not settled: {slot:?}");
        };
        match present {
            None => {
                let generation = 1;
                slot.life += 1;
                let added = State {
                    generation,
                    max_pages,
                };
                slot.possible = vec![None, Some(added)];
                let spec = spec(name, &self.start, max_pages);
                send(interfaces, by_http, Call::Add(spec)).await?;
                slot.possible = vec![Some(added)];
            }
            Some(state) if choice == 0 => {
                let seen = answered(interfaces.grpc.resource(name).await)?;
                assert_eq!(state_of(&seen), state, "{name}");
            }
            Some(state) if choice == 1 => {
                let generation = state.generation + 1;
                let changed = State {
                    generation,
                    max_pages,
                };
                slot.possible = vec![Some(state), Some(changed)];
                let change = spec(name, &self.start, max_pages);
                send(interfaces, by_http, Call::Update(change)).await?;
                slot.possible = vec![Some(changed)];
            }
            Some(state) => {
                slot.possible = vec![Some(state), None];
                send(interfaces, by_http, Call::Delete(name.clone(), choice == 2)).await?;
                slot.possible = vec![None];
            }
        }
        Ok(())
    }
}

/// Returns the state of a resource in an answer of the API.
pub(crate) fn state_of(seen: &proto::Resource) -> State {
    State {
        generation: seen.generation,
        max_pages: seen
            .spec()
            .crawl
            .and_then(|crawl| crawl.max_pages)
            .unwrap_or_default(),
    }
}

enum Call {
    Add(SpecRequest),
    Update(SpecRequest),
    Delete(ResourceName, bool),
}

fn spec(name: &ResourceName, start: &str, max_pages: u64) -> SpecRequest {
    SpecRequest {
        plugin: Some("books".parse().expect("a good name")),
        params: BTreeMap::from([("start".to_owned(), start.to_owned())]),
        crawl: CrawlSettings {
            max_pages: Some(max_pages),
            ..CrawlSettings::default()
        },
        ..SpecRequest::named(name.clone())
    }
}

async fn send(interfaces: &Interfaces<'_>, by_http: bool, call: Call) -> Result<(), CutOff> {
    if by_http {
        let (method, body) = match &call {
            Call::Add(spec) => ("POST", json_of(spec)),
            Call::Update(spec) => ("PATCH", json_of(spec)),
            Call::Delete(name, purge) => ("DELETE", json!({"name": name.as_str(), "purge": purge})),
        };
        let answer = interfaces.http(method, &body).await?;
        answer.unwrap_or_else(|status| panic!("{method} {body}: {status}"));
        return Ok(());
    }
    match call {
        Call::Add(spec) => answered(interfaces.grpc.add_resource(spec).await).map(drop),
        Call::Update(spec) => answered(interfaces.grpc.update_resource(spec).await).map(drop),
        Call::Delete(name, purge) => answered(
            interfaces
                .grpc
                .delete_resource(&name, purge, Precondition::default())
                .await,
        ),
    }
}

fn json_of(spec: &SpecRequest) -> Value {
    json!({
        "name": spec.name.as_str(),
        "plugin": "books",
        "params": spec.params,
        "crawl": {"max_pages": spec.crawl.max_pages},
    })
}

/// Pushes one version after another and deletes every other one, until it gets no answer. Some have bytes of their
/// own, some the same as others.
pub(crate) async fn push(interfaces: &Interfaces<'_>, wasm: &[u8], next: &mut u64) {
    loop {
        *next += 1;
        let plugin: PluginRef = format!("pushed@1.0.{next}").parse().expect("a good name");
        let bytes = match *next % 3 {
            0 => with_a_section(wasm, *next),
            _ => wasm.to_vec(),
        };
        let pushed = answered(
            interfaces
                .grpc
                .push_plugin(Some(&plugin), false, bytes.into())
                .await,
        );
        let done = match pushed {
            Ok(_) if next.is_multiple_of(2) => {
                answered(interfaces.grpc.delete_plugin(&plugin).await)
            }
            pushed => pushed.map(drop),
        };
        if let Err(cut) = done {
            return interfaces.expect_killed(&cut);
        }
    }
}

/// Returns the same component with other bytes: it has a custom section that nobody reads.
fn with_a_section(wasm: &[u8], n: u64) -> Vec<u8> {
    let mut bytes = wasm.to_vec();
    bytes.extend([0, 10, 1, b'n']);
    bytes.extend(n.to_le_bytes());
    bytes
}
