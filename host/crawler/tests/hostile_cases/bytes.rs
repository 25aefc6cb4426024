//! Bytes that somebody might push: bytes that are no plugin, plugins that are cut, and components with parts
//! that exhaust a program that reads or compiles them.

use bytes::Bytes;

use crate::guests::hostile;
use crate::rules::PLAIN;
use crate::wat::{leb, section, with_inner};

/// Headers of all modules and components.
const MODULE: &[u8] = b"\0asm\x01\0\0\0";
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// Returns the honest plugin with this component inside.
fn with(inner: &str) -> Bytes {
    let inner = wat::parse_str(inner).expect("the text is WebAssembly");
    with_inner(&PLAIN.component(), &inner)
}

/// Returns the honest plugin with this module inside.
fn with_module(module: &[u8]) -> Bytes {
    let mut inner = COMPONENT.to_vec();
    inner.extend(section(1, module));
    with_inner(&PLAIN.component(), &inner)
}

fn component(text: &str) -> Bytes {
    wat::parse_str(text)
        .expect("the text is WebAssembly")
        .into()
}

/// Returns the honest plugin with a component that instantiates a module `n` times.
fn with_instance(module: &str, n: usize) -> Bytes {
    let instances = "(core instance (instantiate $m))".repeat(n);
    with(&format!(
        "(component (core module $m {module}) {instances})"
    ))
}

pub(crate) fn start_that_spins() -> Bytes {
    with_instance("(func $f (loop $l (br $l))) (start $f)", 1)
}

pub(crate) fn start_that_traps() -> Bytes {
    with_instance("(func $f unreachable) (start $f)", 1)
}

pub(crate) fn start_that_hoards() -> Bytes {
    let hoard = "(memory 1) (func $f (loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable) (start $f)";
    with_instance(hoard, 1)
}

/// Returns a module of functions that all have no parameters and these bodies.
fn functions(bodies: &[Vec<u8>]) -> Bytes {
    let mut declared = leb(bodies.len());
    declared.resize(declared.len() + bodies.len(), 0);
    let mut code = leb(bodies.len());
    for body in bodies {
        code.extend(leb(body.len()));
        code.extend(body);
    }
    let mut module = MODULE.to_vec();
    module.extend(section(1, &[1, 0x60, 0, 0]));
    module.extend(section(3, &declared));
    module.extend(section(10, &code));
    with_module(&module)
}

/// Returns the body of a function with a `br_table` of `n` targets, which are all the same.
fn wide_switch(n: usize) -> Vec<u8> {
    let mut body = vec![0, 0x02, 0x40, 0x41, 0, 0x0e];
    body.extend(leb(n));
    body.resize(body.len() + n + 1, 0);
    body.extend([0x0b, 0x0b]);
    body
}

/// Returns a function of `n_bytes`: `i32.const 0` and `drop`, again and again.
fn long_function(n_bytes: usize) -> Vec<u8> {
    let mut body = vec![0];
    body.extend([0x41, 0, 0x1a].repeat(n_bytes / 3));
    body.push(0x0b);
    body
}

pub(crate) fn switch_of_7_million() -> Bytes {
    functions(&[wide_switch(7_600_000)])
}

pub(crate) fn function_of_7_megabytes() -> Bytes {
    functions(&[long_function(7_600_000)])
}

pub(crate) fn function_of_8_megabytes() -> Bytes {
    functions(&[long_function(7_700_000)])
}

pub(crate) fn functions_100_000() -> Bytes {
    functions(&vec![vec![0, 0x0b]; 100_000])
}

pub(crate) fn memory_of_4_gib() -> Bytes {
    with_instance("(memory 65536)", 1)
}

pub(crate) fn memories_of_one_module() -> Bytes {
    with_instance(&"(memory 1)".repeat(5), 1)
}

pub(crate) fn memories_of_many_modules() -> Bytes {
    with_instance("(memory 1)", 5)
}

pub(crate) fn memories_of_many_components() -> Bytes {
    let instances = "(instance (instantiate $c))".repeat(5);
    with(&format!(
        "(component (component $c (core module $m (memory 1)) (core instance (instantiate $m))) {instances})"
    ))
}

pub(crate) fn core_instances_100() -> Bytes {
    with_instance("", 100)
}

/// Returns `n` components inside each other.
fn nested(n: usize) -> Bytes {
    // It is built from the inside: the bytes before each component, and the length of all of it.
    let mut before = Vec::with_capacity(n);
    let mut n_bytes = COMPONENT.len();
    for _ in 0..n {
        let mut outer = COMPONENT.to_vec();
        outer.push(4);
        outer.extend(leb(n_bytes));
        n_bytes += outer.len();
        before.push(outer);
    }
    let mut inner: Vec<u8> = before.into_iter().rev().flatten().collect();
    inner.extend(COMPONENT);
    with_inner(&PLAIN.component(), &inner)
}

/// Returns components 100 000 deep. Without a check of the depth, validating them takes minutes.
pub(crate) fn components_100_000_deep() -> Bytes {
    nested(100_000)
}

