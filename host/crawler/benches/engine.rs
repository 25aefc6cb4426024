//! The cost of a call: an instance alone, a call that does nothing, and a page handed over. The cost of
//! reading a page is in the benchmark `extract`.

#[path = "../tests/engine/guests.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests of the engine, which need more"
)]
mod guests;

use std::hint::black_box;
use std::sync::Arc;

use crawler_model::crawl::Page;
use crawler_plugin::engine::Plugin;
use crawler_plugin::{CallReport, Rules as _};
use criterion::{Criterion, criterion_group, criterion_main};
use guests::{component, config, context, page, plugin};
use tokio::runtime::Runtime;
use wasmtime::component::{Component, Linker};
use wasmtime::{InstanceAllocationStrategy, PoolingAllocationConfig, Store};

/// Size of a listing page of a shop.
const PAGE_BYTES: usize = 55_000;

fn instance(criterion: &mut Criterion) {
    let mut settings = wasmtime::Config::new();
    settings
        .consume_fuel(true)
        .epoch_interruption(true)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(
            PoolingAllocationConfig::new(),
        ));
    let engine = wasmtime::Engine::new(&settings).expect("the engine starts");
    let outline = component("outline", "tests/guests/outline");
    let component = Component::new(&engine, outline).expect("the plugin compiles");
    let mut linker = Linker::<()>::new(&engine);
    linker
        .define_unknown_imports_as_traps(&component)
        .expect("imports can be stubbed");
    let linked = linker.instantiate_pre(&component).expect("it links");
    criterion.bench_function("instance alone", |bencher| {
        bencher.iter(|| {
            let mut store = Store::new(&engine, ());
            store.set_fuel(u64::MAX).expect("fuel is counted");
            store.set_epoch_deadline(1);
            black_box(linked.instantiate(&mut store)).expect("it is instantiated")
        });
    });
}

fn calls(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime starts");
    let plugin = runtime.block_on(plugin());
    let empty = page("http://a.test/", "");
    let large = page("http://a.test/", "<p>text</p>".repeat(PAGE_BYTES / 11));
    for (name, rule, page) in [
        ("empty call", "nothing", &empty),
        ("one item, one link", "ok", &empty),
        ("read a page of 55 kB", "read-page", &large),
    ] {
        call(criterion, &runtime, name, &plugin, rule, page);
    }
}

fn call(
    criterion: &mut Criterion,
    runtime: &Runtime,
    name: &str,
    plugin: &Arc<Plugin>,
    rule: &str,
    page: &Arc<Page>,
) {
    let config = config(|_| (), &[("start", "http://a.test/std/index.html")]);
    criterion.bench_function(name, |bencher| {
        bencher.to_async(runtime).iter(async || -> CallReport {
            let report = plugin.parse(config.clone(), rule, page.clone(), context());
            let report = report.await;
            assert!(report.result.is_ok(), "{:?}", report.result);
            black_box(report)
        });
    });
}

criterion_group!(benches, instance, calls);
criterion_main!(benches);
