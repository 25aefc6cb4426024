//! Rules in JavaScript and Python: built by the tools of their languages, run in the same sandbox.

mod cases;
mod clones;
mod params;
mod selectors;
mod tools;
mod types;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crawler_tests::process::{Home, Process};
use crawler_tests::{PATIENCE, guests, repository, until};
use serde_json::Value;

use crate::devtools::BUILD;
use tools::{Tools, javascript, python};

/// Copies a plugin of the repository and the SDKs, because a build writes into the folder. The one in Python is
/// built for the frozen boundary: no such component is kept, for its size.
fn copied(home: &Home, name: &str) -> PathBuf {
    let plugin = format!("plugins/{name}");
    for folder in [
        &plugin,
        "plugin-sdk/js",
        "plugin-sdk/python",
        "plugin-sdk/wit",
    ] {
        copy(&repository().join(folder), &home.path().join(folder));
    }
    if name == "books_py" {
        let wit = home.path().join("plugin-sdk/wit/rules.wit");
        fs::copy(guests::frozen("rules.wit"), wit).expect("a file can be copied");
    }
    home.path().join(plugin)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("it is there") {
        let path = entry.expect("a folder can be listed").path();
        let name = path.file_name().expect("an entry has a name");
        match path.is_dir() {
            true if name != "node_modules" && name != "__pycache__" => copy(&path, &to.join(name)),
            true => {}
            false => drop(fs::copy(&path, to.join(name)).expect("a file can be copied")),
        }
    }
}

/// Checks that the saved calls of a plugin are those of one in Rust: its folder `pages` is a link to the other's.
#[track_caller]
fn check_pages(name: &str, of: &str) {
    let pages = |plugin: &str| repository().join("plugins").join(plugin).join("pages");
    let linked = pages(name).canonicalize().expect("it has saved calls");
    assert_eq!(linked, pages(of).canonicalize().expect("it has them"));
}

/// Returns the items that a plugin finds in the shop, as the file has them, in the order of their bytes.
#[track_caller]
fn crawled(tools: &Tools, home: &Home, plugin: &Path, start: &str) -> Vec<String> {
    let plugin = plugin.display().to_string();
    let run = [
        "run",
        &plugin,
        "--param",
        start,
        "--allow-networks=127.0.0.0/8",
    ];
    let stdout = tools.ok(home, home.path(), &run);
    let mut items: Vec<String> = stdout.lines().map(str::to_owned).collect();
    items.sort();
    items
}

#[test]
fn rules_in_three_languages_find_the_same_items_byte_for_byte() {
    let home = Home::new();
    let mut demo = home.start(["demo", "--site-only"]);
    let start = "a crawl starts at ";
    let start = demo.answer("the shop's start", PATIENCE, |line| line.starts_with(start));
    let start = format!("start={}", start.rsplit(' ').next().unwrap_or_default());
    let nothing = Tools::none();
    let rust = crawled(&nothing, &home, &guests::guest("books"), &start);
    assert_eq!(rust.len(), 400);
    for (tools, name) in [(javascript(), "books_js"), (python(), "books_py")] {
        check_pages(name, "books");
        let Some(tools) = tools else { continue };
        let folder = copied(&home, name);
        assert_eq!(crawled(tools, &home, &folder, &start), rust, "{name}");
        // The calls give the same outcomes as those of the plugin in Rust.
        let test = ["plugin", "test", "plugin.wasm", "--repeat=3"];
        tools.ok(&home, &folder, &test);
    }
    demo.interrupt();
    demo.wait(PATIENCE);
}

#[test]
fn link_checkers_in_scripts_give_the_outcomes_of_rust() {
    let home = Home::new();
    for (tools, name) in [
        (javascript(), "broken_links_js"),
        (python(), "broken_links_py"),
    ] {
        check_pages(name, "broken_links");
        let Some(tools) = tools else { continue };
        let folder = copied(&home, name);
        tools.ok(&home, &folder, &["plugin", "test"]);
    }
}

