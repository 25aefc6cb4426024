//! How selectors are read, refused and composed.

use super::*;

fn read_of(text: &str) -> Result<Vec<Alternative>, SelectorFault> {
    read(text, 512, 8)
}

/// The message of what refuses the selector, here or in the parser.
fn refused(text: &str) -> String {
    let read = read_of(text).and_then(|list| parse(&joined(&list)));
    match read {
        Ok(_) => panic!("{text:?} is accepted"),
        Err(fault) => fault.to_string(),
    }
}

fn check_refused(text: &str, part: &str) {
    let message = refused(text);
    assert!(
        message.contains(part),
        "{text:?}: {message:?} has no {part:?}"
    );
}

#[test]
fn all_that_the_engine_knows_is_accepted() {
    let known = [
        "a",
        "A",
        "*",
        "#id",
        ".class",
        "a.b#c.d",
        "é",
        "-x",
        "_x",
        "a-b_c",
        "[a]",
        "[ a = 'b' ]",
        "[a=b]",
        "[a~=b]",
        "[a|=b]",
        "[a^=b]",
        "[a$='b']",
        "[a*=\"b\"]",
        "[a='B' i]",
        "[a='B' s]",
        "[data-x='a, b > c + d']",
        "[a='\\'']",
        "[xlink\\:href]",
        "a b",
        "a>b",
        "a > b",
        "a\n  >\r\n\tb",
        " a ",
        "a, b",
        "a,b",
        ":not(a)",
        ":not( a , .b )",
        ":NOT(.a)",
        ":not([a='b)'])",
        ":not(:not(a))",
        ":not(:not(:not(a, b)))",
        ":not(:first-child)",
        ":first-child",
        ":First-Of-Type",
        ":nth-child(2)",
        ":nth-child( 2n + 1 )",
        ":nth-child(odd)",
        ":nth-child(-n+3)",
        ":nth-of-type(even)",
        "a:not(.b):not(.c)",
        "#\\31 x",
        ".\\31  b",
        ".a\\ ",
        "*.a",
        "[a][b]",
        "custom-element",
    ];
    for text in known {
        let list = read_of(text).unwrap_or_else(|fault| panic!("{text:?}: {fault}"));
        parse(&joined(&list)).unwrap_or_else(|fault| panic!("{text:?}: {fault}"));
    }
}

#[test]
fn what_needs_siblings_or_the_rest_of_the_page_is_refused_with_the_way_out() {
    let out = "use scraper inside the rule (SDK feature dom)";
    for text in [
        "a + b",
        "a+b",
        "a ~ b",
        "a, b ~ c",
        "a || b",
        ":is(a)",
        ":where(a)",
        "a:has(b)",
        ":root",
        ":scope",
        ":empty",
        ":last-child",
        ":only-child",
        ":nth-last-child(2)",
        ":nth-last-of-type(2)",
        ":last-of-type",
        ":only-of-type",
        ":hover",
        ":checked",
        ":link",
        ":lang(de)",
        ":contains('x')",
        "a::before",
        ":host",
        "::slotted(a)",
        "a:not(b c)",
        "a:not(b > c)",
        "a:not(b + c)",
        "a:not(.b.c)",
        "a:not(b.c)",
        "a:not(.b:not(.c))",
        ":nth-child(2 of .x)",
        ":not(:is(a))",
        ":not(::before)",
    ] {
        check_refused(text, out);
    }
    check_refused("a + b", "combinator `+`");
    check_refused("a:Last-Child", "`:last-child` is not known");
    check_refused("a:has(b)", "`:has()` is not known");
    check_refused("a::Before", "`::Before` is no part");
    check_refused("a:not(.b.c)", "write x:not(.a), x:not(.b)");
    check_refused(":not(:not(a, b))", "without both");
}

