//! One crawl of a web with a known closure by `crawler up`, which is killed with -9 at random moments and
//! restarted on the same folders until the crawl is over: every page was fetched, every item is there once, the
//! archive has every page, and the cost of a kill is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crawler_tests::closure::{Closure, Plan, Visit};
use crawler_tests::process::Home;
use crawler_tests::random::Random;
use crawler_tests::up::Up;
use crawler_tests::web::{Asked, Site, StatusCode};
use crawler_tests::{PATIENCE, guests, soak, until};
use serde_json::{Value, json};

/// Delay before each answer.
const PACE: Duration = Duration::from_millis(30);
/// Number of pages that are fetched at once. With few, a kill costs few, and one that costs more is noticed.
const CONCURRENCY: u64 = 16;
/// Twice the time between two moments at which writes are made durable.
const TWO_FLUSHES: Duration = Duration::from_millis(100);
/// Divisor for the part of the pages that is left to the last life, so that no kill comes after the end.
const LAST_PART: usize = 5;
/// Deadline of a whole crawl, with a program that was built without optimisation on a busy machine.
const DEADLINE: Duration = Duration::from_secs(600);

fn plan(random: &mut Random, n_pages: usize, pace: Duration) -> Plan {
    Plan {
        n_pages,
        seed: random.below(1 << 32),
        max_depth: 40,
        pace,
    }
}

