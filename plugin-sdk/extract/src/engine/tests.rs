//! Captures of pages by plans, both written in a short form.

mod budgets;
mod work;

use super::*;
use crate::plan::PlanLimits;
use crate::written;

fn read_with(budget: &Budget, plan: &str, page: &str) -> String {
    let declared = written::plan(plan);
    let compiled = CompiledPlan::new(&declared, &PlanLimits::default()).unwrap();
    // The captures do not depend on the speed of the machine.
    let budget = &Budget {
        deadline: Duration::from_secs(600),
        ..budget.clone()
    };
    let captures = extract(&compiled, page, budget).unwrap();
    written::assert_sound(&declared, &captures);
    written::shown(&declared, &captures)
}

/// Checks captures line by line, without indentation.
#[track_caller]
fn check_with(budget: &Budget, plan: &str, page: &str, expected: &str) {
    let lines = |text: &str| {
        text.lines()
            .map(|l| l.trim().to_owned())
            .filter(|l| !l.is_empty())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        lines(&read_with(budget, plan, page)),
        lines(expected),
        "{page}"
    );
}

#[track_caller]
fn check(plan: &str, page: &str, expected: &str) {
    check_with(&Budget::default(), plan, page, expected);
}

#[track_caller]
fn check_text(page: &str, expected: &str) {
    check(".x = x", page, &format!("x: - {expected:?}"));
}

#[test]
fn fields_without_a_group_read_the_whole_page() {
    check(
        ".title = h1\n.links = a -> @href",
        "<h1>One</h1><a href=/a>a</a><p><a href=/b>b</a><a>c</a></p><h1>Two</h1>",
        "title: - \"One\", - \"Two\"
         links: - \"/a\", - \"/b\"",
    );
}

#[test]
fn values_lie_in_the_innermost_row_of_their_group() {
    check(
        "li < li\nli.name = b\nli.link = a -> @href",
        "<ul><li><b>1</b><ul><li><b>2</b><a href=x></a></li></ul><a href=y></a></li><li><b>3</b></li></ul><b>out</b>",
        "li: - - -
         name: 0 \"1\", 1 \"2\", 2 \"3\"
         link: 1 \"x\", 0 \"y\"",
    );
}

#[test]
fn rows_lie_in_rows_of_their_parent_or_are_none() {
    check(
        "list < ul\nlist/item < li\nitem/link < a\nlink.href = -> @href",
        "<li>no</li><a href=n></a><ul><li><a href=1></a></li><li><ul><li><a href=2></a></li></ul><a href=3></a></li></ul><ul></ul>",
        "list: - - -
         item: 0 0 1
         link: 0 2 1
         href: 0 \"1\", 1 \"2\", 2 \"3\"",
    );
}

#[test]
fn an_element_never_lies_in_itself() {
    // Two groups have rows at one element: the inner group needs another element around its own.
    check(
        "a < div\na/b < div",
        "<div><div><div></div></div></div>",
        "a: - - -\nb: 0 1",
    );
    // A field with the selector of its rows.
    check(
        "r < div\nr.d = div -> @id",
        "<div id=1><div id=2><div id=3></div></div></div>",
        "r: - - -\nd: 0 \"2\", 1 \"3\"",
    );
}

#[test]
fn an_empty_selector_is_the_row_itself() {
    check(
        "r < a\nr.t =\nr.h = -> @href\nr.i = -> inner\nr.p = -> present\nr.f = first -> @href",
        "<a href=/x>1 <b>2</b></a><a>3</a>",
        "r: - -
         t: 0 \"1 2\", 1 \"3\"
         h: 0 \"/x\"
         i: 0 \"1 <b>2</b>\", 1 \"3\"
         p: 0 \"\", 1 \"\"
         f: 0 \"/x\"",
    );
    // Without a row there is no value: the selector of a group counts only inside of its parent.
    check(
        "p < p\np/r < a\nr.t =",
        "<a>no</a><p><a>yes</a></p>",
        "p: -\nr: 0\nt: 0 \"yes\"",
    );
}

