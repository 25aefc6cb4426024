//! The rules on saved pages.

use crawler_plugin_sdk::Page;
use crawler_plugin_sdk::testing::{Trial, check_saved};
use incremental::Incremental;

const LIST: &str = "http://gallery.test/news/";

#[test]
fn older_lists_come_before_articles() {
    let page = Page::from_html(LIST, include_str!("../pages/list.html"));
    let found = Trial::new().parse(Incremental::list, &page).unwrap();
    let followed = found.requests.iter();
    let followed: Vec<_> = followed
        .map(|request| (request.rule, request.priority))
        .collect();
    let article = (Incremental::ARTICLE, 0);
    assert_eq!(followed, [(Incremental::LIST, 1), article, article]);
}

#[test]
fn a_correction_is_told() {
    for (html, corrected) in [
        (include_str!("../pages/article.html"), None),
        (
            include_str!("../pages/corrected.html"),
            Some("2026-07-09T10:00:00+02:00"),
        ),
    ] {
        let page = Page::from_html("http://gallery.test/news/3.html", html);
        let found = Trial::new().parse(Incremental::article, &page).unwrap();
        let item = &found.items[0].value;
        assert_eq!(item["corrected"].as_str(), corrected);
        assert_eq!(item["published"], "2026-07-03T08:30:00+00:00");
    }
}

#[test]
fn saved_calls_give_what_they_gave() {
    check_saved::<Incremental>("pages");
}
