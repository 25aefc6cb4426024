//! Rules in JavaScript and Python: built by the tools of their languages, run in the same sandbox.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crawler_tests::process::{Ended, Home, Process};
use crawler_tests::{PATIENCE, guests, repository, setting, skipped};
use serde_json::{Value, json};

/// A plugin is built within this time, and an interpreter of megabytes compiled, on a busy machine.
const BUILD: Duration = Duration::from_secs(600);
/// What makes components of scripts, as the documentation names it.
const QJS: &str = "componentize-qjs@0.4.5";
const PY: &str = "componentize-py==0.25.1";

/// PATH with the tools of a language in front.
struct Tools(OsString);

impl Tools {
    fn of(folder: &Path) -> Self {
        let path = setting("PATH").unwrap_or_default();
        let all = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
        Self(std::env::join_paths(all).expect("folders have no colon in their names"))
    }

    /// Carries a command of the crawler out, in a folder.
    fn ended(&self, home: &Home, folder: &Path, arguments: &[&str]) -> Ended {
        let mut command = home.command(arguments);
        Process::start(command.current_dir(folder).env("PATH", &self.0)).wait(BUILD)
    }

    #[track_caller]
    fn ok(&self, home: &Home, folder: &Path, arguments: &[&str]) -> String {
        let ended = self.ended(home, folder, arguments);
        let said = || format!("{arguments:?}: {}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.code, Some(0), "{}", said());
        ended.stdout
    }
}

/// Installed once, and kept for the next run.
fn javascript() -> Option<&'static Tools> {
    static TOOLS: OnceLock<Option<Tools>> = OnceLock::new();
    let install = |folder: &Path| {
        let prefix = folder.display().to_string();
        vec![vec![
            "npm".to_owned(),
            "install".to_owned(),
            "--silent".to_owned(),
            "--prefix".to_owned(),
            prefix,
            QJS.to_owned(),
        ]]
    };
    let tools =
        TOOLS.get_or_init(|| installed("componentize-qjs", QJS, "node_modules/.bin", install));
    tools.as_ref()
}

fn python() -> Option<&'static Tools> {
    static TOOLS: OnceLock<Option<Tools>> = OnceLock::new();
    let install = |folder: &Path| {
        let pip = folder.join("bin/pip").display().to_string();
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        vec![
            words(&["python3", "-m", "venv", &folder.display().to_string()]),
            words(&[
                &pip,
                "install",
                "--quiet",
                "--disable-pip-version-check",
                PY,
            ]),
        ]
    };
    let tools = TOOLS.get_or_init(|| installed("componentize-py", PY, "bin", install));
    tools.as_ref()
}

/// The tools, or a line that says that they cannot be had. Half an installation is none.
fn installed(
    name: &str,
    package: &str,
    programs: &str,
    install: impl Fn(&Path) -> Vec<Vec<String>>,
) -> Option<Tools> {
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = tools.join(package.replace('@', "-"));
    // Two runs of the tests may need them at the same moment.
    let lock = fs::File::create(tools.join(format!("{name}.lock"))).expect("a file can be made");
    lock.lock().expect("a file can be locked");
    let done = folder.join("installed");
    if !done.is_file() {
        // From an attempt that was ended.
        if folder.exists() {
            fs::remove_dir_all(&folder).expect("an attempt can be cleared away");
        }
        fs::create_dir_all(&folder).expect("a folder can be made");
        for words in install(&folder) {
            let is_there = Command::new("sh")
                .args(["-c", "command -v \"$0\" >/dev/null", &words[0]])
                .status();
            if !is_there.is_ok_and(|status| status.success()) {
                skipped(
                    name,
                    &format!("{package} cannot be installed: there is no {}", words[0]),
                );
                return None;
            }
            let ran = Process::start(Command::new(&words[0]).args(&words[1..])).wait(BUILD);
            if ran.code != Some(0) {
                let last = ran.stderr.trim().lines().last().unwrap_or_default();
                skipped(name, &format!("{package} cannot be installed ({last})"));
                return None;
            }
        }
        fs::write(&done, "").expect("a file can be written");
    }
    Some(Tools::of(&folder.join(programs)))
}

/// A plugin of the repository and the SDKs, copied: a build writes into the folder.
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

/// The items that a plugin finds in the shop, as the file has them, in the order of their bytes.
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
    let nothing = Tools(setting("PATH").unwrap_or_default());
    let rust = crawled(&nothing, &home, &guests::guest("books"), &start);
    assert_eq!(rust.len(), 400);
    let pages = repository()
        .join("plugins/books/pages")
        .display()
        .to_string();
    for (tools, name) in [(javascript(), "books_js"), (python(), "books_py")] {
        let Some(tools) = tools else { continue };
        let folder = copied(&home, name);
        assert_eq!(crawled(tools, &home, &folder, &start), rust, "{name}");
        // What came of the calls of the plugin in Rust is what comes of them here.
        tools.ok(
            &home,
            &folder,
            &[
                "plugin",
                "test",
                "plugin.wasm",
                "--times=3",
                "--pages",
                &pages,
            ],
        );
    }
    demo.interrupt();
    demo.wait(PATIENCE);
}

