//! Files that are no plugins, with the errors about them.

use std::fs;

use crawler_tests::guests::{self, describing};

/// Bytes with the error of `crawler plugin push` and all other interfaces, without their prefixes.
pub(super) struct Bad {
    pub(super) file: &'static str,
    pub(super) bytes: Vec<u8>,
    pub(super) why: String,
}

pub(super) fn bad(file: &'static str, bytes: impl Into<Vec<u8>>, why: impl Into<String>) -> Bad {
    Bad {
        file,
        bytes: bytes.into(),
        why: why.into(),
    }
}

fn component(file: &'static str, wat: &str, why: &str) -> Bad {
    bad(
        file,
        wat::parse_str(wat).expect("the text is a component"),
        why,
    )
}

/// Returns all bad plugins but the one that is too large, which does not reach the checks.
pub(super) fn bad_plugins(machine_code: Vec<u8>) -> Vec<Bad> {
    const PUSH_BUILT: &str =
        "push the .wasm file that the build wrote, such as target/wasm32-wasip2/release/NAME.wasm";
    const DESCRIBE: &str =
        "describe returns at once, and calls neither page nor output; return constants from it";
    let plan = |why: &str| {
        format!(
            "describe lists a plan that cannot be followed: plan {why}; plans are read in one pass over the page; correct the plan"
        )
    };
    let whole = fs::read(guests::guest("hostile")).expect("the guest is built");
    let half = whole[..whole.len() / 2].to_vec();
    vec![
        bad(
            "text.wasm",
            "hello\n",
            format!("text; a WebAssembly component is needed; {PUSH_BUILT}"),
        ),
        bad(
            "empty.wasm",
            "",
            format!("no bytes; a WebAssembly component is needed; {PUSH_BUILT}"),
        ),
        component(
            "core.wasm",
            "(module)",
            "a core module; a WebAssembly component is needed; build with --target wasm32-wasip2, which makes components",
        ),
        bad(
            "machine.wasm",
            machine_code,
            "code that wasmtime compiled for one kind of machine; machine code is never accepted, only components; push the .wasm file that it was made from",
        ),
        bad(
            "half.wasm",
            half,
            "the component is damaged or uses a feature that is switched off: unexpected end-of-file (at offset PLACE); a complete component without threads, 64-bit memories or relaxed SIMD; build it again, and push the whole file",
        ),
        component(
            "sockets.wasm",
            r#"(component (import "wasi:sockets/tcp@0.2.6" (instance)))"#,
            "the component imports wasi:sockets/tcp@0.2.6, which rules are not given; rules may import crawler:rules, and of WASI what standard libraries need: no network, no files, no processes; remove the dependency that needs it; pages are fetched by requests: crawl.follow",
        ),
        component(
            "other-export.wasm",
            r#"(component (instance $i) (export "shop:rules/rules@0.1.0" (instance $i)))"#,
            "a component that exports shop:rules/rules@0.1.0; a plugin exports crawler:rules/rules@0.1.1; build it with the plugin SDK",
        ),
        component(
            "without-functions.wasm",
            r#"(component (instance $i) (export "crawler:rules/rules@0.1.0" (instance $i)))"#,
            "the component cannot be used: instance export `crawler:rules/rules@0.1.1` does not have export `describe`; a plugin imports and exports crawler:rules as plugin-sdk/wit/rules.wit has it; build it with the plugin SDK",
        ),
        component(
            "newer.wasm",
            r#"(component (instance $i) (export "crawler:rules/rules@0.2.0" (instance $i)))"#,
            "the component was built for crawler:rules 0.2.0; this host runs 0.1.0 to 0.1.1; build it with the plugin SDK of this release, or update the cluster",
        ),
        bad(
            "describe-loops.wasm",
            describing("loop"),
            format!("describe was ended (out-of-fuel): the rule used up its fuel; {DESCRIBE}"),
        ),
        bad(
            "describe-emits.wasm",
            describing("emit"),
            format!(
                "describe was ended (denied): the plugin emitted an item in describe, where there is no output; {DESCRIBE}"
            ),
        ),
        bad(
            "describe-selectors.wasm",
            describing("selectors"),
            plan(
                r#""many": 10000 fields, and 128 is the limit; read less, or make two plans of it"#,
            ),
        ),
        bad(
            "describe-mebibyte.wasm",
            describing("mebibyte"),
            plan(
                r#""long": 1048583 bytes of names and selectors, and 65536 is the limit; read less, or make two plans of it"#,
            ),
        ),
        bad(
            "describe-nested-not.wasm",
            describing("nested-not"),
            plan(&format!(
                r#""deep", field "word", selector "{}…": parentheses nest deeper than 8; write less of them into each other"#,
                ":not(".repeat(24)
            )),
        ),
        bad(
            "describe-1000-nots.wasm",
            describing("1000-nots"),
            plan(&format!(
                r#""deep", field "word", selector "{}…": it has 6001 bytes, and 512 is the limit; begin it nearer to the element, with a class or an id"#,
                ":not(".repeat(24)
            )),
        ),
        bad(
            "describe-syntax.wasm",
            describing("syntax"),
            plan(r#""wrong", field "word", selector "p[": `[` is not closed; close it"#),
        ),
        bad(
            "describe-unsupported.wasm",
            describing("unsupported"),
            plan(
                r#""wrong", field "word", selector "p:has(a)": `:has()` is not known: only :not(), :is(), :where(), :first-child, :nth-child(), :first-of-type and :nth-of-type() are; use scraper inside the rule (SDK feature dom)"#,
            ),
        ),
        bad(
            "describe-own-rows.wasm",
            describing("own-rows"),
            plan(
                r#""endless", group "row": its parent is group 0, which does not come before it; put parents first"#,
            ),
        ),
        bad(
            "describe-same-fields.wasm",
            describing("same-fields"),
            plan(
                r#""echo", field "word": another field before it has this name; rename one of them"#,
            ),
        ),
        bad(
            "describe-twice.wasm",
            describing("twice"),
            r#"describe lists "ok" twice among its rules; names are unique within a plugin; rename one of them"#,
        ),
    ]
}
