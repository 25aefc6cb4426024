//! Elements and texts that the walk tells of pages, and the number of its steps.

mod work;

use super::*;

/// Writes what it is told as HTML with every tag.
struct Writer<'p> {
    page: &'p str,
    out: String,
    open: Vec<&'p str>,
}

impl<'p> Visitor<'p> for Writer<'p> {
    fn start(&mut self, element: &Start<'p>) {
        let span = element.span();
        if span.is_empty() {
            self.out.push_str(&format!("<{}>", element.name()));
        } else {
            self.out.push_str(&self.page[span]);
        }
        if element.has_content() {
            self.open.push(element.name());
        }
    }

    fn end(&mut self, _: usize) {
        let name = self.open.pop().expect("an element ends once");
        self.out.push_str(&format!("</{name}>"));
    }

    fn text(&mut self, text: &'p str, _: TextKind) {
        self.out.push_str(text);
    }

    fn reached(&mut self, _: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn written(page: &str) -> String {
    let mut writer = Writer {
        page,
        out: String::new(),
        open: Vec::new(),
    };
    walk(page, &mut writer).expect("not too much is open");
    writer.out
}

/// Checks what the walk tells of a page. If the second half is empty, the page is told as it is written.
fn check(cases: &[(&str, &str)]) {
    for (page, expected) in cases {
        let expected = if expected.is_empty() { page } else { expected };
        assert_eq!(written(page), *expected, "{page:?}");
    }
}

#[test]
fn elements_that_end_by_themselves_get_end_tags() {
    check(&[
        ("<ul><li>a<li>b</ul>c", "<ul><li>a</li><li>b</li></ul>c"),
        (
            "<ul><li>a<ul><li>b</ul><li>c</ul>",
            "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>",
        ),
        ("<li>a<div>b<li>c", "<li>a<div>b</div></li><li>c</li>"),
        (
            "<dl><dt>a<dd>b<dt>c</dl>",
            "<dl><dt>a</dt><dd>b</dd><dt>c</dt></dl>",
        ),
        ("<p>a<p>b<div>c", "<p>a</p><p>b</p><div>c</div>"),
        (
            "<p>a<button><p>b<p>c</button>d",
            "<p>a<button><p>b</p><p>c</p></button>d</p>",
        ),
        ("<p>a<xmp><p></xmp>", "<p>a</p><xmp><p></xmp>"),
        ("<h1>a<h2>b", "<h1>a</h1><h2>b</h2>"),
        ("<h1>a</h3>b", "<h1>a</h1>b"),
        ("<a>1<a>2", "<a>1</a><a>2</a>"),
        ("<button>1<button>2", "<button>1</button><button>2</button>"),
        (
            "<ruby>a<rb>b<rtc>c<rt>d<rp>e</ruby>",
            "<ruby>a<rb>b</rb><rtc>c<rt>d</rt><rp>e</rp></rtc></ruby>",
        ),
        (
            "<select><optgroup><option>a<option>b<optgroup><option>c<hr><option>d</select>",
            "<select><optgroup><option>a</option><option>b</option></optgroup><optgroup><option>c</option></optgroup>\
             <hr><option>d</option></select>",
        ),
        ("<select>a<select>b", "<select>a</select>b"),
        ("<select>a<input>b", "<select>a</select><input>b"),
    ]);
}

#[test]
fn tables_get_the_parts_that_the_standard_makes_up() {
    check(&[
        (
            "<table><tr><td>a",
            "<table><tbody><tr><td>a</td></tr></tbody></table>",
        ),
        (
            "<table><td>a<th>b<tr><td>c<tfoot><tr><td>d</table>e",
            "<table><tbody><tr><td>a</td><th>b</th></tr><tr><td>c</td></tr></tbody>\
             <tfoot><tr><td>d</td></tr></tfoot></table>e",
        ),
        (
            "<table><caption>a<col><col><tr><td>b</table>",
            "<table><caption>a</caption><colgroup><col><col></colgroup><tbody><tr><td>b</td></tr></tbody></table>",
        ),
        (
            "<table><colgroup> <col> a</table>",
            "<table><colgroup> <col> </colgroup>a</table>",
        ),
        (
            "<table><tr><td><table><tr><td>a</table>b</table>",
            "<table><tbody><tr><td><table><tbody><tr><td>a</td></tr></tbody></table>b</td></tr></tbody></table>",
        ),
        ("<table><table>", "<table></table><table></table>"),
        (
            "<table><form><tr><td>a</form>b</table>",
            "<table><form><tbody><tr><td>ab</td></tr></tbody></table>",
        ),
        (
            "<table><tr><td></tbody></div></th></table>",
            "<table><tbody><tr><td></td></tr></tbody></table>",
        ),
        (
            "<!doctype html><p><table></table>",
            "<p></p><table></table>",
        ),
        ("<p><table></table>", "<p><table></table></p>"),
        ("<tr><td>a</td><td>b</td></tr>", ""),
        ("<div><td>a</div>", "<div><td>a</td></div>"),
    ]);
}

#[test]
fn end_tags_that_close_nothing_are_left_out() {
    check(&[
        ("a</b>c</p>d</br>e</img>", "acde"),
        ("<div><ul></div></ul>", "<div><ul></ul></div>"),
        (
            "<ul></li></ul><ol><li><ul></li></ul></ol>",
            "<ul></ul><ol><li><ul></ul></li></ol>",
        ),
        ("<table></div></table></caption>", "<table></table>"),
        ("<p><div></span></div></p>", "<p></p><div></div>"),
        (
            "<custom-a><Custom-B></custom-a></custom-b>",
            "<custom-a><Custom-B></Custom-B></custom-a>",
        ),
        ("a</p>b 1 &</p> 2", "ab 1 & 2"),
    ]);
}

#[test]
fn an_end_tag_that_crosses_a_block_moves_behind_it() {
    check(&[
        ("<b>1<p>2</b>3</p>4", "<b>1<p>23</p></b>4"),
        ("<b>1<i>2</b>3</i>4", "<b>1<i>2</i></b>34"),
        (
            "<b>1<span>2<p>3</b>4</p>5</span>",
            "<b>1<span>2<p>34</p></span></b>5",
        ),
        (
            "<form>1<div>2</form>3</div>4",
            "<form>1<div>23</div></form>4",
        ),
        ("<a>1<div>2<a>3</div>4", "<a>1<div>2<a>3</a></div></a>4"),
        (
            "<a>1<table><tr><td><a>2</table>3",
            "<a>1<table><tbody><tr><td><a>2</a></td></tr></tbody></table>3</a>",
        ),
        // No rule sees an element that has ended.
        (
            "<form><b></form><h2><form><h1>a",
            "<form><b><h2><form><h1>a</h1></form></h2></b></form>",
        ),
        (
            "<i><ruby><li></i><rb>a",
            "<i><ruby><li><rb>a</rb></li></ruby></i>",
        ),
    ]);
}

#[test]
fn the_frame_of_a_page_is_kept_as_it_is_written() {
    check(&[
        (
            "<html><head><title>a</title><body><p>b",
            "<html><head><title>a</title></head><body><p>b</p></body></html>",
        ),
        ("<head><meta> \n a", "<head><meta> \n </head>a"),
        (
            "<head><title>a</title><div>b",
            "<head><title>a</title></head><div>b</div>",
        ),
        (
            "<body><p>a</body></html> <!-- b -->",
            "<body><p>a </p></body>",
        ),
        ("<html><body>a</html>", "<html><body>a</body></html>"),
        (
            "<html><body><div>a</body></html>b",
            "<html><body><div>ab</div></body></html>",
        ),
        (
            "<html><body>a</body><script></script></html>",
            "<html><body>a<script></script></body></html>",
        ),
        (
            "<html><body>a</body> </html> <p>b",
            "<html><body>a  <p>b</p></body></html>",
        ),
        ("<body>a<body>b</body>", "<body>a<body>b</body></body>"),
        (
            "<table><tr><td></body>a",
            "<table><tbody><tr><td>a</td></tr></tbody></table>",
        ),
    ]);
}

#[test]
fn svg_and_math_end_where_html_begins() {
    check(&[
        ("<svg><g>a<p>b", "<svg><g>a</g></svg><p>b</p>"),
        ("<svg><g></svg>a</g>", "<svg><g></g></svg>a"),
        (
            "<svg><path/><title>a</svg>",
            "<svg><path/><title>a</title></svg>",
        ),
        (
            "<svg><foreignObject><p>a<p>b</foreignObject>c",
            "<svg><foreignObject><p>a</p><p>bc</p></foreignObject></svg>",
        ),
        ("<p><svg/>a<math/>b", "<p><svg/>a<math/>b</p>"),
        ("<svg//></svg>", "<svg//>"),
        ("<svg a=b/></svg>", ""),
        (
            "<svg><font a>b</font></svg><svg><font color>b",
            "<svg><font a>b</font></svg><svg></svg><font color>b</font>",
        ),
        ("<div><svg></p>a</div>", "<div><svg></svg>a</div>"),
        ("<math><mi><p>a</math>", "<math><mi><p>a</p></mi></math>"),
        ("<math><mi><mglyph/></mi></math>", ""),
        (
            "<math><annotation-xml><p>a",
            "<math><annotation-xml></annotation-xml></math><p>a</p>",
        ),
        (
            "<math><annotation-xml encoding=Text/HTML><p>a</p></annotation-xml></math>",
            "",
        ),
        (
            "<math><annotation-xml><svg><desc>a</desc></svg></annotation-xml></math>",
            "",
        ),
        ("<image>a</image>b<frame>c", "<image>ab<frame>c"),
    ]);
}

#[test]
fn a_template_is_a_world_of_its_own() {
    check(&[
        (
            "<p><template><p>a</template>b",
            "<p><template><p>a</p></template>b</p>",
        ),
        (
            "<table><template><tr><td>a</template><tr>",
            "<table><template><tr><td>a</td></tr></template><tbody><tr></tr></tbody></table>",
        ),
        (
            "<template></div><td>a<td>b</template>",
            "<template><td>a</td><td>b</td></template>",
        ),
        ("<form><template><form>a</form></template></form>", ""),
        ("<template><col><td>a</td></template>", ""),
    ]);
}

#[test]
fn markup_is_read_as_the_standard_reads_it() {
    check(&[
        // Comments, and what counts as one.
        ("<li><!--<li>--><!--><li>", "<li></li><li></li>"),
        ("<li><!---><li>", "<li></li><li></li>"),
        ("<li><!--x--!><li>", "<li></li><li></li>"),
        ("<li><!--x--x><li>-->", "<li></li>"),
        (
            "<li><?x><li><!x><li></ x><li></><li>",
            "<li></li><li></li><li></li><li></li><li></li>",
        ),
        // CDATA is text in svg only.
        (
            "<svg><![CDATA[<p>]]></svg><![CDATA[<p><li>",
            "<svg><p></svg><li></li>",
        ),
        (
            "<svg><desc><![CDATA[<p><li>",
            "<svg><desc><li></li></desc></svg>",
        ),
        // Text up to the end tag.
        (
            "<title><p></title><style></p></STYLE ><textarea><li></textarea/>",
            "<title><p></title><style></p></style><textarea><li></textarea>",
        ),
        (
            "<iframe><p></iframe><noembed><p></noembed><noframes><p></noframes><noscript><p></noscript>",
            "",
        ),
        ("<title></titlex></title", "<title></titlex></title</title>"),
        (
            "<p><plaintext></p><li>",
            "<p></p><plaintext></p><li></plaintext>",
        ),
        (
            "<svg><style><g></style></svg>",
            "<svg><style><g></g></style></svg>",
        ),
        // Scripts.
        ("<script><!--<script></script><li>--></script>", ""),
        (
            "<script><!--<script></script></script><li>",
            "<script><!--<script></script></script><li></li>",
        ),
        (
            "<script><!--></script><li>",
            "<script><!--></script><li></li>",
        ),
        (
            "<script><!--<scripty></script><li>",
            "<script><!--<scripty></script><li></li>",
        ),
        (
            "<script><!--<script>--></script><li>",
            "<script><!--<script>--></script><li></li>",
        ),
        ("<script a=><li></script>", ""),
        // Attributes.
        (
            "<li a='<li>' b=\"</li>\" c=>d=e><li f=g/>",
            "<li a='<li>' b=\"</li>\" c=>d=e></li><li f=g/></li>",
        ),
        (
            "<li ='><li a = '>'><li a/='>'>",
            "<li ='></li><li a = '>'></li><li a/='>'></li>",
        ),
        ("<LI\n>a</lI\t/ x><Li/>", "<LI\n>a</LI><Li/></Li>"),
        ("<b\0>\0</b\0>", ""),
        ("a < b <3 <<li>", "a < b <3 <<li></li>"),
    ]);
}

#[test]
fn what_a_page_ends_in_the_middle_of_does_not_swallow_end_tags() {
    check(&[
        ("<p>a<br", "<p>a</p>"),
        ("<p>a</", "<p>a</</p>"),
        ("<p>a<", "<p>a<</p>"),
        ("<p>a<a href='b>", "<p>a</p>"),
        ("<p>a<!-- b", "<p>a</p>"),
        ("<p>a<!doct", "<p>a</p>"),
        ("<p>a</p", "<p>a</p>"),
        ("<svg><![CDATA[a]", "<svg>a]</svg>"),
        ("<p><title>a</titl", "<p><title>a</titl</title></p>"),
        ("<p><title>a</title ", "<p><title>a</title></p>"),
        ("<p><script>a", "<p><script>a</script></p>"),
        (
            "<p><script><!--<script>a",
            "<p><script><!--<script>a</script></p>",
        ),
        ("a<br", "a"),
        ("<p>a</p><!-- b", "<p>a</p>"),
        ("<head></", "<head></head></"),
    ]);
}

#[test]
fn an_end_tag_looks_64_elements_up() {
    for (n, closes) in [(63, true), (64, false)] {
        let page = format!("<div>{}</div>a", "<span>".repeat(n));
        assert_eq!(written(&page).ends_with("</div>a"), closes, "{n}");
    }
}

#[test]
fn the_walk_ends_where_too_many_elements_are_open() {
    struct Counter(usize);

    impl<'p> Visitor<'p> for Counter {
        fn start(&mut self, element: &Start<'p>) {
            self.0 += usize::from(element.has_content());
        }

        fn end(&mut self, _: usize) {}

        fn text(&mut self, _: &'p str, _: TextKind) {}

        fn reached(&mut self, _: usize) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }
    let deep = "<div>".repeat(MOST_OPEN - 1);
    let walked = |page: &str| {
        let mut counter = Counter(0);
        (walk(page, &mut counter), counter.0)
    };
    assert_eq!(walked(&format!("{deep}<p>a")), (Ok(()), MOST_OPEN));
    for page in ["<p>a<b>", "<table><td>a", "<p><script a=><p>"] {
        let page = format!("{deep}{page}");
        assert_eq!(
            walked(&page),
            (Err(TooManyOpen), MOST_OPEN),
            "{}",
            &page[page.len() - 20..]
        );
    }
}