#[test]
fn a_selector_with_a_leading_child_sign_is_about_the_row() {
    check(
        "list < ul, ol\nlist/item < > li\nitem.link = > a, > i > a -> @id",
        "<ul><li><a id=1></a><b><a id=2></a></b><i><a id=3></a></i></li><b><li></li></b></ul><ol><li><a id=4></a></li></ol>",
        "list: - -
         item: 0 1
         link: 0 \"1\", 0 \"3\", 1 \"4\"",
    );
    // A part of a list that does not begin with `>` refers to the whole page.
    check(
        "r < div\nr.x = > a, i -> @id",
        "<div><a id=1></a><b><a id=2></a><i id=3></i></b></div><i id=4></i>",
        "r: -\nx: 0 \"1\", 0 \"3\"",
    );
}

#[test]
fn first_takes_one_a_row() {
    check(
        "r < div\nr.a = first a -> @href\nr.t = first b\n.u = first b",
        "<b>0</b><div><a></a><a href=1></a><b></b><div><a href=2></a><a href=3></a><b>4</b></div><a href=5></a><b>6</b></div>",
        "r: - -
         a: 0 \"1\", 1 \"2\"
         t: 0 \"\", 1 \"4\"
         u: - \"0\"",
    );
    // The rows of one field are more than a machine word has bits.
    let page: String = (0..200)
        .map(|i| format!("<p><i>{i}</i><i>no</i></p>"))
        .collect();
    let shown = read_with(&Budget::default(), "p < p\np.i = first i", &page);
    assert_eq!(shown.matches("\"no\"").count(), 0);
    assert!(shown.contains("199 \"199\""), "{shown}");
}

#[test]
fn an_element_that_two_parts_of_a_list_match_is_captured_once() {
    check(
        ".a = a, .b, [c] -> @id",
        "<a id=1 class=b c></a>",
        "a: - \"1\"",
    );
}

#[test]
fn text_is_folded() {
    check_text("<x> a\n\t <b> b\r\n</b>\u{c} c </x>", "a b c");
    check_text("<x>a<b>b</b><p>c</p></x>", "abc");
    check_text("<x>\u{a0}a \u{a0} b\u{a0}</x>", "\u{a0}a \u{a0} b\u{a0}");
    check_text("<x>&#32;a&#9;&#32;b&nbsp;</x>", "a b\u{a0}");
    check_text("<x></x>", "");
    check_text("<x> \n </x>", "");
    // Nested captures share their text, and have their own ends.
    check(
        ".x = x\n.y = y",
        "<x>  a <x> b <y> c </y> </x><x> d </x> </x>",
        "x: - \"a b c d\", - \"b c\", - \"d\"
         y: - \"c\"",
    );
}

#[test]
fn a_line_break_is_a_space_in_folded_text_only() {
    check_text("<x>a<br>b<br/> <br>c<br></x>", "a b c");
    check(
        ".x = x -> raw\n.y = x",
        "<x>a<br>b</x>",
        "x: - \"ab\"\ny: - \"a b\"",
    );
}

#[test]
fn raw_text_is_as_it_was_written_but_for_entities() {
    check(
        ".x = x -> raw",
        "<x> a\n <b>b&amp;</b>\t<!-- no --><script>no</script></x>",
        "x: - \" a\\n b&\\t\"",
    );
}

#[test]
fn entities_of_text_are_decoded_in_each_text_node() {
    check_text(
        "<x>&lt;a&gt; &amp;amp; &eacute; &notit; &copy &#128; &#x41;</x>",
        "<a> &amp; é ¬it; © € A",
    );
    // Entities never span elements.
    check_text("<x>&am<b>p;</b></x>", "&amp;");
    check_text("<x>&am<!-- -->p;</x>", "&amp;");
    check_text("<x>&am</x>", "&am");
    check_text("<x>&amp", "&");
}

