//! Pages that are made to be expensive to read.

fn nested(tag: &str, n_bytes: usize) -> String {
    tag.repeat(n_bytes / tag.len())
}

const NESTED_BYTES: usize = 512 << 10;

pub(crate) fn lists() -> String {
    nested("<ul><li>", NESTED_BYTES)
}

pub(crate) fn bold() -> String {
    nested("<b>", NESTED_BYTES)
}

pub(crate) fn crossing() -> String {
    nested("<b><p>x</b></p><i>y</p>", NESTED_BYTES)
}

pub(crate) fn fostered() -> String {
    nested("<table>x<tr>y<td>z</table>", NESTED_BYTES)
}

pub(crate) fn attributes() -> String {
    let attributes: String = (0..1_000_000).map(|n| format!(" a{n}")).collect();
    format!("<li{attributes}>x")
}

pub(crate) fn attribute() -> String {
    format!("<li title='{}'>x", "x".repeat((8 << 20) - 20))
}

pub(crate) fn siblings() -> String {
    "<li>".repeat(1_000_000)
}

pub(crate) fn addresses() -> String {
    let base = format!("<base href='/{}/'>", "x".repeat(8_000));
    let links = (0..20_000).map(|n| format!("<li><a href={n}>"));
    std::iter::once(base).chain(links).collect()
}

pub(crate) fn svg() -> String {
    format!("<svg>{}", nested("<g>", NESTED_BYTES))
}

pub(crate) fn math() -> String {
    format!("<math>{}", nested("<mrow>", NESTED_BYTES))
}

pub(crate) fn templates() -> String {
    nested("<template>", NESTED_BYTES)
}

/// Returns a page with a billion laughs.
pub(crate) fn entities() -> String {
    let entities: String = (1..10)
        .map(|n| {
            let ten = format!("&l{};", n - 1).repeat(10);
            format!("<!ENTITY l{n} \"{ten}\">")
        })
        .collect();
    format!(
        "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY l0 \"ha\">{entities}]><rss><li>&l9;</li></rss>"
    )
}

pub(crate) fn unicode() -> String {
    "e\u{301}\u{302}\u{303}\u{202e}\u{200b}\u{2066}\u{feff}".repeat(40_000)
}

pub(crate) fn controls() -> String {
    "a\0b\rc\u{85}\u{1b}]8;;x\u{7}".repeat(1_000)
}

pub(crate) fn faces() -> String {
    "\u{1f600}".repeat(250_000)
}

pub(crate) fn mebibyte() -> String {
    "x".repeat(1 << 20)
}
