//! Tests of every example of RFC 9309, and of files that nobody would write.

use super::*;

fn rules(text: impl AsRef<[u8]>) -> Rules {
    Rules::parse(text.as_ref(), "foobot")
}

/// Checks which paths one rule for all agents matches, and which it does not.
#[track_caller]
fn check_match(pattern: &str, matched: &[&str], not_matched: &[&str]) {
    let rules = rules(format!("user-agent: *\ndisallow: {pattern}"));
    for path in matched {
        assert!(!rules.allows(path), "{pattern} matches {path}");
    }
    for path in not_matched {
        assert!(rules.allows(path), "{pattern} does not match {path}");
    }
}

#[track_caller]
fn check(file: &str, allowed: &[&str], forbidden: &[&str]) {
    let rules = rules(file);
    for path in allowed {
        assert_eq!(rules.forbidding(path), None, "{path}");
    }
    for path in forbidden {
        assert!(!rules.allows(path), "{path} is forbidden");
    }
}

/// RFC 9309, 2.2.1.
#[test]
fn groups_of_one_product_token_are_one_group() {
    let text = "user-agent: ExampleBot\ndisallow: /foo\ndisallow: /bar\n\n\
                user-agent: ExampleBot\ndisallow: /baz\n";
    let rules = Rules::parse(text.as_bytes(), "examplebot");
    for path in ["/foo", "/bar", "/baz"] {
        assert!(!rules.allows(path), "{path}");
    }
    let of_all =
        "user-agent: *\ndisallow: /foo\nuser-agent: x\nallow: /\nuser-agent: *\ndisallow: /bar";
    check(of_all, &["/baz"], &["/foo", "/bar"]);
}

/// RFC 9309, 2.2.1.
#[test]
fn the_group_of_all_is_for_those_whom_no_group_names() {
    let text =
        "user-agent: *\ndisallow: /foo\ndisallow: /bar\n\nuser-agent: FooBot\ndisallow: /baz";
    check(text, &["/foo", "/bar"], &["/baz"]);
    let other = Rules::parse(text.as_bytes(), "otherbot");
    assert!(!other.allows("/foo") && other.allows("/baz"));
    check("user-agent: other\ndisallow: /", &["/"], &[]);
    check(
        "user-agent: foobot\nuser-agent: *\ndisallow: /x",
        &["/"],
        &["/x"],
    );
    check("disallow: /\nuser-agent: *\ndisallow: /x", &["/"], &["/x"]);
}

#[test]
fn a_token_is_compared_whole_and_without_its_case() {
    let check = |line: &str, is_ours: bool| {
        let file = format!("{line}\ndisallow: /");
        assert_eq!(!rules(&file).allows("/"), is_ours, "{line}");
    };
    check("User-Agent: FOOBOT", true);
    check("user-agent:foobot/2.1 (about)", true);
    check("user-agent: foobot # the one", true);
    check("user-agent: foo", false);
    check("user-agent: foobot2", false);
    check("user-agent: foobot-news", false);
    check("user-agent: the foobot", false);
    check("user-agent: *foobot", false);
    check("user-agent: * the others", true);
    check("user-agent:", false);
}

