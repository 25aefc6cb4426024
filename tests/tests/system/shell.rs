//! `crawler shell`: selectors tried on a page, by lines of standard input and by a terminal.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crawler_tests::process::{Ended, Home, Process, program};
use crawler_tests::web::Site;
use crawler_tests::{repository, skipped};

const SOON: Duration = Duration::from_secs(60);

/// Runs the shell on a page, with these lines as input.
fn told(home: &Home, arguments: &[&str], lines: &str) -> Ended {
    let input = home.write("lines", lines);
    let input = File::open(input).expect("it was written");
    let mut command = home.command(["shell"]);
    command.args(arguments);
    Process::start_with(&mut command, input).wait(SOON)
}

fn book() -> String {
    let call = repository().join("plugins/books/pages/book.call.json");
    call.display().to_string()
}

/// Removes the times, which differ each time.
fn without_times(stdout: &str) -> String {
    let lines = stdout.lines().map(|line| match line.split_once(" fuel, ") {
        Some((before, _)) => format!("{before} fuel\n"),
        None => format!("{line}\n"),
    });
    lines.collect()
}

#[test]
fn lines_are_selectors_and_their_tables() {
    let home = Home::new();
    let lines =
        "h1\n\n.tags { first: li; any: li -> tag\n}\n[data-stars] -> @data-stars\n/rust\nh2\n";
    let ended = told(&home, &[&book()], lines);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(
        without_times(&ended.stdout),
        "ROW  VALUE
0    The Waves
1 row, 447 fuel
ROW  FIRST             ANY
0    fiction | poetry  li | li
1 row, 607 fuel
ROW  VALUE
0    4
1 row, 447 fuel
#[derive(Debug, Extract)]
struct Found {
    #[css(\"[data-stars]\", attr = \"data-stars\")]
    value: String,
}
0 rows, 407 fuel
"
    );
}

#[test]
fn a_line_that_cannot_be_carried_out_is_told_and_the_next_one_is() {
    let home = Home::new();
    let lines = "h1:has(b)\n/fetch nowhere.html\n/rust\n/nothing\nh1\n";
    let ended = told(&home, &[&book()], lines);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stdout.contains("The Waves"), "{}", ended.stdout);
    let errors: Vec<&str> = ended.stderr.lines().collect();
    let begins = [
        "error: h1:has(b): selector \"h1:has(b)\": `:has()` is not known",
        "error: /fetch nowhere.html: cannot fetch http://shop.test/book/nowhere.html",
        "error: /rust: nothing was looked for on this page yet; type a selector first",
        "error: /nothing: there is no command /nothing; there are /fetch, ",
        "error: 4 lines could not be carried out",
    ];
    for (error, begin) in errors.iter().zip(begins) {
        assert!(error.starts_with(begin), "{error}");
    }
    assert_eq!(errors.len(), begins.len(), "{errors:#?}");
}

#[test]
fn pages_are_fetched_as_a_crawl_does() {
    let web = Site::new()
        .page(
            "/list.html",
            "<a href=book/7.html>Seven</a> <a href=mailto:a@b>write</a>",
        )
        .page("/book/7.html", "<h1>Seven</h1>")
        .page("/robots.txt", "User-agent: *\nDisallow: /private")
        .open();
    let home = Home::new();
    let list = web.url("/list.html").to_string();
    let local = "--allow-networks=127.0.0.0/8";
    let lines = "/links\n/fetch book/7.html\nh1\n/save seven.html\n/save seven.html\n/fetch /private\n/page\n";
    let ended = told(&home, &[&list, local], lines);
    let book = web.url("/book/7.html");
    for line in [
        format!("{book}\n1 link\n"),
        "0    Seven\n".to_owned(),
        format!("/seven.html has the body of {book}\n"),
        format!("{book}: status 200, "),
    ] {
        assert!(ended.stdout.contains(&line), "{line}: {}", ended.stdout);
    }
    let saved = fs::read_to_string(home.path().join("seven.html"));
    assert_eq!(saved.expect("it was saved"), "<h1>Seven</h1>");
    assert!(
        ended
            .stderr
            .contains("seven.html is there already: give another name"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("robots.txt"), "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .ends_with("error: 2 lines could not be carried out\n"),
        "{}",
        ended.stderr
    );

    for (page, why) in [
        (
            "books.example",
            "hint: an address has its scheme: https://books.example",
        ),
        ("ftp://a.test/", "only http and https are fetched"),
    ] {
        let ended = told(&home, &[page], "h1\n");
        assert_ne!(ended.code, Some(0));
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
    }
}

/// Returns the output of a terminal for these keys.
fn typed(home: &Home, keys: &str) -> String {
    let input = home.write("keys", keys);
    let shell = format!("{} shell {}", program().display(), book());
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &shell, "/dev/null"]);
    command
        .env("HOME", home.path())
        .env("TERM", "xterm")
        .env_remove("XDG_STATE_HOME");
    let input = File::open(input).expect("it was written");
    let ended = Process::start_with(&mut command, input).wait(SOON);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    ended.stdout
}

#[test]
fn a_terminal_completes_what_the_page_has_and_remembers_what_was_typed() {
    if !Path::new("/usr/bin/script").exists() {
        skipped("script", "script (bsdutils) is not installed here");
        return;
    }
    let home = Home::new();
    let shown = typed(&home, "p.aut\t\n/quit\n");
    assert!(shown.contains("/help tells more"), "{shown}");
    assert!(shown.contains("Virginia Woolf"), "{shown}");
    // The arrow up brings back the line before the last one.
    let again = typed(&home, "\u{1b}[A\u{1b}[A\n/quit\n");
    assert!(again.contains("Virginia Woolf"), "{again}");
    let history = home.path().join(".local/state/crawler/shell-history");
    let history = fs::read_to_string(history).expect("it is kept");
    assert!(history.contains("p.author"), "{history}");
}