#[test]
fn mistakes_say_what_they_are() {
    for (text, part) in [
        ("", "nothing"),
        (" ", "nothing"),
        (",", "nothing"),
        ("a,", "nothing"),
        ("a,,b", "nothing"),
        (":not()", "nothing"),
        (":not(a,)", "nothing"),
        (">", "nothing"),
        ("a >", "nothing after a `>`"),
        ("a > > b", "nothing after a `>`"),
        ("a >>> b", "nothing after a `>`"),
        ("#", "no id after"),
        ("a.", "no class name"),
        ("a..b", "'.' at byte 2"),
        ("a:", "no name after"),
        ("a : first-child", "' ' at byte 3"),
        ("a.1", "escape"),
        ("#1", "escape"),
        ("a{b}", "'{' at byte 1"),
        ("a /deep/ b", "'/' at byte 2"),
        ("a/* x */", "comments"),
        ("a 50%", "'5' at byte 2"),
        ("(a)", "'(' at byte 0"),
        ("a!b", "'!' at byte 1"),
        ("&", "'&' at byte 0"),
        ("a\0b", "'\\0' at byte 1"),
        ("svg|a", "namespaces"),
        ("*|a", "namespaces"),
        ("|a", "namespaces"),
        (":not(*|a)", "namespaces"),
        ("[xlink|href]", "namespaces"),
        ("a[", "`[` is not closed"),
        ("[a='x", "`'` is not closed"),
        ("[a=\"x]", "`\"` is not closed"),
        (":not(a", "`(` is not closed"),
        (":nth-child(2", "`(` is not closed"),
        ("a\\", "`\\` is not closed"),
        ("[a='x\n']", "'\\n' at byte 5"),
        ("a[]", "no attribute name"),
        ("a[1]", "no attribute name"),
        ("a[href=1x]", "put the value in quotes"),
        ("[a[b]]", "'[' at byte 2"),
        (":nth-child()", "too early"),
        (":nth-child(x)", "not understood"),
        (":nth-child", "only :not()"),
        ("[x]a", "not understood"),
    ] {
        check_refused(text, part);
    }
}

#[test]
fn text_is_bounded_before_it_is_parsed() {
    check_refused(&"a".repeat(513), "513 bytes, and 512 is the limit");
    let nested = |n: usize| format!("{}a{}", ":not(".repeat(n), ")".repeat(n));
    parse(&joined(&read_of(&nested(8)).unwrap())).unwrap();
    check_refused(&nested(9), "deeper than 8");
    // What would overflow the stack of the parser.
    let deep = nested(100_000);
    assert_eq!(
        read(&deep, usize::MAX, 8),
        Err(SelectorFault::TooDeep { limit: 8 })
    );
    let open = ":not(".repeat(100_000);
    assert_eq!(
        read(&open, usize::MAX, 8),
        Err(SelectorFault::TooDeep { limit: 8 })
    );
}

#[test]
fn parts_are_told_apart() {
    let check = |text: &str, expected: &[(&str, bool, usize)]| {
        let list = read_of(text).unwrap();
        let list: Vec<_> = list
            .iter()
            .map(|a| (a.text.as_str(), a.is_child, a.n_steps))
            .collect();
        assert_eq!(list, expected, "{text}");
    };
    check("a", &[("a", false, 1)]);
    check(" > a b ,c >d.e", &[("a b", true, 2), ("c >d.e", false, 2)]);
    check(
        "[a=',']:not(b, c), d",
        &[("[a=',']:not(b, c)", false, 1), ("d", false, 1)],
    );
    // The space belongs to the escape.
    check(
        ".a\\ , .\\31 b c",
        &[(".a\\ ", false, 1), (".\\31 b c", false, 2)],
    );
}

#[test]
fn lists_are_multiplied_out_with_those_of_rows() {
    let check = |row: &str, own: &str, expected: &str| {
        let all = compose(&read_of(row).unwrap(), &read_of(own).unwrap(), 6).unwrap();
        assert_eq!(joined(&all), expected);
    };
    check("ul, ol", "> li", "ul > li, ol > li");
    check(
        "ul, ol",
        "> li, > p > b",
        "ul > li, ol > li, ul > p > b, ol > p > b",
    );
    check("ul, ol", "> li, a", "ul > li, ol > li, a");
    check("ul, ol", "li", "li");
    let three = read_of("a, b, c").unwrap();
    assert!(compose(&three, &read_of("> a, > b, > c").unwrap(), 6).is_none());
    assert_eq!(
        compose(&three, &read_of("> a, > b").unwrap(), 6)
            .unwrap()
            .len(),
        6
    );
}
