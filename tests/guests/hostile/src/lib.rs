//! A plugin whose rules do what no rule should: each is named for what it does.
//!
//! It is written against the interface itself, without the SDK, because the SDK would stop some of it. What `describe`
//! does is chosen by [`DESCRIBE`], which tests overwrite in the built bytes; what `root` does by the params `root` and `rules`.

#![expect(
    clippy::disallowed_methods,
    reason = "sleeping, ending the process and asking for the time are what it is here for"
)]

use std::hint::black_box;

use crawler::rules::types::{ItemSchema, OutputError, Request, Retry, RuleInfo};
use crawler::rules::{config, log, output, page};
use exports::crawler::rules::rules::{Description, Guest, RuleError};

mod markup;
mod memory;
mod plans;
mod poll;
mod probe;
mod shapes;

use memory::{SECRET, recurse, scan_memory};

include!(concat!(env!("OUT_DIR"), "/long_name.rs"));

wit_bindgen::generate!({
    path: "../../../plugin-sdk/wit",
    world: "plugin",
});

/// Behaviour of `describe`. Tests find the text in the component and replace it by another of the same length.
#[unsafe(no_mangle)]
static DESCRIBE: [u8; 24] = *b"describe=honest.........";

type Behaviour = fn() -> Result<(), RuleError>;