#[test]
fn entities_of_attributes_are_decoded_by_the_rules_of_attributes() {
    check(
        ".a = a -> @HREF",
        "<a href='?x&copy=1&lt=2&amp;y&eacute;&#38;'></a><a HREF=\"&quot;\"></a><a href></a><a Href=1 href=2>",
        "a: - \"?x&copy=1&lt=2&yé&\", - \"\\\"\", - \"\", - \"1\"",
    );
}

#[test]
fn an_attribute_without_the_value_behind_its_sign_is_there() {
    let page = "<option u=1 value=>Any</option><option u=2 value= >None</option><option u=3 value=4>x</option>";
    check(
        ".u = [value] -> @u\n.value = option -> @value\n.empty = [value=\"\"] -> @u",
        page,
        "u: - \"1\", - \"2\", - \"3\"\nvalue: - \"\", - \"\", - \"4\"\nempty: - \"1\", - \"2\"",
    );
    check(
        ".u = x -> @u\n.x = x",
        "<x u=>1</x>",
        "u: - \"\"\nx: - \"1\"",
    );
}

#[test]
fn attribute_selectors_see_the_value_decoded() {
    check(
        ".a = [href='a&b'] -> @id\n.b = [href='a&amp;b'] -> @id",
        "<a id=1 href='a&amp;b'></a><a id=2 href='a&b'></a><a id=3 href='a&amp;amp;b'></a>",
        "a: - \"1\", - \"2\"\nb: - \"3\"",
    );
}

#[test]
fn siblings_are_matched_whatever_is_in_them() {
    check(
        ".next = h1 + p -> @id\n.later = h1 ~ p -> @id\n.in = div > br + p b -> @id",
        "<p id=1></p><h1><p id=2></p></h1>text<!-- --><p id=3><h2></h2><p id=4></p>\
         <div><p id=5></p><br><p id=6>x<b id=7></b></p></div>",
        "next: - \"3\"\nlater: - \"3\", - \"4\"\nin: - \"7\"",
    );
}

#[test]
fn lists_in_parentheses_are_matched_as_one_condition() {
    check(
        ".not = p:not(.a.b, [c]) -> @id\n.is = :is(p.a, i):not(.b) -> @id\n.twice = p:not(:not(.a, .b)) -> @id",
        "<p id=1 class=a><p id=2 class='a b'><p id=3 c><p id=4><i id=5></i>",
        "not: - \"1\", - \"4\"\nis: - \"1\", - \"5\"\ntwice: - \"1\", - \"2\"",
    );
}

#[test]
fn places_are_counted_among_siblings() {
    let page = "<b id=1></b><i id=2></i><b id=3><b id=4></b></b><i id=5></i><b id=6></b>";
    for (selector, expected) in [
        (":first-child", "1 4"),
        (":nth-child(2n+1)", "1 3 4 6"),
        (":nth-child(-n+2)", "1 2 4"),
        (":nth-child(n+4)", "5 6"),
        (":nth-child(0)", ""),
        (":first-of-type", "1 2 4"),
        ("b:nth-of-type(2)", "3"),
        ("b:nth-of-type(odd)", "1 4 6"),
        (":nth-of-type(2)", "3 5"),
    ] {
        let ids: Vec<_> = expected
            .split_ascii_whitespace()
            .map(|id| format!("- \"{id}\""))
            .collect();
        let expected = format!("x: {}", ids.join(", "));
        check(
            &format!(".x = {selector} -> @id"),
            page,
            expected.trim_end(),
        );
    }
}

