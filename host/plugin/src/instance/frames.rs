//! The names of the guest's functions that were open when a call ended.
//!
//! Names come from the component, so they are as long and as misleading as its author likes. Only
//! Rust's symbols are demangled, because what they show is bounded by their own length; those of
//! C++ may name their own parts again and again, and 4 KiB of them show as gigabytes.
//!
//! Only functions of a rule's author help the author. Those of the standard library, of the SDK and of the
//! interpreters in components of scripts are marked as foreign.

use std::fmt;

use rustc_demangle::try_demangle;
use wasmtime::{FrameInfo, WasmBacktrace};

use crate::Frame;
use crawler_model::guest_text::GuestText;

/// Largest length of one name that is shown, in bytes.
const NAME_MAX: usize = 512;
/// Largest length of a symbol that is demangled, in bytes; a longer one is shown as it is, cut.
const SYMBOL_MAX: usize = 4 << 10;
/// Crates whose functions no author of a rule has written.
const FOREIGN_CRATES: [&str; 14] = [
    "alloc",
    "compiler_builtins",
    "componentize_py_runtime",
    "core",
    "crawler_plugin_sdk",
    "dlmalloc",
    "hashbrown",
    "pyo3",
    "pyo3_ffi",
    "std",
    "wit_bindgen",
    "wit_bindgen_rt",
    "wit_dylib_ffi",
    "__rustc",
];

/// Returns the functions that were open, innermost first; none if the call ended outside of any.
pub(super) fn of(error: &wasmtime::Error) -> Vec<Frame> {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else {
        return Vec::new();
    };
    let frames = backtrace.frames().iter();
    frames.map(|frame| Function::of(frame).frame()).collect()
}

/// Name of a function for people: `path::function` of Rust, `module!function` of other languages.
struct Function<'a> {
    module: Option<&'a str>,
    /// Symbol in the component.
    symbol: Option<&'a str>,
    index: u32,
}

impl<'a> Function<'a> {
    fn of(frame: &'a FrameInfo) -> Self {
        Self {
            module: frame.module().name(),
            symbol: frame.func_name(),
            index: frame.func_index(),
        }
    }

    fn frame(&self) -> Frame {
        match self.rust_name() {
            Some(name) => Frame {
                is_own: is_own(&name),
                name,
            },
            None => Frame {
                name: GuestText::within(NAME_MAX, self),
                is_own: false,
            },
        }
    }

    /// Returns the name of a function in Rust, without the hash that compilers add.
    fn rust_name(&self) -> Option<GuestText> {
        let symbol = self.symbol.filter(|symbol| symbol.len() <= SYMBOL_MAX)?;
        let name = try_demangle(symbol).ok()?;
        Some(GuestText::within(NAME_MAX, format_args!("{name:#}")))
    }
}

impl fmt::Display for Function<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(module) = self.module {
            write!(f, "{module}!")?;
        }
        match self.symbol {
            Some(symbol) => f.write_str(symbol),
            None => write!(f, "<wasm function {}>", self.index),
        }
    }
}

/// Returns true if a function of Rust, as demangled, belongs to no [foreign crate](FOREIGN_CRATES). In names like
/// `<shop::Shop as core::fmt::Display>::fmt` the type decides. The calls of rules and the exports of a component are
/// made by macros.
fn is_own(name: &str) -> bool {
    let first = name.trim_start_matches(['<', '&', '[', '(', '*']);
    let first = first.trim_start_matches("mut ").trim_start_matches("dyn ");
    let end = first.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    let first = &first[..end.unwrap_or(first.len())];
    let is_call = name.contains("crawler_plugin_sdk::") && name.contains(">::call_r");
    let is_export = name.contains("::rules::_export_");
    !FOREIGN_CRATES.contains(&first) && !is_call && !is_export
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(symbol: &str) -> Frame {
        let function = Function {
            module: Some("m"),
            symbol: Some(symbol),
            index: 7,
        };
        function.frame()
    }

    #[test]
    fn a_function_is_named_as_in_its_source() {
        let legacy = "_ZN1a1b17h1ae90b67556d7bf6E";
        assert_eq!(shown(legacy).name.as_str(), "a::b");
        let v0 = "_RNvCskwGfYPst2Cb_3foo3bar";
        assert_eq!(shown(v0).name.as_str(), "foo::bar");
        assert_eq!(shown("hello").name.as_str(), "m!hello");
        let nameless = Function {
            module: None,
            symbol: None,
            index: 7,
        };
        assert_eq!(nameless.frame().name.as_str(), "<wasm function 7>");
    }

    #[test]
    fn functions_of_libraries_and_interpreters_are_foreign() {
        for name in [
            "shop::detail",
            "<shop::Shop as core::fmt::Display>::fmt",
            "<&mut shop::Shop as core::iter::Iterator>::next",
            "stdlib::read",
        ] {
            assert!(is_own(name), "{name}");
        }
        for name in [
            "std::panicking::begin_panic_handler",
            "<alloc::vec::Vec<shop::Book> as core::ops::Drop>::drop",
            "core::option::expect_failed",
            "__rustc::rust_begin_unwind",
            "crawler_plugin_sdk::guest::send_panics::{{closure}}",
            "<shop::Shop as crawler_plugin_sdk::plugin::Plugin>::call_rule",
            "shop::exports::crawler::rules::rules::_export_parse_cabi",
        ] {
            assert!(!is_own(name), "{name}");
        }
        assert!(shown("_ZN1a1b17h1ae90b67556d7bf6E").is_own);
        assert!(!shown("_ZN4core9panicking17h1ae90b67556d7bf6E").is_own);
        assert!(!shown("JS_CallInternal").is_own);
        assert!(!shown("crawler:rules/rules@0.1.1#parse").is_own);
    }

    #[test]
    fn r01_a_symbol_that_grows_when_demangled_is_shown_as_it_is() {
        let part = |of: &str| of.repeat(1_000);
        let (i, s0, s1) = (part("i"), part("S0_"), part("S1_"));
        let bomb = format!("_Z1f1AI{i}ES_I{s0}ES_I{s1}E");
        let name = shown(&bomb).name;
        assert_eq!(name.len(), NAME_MAX);
        assert!(name.starts_with("m!_Z1f1AIiii"), "{name}");
    }

    #[test]
    fn r01_a_long_name_of_rust_is_cut() {
        let long = format!("_ZN{}17h1ae90b67556d7bf6E", "1a".repeat(2_000));
        assert_eq!(shown(&long).name.len(), NAME_MAX);
        let longer = format!("_ZN{}17h1ae90b67556d7bf6E", "1a".repeat(100_000));
        assert!(shown(&longer).name.starts_with("m!_ZN1a1a"));
    }
}
