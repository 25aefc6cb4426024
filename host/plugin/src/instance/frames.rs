//! The names of the guest's functions that were open when a call ended.
//!
//! Names come from the component, so they are as long and as misleading as its author likes. Only
//! Rust's symbols are demangled, because what they show is bounded by their own length; those of
//! C++ may name their own parts again and again, and 4 KiB of them show as gigabytes.

use std::fmt;

use rustc_demangle::try_demangle;
use wasmtime::{FrameInfo, WasmBacktrace};

use crawler_model::guest_text::GuestText;

/// Largest length of one name that is shown, in bytes.
const NAME_MAX: usize = 512;
/// Largest length of a symbol that is demangled, in bytes; a longer one is shown as it is, cut.
const SYMBOL_MAX: usize = 4 << 10;

/// Returns the functions that were open, innermost first; none if the call ended outside of any.
pub(super) fn of(error: &wasmtime::Error) -> Vec<GuestText> {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else {
        return Vec::new();
    };
    let frames = backtrace.frames().iter();
    let names = frames.map(|frame| GuestText::within(NAME_MAX, Function::of(frame)));
    names.collect()
}

/// Name of a function for people: `module!path::function`.
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
}

impl fmt::Display for Function<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(module) = self.module {
            write!(f, "{module}!")?;
        }
        let Some(symbol) = self.symbol else {
            return write!(f, "<wasm function {}>", self.index);
        };
        if symbol.len() > SYMBOL_MAX {
            return f.write_str(symbol);
        }
        match try_demangle(symbol) {
            // The alternate form omits the hash that compilers add.
            Ok(name) => write!(f, "{name:#}"),
            Err(_other_language) => f.write_str(symbol),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(symbol: &str) -> GuestText {
        let function = Function {
            module: Some("m"),
            symbol: Some(symbol),
            index: 7,
        };
        GuestText::within(NAME_MAX, function)
    }

    #[test]
    fn a_function_is_named_as_in_its_source() {
        let legacy = "_ZN1a1b17h1ae90b67556d7bf6E";
        assert_eq!(shown(legacy).as_str(), "m!a::b");
        assert_eq!(shown("_RNvCskwGfYPst2Cb_3foo3bar").as_str(), "m!foo::bar");
        assert_eq!(shown("hello").as_str(), "m!hello");
        let nameless = Function {
            module: None,
            symbol: None,
            index: 7,
        };
        assert_eq!(GuestText::of(nameless).as_str(), "<wasm function 7>");
    }

    #[test]
    fn r01_a_symbol_that_grows_when_demangled_is_shown_as_it_is() {
        let part = |of: &str| of.repeat(1_000);
        let (i, s0, s1) = (part("i"), part("S0_"), part("S1_"));
        let bomb = format!("_Z1f1AI{i}ES_I{s0}ES_I{s1}E");
        let name = shown(&bomb);
        assert_eq!(name.len(), NAME_MAX);
        assert!(name.starts_with("m!_Z1f1AIiii"), "{name}");
    }

    #[test]
    fn r01_a_long_name_of_rust_is_cut() {
        let long = format!("_ZN{}17h1ae90b67556d7bf6E", "1a".repeat(2_000));
        assert_eq!(shown(&long).len(), NAME_MAX);
        let longer = format!("_ZN{}17h1ae90b67556d7bf6E", "1a".repeat(100_000));
        assert!(shown(&longer).starts_with("m!_ZN1a1a"));
    }
}