#[test]
fn scripts_and_styles_and_what_shows_without_scripts_are_no_text() {
    let hidden = "<script>1</script><style>2</style><noscript>3<x>4</x></noscript><iframe>5</iframe><xmp>6</xmp><noembed>7</noembed><noframes>8</noframes>";
    check_text(&format!("<x>a{hidden}b<!-- 9 --></x>"), "ab");
    check_text(
        "<x><textarea>a &lt; <b></textarea><title>c&amp;d</title></x>",
        "a < <b>c&d",
    );
    check_text(
        "<x><svg><![CDATA[a &amp; <b>]]>&amp;c</svg></x>",
        "a &amp; <b>&c",
    );
    check_text("<x><plaintext>a &amp; </x>", "a &amp; </x>");
    // Inner HTML is the way to read a script.
    check(
        ".s = script -> inner",
        "<script>{\"a\": \"<b>&amp;\"}</script>",
        "s: - \"{\\\"a\\\": \\\"<b>&amp;\\\"}\"",
    );
}

#[test]
fn what_is_inside_of_a_template_is_not_there() {
    check(
        "r < li\nr.x = x\n.t = template -> @id\n.i = div -> inner",
        "<li><x>a<template id=1><x>no</x><li><br>no</li><template></template>no</template>b</x></li><div><template>i</template></div>",
        "r: -
         x: 0 \"ab\"
         t: - \"1\"
         i: - \"<template>i</template>\"",
    );
    check(".x = x", "<template><x>no</x>", "x:");
    // In an image, `template` is an element without a meaning.
    check(
        ".x = a -> @id",
        "<svg><template><a id=1></a></template></svg>",
        "x: - \"1\"",
    );
}

#[test]
fn presence_is_an_empty_capture() {
    check(
        "r < p\nr.has = b -> present",
        "<p><b>x</b><b></b></p><p></p>",
        "r: - -\nhas: 0 \"\", 0 \"\"",
    );
}

#[test]
fn the_name_of_an_element_is_in_lower_case() {
    check(
        "h < h1, H2, foreignobject\nh.n = -> tag\nh.t =\n.first = first * -> tag",
        "<H1>a</h1><h2>b</h2><svg><foreignObject>c</foreignObject></svg>",
        "h: - - -
         n: 0 \"h1\", 1 \"h2\", 2 \"foreignobject\"
         t: 0 \"a\", 1 \"b\", 2 \"c\"
         first: - \"h1\"",
    );
}

#[test]
fn inner_html_is_the_page_between_the_tags() {
    check(
        ".d = div -> inner",
        "<div class=a> a &amp; <DIV>b<br></DIV ><!--c--><p>d</p></div>e<div></div><div>f",
        "d: - \" a &amp; <DIV>b<br></DIV ><!--c--><p>d</p>\", - \"b<br>\", - \"\", - \"f\"",
    );
}

#[test]
fn void_elements_are_rows_without_inside() {
    check(
        "i < img\ni.src = -> @src\ni.t =\ni.n = b\n.x = img -> inner",
        "<p><img src=1><b>no</b><img src=2><img src=3></p>",
        "i: - - -
         src: 0 \"1\", 1 \"2\", 2 \"3\"
         t: 0 \"\", 1 \"\", 2 \"\"
         n:
         x: - \"\", - \"\", - \"\"",
    );
    // In an image `/>` ends an element; in a page it does not.
    check(
        "r < x\nr.y = y -> @id",
        "<svg><x/><y id=1></y></svg><x/><y id=2></y>",
        "r: - -\ny: 1 \"2\"",
    );
    // A void row lies inside of one that is not void: what follows lies in the outer row.
    check(
        "r < div, img\nr.b = b",
        "<div><img><b>1</b><img></div><b>no</b>",
        "r: - - -\nb: 0 \"1\"",
    );
}

#[test]
fn the_end_of_the_page_ends_what_is_open() {
    check(
        "r < div\nr.t = b\nr.i = b -> inner\nr.w = b -> raw",
        "<div><b>a <i> c",
        "r: -\nt: 0 \"a c\"\ni: 0 \"a <i> c\"\nw: 0 \"a  c\"",
    );
    check(".x = x", "", "x:");
    check(".x = x", "<x", "x:");
    check(
        ".x = x\n.a = x -> @a",
        "<x a='1'>b<y a='",
        "x: - \"b\"\na: - \"1\"",
    );
}

