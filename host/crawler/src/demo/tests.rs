//! Tests that the shop's pages, read by another parser than that of rules, give its truth.

use std::collections::BTreeSet;

use scraper::{Html, Selector};

use super::*;

fn base() -> Url {
    "http://shop.test:8000/".parse().unwrap()
}

fn text(page: &Html, selector: &str) -> String {
    let selector = Selector::parse(selector).unwrap();
    let mut found = page.select(&selector);
    let text = found
        .next()
        .unwrap_or_else(|| panic!("{selector:?}"))
        .text()
        .collect();
    assert!(found.next().is_none(), "more than one {selector:?}");
    text
}

fn read(shop: &Shop, url: &Url) -> Html {
    let (_, text) = shop
        .page(url.path())
        .unwrap_or_else(|| panic!("no page {url}"));
    Html::parse_document(&text)
}

fn read_book(shop: &Shop, url: &Url) -> Value {
    let page = read(shop, url);
    let price = text(&page, "p.price");
    let price: u32 = price
        .strip_prefix('£')
        .unwrap()
        .replace('.', "")
        .parse()
        .unwrap();
    let stock = text(&page, "p.stock");
    let stock: u32 = match stock.strip_prefix("In stock (") {
        Some(rest) => rest.strip_suffix(')').unwrap().parse().unwrap(),
        None => {
            assert_eq!(stock, "Out of stock");
            0
        }
    };
    let rating = page
        .select(&Selector::parse("p.rating").unwrap())
        .next()
        .unwrap();
    let rating: u32 = rating.attr("data-stars").unwrap().parse().unwrap();
    let tags: Vec<String> = page
        .select(&Selector::parse("ul.tags > li").unwrap())
        .map(|li| li.text().collect())
        .collect();
    json!({
        "url": url.as_str(),
        "title": text(&page, "h1"),
        "author": text(&page, "p.author"),
        "price_pence": price,
        "stock": stock,
        "rating": rating,
        "tags": tags,
        "description": text(&page, "#description > p"),
    })
}

#[test]
fn a_walk_over_the_pages_gives_the_truth() {
    let shop = Shop::new();
    let link = Selector::parse("article.book h3 > a").unwrap();
    let next = Selector::parse("li.next > a").unwrap();
    let mut list = Some(base().join(START).unwrap());
    let (mut items, mut n_lists) = (Vec::new(), 0);
    while let Some(url) = list {
        n_lists += 1;
        let page = read(&shop, &url);
        for a in page.select(&link) {
            let item = read_book(&shop, &url.join(a.attr("href").unwrap()).unwrap());
            assert_eq!(a.attr("title").unwrap(), item["title"]);
            assert_eq!(a.text().collect::<String>(), item["title"]);
            items.push(item);
        }
        list = page
            .select(&next)
            .next()
            .map(|a| url.join(a.attr("href").unwrap()).unwrap());
    }
    let differences = report::compare(&items, &shop.truth(&base()));
    assert!(differences.is_empty(), "{:#?}", differences.lines());
    assert_eq!(items.len() + n_lists, shop.n_pages());
}

#[test]
fn the_truth_is_the_same_each_time_sorted_and_hard_to_parse() {
    let truth = Shop::new().truth(&base());
    assert_eq!(truth, Shop::new().truth(&base()));
    assert_eq!(truth.len(), 400);
    let urls: Vec<&str> = truth
        .iter()
        .map(|item| item["url"].as_str().unwrap())
        .collect();
    assert!(urls.is_sorted());
    assert_eq!(urls.iter().collect::<BTreeSet<_>>().len(), urls.len());
    for field in ["title", "author", "description"] {
        let all: String = truth
            .iter()
            .map(|item| item[field].as_str().unwrap())
            .collect();
        for c in ['&', '\'', 'é'] {
            assert!(all.contains(c), "{c} in {field}");
        }
    }
    assert!(truth.iter().any(|item| item["stock"] == 0));
    assert!(
        truth
            .iter()
            .any(|item| item["title"].as_str().unwrap().contains('<'))
    );
}

#[test]
fn the_shop_is_the_same_on_every_machine_and_in_every_version() {
    let truth = Shop::new().truth(&base());
    assert_eq!(truth[0]["url"], "http://shop.test:8000/book/1.html");
    assert_eq!(truth[0]["title"], "Crooked Violin, Crooked Bridge");
}

#[test]
fn what_the_shop_does_not_sell_is_not_there() {
    let shop = Shop::new();
    let paths = [
        "/x",
        "/book/0.html",
        "/book/401.html",
        "/book/01.html",
        "/book/1.html/",
        "/catalogue/page-0.html",
    ];
    for path in paths {
        assert!(shop.page(path).is_none(), "{path}");
    }
    assert!(shop.page("/catalogue/page-20.html").is_some());
    assert!(shop.page("/catalogue/page-21.html").is_none());
}

#[tokio::test]
async fn the_shop_answers_over_http_until_told_to_stop() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let ask = |line: &'static str| async move {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("{line} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let questions = async {
        let page = ask("GET /catalogue/page-1.html").await;
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        assert!(
            page.contains("content-type: text/html; charset=utf-8"),
            "{page}"
        );
        assert!(ask("GET /nothing").await.starts_with("HTTP/1.1 404"));
        assert!(ask("GET /robots.txt").await.contains("Allow: /"));
        assert!(ask("POST /").await.starts_with("HTTP/1.1 405"));
        stop.cancel();
    };
    let served = serve(listener, Arc::new(Shop::new()), stop.clone());
    let both = futures::future::join(served, questions);
    tokio::time::timeout(std::time::Duration::from_secs(30), both)
        .await
        .unwrap()
        .0
        .unwrap();
}
