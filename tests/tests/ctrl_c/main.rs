//! Ctrl-C and SIGTERM at any moment: work that was begun ends, open files and ports are closed, and no process is
//! left behind.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crawler_tests::process::{Ended, Home, Process};
use crawler_tests::random::Random;
use crawler_tests::web::Site;
use crawler_tests::{PATIENCE, guests, repository, soak, until};
use serde_json::Value;

use demo::Demo;
use proc::{freeze_a_compiler, left_over, ports_of};

mod demo;
mod proc;

/// Time in which a requested end comes, even on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(10);

fn wait_for(moment: Duration) {
    let start = Instant::now();
    until("moment", PATIENCE, || {
        (start.elapsed() >= moment).then_some(())
    });
}

#[test]
fn ctrl_c_ends_the_demo_at_any_moment_and_leaves_nothing() {
    // The moments are spread over the time from when a demo listens to its end. The first one may have built its rules
    // on a busy machine, so that time is halved whenever a later demo has ended before its moment.
    let mut whole = Demo::start();
    let start = Instant::now();
    let ended = whole.process.wait(5 * PATIENCE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let mut within_ms = u64::try_from(start.elapsed().as_millis()).unwrap();
    assert_eq!(whole.folders(), Vec::<PathBuf>::new());

    let mut random = Random::new("ctrl_c");
    let n_rounds = if soak() { 20 } else { 5 };
    let mut n_interrupted = 0;
    for _ in 0..n_rounds {
        let moment = Duration::from_millis(random.below(within_ms.max(1)));
        let demo = Demo::start();
        wait_for(moment);
        let code = demo.interrupt();
        println!("after {moment:?}: code {code}");
        match code {
            130 => n_interrupted += 1,
            _ => within_ms /= 2,
        }
    }
    assert!(n_interrupted > 0, "every demo had ended before its Ctrl-C");
}

#[test]
fn ctrl_c_while_the_demo_builds_ends_cargo_and_its_compilers() {
    // A new build folder means that there is much to compile.
    let demo = Demo::start_with(|command| {
        let target = Path::new(command.get_current_dir().unwrap()).join("target");
        command.env("CARGO_TARGET_DIR", target);
    });
    freeze_a_compiler(demo.home.path(), demo.process.id());
    assert_eq!(demo.interrupt(), 130);
}

#[test]
fn ctrl_c_pressed_twice_ends_the_demo_at_once() {
    let mut demo = Demo::start();
    let ports = ports_of(&[demo.process.id()]);
    until("folder of the demo", PATIENCE, || {
        (!demo.folders().is_empty()).then_some(())
    });
    demo.process.interrupt();
    demo.process.interrupt();
    let start = Instant::now();
    let ended = demo.process.wait(SOON);
    assert!([Some(0), Some(130)].contains(&ended.code), "{ended:?}");
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
    demo.check_nothing_is_left(&ports);
}

/// Returns a site of list pages that never ends and answers slowly.
fn endless() -> Site {
    Site::new().handle("/list/*", |asked| async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let n: u64 = asked.path["/list/".len()..].parse().unwrap();
        let book = format!("<article class='book'><h3><a href='/book/{n}'>b</a></h3></article>");
        let next = format!("<ul><li class='next'><a href='/list/{}'>next</a></li></ul>", n + 1);
        axum::response::Html(book + &next)
    })
    .handle("/book/*", |asked| async move {
        let text = "x".repeat(2_000);
        let book = format!(
            "<h1>{}</h1><p class='author'>a</p><p class='price'>£1.00</p><p class='stock'>Out of stock</p>\
             <p class='rating' data-stars='1'></p><div id='description'>{text}</div>",
            asked.path
        );
        axum::response::Html(book)
    })
}

fn crawl_arguments(start: &str) -> Vec<String> {
    let plugin = guests::guest("books").display().to_string();
    let start = format!("start={start}");
    let words = [
        "run",
        &plugin,
        "--param",
        &start,
        "--max-depth=100000",
        "--allow-networks=127.0.0.0/8",
    ];
    words.map(str::to_owned).into()
}

fn check_lines(ended: &Ended, lines: &str) {
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(lines.ends_with('\n'), "the last line is torn");
    for line in lines.lines() {
        let item: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(item["description"].as_str().unwrap().len(), 2_000);
    }
}

#[test]
fn ctrl_c_ends_a_run_after_a_whole_line() {
    let web = endless().open();
    let home = Home::new();
    let mut random = Random::new("ctrl_c run");
    for _ in 0..if soak() { 20 } else { 3 } {
        let mut run = home.start(crawl_arguments(web.url("/list/1").as_str()));
        run.answer("item", PATIENCE, |_| true);
        wait_for(Duration::from_millis(random.below(500)));
        run.interrupt();
        let ended = run.wait(SOON);
        check_lines(&ended, &ended.stdout);

        let mut into_file = crawl_arguments(web.url("/list/1").as_str());
        into_file.extend(["-o".to_owned(), "items.jsonl".to_owned()]);
        let file = home.path().join("items.jsonl");
        let _absent = fs::remove_file(&file);
        let mut run = home.start(into_file);
        until("item in the file", PATIENCE, || {
            let length = fs::metadata(&file).ok()?.len();
            (length > 0).then_some(())
        });
        wait_for(Duration::from_millis(random.below(500)));
        run.interrupt();
        let ended = run.wait(SOON);
        check_lines(&ended, &fs::read_to_string(&file).unwrap());
    }
}

