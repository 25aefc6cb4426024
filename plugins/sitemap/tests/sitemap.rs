//! The rules on saved pages.

use crawler_plugin_sdk::testing::{Trial, check_saved};
use crawler_plugin_sdk::{Level, Page};
use serde_json::json;
use sitemap::Sitemaps;

const ROBOTS: &str = "http://gallery.test/robots.txt";
const MAP: &str = "http://gallery.test/sitemap.xml";

fn trial() -> Trial {
    Trial::of::<Sitemaps>().param("site", "http://gallery.test/guide/")
}

#[test]
fn all_sitemaps_of_the_robots_txt_are_read() {
    let root = trial().root(Sitemaps::root).unwrap();
    assert_eq!(root.urls(), [ROBOTS]);
    let text = "User-agent: *\nDisallow: /\nSITEMAP:http://a.test/1.xml \n\n sitemap : /2.xml\r\n# Sitemap";
    let page = Page::from_html(ROBOTS, text);
    let found = trial().parse(Sitemaps::robots, &page).unwrap();
    assert_eq!(
        found.urls(),
        ["http://a.test/1.xml", "http://gallery.test/2.xml"]
    );
}

#[test]
fn without_a_word_about_sitemaps_the_usual_place_is_asked() {
    let silent = Page::from_html(ROBOTS, "User-agent: *\nAllow: /\n");
    let missing = Page::from_html(ROBOTS, "Sitemap: what was it?").with_status(404);
    for page in [silent, missing] {
        let found = trial().parse(Sitemaps::robots, &page).unwrap();
        assert_eq!(found.urls(), [MAP]);
    }
}

#[test]
fn what_was_changed_before_the_first_day_is_left_out() {
    let urls = [
        ("/2025", "2025"),
        ("/2026", "2026"),
        ("/june", "2026-06"),
        ("/july", "2026-07"),
        ("/before", "2026-07-09T23:59:59Z"),
        ("/day", "2026-07-10"),
        ("/morning", "2026-07-10T00:00:01+02:00"),
        ("/undated", ""),
    ];
    let url = |(path, time)| format!("<url><loc>{path}</loc><lastmod>{time}</lastmod></url>");
    let xml = format!("<urlset>{}</urlset>", urls.map(url).concat());
    let page = Page::from_html(MAP, xml);
    let count = |trial: Trial| {
        trial
            .parse(Sitemaps::sitemap, &page)
            .unwrap()
            .requests
            .len()
    };
    assert_eq!(count(trial()), urls.len());
    let found = trial()
        .param("since", "2026-07-10")
        .parse(Sitemaps::sitemap, &page)
        .unwrap();
    let kept = ["/2026", "/july", "/day", "/morning", "/undated"];
    assert_eq!(
        found.urls(),
        kept.map(|path| format!("http://gallery.test{path}"))
    );
}

#[test]
fn entries_go_to_the_rule_of_their_kind() {
    for (xml, rule) in [
        ("<urlset><url><loc>/1</loc></url></urlset>", Sitemaps::PAGE),
        (
            "<sitemapindex><sitemap><loc>/1</loc></sitemap></sitemapindex>",
            Sitemaps::SITEMAP,
        ),
    ] {
        let page = Page::from_html(MAP, xml);
        let found = trial().parse(Sitemaps::sitemap, &page).unwrap();
        assert_eq!(found.requests[0].rule, rule);
    }
}

#[test]
fn an_empty_sitemap_is_told_and_another_document_is_an_error() {
    let read = |text: &str| trial().parse(Sitemaps::sitemap, &Page::from_html(MAP, text));
    let line = "http://gallery.test/sitemap.xml lists nothing".to_owned();
    assert_eq!(read("<urlset/>").unwrap().logs, [(Level::Warn, line)]);
    let error = read("<rss><channel/></rss>").unwrap_err();
    let why = "error: the root of a sitemap is not `rss`";
    assert_eq!(error.to_string(), why);
}

#[test]
fn a_page_without_a_title_is_an_item() {
    for (body, title) in [("<title>Guide</title>", json!("Guide")), ("", json!(null))] {
        let page = Page::from_html("http://gallery.test/guide.pdf", body);
        let found = trial().parse(Sitemaps::page, &page).unwrap();
        assert_eq!(found.items[0].value["title"], title);
    }
}

#[test]
fn saved_calls_give_what_they_gave() {
    check_saved::<Sitemaps>("pages");
}