const RULES: &[(&str, Behaviour)] = &[
    ("ok", ok),
    ("loop", || {
        loop {
            black_box(());
        }
    }),
    ("spin-on-host", || {
        loop {
            black_box(page::status());
        }
    }),
    ("sleep", || {
        std::thread::sleep(std::time::Duration::from_secs(60));
        Ok(())
    }),
    ("alloc", || {
        let mut hoard = Vec::new();
        loop {
            hoard.push(black_box(vec![1_u8; 64 << 10]));
        }
    }),
    ("alloc-at-once", || {
        black_box(vec![1_u8; 1 << 30]);
        Ok(())
    }),
    ("recurse", || {
        black_box(recurse(1));
        Ok(())
    }),
    ("trap", || core::arch::wasm32::unreachable()),
    ("trap-in-long-name", || {
        black_box(trap_in_long_name as extern "C" fn())();
        Ok(())
    }),
    ("poll-long", || poll::ask(4_000)),
    ("poll-too-long", || poll::ask(5_000)),
    ("emit-slow", || {
        // It ends nowhere, which is known after all of it is read.
        let unfinished = format!("{{\"x\":[{}", "1,".repeat(8 << 20));
        loop {
            log::write(log::Level::Info, "emits");
            black_box(emit(&unfinished)).ok();
        }
    }),
    ("panic", look_for_a_book),
    ("exit", || std::process::exit(0)),
    ("follow-flood", || {
        loop {
            black_box(output::follow(&vec![get("/x"); 1_000])).ok();
        }
    }),
    ("follow-budget", || {
        let over = output::follow(&vec![get("/x"); 2_001]).unwrap_err();
        emit(&format!("{{\"error\":{:?}}}", text(&over))).ok();
        Ok(())
    }),
    ("follow-odd", || {
        let links = ["../b", "http://[", "//c.test/d", &"x".repeat(9_000)];
        output::follow(&links.map(get)).map_err(|e| RuleError::Fatal(text(&e)))
    }),
    ("follow-nowhere", || {
        let mut to = get("/x");
        to.rule = 9_999;
        output::follow(&[to]).map_err(|e| RuleError::Skip(text(&e)))
    }),
    ("item-flood", || {
        loop {
            black_box(emit("{}")).ok();
        }
    }),
    ("item-huge", || {
        let huge = format!("{{\"x\":\"{}\"}}", "x".repeat(5 << 20));
        emit(&huge).map_err(|e| RuleError::Skip(text(&e)))
    }),
    ("bad-json", || {
        let deep = "[".repeat(100_000);
        let mut refusals = Vec::new();
        for json in [
            "",
            "[]",
            "{",
            "{}{}",
            "{\"a\":1e999}",
            &format!("{{\"a\":{deep}"),
        ] {
            refusals.push(format!("{:?}", text(&emit(json).unwrap_err())));
        }
        emit(&format!("{{\"refused\":\n[{}\r\n]}}", refusals.join(",")))
            .map_err(|e| RuleError::Fatal(text(&e)))
    }),
    ("bad-shape", shapes::bad),
    ("slow-shape", || {
        output::emit(1, r#"{"title": "a", "slow": 1}"#).map_err(|e| RuleError::Skip(text(&e)))
    }),
    ("bad-schema", || {
        output::emit(7, "{}").map_err(|e| RuleError::Skip(text(&e)))
    }),
    ("log-flood", || {
        loop {
            log::write(log::Level::Info, "again");
        }
    }),
    ("log-some", || {
        for n in 0..1_000 {
            log::write(log::Level::Debug, &format!("{n}\u{1b}]0;x\u{7}"));
        }
        Ok(())
    }),
    ("log-huge", || {
        let huge = "x".repeat(32 << 20);
        log::write(log::Level::Error, &huge);
        Ok(())
    }),
    ("print", || {
        println!("to stdout");
        eprint!("to stderr");
        Ok(())
    }),
    ("write-secret", || {
        let secret = vec![SECRET; 1 << 20];
        black_box(&secret);
        std::mem::forget(secret);
        Ok(())
    }),
    ("read-secret", || {
        let n_found = scan_memory();
        emit(&format!("{{\"found\":{n_found}}}")).ok();
        Ok(())
    }),
    ("probe", probe::probe),
    ("read-page", || {
        black_box(page::text());
        Ok(())
    }),
    ("show-page", || {
        emit(&format!(
            "{{\"url\":{:?},\"status\":{},\"header\":{:?},\"n_headers\":{},\"text\":{:?},\"body\":{},\"depth\":{},\"attempt\":{},\"state\":{:?},\"referrer\":{:?},\"greeting\":{:?}}}",
            page::url(),
            page::status(),
            page::header("Content-Type").unwrap_or_default(),
            page::headers().len(),
            page::text(),
            page::body().len(),
            page::depth(),
            page::attempt(),
            String::from_utf8_lossy(&page::state()),
            page::referrer().unwrap_or_default(),
            config::get("greeting").unwrap_or_default(),
        ))
        .map_err(|e| RuleError::Fatal(text(&e)))
    }),
    ("show-record", || {
        let metadata = page::metadata().into_iter();
        let named: Vec<_> = metadata
            .map(|(name, value)| format!("{name:?}:{value:?}"))
            .collect();
        let charset = page::charset();
        emit(&format!("{{\"charset\":{charset:?},{}}}", named.join(",")))
            .map_err(|e| RuleError::Fatal(text(&e)))
    }),
    ("retry", || {
        emit("{}").ok();
        output::follow(&[get("/x")]).ok();
        Err(RuleError::Retry(Retry {
            after_ms: Some(1_500),
            why: "busy\n".into(),
            hints: vec![("known-to-nobody".into(), "x".repeat(8 << 20))],
        }))
    }),
    ("extract", || plans::extract(0)),
    ("extract-both", || {
        plans::extract(0)?;
        plans::extract(1)
    }),
    ("extract-twice", || {
        for _ in 0..2 {
            black_box(page::extract(0)).ok();
        }
        Ok(())
    }),
    ("extract-unknown", || plans::extract(9)),
    ("extract-flood", || {
        loop {
            black_box(page::extract(0)).ok();
        }
    }),
    ("follow-field", plans::follow),
    ("choose-links", plans::choose),
    ("choose-many", plans::choose_many),
    ("choose-flood", plans::choose_flood),
    ("nothing", || Ok(())),
    ("emit-page", || {
        emit(&page::text()).map_err(|e| RuleError::Skip(text(&e)))
    }),
];

struct Hostile;

export!(Hostile);

impl Guest for Hostile {
    fn describe() -> Description {
        let mut rules: Vec<RuleInfo> = RULES
            .iter()
            .map(|(name, _)| RuleInfo {
                name: (*name).into(),
                hints: Vec::new(),
            })
            .collect();
        let mut plans = vec![plans::rows(), plans::words()];
        let mut limits = Vec::new();
        let mut schema = String::new();
        let mut hints = Vec::new();
        let behaviour: Vec<u8> = DESCRIBE
            .iter()
            .map(|b| unsafe { std::ptr::read_volatile(b) })
            .collect();
        match String::from_utf8_lossy(&behaviour).trim_end_matches('.') {
            "describe=honest" => {}
            "describe=loop" => loop {
                black_box(());
            },
            "describe=alloc" => {
                black_box(vec![1_u8; 1 << 30]);
            }
            "describe=page" => {
                black_box(page::url());
            }
            "describe=emit" => {
                emit("{}").ok();
            }
            "describe=twice" => rules.push(rules[0].clone()),
            "describe=markup" => {
                schema = markup::schema();
                hints.push(("params".into(), markup::params()));
            }
            "describe=memory" => limits.push(("memory".into(), 256 << 20)),
            other => plans.push(plans::bad(other)),
        }
        Description {
            name: "hostile".into(),
            version: "0.1.0".into(),
            rules,
            schemas: vec![
                ItemSchema {
                    name: "any".into(),
                    json_schema: schema,
                    hints: Vec::new(),
                },
                ItemSchema {
                    name: "book".into(),
                    json_schema: shapes::book(),
                    hints: Vec::new(),
                },
            ],
            plans,
            hosts: Vec::new(),
            limits,
            hints,
        }
    }

    fn root() -> Result<(), RuleError> {
        match config::get("root").as_deref() {
            None => follow_all(&[get("http://a.test/")]),
            Some("page") => {
                black_box(page::url());
                Ok(())
            }
            Some("loop") => loop {
                black_box(());
            },
            Some(url) => match config::get("rules") {
                None => follow_all(&[get(url)]),
                Some(rules) => follow_all(&one_page_each(url, &rules)),
            },
        }
    }

    fn parse(rule: u32) -> Result<(), RuleError> {
        RULES[rule as usize].1()
    }
}

fn ok() -> Result<(), RuleError> {
    log::write(log::Level::Info, "parsing");
    emit(&format!("{{\"url\":{:?}}}", page::url())).map_err(|e| RuleError::Fatal(text(&e)))?;
    output::follow(&[get("next")]).map_err(|e| RuleError::Fatal(text(&e)))
}

/// Panics. It has a name, which backtraces show; a closure would be a part of its caller.
#[inline(never)]
fn look_for_a_book() -> Result<(), RuleError> {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        log::panic(info.payload_as_str().unwrap_or_default(), &place);
    }));
    emit("{}").ok();
    panic!("no such \u{1b}[31mbook")
}