/// Checks that a build of sources that did not change leaves the component alone, and that a build of them on another
/// machine is the same plugin to a cluster.
fn check_builds(tools: &Tools, home: &Home, folder: &Path, rules: &str) {
    let component = folder.join("plugin.wasm");
    let build = || {
        tools.ok(home, folder, &["plugin", "build"]);
        fs::read(&component).expect("it is built")
    };
    let first = build();
    let built_at = || fs::metadata(&component).and_then(|file| file.modified());
    let first_built_at = built_at().expect("it is built");
    assert!(build() == first && built_at().expect("it is built") == first_built_at);

    // The folder stands in the config file, as people write rules.
    let up = |folder: &Path, listed: &dyn Fn(&str)| {
        let config = format!("[[plugin]]\npath = {:?}\n", folder.display().to_string());
        home.write("crawler.toml", &config);
        let mut command = home.command(["up", "--http=:0", "--grpc=:0"]);
        let mut server = Process::start(command.env("PATH", tools.path()));
        let master = format!("http://{}", server.word_after("listening grpc=", BUILD));
        until("the plugin", BUILD, || {
            let list = ["plugin", "list", "-o=json", "--master", &master];
            let ended = tools.ended(home, home.path(), &list);
            ended.stdout.contains("\"sources\"").then_some(())
        });
        listed(&master);
        server.interrupt();
        assert_eq!(server.wait(PATIENCE).code, Some(0), "{:?}", server.stderr());
    };
    up(folder, &|_| ());
    // As a clone on another machine.
    fs::remove_file(&component).expect("it is ours");
    let elsewhere = Home::new();
    let clone = elsewhere.path().join("clone");
    copy(folder, &clone);
    up(&clone, &|master| {
        let push = ["plugin", "push", ".", "--master", master];
        let pushed = tools.ok(home, &clone, &push);
        assert!(pushed.starts_with("unchanged "), "{pushed}");
        let rules = clone.join(rules);
        let text = fs::read_to_string(&rules).expect("it has rules");
        fs::write(&rules, format!("{text}\n")).expect("it is changed");
        let refused = tools.ended(home, &clone, &push);
        assert!(
            refused.stderr.contains("exists with other bytes"),
            "{}",
            refused.stderr
        );
    });
}

#[test]
fn a_script_that_did_not_change_is_the_same_plugin() {
    for (tools, lang, rules) in [
        (javascript(), "js", "src/rules.js"),
        (python(), "python", "src/rules.py"),
    ] {
        let Some(tools) = tools else { continue };
        let home = Home::new();
        home.ok(["plugin", "new", "kiosk", "--lang", lang]);
        check_builds(tools, &home, &home.path().join("kiosk"), rules);
    }
}

/// Returns the example of the guide in a language.
fn example(lang: &str) -> String {
    let guide = fs::read_to_string(repository().join("plugin-sdk/src/languages.md"));
    let guide = guide.expect("the guide is there");
    let (_, rest) = guide
        .split_once(&format!("```{lang}\n"))
        .expect("it has an example");
    let (example, _) = rest.split_once("```").expect("it ends");
    example.to_owned()
}

/// Makes a plugin and tries its own saved calls, and prints how long that takes once it is built.
#[expect(clippy::print_stdout, reason = "the seconds are for who reads the log")]
fn check_new(tools: &Tools, lang: &str) -> (Home, PathBuf) {
    let home = Home::new();
    home.ok(["plugin", "new", "kiosk", "--lang", lang]);
    let folder = home.path().join("kiosk");
    let tested = tools.ok(
        &home,
        &folder,
        &["plugin", "test", "--repeat=3", "-o", "json"],
    );
    let tested: Value = serde_json::from_str(&tested).expect("it is JSON");
    let calls = tested["calls"].as_array().expect("there are calls");
    assert_eq!(calls.len(), 3, "{tested:#}");
    for call in calls {
        assert_eq!(call["result"], "same", "{call:#}");
    }
    let began = Instant::now();
    tools.ok(&home, &folder, &["plugin", "test"]);
    let seconds = began.elapsed().as_secs_f64();
    println!("{seconds:>6.1} s a test of an unchanged plugin in {lang} (goal: 3 s)");
    (home, folder)
}