/// What a rule that is told what to do hands over, as an outcome of a saved call: the same in both languages.
fn outcomes() -> Vec<(&'static str, Value)> {
    let item = |item: Value| json!({"items": [{"kind": "any", "item": item}], "requests": []});
    let error = |why: &str| json!({"items": [], "requests": [], "error": why});
    let shelf = |name: &str, books: Value| json!({"name": name, "books": books});
    vec![
        (
            "rows",
            item(json!({"shelves": [
                shelf("Ünë", json!([{"title": "Ä – b", "sale": true}, {"title": null, "sale": false}])),
                shelf("日本", json!([])),
            ], "tags": ["é", "€", "𝄞"], "none": [], "otherwise": 7, "not": true})),
        ),
        (
            "post",
            json!({"items": [], "requests": [
                {"rule": "parse", "url": "http://shelf.test/a", "method": "POST", "headers": [["x-n", "1"]],
                 "body": "ü=1", "state": "ß", "priority": -3},
                {"rule": "parse", "url": "http://shelf.test/b", "method": "POST", "headers": [["x-n", "1"]],
                 "body": "ü=1", "state": "ß", "priority": -3},
            ]}),
        ),
        ("skip", error("skip: 404")),
        ("retry", error("retry: later")),
        ("blocked", error("blocked: go away")),
        ("fatal", error("fatal: no")),
        (
            "null",
            error("error 0: TypeError: an address is a text, not NOTHING"),
        ),
        (
            "state",
            error("error 0: TypeError: state is a text, not NUMBER"),
        ),
        (
            "links",
            error(
                "error 0: TypeError: the links of a can only be followed; to read addresses use attr",
            ),
        ),
        (
            "returns",
            error(
                "error 0: TypeError: parse returned something: rules return nothing, and cannot be LAZY",
            ),
        ),
        (
            "schema",
            error("error 0: item 1, of schema strict: at /n: \"1\" is not of the kind integer"),
        ),
    ]
}

/// Calls with a page that says which case it is, and what is to come of it in this language.
fn write_cases(folder: &Path, words: &[(&str, &str)]) {
    let html = "<h1>x</h1><a href=/c>c</a><i>é</i><i>€</i><i>𝄞</i>\
        <section><h2>Ünë</h2><p class=sale><b>Ä – b</b><p>nothing</section><section><h2>日本</h2></section>";
    fs::create_dir(folder.join("cases")).expect("a folder can be made");
    for (case, outcome) in outcomes() {
        let outcome = words
            .iter()
            .fold(outcome.to_string(), |outcome, (word, ours)| {
                outcome.replace(word, ours)
            });
        let outcome: Value = serde_json::from_str(&outcome).expect("it stays JSON");
        let call = json!({
            "rule": "parse",
            "params": {"case": case},
            "page": {"url": "http://shelf.test/", "body": "page.html"},
            "outcome": outcome,
        });
        let file = folder.join(format!("cases/{case}.call.json"));
        fs::write(file, call.to_string()).expect("a file can be written");
    }
    fs::write(folder.join("cases/page.html"), html).expect("a file can be written");
}

/// The example of the guide in a language.
fn example(lang: &str) -> String {
    let guide = fs::read_to_string(repository().join("plugin-sdk/src/languages.md"));
    let guide = guide.expect("the guide is there");
    let (_, rest) = guide
        .split_once(&format!("```{lang}\n"))
        .expect("it has an example");
    let (example, _) = rest.split_once("```").expect("it ends");
    example.to_owned()
}