fn emit(json: &str) -> Result<(), OutputError> {
    output::emit(0, json)
}

fn get(url: &str) -> Request {
    Request {
        url: url.into(),
        method: "GET".into(),
        headers: Vec::new(),
        body: None,
        rule: 0,
        priority: 0,
        state: Vec::new(),
        reload: false,
        hints: Vec::new(),
    }
}

fn follow_all(requests: &[Request]) -> Result<(), RuleError> {
    output::follow(requests).map_err(|e| RuleError::Fatal(text(&e)))
}

/// Returns pages `/0-ok`, `/1-loop` and so on below this URL, each for the rule that it is named after.
fn one_page_each(url: &str, rules: &str) -> Vec<Request> {
    let pages = rules.split(',').enumerate().map(|(n, wanted)| {
        let rule = RULES.iter().position(|(name, _)| *name == wanted);
        Request {
            rule: rule.expect("tests name rules that are there") as u32,
            ..get(&format!("{url}{n}-{wanted}"))
        }
    });
    pages.collect()
}

fn text(error: &OutputError) -> String {
    match error {
        OutputError::OverBudget(why) => format!("over budget: {why}"),
        OutputError::Refused(why) => format!("refused: {why}"),
        OutputError::Other((code, why)) => format!("{code}: {why}"),
    }
}
