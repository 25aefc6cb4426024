//! The parts of the site that answer as they are asked: an API, a library with a search, sitemaps and news.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_compression::tokio::bufread::GzipEncoder;
use axum::response::Html;
use crawler_tests::web::{Asked, IntoResponse as _, Response, Site, StatusCode};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use url::form_urlencoded::{Serializer, parse};

use super::{Edition, html};

fn header<'a>(asked: &'a Asked, name: &str) -> &'a str {
    let value = asked.headers.get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// Returns the fields of a query or of the body of a form.
fn fields(encoded: &[u8]) -> BTreeMap<String, String> {
    parse(encoded).into_owned().collect()
}

/// Adds an API of two endpoints, for clients that ask for JSON. One author is unknown to it, and the cursor of its last
/// page has characters that mean something in a query.
pub(super) fn api(site: Site) -> Site {
    let is_for_json = |asked: &Asked| header(asked, "accept") == "application/json";
    let books = move |asked: Asked| async move {
        let fields = fields(asked.query.as_bytes());
        let answer = match fields.get("cursor").map(String::as_str) {
            _ if !is_for_json(&asked) => return Html("<h1>The API</h1>").into_response(),
            None => json!({"next": "page 2", "total": 5, "books": [
                {"id": 1, "title": "The Waves", "author": 10, "year": 1931, "tags": ["sea", "voices"]},
                {"id": 2, "title": "Orlando", "author": 10, "year": 1928, "tags": []},
            ]}),
            Some("page 2") => json!({"next": "3&after=+Ä", "total": 5, "books": [
                {"id": 3, "title": "Sappho: \"fragments\"", "author": 11, "year": -600},
                {"id": 4, "title": "Beowulf", "author": 12, "year": null, "pages": 112},
            ]}),
            Some("3&after=+Ä") => json!({"next": null, "total": 5, "books": [
                {"id": 5, "title": "Pedro Páramo", "author": 13},
            ]}),
            Some(_) => return StatusCode::BAD_REQUEST.into_response(),
        };
        axum::Json(answer).into_response()
    };
    let author = move |asked: Asked| async move {
        let author = match asked.path.rsplit('/').next() {
            _ if !is_for_json(&asked) => return Html("<h1>The API</h1>").into_response(),
            Some("10") => json!({"id": 10, "name": "Virginia Woolf", "born": 1882}),
            Some("11") => json!({"id": 11, "name": "Sappho", "born": null, "place": "Lesbos"}),
            Some("13") => json!({"id": 13, "name": "Juan Rulfo", "born": 1917}),
            _ => return StatusCode::NOT_FOUND.into_response(),
        };
        axum::Json::<Value>(author).into_response()
    };
    site.handle("/api/books", books)
        .handle("/api/authors/*", author)
}

const SEARCH: &str = "<input type=\"hidden\" name=\"lang\" value=\"en\">
<label>Words <input name=\"q\"></label>
<select name=\"sort\"><option value=\"title\">by title</option><option value=\"year\" selected>by year</option></select>
<button name=\"go\">Search</button>";
/// Title and year of a book; some have no year.
const TITLES: [(&str, Option<i32>); 6] = [
    ("To the Lighthouse", Some(1927)),
    ("The Sea, the Sea", Some(1978)),
    ("North Wind &amp; Sun", None),
    ("The Old Man and the Sea", Some(1952)),
    ("Sea of Poppies", Some(2008)),
    ("Wind from the North", Some(1901)),
];
const HITS_PER_PAGE: usize = 2;

/// Adds a library with a form that is sent by GET, and another one that is sent by POST.
pub(super) fn library(site: Site) -> Site {
    let form = |action: &str| {
        let login = "<form id=\"other\" action=\"/\"><input name=\"q\" value=\"x\"></form>\n";
        html(
            "Library",
            &format!("{login}<form id=\"search\" {action}>\n{SEARCH}\n</form>"),
        )
    };
    site.page("/library/", form("action=\"results\""))
        .page("/library/desk", form("action=\"find\" method=\"post\""))
        .handle("/library/results", |asked| async move {
            results(&fields(asked.query.as_bytes()))
        })
        .handle("/library/find", |asked| async move {
            match header(&asked, "content-type") {
                "application/x-www-form-urlencoded" => results(&fields(&asked.body)),
                _ => StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response(),
            }
        })
}