#[test]
fn an_end_tag_ends_all_that_is_open_inside() {
    check(
        "r < div\nr.x = x\nr.i = x -> inner",
        "<div><x>1<x>2</div><div>3<x>4</x>5</div>",
        "r: - -\nx: 0 \"12\", 0 \"2\", 1 \"4\"\ni: 0 \"1<x>2\", 0 \"2\", 1 \"4\"",
    );
    // The inner element ends first, so that rows end in the opposite order of their beginnings.
    check(
        "a < x\na/b < y\nb.c = z -> @id",
        "<x><y><x><y></x><z id=1></z></y></x><z id=2>",
        "a: - -\nb: 0 1\nc: 0 \"1\"",
    );
}

#[test]
fn omitted_end_tags_are_written_before_the_page_is_read() {
    check(
        "r < li\nr.t =\nr.i = -> inner\nr.b = > b",
        "<ul><li>a<b>1</b><li>c</ul>",
        "r: - -\nt: 0 \"a1\", 1 \"c\"\ni: 0 \"a<b>1</b>\", 1 \"c\"\nb: 0 \"1\"",
    );
    check(
        "t < tr\nt.c = > td\n.b = tbody > tr -> present",
        "<table><tr><td>1<td>2<tr><td>3</table>",
        "t: - -\nc: 0 \"1\", 0 \"2\", 1 \"3\"\nb: - \"\", - \"\"",
    );
    check(".p = p", "<p>a<p>b<div>c</div>", "p: - \"a\", - \"b\"");
}

#[test]
fn pages_that_could_be_read_in_two_ways_are_read() {
    let page =
        "<select><style>x</style></select><a href=1></a><frameset><style></style><a href=2></a>";
    check(".a = a -> @href", page, "a: - \"1\", - \"2\"");
}

#[test]
fn the_first_base_is_told_decoded() {
    check(
        ".x = x",
        "<base target=a><base href='/a?b&amp;c'><base href=/d>",
        "x:\nbase /a?b&c",
    );
    check(
        ".x = x",
        "<template><base href=/a></template><svg><base href=/b></base></svg>",
        "x:",
    );
}

#[test]
fn characters_of_many_bytes_stay_whole() {
    check(
        ".x = x\n.w = x -> raw\n.i = x -> inner\n.a = x -> @a",
        "<x a='ä🦀'>é<b>🦀</b>ü&#x1F980;</x>",
        "x: - \"é🦀ü🦀\"\nw: - \"é🦀ü🦀\"\ni: - \"é<b>🦀</b>ü&#x1F980;\"\na: - \"ä🦀\"",
    );
}

#[test]
fn text_of_kept_fields_comes_first() {
    let declared = written::plan(".a = drop a -> @href\n.b = b\n.c = drop b\n.d = drop b -> raw");
    let compiled = CompiledPlan::new(&declared, &PlanLimits::default()).unwrap();
    let page = "<a href=/long></a><b>x  y</b>";
    let captures = extract(&compiled, page, &Budget::default()).unwrap();
    written::assert_sound(&declared, &captures);
    // Captures that are not kept still share the bytes of kept ones.
    assert_eq!(&captures.text[..captures.n_kept as usize], "x y");
    assert_eq!(captures.text, "x y/longx  y");
    assert_eq!(
        captures.values(0).collect::<Vec<_>>(),
        [(crate::NONE, "/long")]
    );
}

#[test]
fn a_page_of_one_piece_is_read_as_one_of_many() {
    // The page is longer than a piece, with tags and entities across the borders.
    let page: String = (0..3_000)
        .map(|i| format!("<li id=i{i}>&eacute; {i} <b>x&amp;y</b></li>"))
        .collect();
    let shown = read_with(
        &Budget::default(),
        "r < li\nr.i = -> @id\nr.t =\nr.h = -> inner",
        &page,
    );
    assert!(shown.contains("2999 \"é 2999 x&y\""));
}
