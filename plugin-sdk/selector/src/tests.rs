//! Selectors as they are read, refused and composed.

use super::*;

fn read_of(text: &str) -> Result<Vec<Alternative>, SelectorFault> {
    read(text, 512, 8)
}

/// Returns the message that refuses the selector.
fn refused(text: &str) -> String {
    match read_of(text) {
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
        "a+b",
        "a + b ~ c",
        " a ",
        "a, b",
        "a,b",
        ":not(a)",
        ":not( a , .b )",
        ":NOT(.a)",
        ":not([a='b)'])",
        ":not(:not(a))",
        ":not(:not(a, b))",
        ":not(a.b, *[c]:not(.d))",
        ":is(a, .b.c)",
        ":where(a)",
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
        read_of(text).unwrap_or_else(|fault| panic!("{text:?}: {fault}"));
    }
}

#[test]
fn what_needs_siblings_or_the_rest_of_the_page_is_refused_with_the_way_out() {
    let out = "use scraper inside the rule (SDK feature dom)";
    for text in [
        "a || b",
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
        ":is(b ~ c)",
        ":nth-child(2 of .x)",
        ":not(::before)",
    ] {
        check_refused(text, out);
    }
    check_refused("a:Last-Child", "`:last-child` is not known");
    check_refused("a:has(b)", "`:has()` is not known");
    check_refused("a::Before", "`::Before` is no part");
    check_refused("a::attr(href)", "name its attribute beside the selector");
    check_refused("a::text", "without an attribute its text is read");
    check_refused("//h2", "this is XPath");
    check_refused("/html/body", "this is XPath");
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
        ("a + , b", "nothing after a `+`"),
        ("+ a", "'+' at byte 0"),
        ("-1", "'-' at byte 0"),
        ("a.-", "'-' at byte 2"),
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
        (":nth-child()", "as in 2n+1"),
        (":nth-child(x)", "as in 2n+1"),
        (":nth-child(2n + + 1)", "as in 2n+1"),
        (":nth-child(2n 1)", "as in 2n+1"),
        (":nth-child(- n)", "as in 2n+1"),
        (":nth-child", "only :not()"),
        ("[x]a", "before its conditions"),
    ] {
        check_refused(text, part);
    }
}

#[test]
fn text_is_bounded_before_it_is_parsed() {
    check_refused(&"a".repeat(513), "513 bytes, and 512 is the limit");
    let nested = |n: usize| format!("{}a{}", ":not(".repeat(n), ")".repeat(n));
    read_of(&nested(8)).unwrap();
    check_refused(&nested(9), "deeper than 8");
    // This selector would overflow the stack.
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

/// Writes an alternative in a short form.
fn shown(alternative: &Alternative) -> String {
    let steps = alternative.steps.iter().enumerate().map(|(n, step)| {
        let sign = match step.combinator {
            _ if n == 0 => "",
            Combinator::Descendant => " ",
            Combinator::Child => " > ",
            Combinator::Next => " + ",
            Combinator::Later => " ~ ",
        };
        sign.to_owned() + &shown_compound(&step.compound)
    });
    steps.collect()
}

fn shown_compound(compound: &Compound) -> String {
    let name = compound.name.iter().cloned();
    let conditions = compound.conditions.iter().map(|condition| match condition {
        Condition::Attribute { name, value } => match value {
            ValueTest::Any => format!("[{name}]"),
            ValueTest::Is(how, value, case) => format!("[{name} {how:?} {value:?} {case:?}]"),
        },
        Condition::Place {
            step,
            offset,
            of_type,
        } => format!(":{step}n{offset:+}{}", if *of_type { " type" } else { "" }),
        Condition::Not(list) => format!(":not({})", shown_list(list)),
        Condition::Is(list) => format!(":is({})", shown_list(list)),
    });
    name.chain(conditions).collect()
}

fn shown_list(list: &[Compound]) -> String {
    list.iter()
        .map(shown_compound)
        .collect::<Vec<_>>()
        .join(", ")
}

fn joined(list: &[Alternative]) -> String {
    list.iter().map(shown).collect::<Vec<_>>().join(", ")
}

#[test]
fn selectors_mean_what_css_says() {
    for (text, expected) in [
        ("A.B#c", "a[class Word \"B\" Exact][id Equal \"c\" Exact]"),
        ("a b>c+d ~ e", "a b > c + d ~ e"),
        ("*", ""),
        ("[HREF]", "[href]"),
        ("[ a = 'B' ]", "[a Equal \"B\" Exact]"),
        ("[a~=b I]", "[a Word \"b\" Ignored]"),
        ("[a|=b]", "[a Language \"b\" Exact]"),
        ("[a^='']", "[a Start \"\" Exact]"),
        ("[a$=i]", "[a End \"i\" Exact]"),
        ("[TYPE*=x]", "[type Part \"x\" IgnoredInHtml]"),
        ("[type=x s]", "[type Equal \"x\" Exact]"),
        (".\\31  b", "[class Word \"1\" Exact] b"),
        (".\\000031b", "[class Word \"1b\" Exact]"),
        (".a\\ ", "[class Word \"a \" Exact]"),
        ("#\\0", "[id Equal \"\u{fffd}\" Exact]"),
        ("[a='\\'\\e9']", "[a Equal \"'é\" Exact]"),
        (":first-child", ":0n+1"),
        (":first-of-type", ":0n+1 type"),
        (":nth-child(odd)", ":2n+1"),
        (":NTH-CHILD( EVEN )", ":2n+0"),
        (":nth-child(3)", ":0n+3"),
        (":nth-child(n)", ":1n+0"),
        (":nth-child(-n + 3)", ":-1n+3"),
        (":nth-child(+2n- 1)", ":2n-1"),
        (":nth-of-type(99999999999n)", ":2147483647n+0 type"),
        (
            ":not(a.b, :is(c))",
            ":not(a[class Word \"b\" Exact], :is(c))",
        ),
    ] {
        assert_eq!(joined(&read_of(text).unwrap()), expected, "{text}");
    }
}

#[test]
fn parts_are_told_apart() {
    let check = |text: &str, expected: &[(&str, bool)]| {
        let list = read_of(text).unwrap();
        let list: Vec<_> = list.iter().map(|a| (shown(a), a.is_child)).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(a, b)| ((*a).to_owned(), *b))
            .collect();
        assert_eq!(list, expected, "{text}");
    };
    check("a", &[("a", false)]);
    check(" > a b ,c >d", &[("a b", true), ("c > d", false)]);
    check(
        "[a=',']:not(b, c), d",
        &[("[a Equal \",\" Exact]:not(b, c)", false), ("d", false)],
    );
}

#[test]
fn conditions_are_counted() {
    for (text, n) in [
        ("a", 1),
        ("*", 1),
        ("a.b[c]", 3),
        ("a b.c", 3),
        (":not(a.b, c)", 3),
    ] {
        assert_eq!(read_of(text).unwrap()[0].n_conditions(), n, "{text}");
    }
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