pub(crate) fn table_of_a_million() -> Bytes {
    with_instance("(table 1000000 funcref)", 1)
}

pub(crate) fn tables_of_extern() -> Bytes {
    with_instance("(table 10 externref)", 1)
}

pub(crate) fn tables_100() -> Bytes {
    with_instance(&"(table 1 funcref)".repeat(100), 1)
}

/// Returns a component with a function of one parameter, of the last of these types.
fn lifted(types: &str, last: &str) -> Bytes {
    with(&format!(
        r#"(component {types}
        (core module $m (memory (export "m") 1) (func (export "f") (param i32 i32))
            (func (export "r") (param i32 i32 i32 i32) (result i32) (i32.const 0)))
        (core instance $i (instantiate $m))
        (alias core export $i "m" (core memory $memory))
        (alias core export $i "r" (core func $r))
        (func (param "x" {last}) (canon lift (core func $i "f") (memory $memory) (realloc (core func $r)))))"#
    ))
}

pub(crate) fn types_100_deep() -> Bytes {
    let types: String = (1..=150)
        .map(|n| format!("(type $t{n} (list $t{}))", n - 1))
        .collect();
    lifted(&format!("(type $t0 (list u8)) {types}"), "$t150")
}

pub(crate) fn types_that_multiply() -> Bytes {
    let types: String = (1..=20)
        .map(|n| {
            let ten = format!("$t{} ", n - 1).repeat(10);
            format!("(type $t{n} (tuple {ten}))")
        })
        .collect();
    lifted(&format!("(type $t0 (tuple u8 u8)) {types}"), "$t20")
}

fn variant(n: usize) -> Bytes {
    let cases: String = (0..n).map(|n| format!("(case \"c{n}\" string)")).collect();
    lifted(&format!("(type $v (variant {cases}))"), "$v")
}

pub(crate) fn variant_of_10_001() -> Bytes {
    variant(10_001)
}

pub(crate) fn core_module() -> Bytes {
    component("(module)")
}

pub(crate) fn machine_code() -> Bytes {
    let image = wasmtime::Engine::default().precompile_component(COMPONENT);
    image.expect("it compiles").into()
}

fn importing(import: &str) -> Bytes {
    component(&format!("(component (import \"{import}\" (instance)))"))
}

pub(crate) fn importing_sockets() -> Bytes {
    importing("wasi:sockets/tcp@0.2.0")
}

pub(crate) fn importing_http() -> Bytes {
    importing("wasi:http/outgoing-handler@0.2.0")
}

pub(crate) fn importing_the_unknown() -> Bytes {
    importing("evil:corp/backdoor")
}

/// Returns a component with all the right names, but its `describe` takes a number.
pub(crate) fn of_another_type() -> Bytes {
    component(
        r#"(component
        (core module $m (func (export "f") (param i32)))
        (core instance $i (instantiate $m))
        (func $f (param "x" u32) (canon lift (core func $i "f")))
        (instance $rules (export "describe" (func $f)) (export "root" (func $f)) (export "parse" (func $f)))
        (export "crawler:rules/rules@0.1.1" (instance $rules)))"#,
    )
}

/// Returns a component with all the right names, but its `parse` takes a number of 64 bits.
pub(crate) fn parse_of_another_type() -> Bytes {
    PLAIN.component_with(
        |interface| interface.replace("parse: func(rule: u32)", "parse: func(rule: u64)"),
        |module| {
            module
                .replace(
                    "(param i32) (result i32)\n                (call_indirect",
                    "(param i64) (result i32)\n                (call_indirect",
                )
                .replace(
                    "(type $rule) (local.get 0)",
                    "(type $rule) (i32.wrap_i64 (local.get 0))",
                )
        },
    )
}

pub(crate) fn without_functions() -> Bytes {
    component(r#"(component (instance $i) (export "crawler:rules/rules@0.1.1" (instance $i)))"#)
}

pub(crate) fn too_new() -> Bytes {
    component(r#"(component (instance $i) (export "crawler:rules/rules@9.0.0" (instance $i)))"#)
}

pub(crate) fn too_old() -> Bytes {
    component(r#"(component (instance $i) (export "crawler:rules/rules@0.0.1" (instance $i)))"#)
}

pub(crate) fn without_rules() -> Bytes {
    component("(component)")
}

/// Returns bytes without any pattern.
pub(crate) fn noise() -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..100_000).map(|_| next()).collect()
}

/// Returns noise that begins like a component.
pub(crate) fn noise_in_a_component() -> Bytes {
    [COMPONENT, &noise()].concat().into()
}

/// Returns a plugin of usual size, cut after every KiB.
pub(crate) fn cut_everywhere() -> Vec<Bytes> {
    let whole = hostile();
    (0..whole.len())
        .step_by(1 << 10)
        .map(|n| whole.slice(..n))
        .collect()
}

/// Returns the honest plugin, and again with a section that nobody reads.
pub(crate) fn same_but_for_a_note() -> (Bytes, Bytes) {
    let plain = PLAIN.component();
    let mut noted = plain.to_vec();
    noted.extend(section(0, b"\x04noteread by nobody"));
    (plain, noted.into())
}