#[test]
fn ctrl_c_ends_a_run_that_builds_or_waits_for_its_reader() {
    let home = Home::new();
    let books = repository().join("plugins/books");
    let mut command = home.command(["run", books.to_str().unwrap()]);
    command.env("CARGO_TARGET_DIR", home.path().join("target"));
    let mut run = Process::start(&mut command);
    freeze_a_compiler(home.path(), run.id());
    run.interrupt();
    assert_eq!(run.wait(SOON).code, Some(130));
    until("end of cargo", SOON, || {
        left_over(home.path(), run.id()).is_empty().then_some(())
    });

    // Nobody reads its stdout: the first Ctrl-C cannot empty the outbox, and the second does not wait.
    let web = endless().open();
    let mut command = home.command(crawl_arguments(web.url("/list/1").as_str()));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    web.wait_for("crawl", PATIENCE, |log| log.len() > 200);
    let interrupt = || {
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    };
    interrupt();
    wait_for(Duration::from_millis(500));
    interrupt();
    let code = until("end after the second Ctrl-C", SOON, || {
        child.try_wait().unwrap()
    });
    assert_eq!(code.code(), Some(130));
}

#[test]
fn a_run_whose_reader_has_enough_ends_quietly() {
    let web = endless().open();
    let home = Home::new();
    let mut command = home.command(crawl_arguments(web.url("/list/1").as_str()));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut first = [0; 1_000];
    stdout.read_exact(&mut first).unwrap();
    drop(stdout);
    let code = until("end", PATIENCE, || child.try_wait().unwrap());
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(code.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("error"), "{stderr}");
}

fn start_up(home: &Home) -> Process {
    home.start([
        "up",
        "--http=:0",
        "--grpc=:0",
        "--data=data",
        "--state=state",
        "--allow-networks=127.0.0.0/8",
    ])
}

#[test]
fn ctrl_c_and_sigterm_end_up_within_seconds_whoever_is_connected() {
    let web = endless().open();
    let home = Home::new();
    for round in 0..2 {
        let mut up = start_up(&home);
        let grpc = up.word_after("grpc=", PATIENCE);
        let http = up.word_after("http=", PATIENCE);
        let master = format!("--master=http://{grpc}");
        if round == 0 {
            home.ok([
                "plugin",
                "push",
                guests::guest("books").to_str().unwrap(),
                &master,
            ]);
            let start = format!("start={}", web.url("/list/1"));
            home.ok([
                "resource",
                "add",
                "endless",
                "--plugin=books",
                "--max-depth=100000",
                "--param",
                &start,
                &master,
            ]);
        }
        let n_before = web.log().len();
        web.wait_for("crawl", PATIENCE, |log| log.len() > n_before + 50);
        let mut follower = home.start(["items", "endless", "--follow", "--patience=1s", &master]);
        follower.answer("item", PATIENCE, |_| true);
        // The connections send nothing, half a request, and all but its body.
        let silent = [&grpc, &http].map(|address| TcpStream::connect(address).unwrap());
        let mut half = TcpStream::connect(&http).unwrap();
        half.write_all(b"POST /crawler/resource HTTP/1.1\r\nhost: a\r\n")
            .unwrap();
        let mut bodiless = TcpStream::connect(&http).unwrap();
        bodiless
            .write_all(b"POST /crawler/resource HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{")
            .unwrap();

        if round == 0 {
            up.terminate()
        } else {
            up.interrupt()
        }
        let start = Instant::now();
        let ended = up.wait(SOON);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{:?}",
            start.elapsed()
        );
        follower.wait(SOON);
        drop((silent, half, bodiless));
    }
    // The lock is free, and no registration of an earlier process is left.
    let up = start_up(&home);
    let master = format!("--master=http://{}", up.word_after("grpc=", PATIENCE));
    let nodes: Value =
        serde_json::from_str(&home.ok(["node", "list", "-o", "json", &master])).unwrap();
    assert_eq!(nodes["nodes"].as_array().unwrap().len(), 2, "{nodes}");
    let endless = home.ok(["resource", "get", "endless", "-o", "json", &master]);
    let endless: Value = serde_json::from_str(&endless).unwrap();
    assert_eq!(endless["phase"], "Running");
}

#[test]
fn up_goes_on_after_it_was_frozen_for_longer_than_its_lease() {
    let web = endless().open();
    let home = Home::new();
    let up = home.start([
        "up",
        "--http=:0",
        "--grpc=:0",
        "--data=data",
        "--state=state",
        "--allow-networks=127.0.0.0/8",
        "--lease-ttl=1s",
    ]);
    let master = format!("--master=http://{}", up.word_after("grpc=", PATIENCE));
    home.ok([
        "plugin",
        "push",
        guests::guest("books").to_str().unwrap(),
        &master,
    ]);
    up.freeze();
    wait_for(Duration::from_millis(1_500));
    up.thaw();
    up.line("registration", PATIENCE, |line| {
        line.contains("joined again")
    });
    let start = format!("start={}", web.url("/list/1"));
    home.ok([
        "resource",
        "add",
        "later",
        "--plugin=books",
        "--max-depth=100000",
        "--param",
        &start,
        &master,
    ]);
    web.wait_for("crawl", PATIENCE, |log| log.len() > 10);
}
