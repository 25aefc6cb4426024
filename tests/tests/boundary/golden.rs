//! Components that were built for the frozen boundary: in the sandbox of today, and on a host that has grown.

use std::fs;

use crawler_model::id::Digest;
use crawler_tests::guests::frozen;
use crawler_tests::process::Home;
use serde_json::Value;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, LinkerInstance, ResourceType, Val};
use wasmtime::{Engine, Store};

/// Components with the names that they give themselves. `system/languages.rs` builds Python's, which is too large
/// to be kept.
const COMPONENTS: [(&str, &str); 2] = [("books-rust.wasm", "books"), ("books-js.wasm", "books_js")];

#[test]
fn frozen_components_give_in_the_sandbox_of_today_what_they_gave_and_cost_the_same_in_each_process()
{
    for (file, _) in COMPONENTS {
        let first = fuel_of_calls(file);
        assert!(first.iter().all(|fuel| *fuel > 0), "{file}: {first:?}");
        assert_eq!(first, fuel_of_calls(file), "{file}");
    }
}

/// Returns the fuel of each saved call, and checks that its result is the kept one. A new home has nothing
/// compiled in it.
#[track_caller]
fn fuel_of_calls(file: &str) -> Vec<u64> {
    let home = Home::new();
    let component = frozen(file).display().to_string();
    let pages = frozen("pages").display().to_string();
    let test = ["plugin", "test", &component, "--repeat=2", "-o", "json"];
    let tested = home.ok(test.into_iter().chain(["--pages", &pages]));
    let tested: Value = serde_json::from_str(&tested).expect("it is JSON");
    let calls = tested["calls"].as_array().expect("there are calls");
    let results: Vec<_> = calls.iter().map(|call| &call["result"]).collect();
    assert_eq!(results, ["same"; 4], "{file}: {tested:#}");
    let fuel = calls.iter().map(|call| call["fuel"].as_u64());
    fuel.map(|fuel| fuel.expect("it is a number")).collect()
}

#[test]
fn what_was_frozen_is_never_built_again() {
    let digests = [
        (
            "rules.wit",
            "88f9267c75c6d17f9692222e36bf4043c1f1dce6412aac29bb11fd92955d5e17",
        ),
        (
            "books-rust.wasm",
            "150a95859f1294d6ce0bc3132039d17980068aaf14800a53c76ab60111333ff7",
        ),
        (
            "books-js.wasm",
            "336c800c71452f309bbd9c60451f15f91f26a56917fbee37d5fc9c2b8a0ccbb2",
        ),
    ];
    for (file, digest) in digests {
        let bytes = fs::read(frozen(file)).expect("it is kept");
        assert_eq!(
            Digest::of(&bytes).to_string(),
            digest,
            "{file} of tests/golden/0.1.0 has changed; take it back: people have components like it"
        );
    }
}

/// The test is about names only: the texts show that the types are the same.
#[test]
fn frozen_components_run_on_a_host_that_has_grown() {
    for (file, name) in COMPONENTS {
        let engine = Engine::default();
        let component = Component::from_file(&engine, frozen(file)).expect("it is a component");
        let mut store = Store::new(&engine, ());
        let instance = grown_host(&component).instantiate(&mut store, &component);
        let instance = instance.unwrap_or_else(|e| panic!("{file} does not start: {e:#}"));
        let mut export = |within: Option<&_>, name| {
            let index = instance.get_export_index(&mut store, within, name);
            index.unwrap_or_else(|| panic!("{file} has no {name}"))
        };
        // A host of 0.1.1 looks for this name.
        let rules = export(None, "crawler:rules/rules@0.1.1");
        let describe = export(Some(&rules), "describe");
        let describe = instance.get_func(&mut store, describe);
        let mut said = [Val::Bool(false)];
        let called = describe
            .expect("it is a function")
            .call(&mut store, &[], &mut said);
        called.unwrap_or_else(|e| panic!("{file} does not describe itself: {e:#}"));
        let [Val::Record(said)] = &said else {
            panic!("{file} describes itself by {said:?}");
        };
        let name = ("name".to_owned(), Val::String(name.to_owned()));
        assert_eq!(said[0], name, "{file}");
    }
}

/// Returns a host of version 0.1.1, with one more function in each interface and one more interface. It does
/// nothing.
fn grown_host(component: &Component) -> Linker<()> {
    let engine = component.engine();
    let mut linker = Linker::new(engine);
    let once = "each name is there once";
    for (name, import) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(interface) = import.ty else {
            panic!("{name} is no interface");
        };
        let grown = name
            .strip_suffix("@0.1.0")
            .map(|name| format!("{name}@0.1.1"));
        let mut host = linker
            .instance(grown.as_deref().unwrap_or(name))
            .expect(once);
        for (name, item) in interface.exports(engine) {
            match item.ty {
                ComponentItem::ComponentFunc(_) => add(&mut host, name),
                ComponentItem::Resource(_) => host
                    .resource(name, ResourceType::host::<()>(), |_, _| Ok(()))
                    .expect(once),
                _ => {}
            }
        }
        if grown.is_some() {
            add(&mut host, "added-later");
        }
    }
    let mut added = linker
        .instance("crawler:rules/added-later@0.1.1")
        .expect(once);
    add(&mut added, "all");
    linker
}

fn add(host: &mut LinkerInstance<'_, ()>, name: &str) {
    host.func_new(name, |_, _, _, _| {
        Err(wasmtime::Error::msg("describe calls nothing"))
    })
    .expect("each name is there once");
}
