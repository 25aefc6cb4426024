//! The pages of the shop. The `books` plugin reads exactly this markup; the rest is decoration.
//!
//! ```text
//! /catalogue/page-N.html   article.book > h3 > a[href][title] and p.price, li.next > a but on the last
//! /book/ID.html            h1, p.author, p.price, p.stock, p.rating[data-stars], ul.tags > li,
//!                          #description > p
//! ```

use super::books::Book;

/// Page on which a crawl of the shop starts, relative to the shop's address.
pub const START: &str = "catalogue/page-1.html";

/// Returns the path of a book's own page.
pub(super) fn book_path(book: &Book) -> String {
    format!("/book/{}.html", book.id)
}

/// Renders the start page.
pub(super) fn start(n_books: usize) -> String {
    page(
        "The Seeded Shelf",
        &format!(
            "<main class=\"start\"><h1>The Seeded Shelf</h1>\n\
             <p>{n_books} books that nobody wrote, at prices that nobody pays. The same on every machine, \
             so that a crawler can be held to every letter.</p>\n\
             <p><a class=\"enter\" href=\"{}\">Enter the shop</a></p></main>",
            START,
        ),
    )
}

/// Renders page `n` of `n_pages` of the catalogue.
pub(super) fn catalogue(n: usize, n_pages: usize, books: &[Book]) -> String {
    let mut body = format!(
        "<p class=\"where\">Catalogue, page {n} of {n_pages}</p>\n<main class=\"shelf\">\n"
    );
    for book in books {
        let title = escape(&book.title);
        body += &format!(
            "<article class=\"book\"><h3><a href=\"..{}\" title=\"{title}\">{title}</a></h3>\
             <p class=\"price\">{}</p></article>\n",
            book_path(book),
            price(book),
        );
    }
    body += "</main>\n<ul class=\"pager\">";
    if n > 1 {
        body += &format!(
            "<li class=\"previous\"><a href=\"page-{}.html\">previous</a></li>",
            n - 1
        );
    }
    if n < n_pages {
        body += &format!(
            "<li class=\"next\"><a href=\"page-{}.html\">next</a></li>",
            n + 1
        );
    }
    body += "</ul>";
    page(&format!("Catalogue, page {n}"), &body)
}

/// Renders the page of one book.
pub(super) fn book(book: &Book) -> String {
    let stock = match book.stock {
        0 => "Out of stock".to_owned(),
        n => format!("In stock ({n})"),
    };
    let tags: String = book
        .tags
        .iter()
        .map(|tag| format!("<li>{}</li>", escape(tag)))
        .collect();
    page(
        &book.title,
        &format!(
            "<main class=\"detail\"><h1>{title}</h1>\n\
             <p class=\"author\">{author}</p>\n\
             <p class=\"price\">{price}</p>\n\
             <p class=\"stock\">{stock}</p>\n\
             <p class=\"rating\" data-stars=\"{rating}\"></p>\n\
             <ul class=\"tags\">{tags}</ul>\n\
             <div id=\"description\"><p>{description}</p></div></main>",
            title = escape(&book.title),
            author = escape(&book.author),
            price = price(book),
            rating = book.rating,
            description = escape(&book.description),
        ),
    )
}

fn price(book: &Book) -> String {
    format!("£{}.{:02}", book.price_pence / 100, book.price_pence % 100)
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header><a href=\"/\">The Seeded Shelf</a></header>\n{body}\n</body>\n</html>\n",
        escape(title),
    )
}

/// Escapes text for content and double-quoted attributes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c => escaped.push(c),
        }
    }
    escaped
}

const STYLE: &str = "
body{font:16px/1.5 Georgia,serif;color:#2b2622;background:#faf6ef;max-width:60rem;margin:0 auto;padding:1rem}
header{border-bottom:2px solid #b5532f;padding:.5rem 0;margin-bottom:1rem;font-size:1.3rem}
a{color:#8a3b1e;text-decoration:none}a:hover{text-decoration:underline}
.start{text-align:center;padding:4rem 1rem}
.enter{background:#b5532f;color:#fff;padding:.6rem 1.4rem;border-radius:.4rem}
.where{color:#8b8178}
.shelf{display:grid;grid-template-columns:repeat(auto-fill,minmax(13rem,1fr));gap:1rem}
.book{background:#fff;border:1px solid #e6dccd;border-radius:.5rem;padding:1rem;display:flex;flex-direction:column}
.book h3{font-size:1rem;margin:0;flex:1}
.price{color:#2f6b3c;font-weight:bold;margin:.5rem 0 0}
.pager{display:flex;justify-content:space-between;list-style:none;padding:0}.pager .next{margin-left:auto}
.detail{background:#fff;border:1px solid #e6dccd;border-radius:.5rem;padding:1.5rem}
.detail h1{margin-top:0}.author::before{content:\"by \";color:#8b8178}
.rating{color:#d59b1c;letter-spacing:.15em}
.rating[data-stars=\"1\"]::before{content:\"★☆☆☆☆\"}.rating[data-stars=\"2\"]::before{content:\"★★☆☆☆\"}
.rating[data-stars=\"3\"]::before{content:\"★★★☆☆\"}.rating[data-stars=\"4\"]::before{content:\"★★★★☆\"}
.rating[data-stars=\"5\"]::before{content:\"★★★★★\"}
.tags{list-style:none;padding:0;display:flex;gap:.5rem;flex-wrap:wrap}
.tags li{background:#f0e6d8;border-radius:1rem;padding:0 .8rem;font-size:.9rem}
";
