//! Components made of text, for code that no compiler of a language would write: the honest parts of a
//! plugin, and rules with the instructions of a test.

use bytes::Bytes;
use wasmparser::{Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, WorldId};

/// World of plugins, with a resource of WASI that a rule can misuse.
const WORLD: &str = "
package crawler:cases;

package wasi:io@0.2.0 {
    interface poll { resource pollable; }
    interface streams {
        use poll.{pollable};
        resource output-stream { subscribe: func() -> pollable; }
    }
}

package wasi:cli@0.2.0 {
    interface stdout {
        use wasi:io/streams@0.2.0.{output-stream};
        get-stdout: func() -> output-stream;
    }
}

world cases {
    include crawler:rules/plugin@0.1.1;
    import wasi:cli/stdout@0.2.0;
}
";

/// Addresses of the plugin's description. The answer of a call is there too: it is ok, because memory is
/// zero.
const DESCRIPTION: u32 = 1024;
const SCHEMA: u32 = 1100;
const RULE_NAMES: u32 = 4096;
const RULES: u32 = 12_288;

/// A plugin in the text format.
pub(crate) struct Guest {
    /// Name that the plugin gives itself.
    pub(crate) name: &'static str,
    /// Rules by name, each with the instructions of its function.
    pub(crate) rules: &'static [(&'static str, &'static str)],
    /// Number of memory pages at the start.
    pub(crate) n_pages: u32,
    /// Fields of the module in addition to the usual ones.
    pub(crate) more: &'static str,
    /// True if strings are UTF-16.
    pub(crate) is_wide: bool,
}

impl Guest {
    /// Returns the component.
    pub(crate) fn component(&self) -> Bytes {
        self.component_with(str::to_owned, str::to_owned)
    }

    /// Returns the component of an interface and a module that were changed.
    pub(crate) fn component_with(
        &self,
        interface: fn(&str) -> String,
        module: fn(&str) -> String,
    ) -> Bytes {
        let module = wat::parse_str(module(&self.module()));
        let mut module = module.expect("the text is WebAssembly");
        let (texts, world) = world(interface);
        let encoding = if self.is_wide {
            StringEncoding::UTF16
        } else {
            StringEncoding::UTF8
        };
        embed_component_metadata(&mut module, &texts, world, encoding).expect("the world fits");
        let mut encoder = ComponentEncoder::default();
        let encoder = encoder.module(&module).expect("the module fits the world");
        encoder.encode().expect("the component is made").into()
    }

    fn module(&self) -> String {
        let mut functions = String::new();
        let mut names = Vec::new();
        for (n, (_, body)) in self.rules.iter().enumerate() {
            functions += &format!("(func $rule{n} (result i32) {body} (i32.const 2048))\n");
            names.push(format!("$rule{n}"));
        }
        let (n_rules, names) = (names.len(), names.join(" "));
        let (n_pages, more, data) = (self.n_pages, self.more, self.data());
        format!(
            r#"(module
            (type $rule (func (result i32)))
            {IMPORTS}
            (memory (export "memory") {n_pages})
            (global $heap (mut i32) (i32.const 65536))
            (global $mode (mut i32) (i32.const 0))
            (table $rules {n_rules} funcref)
            (elem (table $rules) (i32.const 0) func {names})
            {HELPERS}
            {functions}
            (func (export "crawler:rules/rules@0.1.1#describe") (result i32) (i32.const {DESCRIPTION}))
            (func (export "crawler:rules/rules@0.1.1#root") (result i32) (i32.const 2048))
            (func (export "crawler:rules/rules@0.1.1#parse") (param i32) (result i32)
                (call_indirect $rules (type $rule) (local.get 0)))
            {data}
            {more})"#
        )
    }

    /// Returns the data that `describe` returns, as it lies in memory.
    fn data(&self) -> String {
        let mut data = String::new();
        let mut rules = Vec::new();
        let mut at = RULE_NAMES;
        for (name, _) in self.rules {
            data += &self.text(at, name);
            rules.extend([at, name.len() as u32, 0, 0]);
            at += 2 * name.len() as u32;
        }
        assert!(at <= RULES, "the names of the rules have room");
        data += &self.text(0, self.name);
        data += &self.text(24, "1.0.0");
        data += &self.text(40, "any");
        data += &self.text(64, "{}");
        data += &numbers(RULES, &rules);
        data += &numbers(SCHEMA, &[40, 3, 0, 0, 0, 0]);
        let n_rules = self.rules.len() as u32;
        let name = self.name.len() as u32;
        data + &numbers(DESCRIPTION, &[0, name, 24, 5, RULES, n_rules, SCHEMA, 1])
    }

    fn text(&self, at: u32, text: &str) -> String {
        let bytes: Vec<u8> = if self.is_wide {
            text.encode_utf16().flat_map(u16::to_le_bytes).collect()
        } else {
            text.bytes().collect()
        };
        data(at, &bytes)
    }
}