/// RFC 9309, 2.2.2, the table.
#[test]
fn both_spellings_of_an_octet_are_equal() {
    for (pattern, path) in [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        (
            "/foo/bar?baz=https://foo.bar",
            "/foo/bar?baz=https%3A%2F%2Ffoo.bar",
        ),
        (
            "/foo/bar?baz=https%3A%2F%2Ffoo.bar",
            "/foo/bar?baz=https://foo.bar",
        ),
        ("/foo/bar/\u{30c4}", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7a"),
    ] {
        check_match(pattern, &[path], &["/foo/bar/other"]);
    }
    check_match("/a%zz%", &["/a%zz%", "/a%25zz%25"], &["/a"]);
    check_match("/caf\u{e9}", &["/caf%C3%A9"], &["/caf%E9"]);
    let latin = [b"user-agent: *\ndisallow: /caf\xe9".as_slice()].concat();
    assert!(!rules(latin).allows("/caf%E9"));
}

/// RFC 9309, 2.2.2: the longest match, and of equals the one that allows.
#[test]
fn the_rule_with_the_most_octets_decides() {
    check("user-agent: *\nallow: /a\ndisallow: /a", &["/a"], &[]);
    check("user-agent: *\ndisallow: /a\nallow: /a", &["/a"], &[]);
    check("user-agent: *\nallow: /p\ndisallow: /", &["/page"], &["/x"]);
    check(
        "user-agent: *\nallow: /page\ndisallow: /*.htm",
        &[],
        &["/page.htm"],
    );
    check(
        "user-agent: *\nallow: /$\ndisallow: /",
        &["/"],
        &["/page.htm"],
    );
    check(
        "user-agent: *\ndisallow: /folder\nallow: /folder/",
        &["/folder/x"],
        &["/folder"],
    );
    check("user-agent: *\ndisallow:\n", &["/"], &[]);
    check(
        "user-agent: *\ndisallow: /\n",
        &["/robots.txt", "/robots.txt?x"],
        &["/robots.txt.html"],
    );
}

/// RFC 9309, 2.2.3.
#[test]
fn special_characters_mean_what_the_rfc_says() {
    check(
        "user-agent: *\nallow: /a # a comment\ndisallow: /",
        &["/a"],
        &["/b"],
    );
    check_match(
        "/this/path/exactly$",
        &["/this/path/exactly"],
        &["/this/path/exactly/not", "/this/path/exactly?x"],
    );
    check_match(
        "/this/*/exactly",
        &[
            "/this/path/exactly",
            "/this/a/b/exactly/c",
            "/this//exactly",
        ],
        &["/this/exactly"],
    );
    check_match(
        "/path/file-with-a-%2A.html",
        &["/path/file-with-a-*.html", "/path/file-with-a-%2a.html"],
        &["/path/file-with-a-x.html"],
    );
    check_match(
        "/path/foo-%24",
        &["/path/foo-$", "/path/foo-%24x"],
        &["/path/foo-"],
    );
    check_match("/a$b", &["/a$bc"], &["/a", "/a$"]);
    check_match(
        "/*/print.html$",
        &["/x/print.html", "/a/b/print.html"],
        &["/print.html", "/x/print.html?"],
    );
    check_match("/**a**b$", &["/ab", "/xaxbxb"], &["/ba", "/xaxbx"]);
    check_match("*", &["/", "/x"], &[]);
    check_match("*.gif$", &["/a.gif"], &["/a.gif?"]);
    check_match(
        "/fish*",
        &["/fish", "/fish/x", "/fishheads"],
        &["/Fish", "/catfish"],
    );
    check_match("/a*aa$", &["/aaa", "/abaa"], &["/aa"]);
    check_match("private", &[], &["/private", "private"]);
}

/// RFC 9309, 2.2.4: other records do not interfere.
#[test]
fn a_sitemap_or_an_unknown_record_ends_no_group() {
    let text = "user-agent: a\nsitemap: https://x.test/s.xml\nuser-agent: foobot\n\
                colour: red\nuser-agent: c\ncrawl-delay: 1\nuser-agent: d\ndisallow: /x\n\
                sitemap: https://x.test/t.xml\ndisallow: /y";
    check(text, &["/"], &["/x", "/y"]);
    let rules = Rules::parse(
        b"user-agent: *\nuser-agent: foobot\nfoo: bar\nallow: /",
        "foobot",
    );
    assert!(rules.allows("/"));
}

/// RFC 9309, 5.1.
#[test]
fn the_simple_example_of_the_rfc() {
    let text = "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n\
                User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n\
                User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\n\
                User-Agent: quxbot\n";
    let allows = |agent: &str, path: &str| Rules::parse(text.as_bytes(), agent).allows(path);
    assert!(!allows("otherbot", "/a.gif") && !allows("otherbot", "/example/x"));
    assert!(allows("otherbot", "/publications/x") && allows("otherbot", "/"));
    assert!(!allows("foobot", "/x") && !allows("foobot", "/publications/"));
    assert!(allows("foobot", "/example/page.html") && allows("foobot", "/example/allowed.gif"));
    for agent in ["barbot", "bazbot"] {
        assert!(!allows(agent, "/example/page.html") && allows(agent, "/example/x"));
        assert!(allows(agent, "/a.gif"));
    }
    assert!(allows("quxbot", "/example/page.html") && allows("quxbot", "/a.gif"));
}

/// RFC 9309, 5.2.
#[test]
fn the_longest_match_example_of_the_rfc() {
    let text =
        "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n";
    check(
        text,
        &["/example/page/", "/example/page/x"],
        &["/example/page/disallowed.gif"],
    );
}

#[test]
fn a_rule_is_told_by_its_line() {
    let text = "# nothing\r\n\r\nuser-agent: *\rdisallow: /a\n\nDisallow: /b/\x1b[31m  # red\n";
    let rules = rules(text);
    let told = |path: &str| rules.forbidding(path).map(ToString::to_string);
    assert_eq!(told("/a").as_deref(), Some("line 4, Disallow: /a"));
    assert_eq!(
        told("/b/%1b[31m").as_deref(),
        Some("line 6, Disallow: /b/\u{fffd}[31m")
    );
    assert_eq!(told("/c"), None);
}

#[test]
fn a_delay_is_of_the_group_and_the_longest_counts() {
    let delay = |text: &str| rules(text).delay();
    let seconds = |n: f64| Some(Duration::from_secs_f64(n));
    assert_eq!(delay("user-agent: *\ncrawl-delay: 2.5"), seconds(2.5));
    assert_eq!(
        delay("user-agent: *\nCrawl-Delay:10\ncrawl-delay: 3"),
        seconds(10.0)
    );
    assert_eq!(
        delay("user-agent: *\ncrawl-delay: 10\nuser-agent: foobot\nallow: /"),
        None
    );
    assert_eq!(delay("user-agent: other\ncrawl-delay: 10"), None);
    for nonsense in ["-1", "soon", "", "inf", "NaN", "1s"] {
        assert_eq!(
            delay(&format!("user-agent: *\ncrawl-delay: {nonsense}")),
            None,
            "{nonsense}"
        );
    }
    assert_eq!(
        delay("user-agent: *\ncrawl-delay: 1e30"),
        Some(Duration::MAX)
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    check("\u{feff}User-agent: *\nDisallow: /", &[], &["/"]);
}

#[test]
fn misspellings_that_are_well_known_count() {
    check(
        "useragent: foobot\ndissallow: /a\nDisallow /b",
        &["/"],
        &["/a", "/b"],
    );
    check("user agent: foobot\ndisalow: /a", &["/"], &["/a"]);
    let odd = "user-agent foobot\ndisallow /a:b\ndisallow /b:\ndisallow /c: no";
    check(odd, &["/b", "/c"], &["/a:b"]);
}

#[test]
fn anything_can_be_read_and_costs_little() {
    for bytes in [
        b"\0\xff\xfe\x80:\n:::\r\r\n#".as_slice(),
        b"\xff\xfeU\0s\0e\0r\0",
        b"<!DOCTYPE html><html><body>user-agent</body></html>",
        b"user-agent",
        b":",
        b"",
    ] {
        assert!(rules(bytes).allows("/"));
    }
    let long = format!("user-agent: *\ndisallow: /{}", "a".repeat(10 << 20));
    let long = rules(long);
    assert!(long.allows("/a") && long.rules.is_empty());
    let many = format!("user-agent: *\n{}", "allow:/a\n".repeat(2 << 20));
    assert!(rules(many).n_bytes() < 16 << 20);
}

#[test]
fn a_line_that_is_cut_by_the_limit_does_not_count() {
    let head = "user-agent: *\ndisallow: /x\n";
    let fill = format!(
        "#{}\n",
        "f".repeat(MAX_BYTES - head.len() - 2 - "disallow: /y".len())
    );
    let text = format!("{head}{fill}disallow: /yes/no\ndisallow: /z\n");
    check(&text, &["/yes", "/yes/no", "/z"], &["/x"]);
    let fits = format!("{head}{fill}disallow: /y");
    assert_eq!(fits.len(), MAX_BYTES);
    check(&fits, &[], &["/x", "/y"]);
}

/// The file and the path are made to be slow: a matcher that backtracks would not end.
#[test]
fn no_file_makes_matching_slow() {
    let pattern = "/".to_owned() + &"a*".repeat(5_000) + "b$";
    let path = "/".to_owned() + &"a".repeat(8_000);
    let text = format!("user-agent: *\ndisallow: {pattern}\n").repeat(40);
    assert!(rules(text).allows(&path));
}

#[test]
fn r12_a_path_is_compared_with_rules_that_begin_like_it() {
    use std::fmt::Write as _;
    let mut file = "user-agent: *\ndisallow: /*.pdf\n".to_owned();
    for n in 0..10_000 {
        writeln!(file, "disallow: /shop/{n}/private").unwrap();
    }
    let rules = rules(&file);
    let mut n_compared = 0;
    rules.each_beginning_like(b"/shop/9999/private/x", |_, _| n_compared += 1);
    assert_eq!(n_compared, 2);
    assert_eq!(rules.forbidding("/shop/17/private").unwrap().n, 20);
    assert_eq!(rules.forbidding("/shop/17/a.pdf").unwrap().n, 2);
    assert!(rules.allows("/shop/17/public"));
}

/// The rules that the search skips never change the result.
#[test]
fn r12_the_same_rule_decides_as_if_all_were_compared() {
    use rand::{RngExt as _, SeedableRng as _};
    let mut random = rand::rngs::StdRng::seed_from_u64(12);
    let mut piece = |letters: &[u8], most: usize| {
        let n = random.random_range(0..=most);
        let letter = |_| char::from(letters[random.random_range(0..letters.len())]);
        (0..n).map(letter).collect::<String>()
    };
    for _ in 0..500 {
        let mut file = "user-agent: *\n".to_owned();
        for _ in 0..12 {
            let field = ["allow", "disallow"][piece(b"x", 1).len()];
            file += &format!("{field}: /{}\n", piece(b"ab*$", 4));
        }
        let rules = rules(&file);
        for _ in 0..20 {
            let path = format!("/{}", piece(b"ab", 5));
            let all = rules.rules.iter();
            let first = all
                .clone()
                .find(|rule| rule.pattern.matches(path.as_bytes()));
            let expected = first.filter(|rule| !rule.allows).map(|rule| &rule.line);
            assert_eq!(rules.forbidding(&path), expected, "{path} in\n{file}");
        }
    }
}
