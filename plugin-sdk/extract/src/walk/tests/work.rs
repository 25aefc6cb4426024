//! Steps of the walk on hostile pages: they never grow with the square of the length.

use super::*;

/// Size of the pages that are compared with pages of half the size.
const MANY: usize = 1 << 19;

/// Counts everything that it is told.
#[derive(Default)]
struct Told(usize);

impl<'p> Visitor<'p> for Told {
    fn start(&mut self, _: &Start<'p>) {
        self.0 += 1;
    }

    fn end(&mut self, _: usize) {
        self.0 += 1;
    }

    fn text(&mut self, text: &'p str, _: TextKind) {
        self.0 += text.len();
    }

    fn reached(&mut self, _: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Walks over a page and returns the number of steps.
fn work(name: &str, page: &str) -> usize {
    steps::take();
    let mut told = Told::default();
    // A page that is too deep ends early.
    let _ = walk(page, &mut told);
    let steps = steps::take();
    assert!(
        told.0 <= 6 * page.len() + 100,
        "{name}: {} are told",
        told.0
    );
    // An end tag has four bytes at least, and looks at 64 elements a few times.
    assert!(steps <= 40 * page.len() + 100_000, "{name}: {steps} steps");
    steps
}

/// Checks that a page twice as long takes twice the work.
fn check_linear(name: &str, page: impl Fn(usize) -> String) {
    let half = work(name, &page(MANY / 2));
    let whole = work(name, &page(MANY));
    assert!(
        whole <= 2 * half + half / 8 + 100_000,
        "{name}: {half} steps, then {whole}"
    );
}

fn repeated(piece: &str) -> impl Fn(usize) -> String {
    move |size| piece.repeat(size / piece.len())
}

/// Returns a page of open elements, nearly as deep as the limit allows, followed by a piece again and again.
fn below(open: &str, piece: &str) -> impl Fn(usize) -> String {
    let open = open.repeat(7_500);
    move |size| format!("{open}{}", piece.repeat(size / piece.len()))
}

#[test]
fn hostile_pages_are_linear_work() {
    for piece in [
        "<div>",
        "<p>",
        "<li>",
        "<table>",
        "<a>",
        "<b>",
        "<svg>",
        "<td>",
        "<option>",
        "<custom-element>",
        "<",
        "</",
        "<!",
        "<!--",
        "<a",
        "</a",
        "&",
        "\0",
        "<a><b></a></b>",
        "<b><p></b></p>",
        "<a><div>",
        "<nobr><p>",
        "<form><div></form>",
        "<table><td>",
        "<table><tr><td><li>",
        "<svg><p>",
        "<svg/>",
        "<image>",
        "<math><mi><mglyph/>",
        "<script>",
        "<title>",
        "<script><!--<script>-",
        "<template>",
        "<select><select>",
        "<body></body>",
        "<head></head>",
        "<html></html>a",
        "<ruby><rt><rp>",
        "<h1><h2>",
        "</p>",
        "</x>",
        "<p></div>",
        "<!doctype html>",
        "<![CDATA[",
        "<svg><![CDATA[]]>",
        "<a href='>'>",
        "<font color>",
        "<svg><font>",
        "<button><p>",
        "<dl><dd>",
        "<plaintext>",
        "<x =>",
        "<col>",
    ] {
        check_linear(piece, repeated(piece));
    }
}

#[test]
fn hostile_pages_below_deep_ones_are_linear_work() {
    for (open, piece) in [
        ("<div>", "</x>"),
        ("<span>", "</div>"),
        ("<span>", "</b>"),
        ("<span>", "<p></p>"),
        ("<a><div>", "<a></a>"),
        ("<td>", "<li></li>"),
        ("<td>", "</li>"),
        ("<td>", "<h1></h1></td>"),
        ("<b>", "<p></b></p>"),
        ("<svg>", "</g>"),
        ("<table><td>", "</tfoot></caption>"),
        ("<template>", "<col>"),
        ("<ruby>", "<rt></rb>"),
        ("<div>", "</body>a"),
        ("<nobr><p>", "<nobr></nobr>"),
    ] {
        check_linear(&format!("{open} {piece}"), below(open, piece));
    }
}

#[test]
fn one_huge_tag_is_linear_work() {
    check_linear("attributes", |size| {
        format!("<p {}>", "a=b ".repeat(size / 4))
    });
    check_linear("bare attributes", |size| {
        format!("<svg><font {}>", "a ".repeat(size / 2))
    });
    check_linear("attribute", |size| format!("<p a='{}'>", "a".repeat(size)));
    check_linear("no end", |size| {
        format!("<p><p a='{}", "<p>".repeat(size / 3))
    });
    check_linear("name", |size| format!("<{}>", "a".repeat(size)));
    check_linear("names", |size| {
        format!("<{0}><{0}></{0}><p><image></{0} b>", "a".repeat(size / 4))
    });
    check_linear("doctype", |size| format!("<!doctype {}>", "a".repeat(size)));
    check_linear("comment", |size| {
        format!("<!--{}-->", "->".repeat(size / 2))
    });
    check_linear("script", |size| {
        format!("<script><!--{}</script>", "<-".repeat(size / 2))
    });
    check_linear("text", |size| format!("<head>{}a", " ".repeat(size)));
}

#[test]
fn eight_megabytes_of_anything_are_bounded_work() {
    const SIZE: usize = 8 << 20;
    for piece in [
        "<div>",
        "<p>",
        "<li>",
        "<table>",
        "<a>",
        "<ul><li><p><b>",
        "<",
        "\0",
    ] {
        work(piece, &piece.repeat(SIZE / piece.len()));
    }
    work("crossing", &"<a><b></a></b>".repeat(300_000));
    work("attributes", &format!("<p {}>", "a=b ".repeat(1_000_000)));
    work("attribute", &format!("<p a='{}'>", "a".repeat(SIZE)));
}