fn numbers(at: u32, numbers: &[u32]) -> String {
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    data(at, &bytes)
}

fn data(at: u32, bytes: &[u8]) -> String {
    let escaped: String = bytes.iter().map(|b| format!("\\{b:02x}")).collect();
    format!("(data (i32.const {at}) \"{escaped}\")\n")
}

fn world(change: fn(&str) -> String) -> (Resolve, WorldId) {
    let mut texts = Resolve::default();
    let rules = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../plugin-sdk/wit/rules.wit"
    );
    let rules = std::fs::read_to_string(rules).expect("the interface can be read");
    let pushed = texts.push_source("rules.wit", &change(&rules));
    pushed.expect("it is WIT");
    let package = texts.push_source("cases.wit", WORLD).expect("it is WIT");
    let world = texts.select_world(&[package], Some("cases"));
    (texts, world.expect("the world is there"))
}

/// Imports, as core functions.
const IMPORTS: &str = r#"
    (import "crawler:rules/output@0.1.1" "emit" (func $emit (param i32 i32 i32 i32)))
    (import "crawler:rules/output@0.1.1" "follow" (func $follow (param i32 i32 i32)))
    (import "crawler:rules/log@0.1.1" "write" (func $log (param i32 i32 i32)))
    (import "crawler:rules/page@0.1.1" "text" (func $text (param i32)))
    (import "crawler:rules/page@0.1.1" "headers" (func $headers (param i32)))
    (import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
    (import "wasi:io/streams@0.2.0" "[method]output-stream.subscribe" (func $subscribe (param i32) (result i32)))
    (import "wasi:io/streams@0.2.0" "[resource-drop]output-stream" (func $drop-stream (param i32)))
"#;

/// Helper functions: an allocator that never frees, and its other behaviour in each mode that a rule may set.
/// The function that is called after an answer was read has such modes too.
const HELPERS: &str = r#"
    (func $good (call $emit (i32.const 0) (i32.const 64) (i32.const 2) (i32.const 2200)))
    (func $spin (loop $l (br $l)))
    (func $hoard (loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable)
    (func $allocate (param $n i32) (result i32) (local $p i32)
        (local.set $p (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
        (global.set $heap (i32.add (local.get $p) (local.get $n)))
        (if (i32.gt_u (global.get $heap) (i32.shl (memory.size) (i32.const 16)))
            (then (if (i32.eq (i32.const -1) (memory.grow (i32.add (i32.const 1) (i32.shr_u (local.get $n) (i32.const 16)))))
                (then unreachable))))
        (local.get $p))
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
        (if (i32.eq (global.get $mode) (i32.const 1)) (then (call $spin)))
        (if (i32.eq (global.get $mode) (i32.const 2)) (then (return (i32.const 0xfffffff0))))
        (if (i32.eq (global.get $mode) (i32.const 3)) (then (call $good)))
        (if (i32.eq (global.get $mode) (i32.const 4)) (then (return (i32.const 65537))))
        (if (i32.eq (global.get $mode) (i32.const 5)) (then (call $hoard)))
        (if (i32.eq (global.get $mode) (i32.const 6)) (then unreachable))
        (call $allocate (local.get 3)))
    (func (export "cabi_post_crawler:rules/rules@0.1.1#parse") (param i32)
        (if (i32.eq (global.get $mode) (i32.const 11)) (then (call $spin)))
        (if (i32.eq (global.get $mode) (i32.const 12)) (then (call $good)))
        (if (i32.eq (global.get $mode) (i32.const 13)) (then unreachable)))
"#;

/// Returns a component with another inside, which is instantiated with it.
pub(crate) fn with_inner(outer: &[u8], inner: &[u8]) -> Bytes {
    let mut bytes = outer.to_vec();
    let mut instance = vec![1, 0];
    instance.extend(leb(n_components(outer)));
    instance.push(0);
    bytes.extend(section(4, inner));
    bytes.extend(section(5, &instance));
    bytes.into()
}

/// Returns the number of components that a component has directly inside.
fn n_components(component: &[u8]) -> usize {
    let mut depth = 0;
    let mut n = 0;
    for payload in Parser::new(0).parse_all(component) {
        match payload.expect("the component can be read") {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentSection { .. } if depth == 1 => n += 1,
            _ => {}
        }
    }
    n
}

/// Encodes a section of a module or component.
pub(crate) fn section(id: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![id];
    bytes.extend(leb(content.len()));
    bytes.extend(content);
    bytes
}

/// Encodes a number in LEB128.
pub(crate) fn leb(mut n: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while n >= 0x80 {
        bytes.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
    bytes
}