/// Checks the outcomes of the cases, one of which takes more memory than calls of other plugins have.
fn check_cases(tools: &Tools, home: &Home, folder: &Path) {
    let test = ["plugin", "test", "--pages=cases"];
    tools.ok(home, folder, &test);
    let little = ["--call=room", "--limit=memory=64MiB", "-o=json"];
    let ended = tools.ended(home, folder, &[&test[..], &little].concat());
    let said: Value = serde_json::from_str(&ended.stdout).expect("it is JSON");
    assert_ne!(said["calls"][0]["result"], "same", "{said:#}");
}

#[test]
fn a_new_plugin_in_javascript_passes_its_own_test_and_tells_its_faults() {
    let Some(tools) = javascript() else { return };
    let (home, folder) = check_new(tools, "js");
    let rules = folder.join("src/rules.js");
    let good = fs::read_to_string(&rules).expect("it was made");

    let said = |text: String, arguments: &[&str]| {
        fs::write(&rules, text).expect("it is changed");
        let ended = tools.ended(&home, &folder, arguments);
        assert_ne!(ended.code, Some(0), "{}", ended.stdout);
        ended.stdout + &ended.stderr
    };
    fs::write(&rules, cases::JAVASCRIPT).expect("it is changed");
    cases::write(
        &folder,
        &[
            ("NOTHING", "null"),
            ("NUMBER", "number"),
            ("LAZY", "async"),
            ("REGEX", "/c$/; write it by String.raw"),
        ],
    );
    check_cases(tools, &home, &folder);

    fs::write(&rules, example("js")).expect("it is changed");
    let checked = tools.ok(&home, &folder, &["plugin", "check"]);
    assert!(checked.contains("list (5 fields)"), "{checked}");

    let test = ["plugin", "test", "--call", "detail"];
    let why = said(good.replace("price(words) {", "price(words) {{{"), &test);
    assert!(why.contains("does not build"), "{why}");
    let fault =
        "SyntaxError: unsupported keyword: export\n    at src/rules.js:13:1\nerror: plugin ";
    assert!(why.contains(fault), "{why}");
    assert!(
        !why.contains("Failed to") && !why.contains("npm install"),
        "{why}"
    );
    let loads = "[1].map(() => { throw new Error('it does not load'); });";
    let why = said(format!("{good}\n{loads}\n"), &test);
    let fault = "Error: it does not load\n    at <anonymous> (src/rules.js:";
    assert!(why.contains(fault), "{why}");
    assert!(!why.contains("native"), "{why}");
    // The place comes first.
    let why = said(
        good.replace("Number(found[0])", "found.price.amount"),
        &test,
    );
    assert!(
        why.contains("`price` (p.price) is \"£19.50\": TypeError"),
        "{why}"
    );
    let place = "detail: src/rules.js:10 in price: error: `price`";
    assert!(why.contains(place), "{why}");
    let why = said(
        good.replace("price(words) {", "price(words) {\n    for (;;);"),
        &test,
    );
    assert!(why.contains("ended (out-of-fuel)"), "{why}");
    assert!(!why.contains("<wasm function"), "{why}");
    assert!(
        why.contains("-v shows functions of libraries and interpreters"),
        "{why}"
    );
    let verbose = ["plugin", "test", "--call", "detail", "-v"];
    let ended = tools.ended(&home, &folder, &verbose);
    let frame = "  in <wasm function";
    assert!(ended.stdout.contains(frame), "{}", ended.stdout);
    let why = said(good.replace("text(\"h1\")", "text(\"h7\")"), &test);
    assert!(
        why.contains("the page lacks `title`: nothing matches h7"),
        "{why}"
    );
    let why = said(
        good.replace("text(\"h1\")", "text(\"h1 +\")"),
        &["plugin", "check"],
    );
    assert!(why.contains("plan \"product\", field \"title\""), "{why}");
    let begin = "error: ./src/rules.js:42: ./plugin.wasm is no plugin: ";
    assert!(why.contains(begin), "{why}");
    let why = said(
        good.replace("crawl.emit(\"product\"", "crawl.emit(\"produkt\""),
        &test,
    );
    assert!(
        why.contains("there is no kind of items \"produkt\""),
        "{why}"
    );
}