#[test]
fn a_crawl_that_nobody_disturbs_finds_the_known_pages_and_items() {
    let mut random = Random::new("closure");
    let closure = Closure::open(plan(&mut random, 600, Duration::from_millis(2)));
    let home = Home::new();
    let plugin = guests::guest("puppet").display().to_string();
    let fixed = [
        "run",
        &plugin,
        "--allow-networks=127.0.0.0/8",
        "-o",
        "items.jsonl",
    ];
    let fixed = fixed.map(str::to_owned).into_iter();
    let mut crawl = home.start(fixed.chain(closure.arguments()));
    let ended = crawl.wait(DEADLINE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let items = std::fs::read_to_string(home.path().join("items.jsonl"));
    check_items(&closure, &items.expect("the crawl wrote items"));
    let account = closure.account();
    assert_same(&account.asked, &closure.pages(), "pages");
    assert_eq!(account.again_in_one_life, Vec::<String>::new());
    assert_eq!(account.n_asks, closure.n_needed());
}

#[test]
fn the_crash_soak_loses_nothing_and_repeats_little() {
    let mut random = Random::new("crash soak");
    let (n_pages, n_kills) = if soak() { (10_000, 100) } else { (1_000, 10) };
    let closure = Closure::open(plan(&mut random, n_pages, PACE));
    let home = Home::new();
    let started = Instant::now();

    let [out, parts] = ["out", "parts"].map(|name| {
        let folder = home.path().join(name);
        std::fs::create_dir(&folder).expect("the home is new");
        folder
    });
    let posts = Arc::<Mutex<Posts>>::default();
    let noted = Arc::clone(&posts);
    let receiver = Site::new().handle("/items", move |asked| {
        let status = take(&noted, &asked);
        async move { status }
    });
    let receiver = receiver.open();
    // The base64 of 32 bytes.
    home.write("secret", &format!("{}=", "c".repeat(43)));
    let declared = format!(
        "[sink.hook]\nurl = \"{}\"\nsecret-file = \"secret\"\nallow-networks = [\"127.0.0.0/8\"]\n\
         batch-items = 20\nmax-wait = \"200ms\"\n\n\
         [sink.out]\nurl = \"file://{}\"\n\n\
         [sink.parts]\nurl = \"file://{}\"\npartition = \"{{kind}}/dt={{date}}\"\nmax-wait = \"200ms\"\n",
        receiver.url("/items"),
        out.display(),
        parts.display()
    );
    home.write("crawler.toml", &declared);
    let up = Up::start(&home, &[]);
    up.ok([
        "plugin",
        "push",
        &guests::guest("puppet").display().to_string(),
    ]);
    let concurrency = format!("--concurrency={CONCURRENCY}");
    let sinks = "--sink=lines,out,parts,hook";
    let add = [
        "resource",
        "add",
        "web",
        "--plugin=puppet",
        &concurrency,
        sinks,
        "--archive=warc",
    ];
    let add = add.map(str::to_owned);
    up.ok(add.into_iter().chain(closure.arguments()));
    let id = up.resource("web")["spec"]["id"].clone();

    let mut up = Some(up);
    let mut moments = Vec::new();
    while moments.len() < n_kills {
        // The moments spread over the remaining pages, whatever the pace of this machine.
        let n_left = n_pages - n_pages / LAST_PART;
        let n_left = n_left.saturating_sub(closure.n_answered()) as u64;
        let share = 2 * n_left / (n_kills - moments.len() + 1) as u64;
        let n_more = random.below(share.clamp(1, n_left.max(1)));
        let target = closure.n_asked() + usize::try_from(n_more).expect("fewer than pages");
        let mut process = match up.take() {
            Some(up) => up.process,
            // Now and then it is killed before it has done anything.
            None if random.below(8) == 0 => {
                let process = crawler_tests::process::Process::start(&mut Up::command(&home, &[]));
                wait(Duration::from_millis(random.below(500)));
                process
            }
            None => Up::start(&home, &[]).process,
        };
        let has_started = process
            .stderr()
            .iter()
            .any(|line| line.contains("listening"));
        if has_started {
            assert!(
                closure.wait_for(target, PATIENCE),
                "life {} came to a halt at {} requests, {} of {n_pages} pages:\n{}",
                moments.len(),
                closure.n_asked(),
                closure.n_answered(),
                process.stderr().join("\n"),
            );
            wait(Duration::from_millis(random.below(100)));
        }
        process.kill();
        closure.begin_life();
        moments.push(closure.n_answered());
    }

    let up = Up::start(&home, &[]);
    let web = up.finished("web", DEADLINE);
    let items = up.ok(["items", "web"]);
    up.stop();
    let account = closure.account();
    let most = account.refetches.values().max().copied();
    let most = most.unwrap_or_default();
    println!(
        "{} pages, {} items, {n_kills} kills at pages {moments:?}; {} requests, {} of them again \
         after a kill, at most {most} after one; {:.1?}",
        account.asked.len(),
        items.lines().count(),
        account.n_asks,
        account.refetches.values().sum::<u64>(),
        started.elapsed(),
    );
    assert_same(&account.asked, &closure.pages(), "pages");
    check_items(&closure, &items);
    // A program that reads the folder knows no marks, and sees each item once all the same.
    check_items(&closure, &items_below(&out));
    // So does one that reads files in partitions.
    check_items(&closure, &items_below(&parts));
    // A receiver that keeps the ids of posts has each item once in effect.
    check_items(&closure, &items_of(&posts));
    assert_eq!(account.again_in_one_life, Vec::<String>::new());
    assert!(
        moments.iter().all(|answered| *answered < n_pages),
        "a kill came after the last page: {moments:?}"
    );
    // A kill may cost the pages that were being fetched, and those whose batches were not durable.
    let rounds = TWO_FLUSHES.as_millis().div_ceil(PACE.as_millis());
    let n_lost = CONCURRENCY * (1 + u64::try_from(rounds).expect("a few"));
    assert!(most <= n_lost, "{n_lost} are fine: {:?}", account.refetches);
    check_end(&closure, &web, &id);
    check_archive(&closure, &home, &id);
}

/// Posts of items by their ids, as a receiver keeps them.
type Posts = BTreeMap<String, String>;

/// Takes a post, unless it is there already. Some answers are errors, although some of these posts are taken.
fn take(posts: &Mutex<Posts>, asked: &Asked) -> StatusCode {
    if asked.nth % 7 == 3 {
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    let id = asked.headers.get("idempotency-key");
    let id = id.and_then(|id| id.to_str().ok()).expect("there is an id");
    let body = String::from_utf8(asked.body.to_vec()).expect("lines are text");
    let mut posts = posts.lock().expect("no test panics with it");
    let known = posts.entry(id.to_owned()).or_insert_with(|| body.clone());
    assert_eq!(*known, body, "two posts have the id {id}");
    match asked.nth % 7 {
        5 => StatusCode::BAD_GATEWAY,
        _ => StatusCode::NO_CONTENT,
    }
}

/// Checks that the archive has each page that was committed: a crawl of it, without the web, gives the same items.
#[track_caller]
fn check_archive(closure: &Closure, home: &Home, id: &Value) {
    let id = id.as_str().expect("an id");
    let plugin = guests::guest("puppet").display().to_string();
    let archive = format!("--from-archive=data/archives/{id}");
    let n_asked = closure.n_asked();
    let fixed = ["run", &plugin, &archive, "-o", "replayed.jsonl"];
    let fixed = fixed.map(str::to_owned).into_iter();
    let ended = home.start(fixed.chain(closure.arguments())).wait(DEADLINE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let items = std::fs::read_to_string(home.path().join("replayed.jsonl"));
    check_items(closure, &items.expect("the crawl wrote items"));
    assert_eq!(closure.n_asked(), n_asked, "nothing is asked");
}

/// Checks that counters survive as pages do, and that no page was taken for the cause of a kill.
#[track_caller]
fn check_end(closure: &Closure, web: &Value, id: &Value) {
    assert_eq!((&web["spec"]["id"], &web["run"]), (id, &json!(1)), "{web}");
    let (counts, totals) = (&web["counts"], closure.totals());
    assert_eq!(counts["dead_by_reason"], json!({}), "{web}");
    assert_eq!(counts["dead"], 0, "{web}");
    assert_eq!(counts["parsed"], totals.parsed, "{web}");
    assert_eq!(counts["other_done"], totals.other_done, "{web}");
    assert_eq!(counts["items"], totals.parsed, "{web}");
    assert_eq!(counts["due"], 0, "{web}");
}

/// Checks that all items are there, each once.
#[track_caller]
fn check_items(closure: &Closure, lines: &str) {
    let items = Visit::read(lines);
    let mut found = BTreeSet::new();
    for item in items {
        let again = format!("{item:?} is there twice");
        assert!(found.insert(item), "{again}");
    }
    assert_same(&found, &closure.items(), "items");
}

/// Returns the items of the records in all files below a folder, each in a line. Like readers of tables, it skips hidden
/// folders.
fn items_below(folder: &Path) -> String {
    let mut items = String::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = entry.path();
        if path.is_dir() {
            items.push_str(&items_below(&path));
            continue;
        }
        let records = std::fs::read_to_string(&path).expect("a file of lines");
        items.push_str(&items_in(&records));
    }
    items
}

/// Returns the items of all posts, each in a line.
fn items_of(posts: &Mutex<Posts>) -> String {
    let posts = posts.lock().expect("no test panics with it");
    posts.values().map(|records| items_in(records)).collect()
}

/// Returns the items of lines with records, each in a line.
fn items_in(records: &str) -> String {
    let items = records.lines().map(|record| {
        let record: Value = serde_json::from_str(record).expect("a record");
        format!("{}\n", record["item"])
    });
    items.collect()
}

#[track_caller]
fn assert_same<T: Ord + std::fmt::Debug>(found: &BTreeSet<T>, known: &BTreeSet<T>, what: &str) {
    let missing: Vec<&T> = known.difference(found).take(10).collect();
    let surplus: Vec<&T> = found.difference(known).take(10).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "{what}: {} of {}; missing {missing:?}, surplus {surplus:?}",
        found.len(),
        known.len()
    );
}

fn wait(moment: Duration) {
    let start = Instant::now();
    until("moment", PATIENCE, || {
        (start.elapsed() >= moment).then_some(())
    });
}
