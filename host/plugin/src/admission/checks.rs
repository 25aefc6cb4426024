//! Checks of a plugin that need neither compiling nor running it, cheapest first.

use std::fmt;

use semver::Version;
use wasmparser::{ComponentExternalKind, Encoding, Parser, Payload, Validator};
use wasmtime::{Engine, WasmFeatures};

use super::Refusal;
use crate::host_calls::wasi;
use crate::{INTERFACE_VERSIONS, PluginError};
use crawler_model::guest_text::GuestText;

const PACKAGE: &str = "crawler:rules/";
/// Interfaces of the package `crawler:rules` that a plugin may import.
const OWN_IMPORTS: [&str; 5] = ["config", "log", "output", "page", "types"];
const EXPORT: &str = "rules";
/// Largest depth of components and modules inside each other. Validating takes the square of the depth;
/// toolchains nest three deep.
const DEPTH_MAX: usize = 64;

/// Checks these bytes, and returns the version of `crawler:rules` that they were built for.
pub(crate) fn check(
    bytes: &[u8],
    plugin_size: u64,
    features: WasmFeatures,
) -> Result<String, PluginError> {
    check_size(bytes, plugin_size)?;
    check_form(bytes)?;
    check_depth(bytes)?;
    if let Err(e) = Validator::new_with_features(features).validate_all(bytes) {
        return Err(refused(
            format_args!("the component is damaged or uses a feature that is switched off: {e}"),
            "a complete component without threads, 64-bit memories or relaxed SIMD",
            "build it again, and push the whole file",
        ));
    }
    interface(bytes).map(|version| version.to_string())
}

/// Returns the version of `crawler:rules` that a component was built for: the highest that it imports or exports.
pub(super) fn interface(bytes: &[u8]) -> Result<Version, PluginError> {
    let names = outer_names(bytes).map_err(|e| {
        refused(
            format_args!("the component cannot be read: {e}"),
            "a complete component",
            "build it again, and push the whole file",
        )
    })?;
    let imported = check_imports(&names.imports)?;
    let exported = exported_version(&names.exports)?;
    Ok(imported.map_or(exported.clone(), |imported| imported.max(exported)))
}

fn check_size(bytes: &[u8], plugin_size: u64) -> Result<(), PluginError> {
    if bytes.len() as u64 <= plugin_size {
        return Ok(());
    }
    Err(refused(
        format_args!("{} bytes", bytes.len()),
        &format!("at most {plugin_size} are allowed"),
        "build it in release mode, or raise --plugin-size",
    ))
}

/// Checks that the bytes are a component in binary form.
fn check_form(bytes: &[u8]) -> Result<(), PluginError> {
    const ALLOWED: &str = "a WebAssembly component is needed";
    const PUSH_BUILT: &str =
        "push the .wasm file that the build wrote, such as target/wasm32-wasip2/release/NAME.wasm";
    if bytes.is_empty() {
        return Err(refused("no bytes", ALLOWED, PUSH_BUILT));
    }
    if Engine::detect_precompiled(bytes).is_some() {
        return Err(refused(
            "code that wasmtime compiled for one kind of machine",
            "machine code is never accepted, only components",
            "push the .wasm file that it was made from",
        ));
    }
    if Parser::is_component(bytes) {
        return Ok(());
    }
    if Parser::is_core_wasm(bytes) {
        return Err(refused(
            "a core module",
            ALLOWED,
            "build with --target wasm32-wasip2, which makes components",
        ));
    }
    let start = &bytes[..bytes.len().min(512)];
    let is_text = start
        .iter()
        .all(|b| !b.is_ascii_control() || b.is_ascii_whitespace());
    let found = if is_text {
        "text"
    } else {
        "bytes that are not WebAssembly"
    };
    Err(refused(found, ALLOWED, PUSH_BUILT))
}

/// Checks that no component is so deep inside others that validating it would take long.
fn check_depth(bytes: &[u8]) -> Result<(), PluginError> {
    let mut depth = 0_usize;
    // The validator reports bytes that cannot be parsed.
    for payload in Parser::new(0).parse_all(bytes).map_while(Result::ok) {
        match payload {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(refused(
                format!("more than {DEPTH_MAX} components inside each other"),
                "usual components nest three deep",
                "build it with the plugin SDK",
            ));
        }
    }
    Ok(())
}

