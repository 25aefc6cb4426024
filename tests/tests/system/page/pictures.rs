//! Pictures of the page for the book, taken in a browser that shows a server which crawls the shop of `crawler demo`. They are taken by
//! `tests/run pictures` alone.

use std::fs;
use std::path::PathBuf;

use crawler_tests::process::Home;
use crawler_tests::web::{Method, Site, StatusCode, Web};
use crawler_tests::{PATIENCE, http, repository, setting, skipped};

use super::walk;
use crate::server::Server;

/// Numbers of the pages that the shop of the demo has: of its catalogue, and of its books.
const CATALOGUE: u32 = 20;
const BOOKS: u32 = 400;
/// Every 40th book has another price from the second visit on.
const REDUCED: u32 = 40;
/// Book that is gone from the second visit on, and the one that is new then.
const GONE: u32 = 13;
const NEW: u32 = 397;

/// Resources with their schedules. The first one runs while the pictures are taken.
const SCHEDULES: [(&str, &[&str]); 4] = [
    ("books", &["--cron=0 3 * * *", "--tz=Europe/Paris"]),
    ("prices", &["--every=6h", "--jitter=10m", "--overlap=queue"]),
    (
        "stock",
        &["--cron=*/30 8-18 * * mon-fri", "--tz=Asia/Tokyo"],
    ),
    ("archive", &["--cron=0 0 1 * *", "--missed=skip"]),
];

#[test]
fn all_pictures_of_the_book_can_be_taken() {
    let Some(folder) = setting("CRAWLER_PICTURES").map(PathBuf::from) else {
        skipped(
            "pictures",
            "CRAWLER_PICTURES names no folder for them, as `tests/run pictures` does",
        );
        return;
    };
    let web = changing_shop();
    let server = Server::start();
    server.push("books", &[]);
    let start = format!("start={}", web.url("/catalogue/page-1.html"));
    for (name, schedule) in SCHEDULES {
        let add = ["resource", "add", name, "--plugin=books", "--param", &start];
        server.ok(&[&add[..], &["--changes=5"]].concat());
        server.finished(name);
        server.ok(&[&["resource", "schedule", name], schedule].concat());
        if name == "books" {
            server.ok(&["resource", "restart", name]);
            server.finished(name);
        }
    }
    server.ok(&["resource", "update", "books", "--delay=250ms"]);
    server.ok(&["resource", "restart", "books"]);
    let shown = folder.display().to_string();
    walk("pictures.mjs", &server, &[&shown, web.url("/").as_str()]);
    let page = repository().join("host/docs/src/guide/page.md");
    let page = fs::read_to_string(page).expect("the book has a chapter about the page");
    let pictures = page.split("](../pictures/").skip(1);
    let pictures: Vec<&str> = pictures.filter_map(|rest| rest.split(')').next()).collect();
    assert!(!pictures.is_empty(), "the chapter shows pictures");
    for picture in pictures {
        assert!(folder.join(picture).is_file(), "{picture} was not taken");
    }
}

/// Opens a site with the pages of the shop. From the second visit on, some books are cheaper, one is gone and one is new.
fn changing_shop() -> Web {
    let home = Home::new();
    let shop = home.start(["demo", "--site-only"]);
    let mark = "the book shop is open at ";
    let line = shop.answer("address of the shop", PATIENCE, |line| line.contains(mark));
    let (_, address) = line.split_once(mark).expect("the line was chosen for it");
    let address = address.split('/').take(3).collect::<Vec<_>>().join("/");
    let page = |path: &str| http::ask(Method::GET, &format!("{address}{path}"), None).text;

    let catalogue = (1..=CATALOGUE).map(|n| format!("/catalogue/page-{n}.html"));
    let site = catalogue.fold(Site::new(), |site, path| site.page(&path, page(&path)));
    let site = (1..=BOOKS).fold(site, |site, n| {
        let path = format!("/book/{n}.html");
        let first = page(&path);
        let later = match n % REDUCED {
            0 => reduced(&first),
            _ => first.clone(),
        };
        site.handle(&path, move |asked| {
            let (missing, html) = match asked.nth {
                1 => (NEW, first.clone()),
                _ => (GONE, later.clone()),
            };
            async move {
                let kind = [("content-type", "text/html; charset=utf-8")];
                match n == missing {
                    true => Err(StatusCode::NOT_FOUND),
                    false => Ok((kind, html)),
                }
            }
        })
    });
    site.open()
}

/// Returns the page of a book whose price is a tenth less.
fn reduced(html: &str) -> String {
    let found = html.split_once("<p class=\"price\">£");
    let (before, rest) = found.expect("the page of a book has a price");
    let (price, after) = rest.split_once('<').expect("an element ends");
    let price = price.replace('.', "").parse::<u32>();
    let pence = price.expect("a price is a number") * 9 / 10;
    let (pounds, pence) = (pence / 100, pence % 100);
    format!("{before}<p class=\"price\">£{pounds}.{pence:02}<{after}")
}
