//! Tests of plugins from masters that lie, break off, keep silent or are right, and from the data root.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use tokio::net::TcpListener;

use super::*;
use crate::app::process::Process;
use crate::app::up;
use crate::cli::UpOptions;
use crawler_api::client::{FetchDeadlines, MasterPlugins};
use crawler_api::tls::ClientTls;
use crawler_model::id::Incarnation;
use crawler_model::node::{CallToken, Node, Role};
use crawler_process::task::TaskScope;
use crawler_store::Txn;
use crawler_store::catalog::{Catalog, encode};
use crawler_store::embedded::{EmbeddedStore, Settings};
use crawler_store::keys::Keys;

/// Size of a plugin of several pieces.
const N_BYTES: usize = 5 << 20;

fn plugin() -> Bytes {
    let bytes = (0..N_BYTES as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8);
    bytes.collect()
}

/// A master whose data root has these bytes under the plugin's digest.
struct Master {
    up: Process,
    _folder: tempfile::TempDir,
}

impl Master {
    async fn with(bytes: Option<Bytes>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = UpOptions::in_folder(folder.path());
        let (up, _) = up::start(&options).await.unwrap();
        if let Some(bytes) = bytes {
            let plugins = folder.path().join("data/plugins");
            std::fs::create_dir_all(&plugins).unwrap();
            let file = format!("{}.wasm", Digest::of(&plugin()));
            std::fs::write(plugins.join(file), bytes).unwrap();
        }
        Self {
            up,
            _folder: folder,
        }
    }
}

/// Masters as they are registered, and a worker that fetches from them.
struct Bench {
    catalog: Catalog,
    _folder: tempfile::TempDir,
}

impl Bench {
    async fn new(masters: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), Settings::default()).unwrap();
        let catalog = Catalog::new(Arc::new(store), Keys::default());
        for (n, address) in masters.iter().enumerate() {
            let node = Node {
                id: format!("master-{n}").parse().unwrap(),
                role: Role::Master,
                address: address.clone(),
                http: String::new(),
                pprof: String::new(),
                incarnation: Incarnation(1),
                labels: BTreeMap::new(),
                capacity: 0,
                version: "0".into(),
                interface: String::new(),
                draining: false,
                started_at: 0,
                call_token: CallToken::default(),
                shares_turns: false,
                tls: false,
            };
            let key = catalog.keys().node(Role::Master, &node.id);
            let txn = Txn::new().put(key, encode(&node));
            catalog.store().commit(txn).await.unwrap();
        }
        Self {
            catalog,
            _folder: folder,
        }
    }

    fn masters(&self, max_bytes: u64) -> MasterPlugins {
        let deadlines = FetchDeadlines {
            piece: Duration::from_secs(2),
            ..FetchDeadlines::default()
        };
        let tls = ClientTls::default();
        MasterPlugins::new(self.catalog.clone(), max_bytes, deadlines, tls)
    }

    async fn fetch(&self) -> Result<Bytes, String> {
        let masters = self.masters(64 << 20);
        let fetched = masters.fetch(Digest::of(&plugin())).await;
        fetched.map_err(|e| e.to_string())
    }
}

/// Starts a way to a master that breaks each time `n_bytes` have come from there. With 0, nothing comes at
/// all and the way does not break.
async fn broken_way(scope: &TaskScope, to: SocketAddr, n_bytes: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let relay = async move {
        loop {
            let (worker, _) = listener.accept().await.unwrap();
            let master = TcpStream::connect(to).await.unwrap();
            let (mut from_worker, mut to_worker) = worker.into_split();
            let (mut from_master, mut to_master) = master.into_split();
            let there = tokio::io::copy(&mut from_worker, &mut to_master);
            let back = async {
                let mut n_left = n_bytes;
                let mut piece = vec![0; 16 << 10];
                while n_left > 0 {
                    let n = from_master.read(&mut piece).await.unwrap_or(0);
                    if n == 0 || to_worker.write_all(&piece[..n]).await.is_err() {
                        return;
                    }
                    n_left = n_left.saturating_sub(n);
                }
                if n_bytes == 0 {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                _ = there => {}
                () = back => {}
            }
        }
    };
    scope.spawn("relay", relay);
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn s17_a_worker_gets_a_plugin_from_any_master_that_is_right() {
    let wrong: Bytes = plugin().iter().map(|byte| byte ^ 1).collect();
    let right = Master::with(Some(plugin())).await;
    let liar = Master::with(Some(wrong)).await;
    let ignorant = Master::with(None).await;
    let scope = TaskScope::new();
    let breaks = broken_way(&scope, right.up.grpc, 3 << 20).await;
    let breaks_and_lies = broken_way(&scope, liar.up.grpc, 3 << 20).await;
    let mute = broken_way(&scope, right.up.grpc, 0).await;
    let [right_at, liar_at, ignorant_at] =
        [&right, &liar, &ignorant].map(|master| master.up.grpc.to_string());

    // The order of masters is random, and each order must do.
    let all = [&right_at, &liar_at, &breaks, &breaks_and_lies, &ignorant_at];
    let bench = Bench::new(&all.map(Clone::clone)).await;
    for _ in 0..8 {
        assert_eq!(bench.fetch().await.unwrap(), plugin());
    }
    // Two halves of the plugin make a whole one.
    let bench = Bench::new(&[breaks.clone(), breaks]).await;
    assert_eq!(bench.fetch().await.unwrap(), plugin());
    let bench = Bench::new(&[mute, right_at.clone()]).await;
    assert_eq!(bench.fetch().await.unwrap(), plugin());

    let bench = Bench::new(&[liar_at.clone(), ignorant_at.clone()]).await;
    let why = bench.fetch().await.unwrap_err();
    assert!(
        why.contains(&format!("{liar_at}: it sends other bytes")),
        "{why}"
    );
    assert!(why.contains(&format!("{ignorant_at}: ")), "{why}");
    let bench = Bench::new(std::slice::from_ref(&right_at)).await;
    let masters = bench.masters(N_BYTES as u64 - 1);
    let why = masters.fetch(Digest::of(&plugin())).await.unwrap_err();
    assert_eq!(
        why.to_string(),
        format!(
            "cannot fetch the plugin from a master: {right_at}: it sends more than 5242879 bytes, \
             the limit set by --plugin-size"
        )
    );
    let bench = Bench::new(&[]).await;
    let why = bench.fetch().await.unwrap_err();
    assert_eq!(
        why,
        "cannot fetch the plugin from a master: none is registered"
    );
    scope.stop(Duration::ZERO).await;
    for master in [right, liar, ignorant] {
        master.up.stop().await;
    }
}

#[tokio::test]
async fn s17_where_no_master_answers_a_plugin_comes_from_the_data_root() {
    let folder = tempfile::tempdir().unwrap();
    let data = Arc::new(DataRoot::open(&folder.path().join("data").display().to_string()).unwrap());
    let bench = Bench::new(&["127.0.0.1:1".to_owned()]).await;
    let options = EngineOptions::in_folder(folder.path().to_owned());
    let plugins = DataPlugins {
        masters: Some(Arc::new(bench.masters(64 << 20))),
        data: data.clone(),
        engine: Engine::new(engine_settings(&options)).unwrap(),
    };
    let digest = Digest::of(&plugin());
    let why = plugins.bytes(digest).await.unwrap_err().to_string();
    assert!(why.contains("the data root has no plugin"), "{why}");
    assert!(why.contains("127.0.0.1:1: "), "{why}");
    data.put_plugin(digest, plugin()).await.unwrap();
    assert_eq!(plugins.bytes(digest).await.unwrap(), plugin());
}
