//! Pages of the documentation that comes with the compiler, and the plans that they are read with.

use std::sync::LazyLock;

use super::documentation;

/// 2 000 pages of the documentation that comes with the compiler, with their paths. Empty if it is not installed.
/// Redirects say nothing, and pages of megabytes take long, so both are left out.
pub(crate) static DOCUMENTATION: LazyLock<Vec<(String, String)>> =
    LazyLock::new(|| documentation::pages(2_000, 4_000..150_000));

/// Plans that were measured before this was built.
pub(crate) const PLANS: [(&str, &str); 12] = [
    ("links", ".href = a[href] -> @href"),
    (
        "links and headings",
        ".href = a[href] -> @href\n.h = h1, h2, h3",
    ),
    (
        "rows of links",
        "a < a[href]\na.href = -> @href\na.text =\na.title = -> @title\na.code = code -> present",
    ),
    (
        "lists of three levels",
        "ul < ul\nul/li < li\nli/a < a\na.text =\na.href = -> @href",
    ),
    (
        "children",
        "list < ul, ol\nlist/item < > li\nitem.a = > a\nitem.p = > p",
    ),
    (
        "tables of three levels",
        "table < table\ntable/tr < tr\ntr/td < td, th\ntd.text =",
    ),
    ("table bodies", ".tr = table > tbody > tr"),
    (
        "code",
        ".code = pre > code -> raw\n.class = pre code -> @class",
    ),
    (
        "heads",
        ".title = title\n.meta = meta -> @content\n.link = link[rel] -> @href\n.lang = html -> @lang",
    ),
    (
        "sections",
        "s < section, div\ns.h = h1, h2, h3, h4\ns.text = first\ns.inner = > p -> inner\ns.a = a[href] -> @href",
    ),
    ("paragraphs", "p < p\np.text =\np.inner = -> inner"),
    (
        "positions",
        ".a = li:nth-child(2)\n.b = a:not(.x):not([title]) -> @href\n.c = p:nth-of-type(2n+1)\n.d = li:first-child > a\n.e = div:first-of-type -> @id",
    ),
];
