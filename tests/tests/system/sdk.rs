//! The SDK for Rust: where plugins get it from, and what they share of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crawler_tests::process::{Home, Process};
use crawler_tests::{folder_of, repository};
use wasmparser::{Parser, Payload};

use crate::devtools::{BUILD, fetch_crates};

/// Crates that a plugin is built with.
const CRATES: [&str; 6] = [
    "crawler-extract",
    "crawler-pattern",
    "crawler-plugin-sdk",
    "crawler-plugin-sdk-macros",
    "crawler-schema",
    "crawler-selector",
];

/// Returns the texts of all files below a folder, with their paths.
fn texts(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder can be listed") {
        let path = entry.expect("a folder can be listed").path();
        match path.is_dir() {
            true => found.extend(texts(&path)),
            false => {
                let text = fs::read(&path).expect("a file can be read");
                found.push((path, String::from_utf8_lossy(&text).into_owned()));
            }
        }
    }
    found
}

fn copy_all(from: &Path, to: &Path) {
    for (path, text) in texts(from) {
        let copy = to.join(path.strip_prefix(from).expect("it is below"));
        fs::create_dir_all(copy.parent().expect("it is in a folder")).expect("a folder is made");
        fs::write(copy, text).expect("a file is written");
    }
}

#[test]
fn the_folder_of_a_plugin_builds_anywhere_and_shares_what_is_compiled() {
    fetch_crates();
    let home = Home::new();
    home.ok(["plugin", "new", "souk"]);
    let folder = home.path().join("souk");
    let clone = home.path().join("elsewhere/souk");
    copy_all(&folder, &clone);
    let rules = clone.join("src/lib.rs");
    let text = fs::read_to_string(&rules).expect("it has rules");
    fs::write(&rules, text.replace("li.next a", "li.more a")).expect("it is changed");
    // These folders are kept for the next run.
    let [builds, cache] =
        ["plugin-builds", "cache"].map(|name| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
    let build = |folder: &Path| {
        let mut command = home.command(["plugin", "build"]);
        command
            .current_dir(folder)
            .env("CRAWLER_BUILD_DIR", &builds)
            .env("XDG_CACHE_HOME", &cache)
            .env("CARGO_NET_OFFLINE", "true")
            .env_remove("CARGO_TARGET_DIR");
        let ended = Process::start(&mut command).wait(BUILD);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let wasm = fs::read(ended.stdout.trim()).expect("it is built");
        (wasm, ended.stderr)
    };
    let (first, _) = build(&folder);
    let (second, said) = build(&clone);
    let compiled = said.lines().filter(|line| line.contains("Compiling "));
    assert_eq!(compiled.count(), 1, "{said}");
    // Cargo knows both as one package: neither is taken for the other.
    let has =
        |wasm: &[u8], text: &str| wasm.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has(&first, "li.next a") && !has(&first, "li.more a"));
    assert!(has(&second, "li.more a") && !has(&second, "li.next a"));
    assert!(
        build(&folder).0 == first,
        "another build of the same source differs"
    );
    // The stack has 4 of them, and the data of so small a plugin 1 to 3. With the stack that is usual elsewhere there would
    // be more than 16.
    let n_pages = pages_of_memory(&first);
    let is_usual = (5..=7).contains(&n_pages);
    assert!(is_usual, "its memory begins with {n_pages} pages");
    let in_folder = folder.join("target/wasm32-wasip2/release/souk.wasm");
    assert!(in_folder.is_file(), "{} is missing", in_folder.display());
}

/// Returns the number of pages of 64 KiB that the memories of a component begin with. They hold the stack.
fn pages_of_memory(wasm: &[u8]) -> u64 {
    let memories = Parser::new(0).parse_all(wasm).map(|part| match part {
        Ok(Payload::MemorySection(memories)) => memories
            .into_iter()
            .map(|memory| memory.expect("it is valid").initial)
            .sum(),
        part => part.map(|_| 0).expect("it is valid"),
    });
    memories.sum()
}