#[derive(Default)]
struct OuterNames {
    imports: Vec<String>,
    /// Names of the exports, each with true if it is an interface.
    exports: Vec<(String, bool)>,
}

/// Returns the imports and exports of the outermost component; those of components inside it do not matter.
fn outer_names(bytes: &[u8]) -> wasmparser::Result<OuterNames> {
    let mut names = OuterNames::default();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::Version { encoding, .. } => {
                depth += 1;
                debug_assert!(depth > 1 || encoding == Encoding::Component);
            }
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    names.imports.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    let export = export?;
                    let is_interface = export.kind == ComponentExternalKind::Instance;
                    names
                        .exports
                        .push((export.name.name.to_owned(), is_interface));
                }
            }
            _ => {}
        }
    }
    Ok(names)
}

/// Checks what is imported, and returns the highest version of `crawler:rules` among it.
fn check_imports(imports: &[String]) -> Result<Option<Version>, PluginError> {
    let mut highest = None;
    for import in imports {
        let (interface, version) = split_version(import);
        if let Some(own) = interface.strip_prefix(PACKAGE) {
            // First: an interface that is not known here may be one of a later version.
            highest = highest.max(Some(check_version(version.clone())?));
            if OWN_IMPORTS.contains(&own) {
                continue;
            }
        }
        let is_wasi = wasi::ALLOWED.contains(&interface);
        if is_wasi && version.is_some_and(|v| v.major == 0 && v.minor == 2) {
            continue;
        }
        let shown = GuestText::within(200, import);
        return Err(if is_wasi {
            refused(
                format_args!("the component imports {shown}"),
                "of WASI the versions 0.2 are there",
                "build with --target wasm32-wasip2",
            )
        } else {
            refused(
                format_args!("the component imports {shown}, which rules are not given"),
                "rules may import crawler:rules, and of WASI what standard libraries need: no network, no files, no processes",
                "remove the dependency that needs it; pages are fetched by requests: crawl.follow",
            )
        });
    }
    Ok(highest)
}

fn exported_version(exports: &[(String, bool)]) -> Result<Version, PluginError> {
    let versions = exports.iter().filter(|(_, is_interface)| *is_interface);
    for (export, _) in versions {
        let (interface, version) = split_version(export);
        if interface.strip_prefix(PACKAGE) == Some(EXPORT) {
            return check_version(version);
        }
    }
    let found = match exports.first() {
        None => "a component that exports nothing".to_owned(),
        Some((first, _)) => format!("a component that exports {}", GuestText::within(200, first)),
    };
    Err(refused(
        found,
        &format!(
            "a plugin exports {PACKAGE}{EXPORT}@{}",
            INTERFACE_VERSIONS.1
        ),
        "build it with the plugin SDK",
    ))
}

/// Checks that the version of `crawler:rules` is one that this host runs.
fn check_version(version: Option<Version>) -> Result<Version, PluginError> {
    let (first, last) = INTERFACE_VERSIONS;
    let bound = |text: &str| Version::parse(text).expect("INTERFACE_VERSIONS are versions");
    match version {
        Some(version) if (bound(first)..=bound(last)).contains(&version) => Ok(version),
        version => Err(refused(
            format_args!(
                "the component was built for crawler:rules {}",
                version.map_or_else(|| "without a version".to_owned(), |v| v.to_string())
            ),
            &format!("this host runs {first} to {last}"),
            "build it with the plugin SDK of this release, or update the cluster",
        )),
    }
}

/// Splits `a:b/c@1.2.3` into its parts.
fn split_version(name: &str) -> (&str, Option<Version>) {
    match name.split_once('@') {
        Some((interface, version)) => (interface, Version::parse(version).ok()),
        None => (name, None),
    }
}

fn refused(found: impl fmt::Display, allowed: &str, remedy: &str) -> PluginError {
    Refusal {
        found: GuestText::of(found),
        allowed: allowed.into(),
        remedy: remedy.to_owned(),
    }
    .into()
}

#[cfg(test)]
mod tests;
