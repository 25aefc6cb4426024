//! The parts of the site that are the same for every client: a catalogue, a table, a shop with its reviews, and links.

use crawler_tests::web::{Site, StatusCode};

use super::html;

/// Title of a book, and what else its page tells.
const BOOKS: [(&str, &str); 5] = [
    (
        "The Waves",
        r#"<p class="author">Virginia Woolf</p> <p class="price">£12.34</p> <p class="stock">In stock (7)</p>
        <p class="rating" data-stars="5">5 of 5</p> <ul class="tags"><li>novel</li><li>sea</li></ul>
        <div id="description">Six voices &amp; the sea.</div>"#,
    ),
    (
        "Persuasion",
        r#"<p class="author">Jane Austen</p> <p class="price">£8.00</p> <p class="stock">Out of stock</p>
        <p class="rating" data-stars="4">4 of 5</p> <ul class="tags"><li>novel</li></ul>
        <div id="description">A second <em>chance</em>,
        in Bath.</div>"#,
    ),
    (
        "Labyrinths",
        r#"<p class="author">Jorge Luis Borges</p> <p class="price">£10.05</p> <p class="stock">In stock (1)</p>
        <p class="rating" data-stars="5">5 of 5</p> <ul class="tags"></ul>
        <div id="description">Mirrors, libraries…</div>"#,
    ),
    (
        "The Trial &amp; other texts",
        r#"<p class="author">Franz Kafka</p> <p class="price">£99.99</p> <p class="stock">In stock (20)</p>
        <p class="rating" data-stars="3">3 of 5</p> <ul class="tags"><li>novel</li><li>law</li></ul>
        <div id="description">Someone must have told lies.</div>"#,
    ),
    (
        "Pedro Páramo",
        r#"<p class="author">Juan Rulfo</p> <p class="price">£7.10</p> <p class="stock">In stock (3)</p>
        <p class="rating" data-stars="4">4 of 5</p> <ul class="tags"><li> short
        novel </li></ul> <div id="description">Comala, as it was.</div>"#,
    ),
];
const BOOKS_PER_PAGE: usize = 2;

/// Adds a catalogue of three list pages, which the plugin `books` reads.
pub(super) fn catalogue(mut site: Site) -> Site {
    let n_lists = BOOKS.len().div_ceil(BOOKS_PER_PAGE);
    let mut lists = vec![String::new(); n_lists];
    for (n, (title, facts)) in BOOKS.iter().enumerate() {
        let book = format!("<h1>{title}</h1>\n{facts}");
        site = site.page(&format!("/book/{n}.html"), html(title, &book));
        lists[n / BOOKS_PER_PAGE] += &format!(
            "<article class=\"book\"><h3><a href=\"../book/{n}.html\">{title}</a></h3></article>\n"
        );
    }
    for (n, mut list) in (1..).zip(lists) {
        if n < n_lists {
            list += &format!(
                "<ul><li class=\"next\"><a href=\"page-{}.html\">next</a></li></ul>",
                n + 1
            );
        }
        let path = format!("/catalogue/page-{n}.html");
        site = site.page(&path, html("Catalogue", &list));
    }
    site
}

const PEAKS: &str = "<h1>Peaks</h1>
<table><tr><th>Range</th><th>Area</th></tr><tr><td>Karakoram</td><td>207,000</td></tr></table>
<table id=\"peaks\">
<thead>
<tr><th rowspan=\"2\">Range</th><th rowspan=\"2\">Peak</th><th colspan=\"2\">Camps</th>
    <th colspan=\"2\">Height</th><th rowspan=\"2\">First ascent</th></tr>