/// Returns a page of the titles that have all words, the oldest first.
fn results(fields: &BTreeMap<String, String>) -> Response {
    let field = |name: &str| fields.get(name).map_or("", String::as_str);
    if (field("lang"), field("sort"), fields.contains_key("go")) != ("en", "year", false) {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let words: Vec<String> = field("q").split(' ').map(str::to_lowercase).collect();
    let has_all = |title: &str| words.iter().all(|word| title.to_lowercase().contains(word));
    let mut hits: Vec<_> = TITLES
        .into_iter()
        .filter(|(title, _)| has_all(title))
        .collect();
    hits.sort_by_key(|(_, year)| *year);
    let page: usize = field("page").parse().unwrap_or(1);
    let n_pages = hits.len().div_ceil(HITS_PER_PAGE);
    let hit = |(title, year): &(&str, Option<i32>)| {
        let path = title.split(' ').next_back().unwrap_or_default();
        let year = year
            .map(|year| format!(" <span class=\"year\">{year}</span>"))
            .unwrap_or_default();
        format!(
            "<li><a href=\"../titles/{path}-{}\">{title}</a>{year}</li>\n",
            title.len()
        )
    };
    let shown = hits
        .iter()
        .skip((page - 1) * HITS_PER_PAGE)
        .take(HITS_PER_PAGE);
    let mut list = format!(
        "<ol class=\"results\">\n{}</ol>",
        shown.map(hit).collect::<String>()
    );
    if page < n_pages {
        let mut query = Serializer::new(String::new());
        query.extend_pairs([("lang", "en"), ("q", field("q")), ("sort", "year")]);
        query.append_pair("page", &(page + 1).to_string());
        let query = query.finish().replace('&', "&amp;");
        list += &format!("\n<a rel=\"next\" href=\"results?{query}\">More</a>");
    }
    Html(html("Results", &list)).into_response()
}

const XML: (&str, &str) = ("content-type", "application/xml");

/// Adds a robots.txt, a sitemap that lists two others, of which one is sent compressed, and the pages that they list.
pub(super) fn sitemaps(site: Site) -> Site {
    let guide = |asked: Asked| async move {
        match asked.path.as_str() {
            "/guide/gone" => StatusCode::NOT_FOUND.into_response(),
            path => Html(html(
                &format!("Guide &amp; {path}?{}", asked.query),
                "<h1>Guide</h1>",
            ))
            .into_response(),
        }
    };
    site.handle("/guide/*", guide)
        .handle("/robots.txt", |asked| async move {
            let host = header(&asked, "host").to_owned();
            format!(
                "User-agent: *\nDisallow: /private/\nsitemap : http://{host}/sitemaps/index.xml\n\n\
                 User-agent: other\nDisallow: /\n"
            )
        })
        .handle("/sitemaps/index.xml", |asked| async move {
            let maps = [
                ("sitemaps/new.xml", Some("2026-07-10T06:00:00+02:00")),
                ("sitemaps/old.xml", None),
            ];
            ([XML], xml(&asked, ("sitemapindex", "sitemap"), &maps))
        })
        .handle("/sitemaps/new.xml", |asked| async move {
            let pages = [
                ("guide/install", Some("2026-07-10T06:00:00+02:00")),
                ("guide/page?id=3&amp;lang=en", Some(" 2026-07-01 ")),
                ("guide/gone", Some("2026-07-09")),
            ];
            ([XML], xml(&asked, ("urlset", "url"), &pages))
        })
        .handle("/sitemaps/old.xml", |asked| async move {
            let pages = [
                ("guide/first", Some("2026-06")),
                ("guide/undated", None),
                ("guide/last", Some("2026-06-30")),
            ];
            let plain = xml(&asked, ("urlset", "url"), &pages);
            let mut packed = Vec::new();
            let read = GzipEncoder::new(plain.as_bytes())
                .read_to_end(&mut packed)
                .await;
            read.expect("bytes in memory can be read");
            ([XML, ("content-encoding", "gzip")], packed)
        })
}

/// Returns a sitemap with absolute addresses. Those without a time are in CDATA.
fn xml(asked: &Asked, (list, entry): (&str, &str), entries: &[(&str, Option<&str>)]) -> String {
    let host = header(asked, "host");
    let entry = |(path, lastmod): &(&str, Option<&str>)| {
        let address = format!("http://{host}/{path}");
        let (address, lastmod) = match lastmod {
            Some(time) => (address, format!("<lastmod>{time}</lastmod>")),
            None => (format!("<![CDATA[{address}]]>"), String::new()),
        };
        format!("<{entry}>\n  <loc>\n    {address}</loc>{lastmod}\n</{entry}>\n")
    };
    let entries: String = entries.iter().map(entry).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <{list} xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{entries}</{list}>\n"
    )
}

