//! A crawl whose items go to the data root and to a real PostgreSQL, while the program and the server are killed.

use std::time::Duration;

use crawler_tests::closure::{Closure, Plan, Visit};
use crawler_tests::http::block_on;
use crawler_tests::postgres::Postgres;
use crawler_tests::process::Home;
use crawler_tests::random::Random;
use crawler_tests::up::Up;
use crawler_tests::{PATIENCE, guests, until};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Row as _};

const N_PAGES: usize = 1_200;
/// Number of requests between two kills. All kills together come before the crawl can be over.
const BETWEEN: usize = 80;
/// Deadline of the crawl, with a program that was built without optimisation on a busy machine.
const DEADLINE: Duration = Duration::from_secs(600);

#[test]
fn kills_of_program_and_server_lose_and_double_no_row() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let mut random = Random::new("crawl into a database");
    let closure = Closure::open(Plan {
        n_pages: N_PAGES,
        seed: random.below(1 << 32),
        max_depth: 40,
        pace: Duration::from_millis(20),
    });
    let home = Home::new();
    let config = format!(
        "[sink.db]\nurl = {:?}\nmax-wait = \"200ms\"\ntimeout = \"5s\"\n",
        postgres.url("postgres")
    );
    home.write("crawler.toml", &config);
    home.ok(["sink", "check", "db"]);
    let mut up = Up::start(&home, &[]);
    let puppet = guests::guest("puppet").display().to_string();
    up.ok(["plugin", "push", &puppet]);
    let add = ["resource", "add", "web", "--plugin=puppet"];
    let add = add
        .into_iter()
        .chain(["--sink=lines,db", "--concurrency=8"]);
    up.ok(add.map(str::to_owned).chain(closure.arguments()));

    for kills_server in [false, true, false, true] {
        let target = closure.n_asked() + BETWEEN;
        assert!(closure.wait_for(target, PATIENCE), "the crawl halts");
        if kills_server {
            postgres.kill();
            until("word of the sink", PATIENCE, || {
                let lines = up.process.stderr();
                let mut lines = lines.iter();
                let why = "cannot write items to postgres://";
                lines.any(|line| line.contains(why)).then_some(())
            });
            postgres.restart();
        } else {
            up.process.kill();
            closure.begin_life();
            up = Up::start(&home, &[]);
        }
    }

    up.finished("web", DEADLINE);
    let mut in_lines = Visit::read(&up.ok(["items", "web"]));
    let mut in_rows = Visit::read(&rows(&postgres).join("\n"));
    up.stop();
    in_lines.sort();
    in_rows.sort();
    let known: Vec<Visit> = closure.items().into_iter().collect();
    assert_eq!(in_lines, known);
    assert_eq!(in_rows, known);
}

/// Returns all items in the table of the crawl, as JSON.
fn rows(postgres: &Postgres) -> Vec<String> {
    let sql =
        "SELECT json_build_object('url', url, 'depth', depth, 'state', state)::text FROM web_visit";
    block_on(async {
        let options: PgConnectOptions = postgres.url("postgres").parse().expect("it is a URL");
        let mut connection = options.connect().await.expect("the server is there");
        let query = sqlx::query::<sqlx::Postgres>(sql);
        let found = query.fetch_all(&mut connection).await;
        let found = found.expect("the table is there");
        found
            .iter()
            .map(|row| row.get::<String, usize>(0))
            .collect()
    })
}
