//! Writes a function whose symbol is larger than it looks: demangled as C++, its last thousand parts
//! each stand for a thousand parts, each of which stands for a thousand more.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo tells build scripts by the environment where they may write"
)]

use std::path::Path;
use std::{env, fs};

fn main() {
    let part = |of: &str| of.repeat(1_000);
    let (i, s0, s1) = (part("i"), part("S0_"), part("S1_"));
    let symbol = format!("_Z1f1AI{i}ES_I{s0}ES_I{s1}E");
    let function = format!(
        "#[unsafe(export_name = \"{symbol}\")]
        #[inline(never)]
        extern \"C\" fn trap_in_long_name() {{
            core::arch::wasm32::unreachable()
        }}"
    );
    let folder = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&folder).join("long_name.rs"), function).expect("the folder is there");
    println!("cargo::rerun-if-changed=build.rs");
}