<tr><th>north</th><th>south</th><th>m</th><th>ft</th></tr>
</thead>
<tbody>
<tr><td rowspan=\"3\">Himalaya</td><td>Everest</td><td>6</td><td>5</td><td>8,849</td><td>29,032</td><td>1953</td></tr>
<tr><td>Kangchenjunga</td><td colspan=\"2\">4</td><td>8,586<sup>[1]</sup></td><td>28,169</td><td>1955</td></tr>
<tr><td>Gangkhar Puensum</td><td colspan=\"2\" rowspan=\"3\">none</td><td>7,570</td><td>24,836</td><td>–</td></tr>
<tr><td rowspan=\"0\">Karakoram</td><td>Muchu Chhish</td><td>7,453</td><td>24,452</td><td>–</td></tr>
<tr><td>Rakaposhi &amp; <i>east</i> peak</td><td>7,788</td><td>25,551</td><td rowspan=\"2\">1958</td></tr>
<tr><td>Hidden Peak</td><td>3</td><td></td><td>8,080</td><td>26,509</td></tr>
</tbody>
<tfoot><tr><td colspan=\"7\"><sup>[1]</sup> Others say 8,598 m.</td></tr></tfoot>
</table>";

/// Adds a page with two tables. The cells of one span rows and columns.
pub(super) fn peaks(site: Site) -> Site {
    site.page("/peaks.html", html("Peaks", PEAKS))
}

/// Path, name and price of a product. The host of the reviews does not know the cup.
const PRODUCTS: [(&str, &str, &str); 5] = [
    ("kettle", "Kettle &amp; stand", "£24.50"),
    ("tea-250", "Green tea, 250 g", "£6.20"),
    ("tea-500", "Green tea, 500 g", "£1,011.00"),
    ("cup", "Cup “Delft”", "EUR 8,40"),
    (WITHOUT_REVIEWS, "Spoon", "£3.00"),
];
/// Path of a product whose page has no link to reviews.
const WITHOUT_REVIEWS: &str = "spoon";

/// Adds a shop of two list pages. The reviews are below this address.
pub(super) fn shop(mut site: Site, reviews: &str) -> Site {
    let (first, last) = PRODUCTS.split_at(3);
    let link =
        |(path, name, _): &(&str, &str, &str)| format!("<li><a href=\"{path}\">{name}</a></li>\n");
    let list = |products: &[_]| products.iter().map(link).collect::<String>();
    let first = format!(
        "<ul class=\"products\">\n{}</ul>\n<a rel=\"next\" href=\"?page=2\">More</a>",
        list(first)
    );
    let last = format!("<ul class=\"products\">\n{}</ul>", list(last));
    site = site.handle("/shop/", move |asked| {
        let page = html(
            "Shop",
            if asked.query == "page=2" {
                &last
            } else {
                &first
            },
        );
        async move { axum::response::Html(page) }
    });
    for (path, name, price) in PRODUCTS {
        let mut product = format!("<h1>{name}</h1>\n<p class=\"price\">{price}</p>");
        if path != WITHOUT_REVIEWS {
            product +=
                &format!("\n<a class=\"reviews\" href=\"{reviews}{path}\">What others say</a>");
        }
        site = site.page(&format!("/shop/{path}"), html(name, &product));
    }
    site
}

/// Adds the pages of reviews.
pub(super) fn reviews(site: Site) -> Site {
    let review = |stars: u8, text: &str| {
        format!(
            "<article class=\"review\"><span class=\"stars\" data-stars=\"{stars}\">{stars}/5</span>\n\
             <p>{text}</p></article>\n"
        )
    };
    let kettle = review(4, "Boils,\n and <b>quietly</b>.") + &review(1, "It broke &amp; leaked.");
    let tea = review(5, "Fresh.");
    site.page("/kettle", html("Kettle", &kettle))
        .page("/tea-250", html("Tea", &tea))
        .page("/tea-500", html("Tea", "<p>Nobody has said anything.</p>"))
}

/// Adds pages that lead to each other, and to some that are not there. Nothing leads to the rest of the site.
pub(super) fn links(site: Site) -> Site {
    let first = "<a href=\"about\">About</a> <a href=\"gone?a=1&amp;b=2\">Old</a> <a href=\"error\">Shop</a>";
    let about = "<a href=\".\">Home</a> <a href=\"lost\">Team</a> <a href=\"/links/\">Home</a>";
    site.page("/links/", first)
        .page("/links/about", about)
        .handle("/links/gone", |_| async { (StatusCode::GONE, "gone") })
        .handle("/links/error", |_| async {
            (StatusCode::INTERNAL_SERVER_ERROR, "an error")
        })
}
