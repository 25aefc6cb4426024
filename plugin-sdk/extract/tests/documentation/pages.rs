//! Pages of the documentation that comes with the compiler, and the plans that they are read with.

use std::sync::LazyLock;

/// About 300 pages of the documentation that comes with the compiler, with their paths. None where it is not
/// installed.
pub(crate) static DOCUMENTATION: LazyLock<Vec<(String, String)>> = LazyLock::new(documentation);

fn documentation() -> Vec<(String, String)> {
    let sysroot = std::process::Command::new("rustc")
        .args(["--print", "sysroot"])
        .output();
    let Ok(sysroot) = sysroot else {
        return Vec::new();
    };
    let root = std::path::Path::new(String::from_utf8(sysroot.stdout).unwrap().trim())
        .join("share/doc/rust/html");
    let mut paths = Vec::new();
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "html") {
                // Redirects say nothing, and pages of megabytes take long where nothing is optimised.
                let size = path.metadata().unwrap().len();
                if (4_000..150_000).contains(&size) {
                    paths.push(path);
                }
            }
        }
    }
    paths.sort();
    let step = (paths.len() / 300).max(1);
    let chosen = paths.into_iter().step_by(step).take(300);
    chosen
        .map(|p| (p.display().to_string(), std::fs::read_to_string(p).unwrap()))
        .collect()
}

/// The plans that were measured before this was built.
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