#[test]
fn a_new_plugin_in_python_passes_its_own_test_and_tells_its_faults() {
    let Some(tools) = python() else { return };
    let (home, folder) = check_new(tools, "python");
    // Printed text becomes log lines of the call.
    let broken = "print('half a', 'line', end='') or found.price.amount";
    let rules = folder.join("src/rules.py");
    let good = fs::read_to_string(&rules).expect("it was made");
    fs::write(&rules, good.replace("float(found[0])", broken)).expect("it is changed");
    let ended = tools.ended(&home, &folder, &["plugin", "test", "--call", "detail"]);
    assert_eq!(ended.code, Some(1));
    let why = ended.stdout + &ended.stderr;
    assert!(
        why.contains("`price` (p.price) is \"£19.50\": AttributeError"),
        "{why}"
    );
    assert!(why.contains("detail: rules.py:"), "{why}");
    assert!(why.contains(" in price: error: `price`"), "{why}");
    assert!(why.contains("info: half a line"), "{why}");
    // What would end the interpreter names the line that asks for it.
    for (forbidden, reason) in [
        (
            "__import__('urllib.request')",
            "ImportError: urllib cannot be imported while a rule runs; import it at the top of the module",
        ),
        (
            "open('/etc/passwd')",
            "OSError: a rule cannot open '/etc/passwd': the sandbox has no files",
        ),
    ] {
        let text = good.replace("float(found[0])", forbidden);
        // Some packages leave a finder that is no class.
        let text = text + "\nimport sys\nsys.meta_path.append(object())\n";
        fs::write(&rules, text).expect("it is changed");
        let ended = tools.ended(&home, &folder, &["plugin", "test", "--call", "detail"]);
        let why = ended.stdout + &ended.stderr;
        assert!(why.contains("detail: rules.py:"), "{why}");
        assert!(why.contains(reason) && !why.contains("wasm trap"), "{why}");
    }
    // A rule that the host ends: functions of the interpreter are shown only if they are asked for.
    let text = good.replace(
        "    found = re.search",
        "    while True:\n        pass\n    found = re.search",
    );
    fs::write(&rules, text).expect("it is changed");
    // Fuel is to end it: on a machine that is busy the time of the processor would be over first.
    let test = ["plugin", "test", "--call", "detail", "--limit", "cpu=60s"];
    let ended = tools.ended(&home, &folder, &test);
    let why = ended.stdout + &ended.stderr;
    assert!(why.contains("ended (out-of-fuel)"), "{why}");
    let frame = "  in ";
    let shows_frames = |said: &str| said.lines().any(|line| line.starts_with(frame));
    assert!(!shows_frames(&why), "{why}");
    assert!(
        why.contains("-v shows functions of libraries and interpreters"),
        "{why}"
    );
    let ended = tools.ended(&home, &folder, &[&test[..], &["-v"]].concat());
    assert!(shows_frames(&ended.stdout), "{}", ended.stdout);
    fs::write(&rules, cases::PYTHON).expect("it is changed");
    cases::write(
        &folder,
        &[
            ("NOTHING", "None"),
            ("NUMBER", "int"),
            ("REGEX", "5"),
            ("cannot be LAZY", "cannot yield or be async"),
        ],
    );
    check_cases(tools, &home, &folder);

    fs::write(&rules, example("python")).expect("it is changed");
    tools.ok(&home, &folder, &["plugin", "build"]);
    fs::write(&rules, format!("{good}\ndef broken(:\n")).expect("it is changed");
    let ended = tools.ended(&home, &folder, &["plugin", "build"]);
    assert_eq!(ended.code, Some(1));
    let said = &ended.stderr;
    assert!(said.starts_with("  File \"src/rules.py\", line "), "{said}");
    assert!(
        said.contains("\nSyntaxError: invalid syntax\nerror: plugin "),
        "{said}"
    );
}
