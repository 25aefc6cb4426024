//! Tests of every kind of bytes that are no plugin, and of the messages about them.

use super::*;
use crate::engine::{MemoryMode, setup};

const SIZE: u64 = 1 << 20;
const PLUGIN: &str = r#"(component
    (import "crawler:rules/log@0.1.0" (instance))
    (import "wasi:cli/environment@0.2.6" (instance))
    (instance)
    (export "crawler:rules/rules@0.1.0" (instance 2)))"#;

fn features() -> WasmFeatures {
    Engine::new(&setup::config(MemoryMode::Moving))
        .unwrap()
        .get_wasm_features()
}

#[track_caller]
fn check_bytes(bytes: &[u8], expected: &str) {
    match check(bytes, SIZE, features()) {
        Ok(version) => assert_eq!(version, expected),
        Err(e) => assert_eq!(e.to_string(), expected),
    }
}

#[track_caller]
fn check_wat(wat: &str, expected: &str) {
    check_bytes(&wat::parse_str(wat).unwrap(), expected);
}

#[test]
fn a_plugin_is_known_by_what_it_imports_and_exports() {
    check_wat(PLUGIN, "0.1.0");
}

#[test]
fn f31_what_is_not_a_component_is_refused_by_name() {
    check_bytes(
        &[0; (SIZE + 1) as usize],
        "1048577 bytes; at most 1048576 are allowed; build it in release mode, or raise --plugin-size",
    );
    check_bytes(
        b"",
        "no bytes; a WebAssembly component is needed; push the .wasm file that the build wrote, such as target/wasm32-wasip2/release/NAME.wasm",
    );
    check_bytes(
        b"(component)\n",
        "text; a WebAssembly component is needed; push the .wasm file that the build wrote, such as target/wasm32-wasip2/release/NAME.wasm",
    );
    check_bytes(
        &[0x89, b'P', b'N', b'G', 0, 1],
        "bytes that are not WebAssembly; a WebAssembly component is needed; push the .wasm file that the build wrote, such as target/wasm32-wasip2/release/NAME.wasm",
    );
    check_wat(
        "(module)",
        "a core module; a WebAssembly component is needed; build with --target wasm32-wasip2, which makes components",
    );
}

#[test]
fn f31_machine_code_is_refused_whatever_it_is_called() {
    let image = Engine::default()
        .precompile_component(&wat::parse_str("(component)").unwrap())
        .unwrap();
    check_bytes(
        &image,
        "code that wasmtime compiled for one kind of machine; machine code is never accepted, only components; push the .wasm file that it was made from",
    );
}

#[test]
fn f31_a_plugin_cut_anywhere_is_refused_without_a_panic() {
    let whole = wat::parse_str(PLUGIN).unwrap();
    for n in 0..whole.len() {
        assert!(check(&whole[..n], SIZE, features()).is_err(), "{n} bytes");
    }
    check_bytes(
        &whole[..whole.len() - 1],
        "the component is damaged or uses a feature that is switched off: unexpected end-of-file (at offset 0x58); a complete component without threads, 64-bit memories or relaxed SIMD; build it again, and push the whole file",
    );
}

#[test]
fn f31_a_feature_that_is_switched_off_is_refused() {
    check_wat(
        "(component (core module (memory 1 2 shared)))",
        "the component is damaged or uses a feature that is switched off: threads must be enabled for shared memories (at offset 0x15); a complete component without threads, 64-bit memories or relaxed SIMD; build it again, and push the whole file",
    );
}

/// Returns a component inside `n` others, one in each; nothing in it is as long as 2^14 bytes.
fn nested(n: usize) -> Vec<u8> {
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";
    (0..n).fold(EMPTY.to_vec(), |inner, _| {
        let n_bytes = [(inner.len() & 0x7f) as u8 | 0x80, (inner.len() >> 7) as u8];
        [EMPTY, &[4], &n_bytes, &inner].concat()
    })
}

#[test]
fn f31_components_deep_inside_others_are_refused_unvalidated() {
    check_bytes(
        &nested(DEPTH_MAX - 1),
        "a component that exports nothing; a plugin exports crawler:rules/rules@0.1.1; build it with the plugin SDK",
    );
    check_bytes(
        &nested(DEPTH_MAX),
        "more than 64 components inside each other; usual components nest three deep; build it with the plugin SDK",
    );
}

#[test]
fn f31_a_foreign_import_is_named() {
    check_wat(
        r#"(component (import "wasi:sockets/tcp@0.2.6" (instance)))"#,
        "the component imports wasi:sockets/tcp@0.2.6, which rules are not given; rules may import crawler:rules, and of WASI what standard libraries need: no network, no files, no processes; remove the dependency that needs it; pages are fetched by requests: crawl.follow",
    );
    check_wat(
        r#"(component (import "fetch" (func)))"#,
        "the component imports fetch, which rules are not given; rules may import crawler:rules, and of WASI what standard libraries need: no network, no files, no processes; remove the dependency that needs it; pages are fetched by requests: crawl.follow",
    );
    check_wat(
        r#"(component (import "wasi:cli/exit@0.3.0" (instance)))"#,
        "the component imports wasi:cli/exit@0.3.0; of WASI the versions 0.2 are there; build with --target wasm32-wasip2",
    );
}

#[test]
fn f31_another_version_of_the_interface_is_refused_with_both_ranges() {
    check_wat(
        r#"(component (instance $i) (export "crawler:rules/rules@0.2.0" (instance $i)))"#,
        "the component was built for crawler:rules 0.2.0; this host runs 0.1.0 to 0.1.1; build it with the plugin SDK of this release, or update the cluster",
    );
    check_wat(
        r#"(component (import "crawler:rules/page@9.0.0" (instance)))"#,
        "the component was built for crawler:rules 9.0.0; this host runs 0.1.0 to 0.1.1; build it with the plugin SDK of this release, or update the cluster",
    );
    check_wat(
        r#"(component (import "crawler:rules/cookies@0.1.2" (instance)))"#,
        "the component was built for crawler:rules 0.1.2; this host runs 0.1.0 to 0.1.1; build it with the plugin SDK of this release, or update the cluster",
    );
    check_wat(
        r#"(component (import "crawler:rules/cookies@0.1.0" (instance)))"#,
        "the component imports crawler:rules/cookies@0.1.0, which rules are not given; rules may import crawler:rules, and of WASI what standard libraries need: no network, no files, no processes; remove the dependency that needs it; pages are fetched by requests: crawl.follow",
    );
}

#[test]
fn f31_a_component_without_rules_is_refused() {
    check_wat(
        "(component)",
        "a component that exports nothing; a plugin exports crawler:rules/rules@0.1.1; build it with the plugin SDK",
    );
    check_wat(
        r#"(component (instance $i) (export "wasi:cli/run@0.2.6" (instance $i)))"#,
        "a component that exports wasi:cli/run@0.2.6; a plugin exports crawler:rules/rules@0.1.1; build it with the plugin SDK",
    );
}