/// Makes a plugin and tries its own saved calls.
fn check_new(tools: &Tools, lang: &str) -> (Home, PathBuf) {
    let home = Home::new();
    home.ok(["plugin", "new", "kiosk", "--lang", lang]);
    let folder = home.path().join("kiosk");
    let tested = tools.ok(
        &home,
        &folder,
        &["plugin", "test", "--times=3", "-o", "json"],
    );
    let tested: Value = serde_json::from_str(&tested).expect("it is JSON");
    let calls = tested["calls"].as_array().expect("there are calls");
    assert_eq!(calls.len(), 3, "{tested:#}");
    for call in calls {
        assert_eq!(call["result"], "same", "{call:#}");
    }
    (home, folder)
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
    fs::write(&rules, CASES_JS).expect("it is changed");
    write_cases(
        &folder,
        &[("NOTHING", "null"), ("NUMBER", "number"), ("LAZY", "async")],
    );
    tools.ok(&home, &folder, &["plugin", "test", "--pages=cases"]);

    fs::write(&rules, example("js")).expect("it is changed");
    let checked = tools.ok(&home, &folder, &["plugin", "check"]);
    assert!(checked.contains("list (5 fields)"), "{checked}");

    let test = ["plugin", "test", "--call", "detail"];
    let why = said(good.replace("price(words) {", "price(words) {{{"), &test);
    assert!(why.contains("does not build"), "{why}");
    assert!(why.contains("rules.js:14:1"), "{why}");
    // The place stands in the lines of the call.
    let why = said(
        good.replace("Number(found[0])", "found.price.amount"),
        &test,
    );
    assert!(
        why.contains("`price` (p.price) is \"£19.50\": TypeError"),
        "{why}"
    );
    assert!(why.contains("at price (/src/rules.js:11:"), "{why}");
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
    // What is printed becomes lines of the call.
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
    assert!(why.contains("in price (/0/rules.py:"), "{why}");
    assert!(why.contains("info: half a line"), "{why}");
    fs::write(&rules, CASES_PY).expect("it is changed");
    write_cases(
        &folder,
        &[
            ("NOTHING", "None"),
            ("NUMBER", "int"),
            ("cannot be LAZY", "cannot yield or be async"),
        ],
    );
    tools.ok(&home, &folder, &["plugin", "test", "--pages=cases"]);

    fs::write(&rules, example("python")).expect("it is changed");
    tools.ok(&home, &folder, &["plugin", "build"]);
    fs::write(&rules, format!("{good}\ndef broken(:\n")).expect("it is changed");
    let ended = tools.ended(&home, &folder, &["plugin", "build"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("SyntaxError"), "{}", ended.stderr);
}

const CASES_JS: &str = r#"
import { attr, blocked, fatal, links, plugin, present, retry, rows, skip, text } from "./crawler.js";

const cases = {
    rows: (page, crawl) => crawl.emit("any", page.extract("rows")),
    post: (page, crawl) =>
        crawl.follow(["/a", "/b"], "parse", { method: "POST", headers: { "x-n": 1 }, body: "ü=1", state: "ß", priority: -3 }),
    skip: () => { throw skip(404); },
    retry: () => { throw retry("later", 1999.5); },
    blocked: () => { throw blocked("go away"); },
    fatal: () => { throw fatal("no"); },
    null: (page, crawl) => crawl.follow(["/a", null], "parse"),
    state: (page, crawl) => crawl.follow("/a", "parse", { state: 5 }),
    links: (page, crawl) => crawl.emit("any", page.extract("links")),
    returns: async (page, crawl) => { await 1; crawl.emit("any", {}); },
    schema: (page, crawl) => crawl.emit("strict", { n: "1" }),
};

export const rules = plugin({
    name: "kiosk",
    version: "0.1.0",
    items: { any: true, strict: { type: "object", properties: { n: { type: "integer" } } } },
    reads: {
        rows: {
            shelves: rows("section", {
                name: text("h2"),
                books: rows("p", { title: text("b").optional(), sale: present("b").map((is) => is) }),
            }),
            tags: text("i").all(),
            none: text("u").all(),
            otherwise: attr("u", "n").otherwise(7),
            not: present("u").map((is) => !is),
        },
        links: { all: links("a") },
    },
    root(crawl) {},
    rules: { parse: (page, crawl) => cases[crawl.param("case")](page, crawl) },
});
"#;

const CASES_PY: &str = r#"
from crawler import Plugin, attr, blocked, fatal, links, present, retry, rows, skip, text

kiosk = Plugin(
    "kiosk",
    "0.1.0",
    items={"any": True, "strict": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    reads={
        "rows": {
            "shelves": rows("section", {
                "name": text("h2"),
                "books": rows("p", {"title": text("b").optional(), "sale": present("b").map(lambda is_: is_)}),
            }),
            "tags": text("i").all(),
            "none": text("u").all(),
            "otherwise": attr("u", "n").otherwise(7),
            "not": present("u").map(lambda is_: not is_),
        },
        "links": {"all": links("a")},
    },
)


@kiosk.root
def root(crawl):
    pass


def throw(error):
    raise error


def lazy(crawl):
    yield crawl.emit("any", {})


@kiosk.rule
def parse(page, crawl):
    return {
        "rows": lambda: crawl.emit("any", page.extract("rows")),
        "post": lambda: crawl.follow(
            ["/a", "/b"], "parse", method="POST", headers={"x-n": 1}, body="ü=1", state="ß", priority=-3
        ),
        "skip": lambda: throw(skip(404)),
        "retry": lambda: throw(retry("later", 1999.5)),
        "blocked": lambda: throw(blocked("go away")),
        "fatal": lambda: throw(fatal("no")),
        "null": lambda: crawl.follow(["/a", None], "parse"),
        "state": lambda: crawl.follow("/a", "parse", state=5),
        "links": lambda: crawl.emit("any", page.extract("links")),
        "returns": lambda: lazy(crawl),
        "schema": lambda: crawl.emit("strict", {"n": "1"}),
    }[crawl.param("case")]()


Rules = kiosk.rules()
"#;
