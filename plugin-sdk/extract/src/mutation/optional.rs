//! End tags that HTML lets an author leave out, with the places where it does.

use super::tags;

/// An end tag, and the tags right behind it before which it may be left out. White space between them is ignored.
struct Optional {
    name: &'static str,
    before_starts: &'static [&'static str],
    before_ends: &'static [&'static str],
}

/// End tags that may be left out: fewer than the standard allows. In quirks mode, or around content that the
/// standard forbids, a browser would read the rest differently.
const OPTIONAL: [Optional; 11] = [
    Optional {
        name: "li",
        before_starts: &["li"],
        before_ends: &["ul", "ol", "menu"],
    },
    Optional {
        name: "dt",
        before_starts: &["dt", "dd"],
        before_ends: &[],
    },
    Optional {
        name: "dd",
        before_starts: &["dt", "dd"],
        before_ends: &["dl"],
    },
    Optional {
        name: "p",
        before_starts: &[
            "address",
            "article",
            "aside",
            "blockquote",
            "details",
            "div",
            "dl",
            "fieldset",
            "figcaption",
            "figure",
            "footer",
            "form",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "header",
            "hr",
            "main",
            "menu",
            "nav",
            "ol",
            "p",
            "pre",
            "section",
            "ul",
        ],
        before_ends: &[
            "article",
            "aside",
            "blockquote",
            "body",
            "dd",
            "details",
            "div",
            "fieldset",
            "figcaption",
            "figure",
            "footer",
            "header",
            "li",
            "main",
            "nav",
            "section",
            "td",
            "th",
        ],
    },
    Optional {
        name: "option",
        before_starts: &["option", "optgroup"],
        before_ends: &["select", "optgroup"],
    },
    Optional {
        name: "td",
        before_starts: &["td", "th"],
        before_ends: &["tr"],
    },
    Optional {
        name: "th",
        before_starts: &["td", "th"],
        before_ends: &["tr"],
    },
    Optional {
        name: "tr",
        before_starts: &["tr"],
        before_ends: &["thead", "tbody", "tfoot", "table"],
    },
    Optional {
        name: "thead",
        before_starts: &["tbody", "tfoot"],
        before_ends: &[],
    },
    Optional {
        name: "tbody",
        before_starts: &["tbody", "tfoot"],
        before_ends: &["table"],
    },
    Optional {
        name: "tfoot",
        before_starts: &[],
        before_ends: &["table"],
    },
];

/// Returns the page without the end tags that may be left out at their places. A browser sees the same elements
/// and texts in it, except for white space behind such a tag, which moves into the element.
pub fn without_optional_end_tags(page: &str) -> String {
    let tags = tags::real(page);
    let mut mutated = String::new();
    let mut kept = 0;
    for pair in tags.windows(2) {
        let [tag, next] = [&page[pair[0].clone()], &page[pair[1].clone()]];
        let between = &page[pair[0].end..pair[1].start];
        if tags::is_end(tag) && between.trim_ascii().is_empty() && may_be_left_out(tag, next) {
            mutated.push_str(&page[kept..pair[0].start]);
            kept = pair[0].end;
        }
    }
    mutated + &page[kept..]
}

fn may_be_left_out(tag: &str, next: &str) -> bool {
    let is = |name: &&str, tag: &str| name.eq_ignore_ascii_case(tags::name(tag));
    let optional = OPTIONAL.iter().find(|optional| is(&optional.name, tag));
    optional.is_some_and(|optional| {
        let names = match tags::is_end(next) {
            true => optional.before_ends,
            false => optional.before_starts,
        };
        names.iter().any(|name| is(name, next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(page: &str, expected: &str) {
        assert_eq!(without_optional_end_tags(page), expected);
    }

    #[test]
    fn end_tags_are_left_out_where_the_next_tag_ends_the_element() {
        check("<ul><li>a</li>\n<li>b</LI></ul>", "<ul><li>a\n<li>b</ul>");
        check(
            "<dl><dt>a</dt><dd><p>b</p></dd></dl>",
            "<dl><dt>a<dd><p>b</dl>",
        );
        check(
            "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>b</td></tr></tbody></table>",
            "<table><thead><tr><th>a<tbody><tr><td>b</table>",
        );
        check(
            "<select><option>a</option><option>b</option></select>",
            "<select><option>a<option>b</select>",
        );
    }

    #[test]
    fn end_tags_stay_where_the_element_would_go_on() {
        for page in [
            "<ul><li>a</li>text<li>b</li><!-- --></ul>",
            "<p>a</p>b",
            "<a><p>a</p></a>",
            "<p>a</p><table></table>",
            "<p>a</p><span>b</span>",
            "<script>'<li></li><li>'</script>",
            "<i title='</li><li>'></i>",
            "<p>a</p>",
        ] {
            check(page, page);
        }
    }
}