/// Adds news. The first list page has a clock in it. The second edition has one more article, and corrects another one.
pub(super) fn news(site: Site, edition: &Edition) -> Site {
    let edition = Arc::clone(edition);
    site.handle("/news/*", move |asked| {
        let edition = edition.load(Ordering::Relaxed);
        async move { news_page(&asked, edition) }
    })
}

fn news_page(asked: &Asked, edition: usize) -> Response {
    let (first, older): (&[u32], &[u32]) = match edition {
        1 => (&[3, 2], &[1]),
        _ => (&[4, 3], &[2, 1]),
    };
    let link = |n: &u32| format!("<article><h2><a href=\"{n}.html\">News {n}</a></h2></article>\n");
    let links = |news: &[u32]| news.iter().map(link).collect::<String>();
    let changed = |n| (n == 3 && edition > 1) || n == 4;
    match asked.path.trim_start_matches("/news/") {
        "" => {
            let clock = format!("<p>You are visitor {}.</p>\n", asked.nth);
            let next = "<a rel=\"next\" href=\"older.html\">Older</a>";
            Html(html("News", &(clock + &links(first) + next))).into_response()
        }
        "older.html" => unless(
            asked,
            ("if-none-match", "etag"),
            &format!("\"older-{edition}\""),
            &links(older),
        ),
        // This one is known by its body alone.
        "1.html" => Html(html("News 1", &article(1, false))).into_response(),
        "2.html" => unless(
            asked,
            ("if-modified-since", "last-modified"),
            "Wed, 01 Jul 2026 08:00:00 GMT",
            &article(2, false),
        ),
        "3.html" => unless(
            asked,
            ("if-none-match", "etag"),
            &format!("\"3-{}\"", changed(3)),
            &article(3, changed(3)),
        ),
        "4.html" if edition > 1 => unless(
            asked,
            ("if-none-match", "etag"),
            "\"4\"",
            &article(4, false),
        ),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn article(n: u32, is_corrected: bool) -> String {
    let corrected = match is_corrected {
        true => {
            "<time class=\"corrected\" datetime=\"2026-07-09T10:00:00+02:00\">today</time>\n<p>Nobody came.</p>"
        }
        false => "<p>All   came.</p>",
    };
    format!(
        "<h1>News {n}</h1>\n<time class=\"published\" datetime=\"2026-07-0{n}T08:30:00Z\">July {n}</time>\n\
         {corrected}\n<p>There was <b>tea</b> &amp; cake.</p>\n<aside><p>Read on.</p></aside>"
    )
}

/// Returns 304 if the request has this validator as its condition, and otherwise the page with it.
fn unless(
    asked: &Asked,
    (condition, name): (&str, &'static str),
    validator: &str,
    main: &str,
) -> Response {
    let headers = [(name, validator.to_owned())];
    match header(asked, condition) == validator {
        true => (StatusCode::NOT_MODIFIED, headers).into_response(),
        false => (headers, Html(html("News", main))).into_response(),
    }
}

/// Adds an album of two pages: pictures, one of them twice and one with the bytes of another, and a PDF. Another PDF is
/// gone, which the site tells by a page with status 200.
pub(super) fn album(site: Site) -> Site {
    let files = [
        ("/album/sea.png", "image/png", "\u{89}PNG sea"),
        ("/album/copy.JPG", "image/png", "\u{89}PNG sea"),
        ("/album/dunes.jpeg", "image/jpeg", "dunes"),
        ("/album/guide.pdf", "application/pdf", "%PDF-1.7 guide"),
    ];
    let site = site
        .page(
            "/album/",
            "<h1>Album</h1><img src=sea.png alt=Sea><img src=copy.JPG><a href=more>More</a><a href=guide.pdf>Guide</a>",
        )
        .page(
            "/album/more",
            "<a href=./>Back</a><img src=sea.png><img src=dunes.jpeg><a href='guide.pdf#page=2'>Guide</a>
            <a href=gone.pdf>Old guide</a>",
        )
        .page("/album/gone.pdf", "<h1>This guide is gone</h1>");
    files
        .into_iter()
        .fold(site, |site, (path, media_type, body)| {
            site.handle(path, move |_| async move {
                ([("content-type", media_type)], body).into_response()
            })
        })
}
