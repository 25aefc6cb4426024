//! The three steps on saved pages.

use crawler_plugin_sdk::Page;
use crawler_plugin_sdk::testing::{Trial, check_saved};
use douban_book_list::Douban;
use serde_json::json;

const TAGS: &str = "http://books.test/tag/";
const LIST: &str = "http://books.test/tag/%E5%B0%8F%E8%AF%B4";
const BOOK: &str = "http://books.test/subject/1/";

#[test]
fn the_crawl_starts_at_the_page_of_tags() {
    let outcome = Trial::new()
        .param("start", TAGS)
        .root(Douban::root)
        .unwrap();
    assert_eq!(
        (outcome.urls(), outcome.requests[0].rule),
        (vec![TAGS], Douban::TAGS)
    );
    let outcome = Trial::of::<Douban>().root(Douban::root).unwrap();
    assert_eq!(outcome.urls(), ["https://book.douban.com/tag/"]);
}

#[test]
fn every_tag_leads_to_its_list_and_gives_it_its_name() {
    let page = Page::from_html(TAGS, include_str!("../pages/tags.html"));
    let outcome = Trial::new().parse(Douban::tags, &page).unwrap();
    assert_eq!(
        outcome.urls(),
        [LIST, "http://books.test/tag/%E8%AF%97%E6%AD%8C"]
    );
    assert_eq!(outcome.requests[1].state, "诗歌".as_bytes());
    assert_eq!(outcome.requests[1].rule, Douban::LIST);
}

#[test]
fn a_list_hands_its_tag_to_books_and_to_the_next_list() {
    let page = Page::from_html(LIST, include_str!("../pages/list.html")).with_state("小说");
    let outcome = Trial::new().parse(Douban::list, &page).unwrap();
    let next = format!("{LIST}?start=20&type=T");
    assert_eq!(
        outcome.urls(),
        [BOOK, "http://books.test/subject/2/", &next]
    );
    let rules = outcome.requests.iter().map(|request| request.rule.name());
    assert_eq!(rules.collect::<Vec<_>>(), ["detail", "detail", "list"]);
    assert!(
        outcome
            .requests
            .iter()
            .all(|request| request.state == "小说".as_bytes())
    );
}

#[test]
fn a_detail_page_becomes_a_book_of_its_tag() {
    let page = Page::from_html(BOOK, include_str!("../pages/book.html")).with_state("小说");
    let outcome = Trial::new().parse(Douban::detail, &page).unwrap();
    let book = &outcome.items[0].value;
    assert_eq!(
        book["score"].as_f64().map(|score| (score * 10.0).round()),
        Some(88.0)
    );
    let expected = json!({"url": BOOK, "tag": "小说", "title": "边城", "author": "沈从文", "publisher": "河畔书局"});
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&book[key], value);
    }
}

#[test]
fn publisher_and_score_may_be_missing_but_not_the_author() {
    let html = include_str!("../pages/book.html")
        .replace("出版社", "")
        .replace("8.8", "");
    let outcome = Trial::new()
        .parse(Douban::detail, &Page::from_html(BOOK, html))
        .unwrap();
    assert_eq!(outcome.items[0].value["publisher"], json!(null));
    assert_eq!(outcome.items[0].value["score"], json!(null));

    let html = include_str!("../pages/book.html").replace("作者", "");
    let error = Trial::new()
        .parse(Douban::detail, &Page::from_html(BOOK, html))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "error: the page lacks an element `#info > span` that matches `^作者[:： ]*([^:： ].*)` for `Book.author`"
    );
}

#[test]
fn saved_calls_give_what_they_gave() {
    check_saved::<Douban>("pages");
}