/// Makes a home of cargo that has the crates of this machine, and nothing of an earlier run with our own: cargo takes
/// archives of one name and version for the same, where they were unpacked and where they were compiled.
fn cargo_home_for_archives(folder: &Path, target: &Path) -> PathBuf {
    let home = folder_of("CARGO_HOME", ".cargo");
    let (real, own) = (home.join("registry"), folder.join("home/registry"));
    for part in [folder.join("home"), target.join("package")] {
        if part.exists() {
            fs::remove_dir_all(&part).expect("an earlier run can be cleared away");
        }
    }
    fs::create_dir_all(own.join("src")).expect("a folder is made");
    let config = home.join("config.toml");
    if config.is_file() {
        symlink(config, folder.join("home/config.toml")).expect("a link is made");
    }
    for part in ["cache", "index"] {
        symlink(real.join(part), own.join(part)).expect("a link is made");
    }
    for entry in fs::read_dir(real.join("src")).expect("crates were fetched") {
        let path = entry.expect("a folder can be listed").path();
        let link = own
            .join("src")
            .join(path.file_name().expect("it has a name"));
        symlink(path, link).expect("a link is made");
    }
    let compiled = fs::read_dir(target.join("debug/.fingerprint"));
    for entry in compiled.into_iter().flatten() {
        let entry = entry.expect("a folder can be listed");
        if entry.file_name().to_string_lossy().starts_with("crawler-") {
            fs::remove_dir_all(entry.path()).expect("it is ours");
        }
    }
    folder.join("home")
}

/// Each archive is built from its files and the archives of the others, as whoever downloads it would do.
#[test]
fn the_crates_of_the_sdk_can_be_packaged_and_built_of_that() {
    fetch_crates();
    // What is compiled of other crates is kept for the next run. Two runs may come at the same moment.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    let target = folder.join("target");
    fs::create_dir_all(&target).expect("a folder can be made");
    let lock = fs::File::create(folder.join("lock")).expect("a file can be made");
    lock.lock().expect("a file can be locked");
    let mut cargo = Command::new("cargo");
    cargo
        .args(["package", "--offline", "--allow-dirty"])
        .args(CRATES.map(|name| format!("--package={name}")))
        .current_dir(repository())
        .env("CARGO_HOME", cargo_home_for_archives(&folder, &target))
        .env("CARGO_TARGET_DIR", &target);
    let packaged = Process::start(&mut cargo).wait(BUILD);
    let said = &packaged.stderr;
    assert_eq!(packaged.code, Some(0), "{said}");
    for name in CRATES {
        let verified = format!("Verifying {name} v{}", env!("CARGO_PKG_VERSION"));
        assert!(said.contains(&verified), "{verified}: {said}");
        let archive = format!("{name}-{}.crate", env!("CARGO_PKG_VERSION"));
        assert!(target.join("package").join(&archive).is_file(), "{archive}");
    }
}

#[test]
fn a_plugin_gets_the_sdk_of_the_program_that_is_installed() {
    let home = Home::new();
    home.ok(["plugin", "new", "kiosk"]);
    let lib = home.path().join("kiosk/sdk/src/lib.rs");
    let new = fs::read(&lib).expect("it has an SDK");
    fs::write(&lib, "").expect("it is changed");
    assert_eq!(home.ok(["plugin", "sdk", "kiosk"]), "wrote kiosk/sdk\n");
    assert!(fs::read(&lib).expect("it has an SDK") == new);
    // An older plugin names a folder of the repository.
    let manifest = home.path().join("kiosk/Cargo.toml");
    fs::write(&manifest, "[package]\nname = \"kiosk\"\n").expect("it is changed");
    let said = home.ok(["plugin", "sdk", "kiosk"]);
    assert!(
        said.ends_with("crawler-plugin-sdk = { path = \"sdk\" }\n"),
        "{said}"
    );
    let refused = home.run(["plugin", "sdk"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused
            .stderr
            .contains("has no Cargo.toml, package.json or pyproject.toml"),
        "{}",
        refused.stderr
    );
}
