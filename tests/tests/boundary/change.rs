//! Check that a text of the boundary may take the place of an earlier one.
//!
//! The check of wit-component knows that imports may grow, and nothing else. It lets some other changes pass,
//! which are refused here: fewer exports, and growth without a new version.

use std::collections::BTreeSet;

use wit_component::semver_check;
use wit_parser::{PackageId, Resolve, UnresolvedPackageGroup, WorldId, WorldItem};

/// World that plugins are built for.
const WORLD: &str = "plugin";

/// Returns the version of the new text if every component that was built for the old one runs on it, and otherwise
/// the reason against it.
pub(super) fn change(old: &str, new: &str) -> Result<String, String> {
    let mut texts = Resolve::default();
    let was = add(&mut texts, old, "0.0.0-old")?;
    let is = add(&mut texts, new, "0.0.0-new")?;
    check_versions(&was, &is)?;
    let fits = |before: WorldId, after: WorldId| semver_check(texts.clone(), before, after);
    let changed = |why: String| format!("what is there is not what it was: {why}");
    fits(was.world, is.world).map_err(|e| changed(format!("{e:#}")))?;
    if exports(&texts, was.world) != exports(&texts, is.world) {
        return Err(changed("a plugin exports something else".to_owned()));
    }
    let has_grown = || fits(is.world, was.world).is_err() || is.names != was.names;
    if is.patch == was.patch && has_grown() {
        return Err(format!(
            "it has grown, and is still version {}",
            was.version
        ));
    }
    Ok(is.version)
}

struct Text {
    world: WorldId,
    /// Names of worlds, interfaces and types, also of those that the world does not reach.
    names: BTreeSet<String>,
    version: String,
    /// Major and minor number. Versions with another pair belong to another package.
    line: (u64, u64),
    patch: u64,
    is_release: bool,
}

/// Adds a text. Two texts of one package can stand side by side only under different versions, which are given
/// here.
fn add(texts: &mut Resolve, text: &str, version: &str) -> Result<Text, String> {
    let parsed = UnresolvedPackageGroup::parse("rules.wit", text);
    let mut parsed = parsed.map_err(|(sources, e)| e.render(&sources))?;
    let name = &mut parsed.main.name;
    let real = name.version.take();
    let real = real.ok_or_else(|| format!("{name} has no version"))?;
    name.version = Some(version.parse().expect("it is a version"));
    let package = texts.push_group(parsed).map_err(|e| e.to_string())?;
    let world = texts.packages[package].worlds.get(WORLD);
    Ok(Text {
        names: names(texts, package),
        world: *world.ok_or_else(|| format!("there is no world {WORLD}"))?,
        line: (real.major, real.minor),
        patch: real.patch,
        is_release: real.pre.is_empty() && real.build.is_empty(),
        version: real.to_string(),
    })
}

fn names(texts: &Resolve, package: PackageId) -> BTreeSet<String> {
    let package = &texts.packages[package];
    let worlds = package.worlds.keys().map(|name| format!("world {name}"));
    let interfaces = package.interfaces.iter().flat_map(|(name, id)| {
        let interface = &texts.interfaces[*id];
        let functions = interface.functions.keys();
        let within = interface.types.keys().chain(functions);
        let within = within.map(move |of| format!("{name}.{of}"));
        within.chain([name.clone()])
    });
    worlds.chain(interfaces).collect()
}

fn check_versions(was: &Text, is: &Text) -> Result<(), String> {
    if is.line == was.line && is.patch >= was.patch && is.is_release {
        return Ok(());
    }
    let (major, minor) = was.line;
    Err(format!(
        "its version is {}, and not one of {major}.{minor} from {} on",
        is.version, was.version
    ))
}

/// Returns the names of the exports of a component of this world.
fn exports(texts: &Resolve, world: WorldId) -> BTreeSet<String> {
    let exports = texts.worlds[world].exports.values();
    exports
        .flat_map(|export| match export {
            WorldItem::Interface { id, .. } => {
                let interface = &texts.interfaces[*id];
                let name = interface.name.as_deref().unwrap_or_default();
                let functions = interface.functions.keys();
                functions.map(|f| format!("{name}.{f}")).collect()
            }
            WorldItem::Function(function) => vec![function.name.clone()],
            WorldItem::Type { .. } => Vec::new(),
        })
        .collect()
}
