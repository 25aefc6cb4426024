//! Random pages that are full of tables.

use crawler_extract::mutation::Random;

/// Returns a page whose tables are right by the rules of HTML: it leaves out only tags that may be left out.
pub(crate) fn right(random: &mut Random) -> String {
    page(random, false)
}

/// Returns a page of the same kind with mistakes: text and elements in places of a table that allow none, parts of
/// tables without a table, end tags that close nothing, and formatting elements without an end.
pub(crate) fn wrong(random: &mut Random) -> String {
    page(random, true)
}

fn page(random: &mut Random, has_mistakes: bool) -> String {
    // Without a document type, a table may stand in a paragraph.
    let start = random.pick(&["<!DOCTYPE html>", "<!DOCTYPE html>", ""]);
    let mut writer = Writer {
        page: format!("{start}<html><head><title>t</title></head><body>"),
        n_left: 2 + random.below(8),
        n_written: 0,
        has_mistakes,
        random,
    };
    while writer.n_left > 0 {
        writer.content(0);
    }
    writer.page + "</body></html>"
}

struct Writer<'r> {
    random: &'r mut Random,
    page: String,
    /// Number of tables and lists that are still to be written.
    n_left: usize,
    n_written: usize,
    has_mistakes: bool,
}

impl Writer<'_> {
    fn is_one_of(&mut self, n: usize) -> bool {
        self.random.below(n) == 0
    }

    fn put(&mut self, texts: &[&str]) {
        self.page.push_str(self.random.pick(texts));
    }

    /// Writes a text that no other place has, so that its place can be seen.
    fn word(&mut self) {
        self.n_written += 1;
        self.page.push_str(&format!("w{}", self.n_written));
    }

    /// Writes a start tag with random attributes.
    fn start(&mut self, name: &str, attributes: &[&str]) {
        let attribute = self.random.pick(attributes);
        self.page.push_str(&format!("<{name}{attribute}>"));
        self.put(&["", "", "\n  "]);
    }

    /// Writes an end tag, or leaves it out.
    fn end(&mut self, name: &str) {
        if self.is_one_of(2) {
            self.page.push_str(&format!("</{name}>"));
        }
        self.space();
    }

    /// Writes something between the parts of a table: white space, comments, scripts and forms, and on a page with
    /// mistakes anything.
    fn space(&mut self) {
        self.put(&["", "", "", " ", "\n", "<!-- -->"]);
        if self.is_one_of(24) {
            self.put(&[
                "<script>no</script>",
                "<style>no</style>",
                "<template><tr>no</template>",
                "<input type=hidden>",
                "<form class=a></form>",
            ]);
        }
        if self.has_mistakes && self.is_one_of(120) {
            self.mistake();
        }
    }

    fn mistake(&mut self) {
        self.put(&[
            "out",
            "<p>out</p>",
            "<div class=a>out</div>",
            "<a href=o>out</a>",
            "<input>",
            "<ul><li>out</ul>",
            "<b>out",
            "<table><tr><td>out</table>",
            "<td>out",
            "<caption>out",
            "<col>",
            "</p>",
            "</div>",
            "</td>",
            "</tr>",
            "</tbody>",
            "</table>",
            "</caption>",
            "</ul>",
            "</b>",
        ]);
    }

    fn table(&mut self, depth: usize) {
        self.start("table", &["", " class=a", " class=b id=t"]);
        self.space();
        if self.is_one_of(4) {
            self.start("caption", &["", " class=a"]);
            self.flow(depth);
            self.end("caption");
        }
        for _ in 0..self.random.below(3) {
            if self.is_one_of(2) {
                self.put(&[
                    "<colgroup span=2></colgroup>",
                    "<colgroup><col><col class=a span=2></colgroup>",
                    "<colgroup><col>",
                    "<col class=a><col>",
                ]);
            }
        }
        if self.is_one_of(3) {
            self.rows("thead", depth);
        }
        for _ in 0..1 + self.random.below(2) {
            self.rows("tbody", depth);
        }
        if self.is_one_of(4) {
            self.rows("tfoot", depth);
        }
        self.page.push_str("</table>");
    }

    fn rows(&mut self, name: &str, depth: usize) {
        let is_written = name != "tbody" || self.is_one_of(2);
        if is_written {
            self.start(name, &["", " class=a"]);
        }
        for n in 0..self.random.below(4) {
            if n > 0 || self.random.below(6) > 0 {
                self.start("tr", &["", " class=a", " class=b id=r"]);
            }
            for _ in 0..self.random.below(4) {
                self.cell(depth);
            }
            self.end("tr");
        }
        if is_written {
            self.end(name);
        }
    }

    fn cell(&mut self, depth: usize) {
        let name = self.random.pick(&["td", "td", "th"]);
        self.start(
            name,
            &[
                "",
                " rowspan=2",
                " colspan=3 class=a",
                " class=b",
                " rowspan=0 id=c",
            ],
        );
        for _ in 0..self.random.below(3) {
            self.flow(depth);
        }
        if self.is_one_of(8) {
            // The element ends with the cell, and is not opened again in the next.
            self.page.push_str("<b>");
            self.word();
        }
        self.end(name);
    }

    /// Writes content of a cell.
    fn flow(&mut self, depth: usize) {
        if depth < 4 && self.n_left > 0 && self.is_one_of(3) {
            self.content(depth + 1);
            return;
        }
        if self.has_mistakes && self.is_one_of(120) {
            self.mistake();
        }
        let (before, after) = [
            ("", ""),
            ("", " "),
            ("<p>", ""),
            ("<p class=a>", "</p>"),
            ("<a href=x>", "</a>"),
            ("<b>", "</b>"),
            ("<div class=b>", "</div>"),
            ("<br>", ""),
            ("<dl><dt>t<dd>", "</dl>"),
            ("<select><option>o<option>", "</select>"),
            ("<h3>", "</h3>"),
            ("<form><input>", "</form>"),
        ][self.random.below(12)];
        self.page.push_str(before);
        self.word();
        self.page.push_str(after);
    }

    /// Writes a table or a list, perhaps in another element.
    fn content(&mut self, depth: usize) {
        self.n_left = self.n_left.saturating_sub(1);
        match self.random.below(8) {
            0..=4 => self.table(depth),
            5 => {
                self.put(&["<ul>", "<ul class=a>"]);
                for _ in 0..self.random.below(4) {
                    self.page.push_str("<li>");
                    self.flow(depth);
                    if self.is_one_of(2) {
                        self.page.push_str("</li>");
                    }
                }
                self.page.push_str("</ul>");
            }
            6 => {
                // A browser that keeps to the standard ends the paragraph where the table begins.
                self.page.push_str("<p>");
                self.word();
                self.table(depth);
            }
            _ => {
                self.put(&["<div>", "<div class=a>"]);
                self.table(depth);
                self.word();
                self.page.push_str("</div>");
            }
        }
        if self.has_mistakes && self.is_one_of(20) {
            self.mistake();
        }
    }
}
