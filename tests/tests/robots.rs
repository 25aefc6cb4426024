//! Robots rules compared with Protego, the parser of Scrapy: for files and paths made from a seed, both give the
//! same answers unless the RFC decides otherwise.
//!
//! Most files have nothing that the two are known to read differently, and there they must agree in everything.
//! Each of the other files has one thing of [`CONTESTED`], so that a difference is reported with the paragraph of
//! RFC 9309 that decides it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crawler_fetch::robots::Rules;
use crawler_tests::python::python;
use crawler_tests::random::Random;
use serde::{Deserialize, Serialize};
use url::{Position, Url};

const N_FILES: usize = 5_000;
const N_PATHS: usize = 10;
/// Version that the list below was made with.
const PROTEGO: &str = "protego==0.7.0";
const AGENT: &str = "crawler";

/// Differences of Protego, with the rule of RFC 9309.
const CONTESTED: [(Contested, &str); 7] = [
    (
        Contested::StartOfToken,
        "2.2.1: the product token is matched, not the start of it",
    ),
    (
        Contested::AfterToken,
        "2.2.1: the product token is letters, '-' and '_', so it ends at anything else",
    ),
    (
        Contested::Slash,
        "2.2.2: a reserved octet and its percent-encoding are equal, '/' and %2F too",
    ),
    (
        Contested::Percent,
        "2.2.2: octets that are not allowed are percent-encoded first, a lone '%' too",
    ),
    (
        Contested::Dollar,
        "2.2.3: '$' at the end of a pattern is its end, and never an octet",
    ),
    (
        Contested::Index,
        "2.2.2: a rule is for the paths that it matches; one for index.html is for no folder",
    ),
    (
        Contested::Between,
        "2.2.4: other records do not interfere, between two lines of user agents neither",
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Contested {
    StartOfToken,
    AfterToken,
    Slash,
    Percent,
    Dollar,
    Index,
    Between,
}

/// A file with the questions about it.
#[derive(Serialize)]
struct Case {
    #[serde(skip)]
    contested: Option<Contested>,
    text: String,
    agent: &'static str,
    urls: Vec<Url>,
}

/// Answer of Protego to a case.
#[derive(Deserialize)]
struct Answer {
    allowed: Vec<bool>,
    delay: Option<f64>,
}

/// Program that reads one case a line, and writes one answer a line.
const SCRIPT: &str = "
import json, sys
from protego import Protego
for line in sys.stdin:
    case = json.loads(line)
    rules = Protego.parse(case['text'])
    allowed = [rules.can_fetch(url, case['agent']) for url in case['urls']]
    print(json.dumps({'allowed': allowed, 'delay': rules.crawl_delay(case['agent'])}))
";

#[test]
fn rules_are_those_of_protego_but_where_the_rfc_decides_otherwise() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let Some(python) = python(folder.path(), "protego", &[PROTEGO]) else {
        return;
    };
    let mut random = Random::new("protego");
    let cases: Vec<Case> = (0..N_FILES).map(|nth| Case::of(nth, &mut random)).collect();
    let answers = answers(&python, folder.path(), &cases);
    let mut differences: BTreeMap<Contested, (usize, String)> = BTreeMap::new();
    let (mut n_agreed, mut n_forbidden) = (0, 0);
    for (case, answer) in cases.iter().zip(answers) {
        let rules = Rules::parse(case.text.as_bytes(), case.agent);
        let delay = rules.delay().map(|delay| delay.as_secs_f64());
        let paths = case.urls.iter().zip(&answer.allowed);
        let other = paths.map(|(url, &theirs)| (url, theirs, rules.allows(path_of(url))));
        let mut other: Vec<(&Url, bool, bool)> = other.collect();
        n_forbidden += other.iter().filter(|(_, _, ours)| !ours).count();
        let n_asked = other.len();
        other.retain(|(_, theirs, ours)| theirs != ours);
        n_agreed += n_asked - other.len();
        let told = format!(
            "{:?}\n(URL, Protego, ours): {other:?}; delays {:?}, {delay:?}",
            case.text, answer.delay
        );
        match case.contested {
            None => assert!(other.is_empty() && delay == answer.delay, "{told}"),
            Some(contested) if !other.is_empty() => {
                let is_excused =
                    |(url, _, _): &(&Url, bool, bool)| contested.occurs(&case.text, url);
                assert!(other.iter().all(is_excused), "not {contested:?}: {told}");
                let (n, _) = differences.entry(contested).or_insert((0, told));
                *n += other.len();
            }
            Some(_) => {}
        }
    }
    println!("{N_FILES} files, {n_agreed} answers agree, {n_forbidden} of ours forbid");
    for (contested, paragraph) in CONTESTED {
        let (n, example) = differences
            .get(&contested)
            .unwrap_or_else(|| panic!("Protego sees {contested:?} as we do; take it off the list"));
        println!("{n} answers differ by RFC 9309, {paragraph}; for one, {example}");
    }
    // The answers do not agree only because nearly everything is allowed.
    assert!((N_FILES..N_FILES * N_PATHS / 2).contains(&n_forbidden));
}

/// A file, the difference of Protego, and the paths with true if they may be fetched.
type Example = (
    &'static str,
    Option<Contested>,
    &'static [(&'static str, bool)],
);

/// Examples of RFC 9309, for a crawler called `ExampleBot`.
const EXAMPLES: [Example; 8] = [
    // 2.2.1: two groups of one token are one.
    (
        "user-agent: ExampleBot\ndisallow: /foo\ndisallow: /bar\n\nuser-agent: ExampleBot\ndisallow: /baz\n",
        None,
        &[
            ("/foo", false),
            ("/bar", false),
            ("/baz", false),
            ("/", true),
        ],
    ),
    // 2.2.1: the group of all is for the others.
    (
        "user-agent: *\ndisallow: /foo\ndisallow: /bar\n\nuser-agent: ExampleBot\ndisallow: /baz\n",
        None,
        &[("/foo", true), ("/bar", true), ("/baz", false)],
    ),
    // 2.2.2: the table of octets and their percent-encodings.
    (
        "user-agent: *\ndisallow: /foo/bar?baz=quz\ndisallow: /foo/bar/\u{30c4}\ndisallow: /foo/bar/%62%61%7A\n",
        None,
        &[
            ("/foo/bar?baz=quz", false),
            ("/foo/bar/%E3%83%84", false),
            ("/foo/bar/\u{30c4}", false),
            ("/foo/bar/baz", false),
            ("/foo/bar", true),
        ],
    ),
    (
        "user-agent: *\ndisallow: /foo/bar?baz=https://foo.bar\n",
        Some(Contested::Slash),
        &[
            ("/foo/bar?baz=https://foo.bar", false),
            ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", false),
        ],
    ),
    // 2.2.2: the most octets decide, and where they are as many, what is allowed.
    (
        "user-agent: *\nallow: /example/page/\ndisallow: /example/page/disallowed.gif\ndisallow: /a\nallow: /a\n",
        None,
        &[
            ("/example/page/", true),
            ("/example/page/disallowed.gif", false),
            ("/a", true),
        ],
    ),
    // 2.2.3: the special characters.
    (
        "user-agent: *\nallow: /this/path/exactly$\ndisallow: /this/*/exactly\ndisallow: /path/file-with-a-%2A.html\n",
        None,
        &[
            ("/this/path/exactly", true),
            ("/this/path/exactly/not", false),
            ("/this/other/exactly", false),
            ("/path/file-with-a-%2A.html", false),
            ("/path/file-with-a-star.html", true),
        ],
    ),
    // 5.1.
    (
        "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n\
         User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n\
         User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\n\
         User-Agent: quxbot\n\nEOF\n",
        None,
        &[
            ("/a.gif", false),
            ("/example/page.html", false),
            ("/publications/", true),
            ("/publications/a.gif", true),
            ("/", true),
        ],
    ),
    // 5.2.
    (
        "User-Agent: ExampleBot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n",
        None,
        &[
            ("/example/page/disallowed.gif", false),
            ("/example/page/allowed.gif", true),
        ],
    ),
];

#[test]
fn the_examples_of_the_rfc_mean_what_it_says_to_us_and_to_protego() {
    let of_path = |&(path, _): &(&str, bool)| {
        let url = format!("http://a.test{path}");
        url.parse().expect("the examples are paths")
    };
    let cases = EXAMPLES.iter().map(|(text, contested, paths)| Case {
        contested: *contested,
        text: (*text).to_owned(),
        agent: "ExampleBot",
        urls: paths.iter().map(of_path).collect(),
    });
    let cases: Vec<Case> = cases.collect();
    for (case, (_, _, paths)) in cases.iter().zip(EXAMPLES) {
        let rules = Rules::parse(case.text.as_bytes(), case.agent);
        for (url, (_, expected)) in case.urls.iter().zip(paths) {
            let ours = rules.allows(path_of(url));
            assert_eq!(ours, *expected, "{url} of {:?}", case.text);
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let Some(python) = python(folder.path(), "protego", &[PROTEGO]) else {
        return;
    };
    let answers = answers(&python, folder.path(), &cases);
    for ((case, answer), (_, _, paths)) in cases.iter().zip(answers).zip(EXAMPLES) {
        for ((url, theirs), (_, expected)) in case.urls.iter().zip(answer.allowed).zip(paths) {
            let occurs = |contested: Contested| contested.occurs(&case.text, url);
            if !case.contested.is_some_and(occurs) {
                assert_eq!(theirs, *expected, "Protego, {url} of {:?}", case.text);
            }
        }
    }
}

impl Contested {
    /// Returns true if the contested thing occurs at all, in a file and a URL that is asked about.
    fn occurs(self, text: &str, url: &Url) -> bool {
        let (text, path) = (text.to_ascii_lowercase(), path_of(url).to_ascii_lowercase());
        let has_agent = |agents: &[&str]| {
            let lines = text.split(['\n', '\r']);
            let mut named = lines.filter_map(|line| line.strip_prefix("user-agent"));
            named.any(|name| agents.contains(&name.trim_matches([' ', ':'])))
        };
        let either = |part: &str| text.contains(part) || path.contains(part);
        match self {
            Contested::StartOfToken => has_agent(&["crawl", "craw"]),
            Contested::AfterToken => has_agent(&["crawler/1.0", "crawler bot"]),
            Contested::Slash => either("%2f"),
            Contested::Percent => either("%"),
            Contested::Dollar => path.contains('$') || path.contains("%24"),
            Contested::Index => path.ends_with('/') || path.ends_with("index.html"),
            Contested::Between => text.contains("colour: red"),
        }
    }
}

/// Asks Protego through files, so that neither side waits for the other to read.
fn answers(python: &Path, folder: &Path, cases: &[Case]) -> Vec<Answer> {
    let asked = folder.join("cases");
    let mut file = std::fs::File::create(&asked).expect("a file can be made");
    for case in cases {
        let line = serde_json::to_string(case).expect("a case is JSON");
        writeln!(file, "{line}").expect("a file can be written");
    }
    let asked = std::fs::File::open(asked).expect("a file can be read");
    let ended = Command::new(python)
        .args(["-c", SCRIPT])
        .stdin(asked)
        .output()
        .expect("Python starts");
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    let answers = String::from_utf8_lossy(&ended.stdout);
    let answers = answers
        .lines()
        .map(|line| serde_json::from_str(line).expect("an answer is JSON"));
    let answers: Vec<Answer> = answers.collect();
    assert_eq!(answers.len(), cases.len());
    answers
}

fn path_of(url: &Url) -> &str {
    &url[Position::BeforePath..Position::AfterQuery]
}

impl Case {
    /// Makes a case. Every fourth case has something contested.
    fn of(nth: usize, random: &mut Random) -> Self {
        let contested = nth
            .is_multiple_of(4)
            .then(|| CONTESTED[nth / 4 % CONTESTED.len()].0);
        let paths = (0..N_PATHS).map(|_| path(contested, random));
        Self {
            contested,
            agent: AGENT,
            urls: paths.collect(),
            text: text(contested, random),
        }
    }
}

fn one_of<T: Copy>(choices: &[T], random: &mut Random) -> T {
    let nth = random.below(choices.len() as u64);
    choices[usize::try_from(nth).expect("there are few choices")]
}

fn often(random: &mut Random) -> bool {
    random.below(3) > 0
}

fn path(contested: Option<Contested>, random: &mut Random) -> Url {
    const PIECES: [&str; 24] = [
        "/", "/", "/", "a", "a", "b", "b", "ab", ".html", "?", "=", "&", "-", "~", ":", "!", "%61",
        "%3F", "%3D", "%7E", "\u{fc}", "%C3%BC", "*", ";",
    ];
    let own: &[&str] = match contested {
        Some(Contested::Slash) => &["%2F", "%2f"],
        Some(Contested::Percent) => &["%25", "%"],
        Some(Contested::Dollar) => &["$", "%24"],
        Some(Contested::Index) => &["/", "/index.html"],
        _ => &[],
    };
    let text = match contested {
        Some(Contested::Index) if often(random) => one_of(&["", "a/"], random).to_owned(),
        _ => pieces(&PIECES, own, random),
    };
    let url = format!("http://a.test/{text}");
    url.parse().expect("all pieces may stand in a URL")
}

fn pattern(contested: Option<Contested>, random: &mut Random) -> String {
    const PIECES: [&str; 26] = [
        "/", "/", "/", "a", "a", "b", "b", "ab", ".html", "?", "=", "&", "-", "~", ":", "!", "%61",
        "%3f", "%3D", "%2A", "\u{fc}", "%c3%bc", "*", "*", "**", ";",
    ];
    let own: &[&str] = match contested {
        Some(Contested::Slash) => &["%2F", "/"],
        Some(Contested::Percent) => &["%25", "%"],
        Some(Contested::Index) => &["/", "/index.html"],
        _ => &[],
    };
    if contested == Some(Contested::Index) && often(random) {
        return one_of(&["/", "/index.html", "/a/index.html"], random).to_owned();
    }
    let start = one_of(&["/", "/", "/", "/", "*", "", "/a", "/b"], random);
    let text = pieces(&PIECES, own, random);
    let end = one_of(&["", "", "", "$", "*"], random);
    format!("{start}{text}{end}")
}

/// Returns a few pieces. If `own` has some, one of them is chosen now and then.
fn pieces(common: &[&'static str], own: &[&'static str], random: &mut Random) -> String {
    let n = random.below(5);
    let piece = |random: &mut Random| match own {
        [] => one_of(common, random),
        _ if often(random) => one_of(common, random),
        own => one_of(own, random),
    };
    (0..n).map(|_| piece(random)).collect()
}

fn text(contested: Option<Contested>, random: &mut Random) -> String {
    let ending = one_of(&["\n", "\n", "\r\n", "\r"], random);
    let mut lines: Vec<String> = Vec::new();
    let has_delay = random.below(4) == 0;
    let n_groups = 1 + random.below(4);
    let delayed = random.below(n_groups);
    for group in 0..n_groups {
        let n_agents = 1 + random.below(3);
        for nth in 0..n_agents {
            if nth > 0 && contested == Some(Contested::Between) {
                lines.push("Colour: red".to_owned());
            }
            let field = one_of(
                &[
                    "User-agent:",
                    "user-agent: ",
                    "USER-AGENT :",
                    "User-Agent  ",
                ],
                random,
            );
            lines.push(format!("{field} {}", agent(contested, random)));
            if often(random) {
                lines.push(
                    one_of(&["", "# a comment", "Sitemap: http://a.test/s.xml"], random).to_owned(),
                );
            }
        }
        for nth in 0..random.below(6) {
            let field = one_of(
                &[
                    "Disallow:",
                    "disallow: ",
                    "Allow:",
                    "ALLOW : ",
                    "Allow ",
                    "Disalow:",
                    "Disallow ",
                ],
                random,
            );
            let comment = one_of(&["", "", "", " # why"], random);
            let pattern = pattern(contested, random);
            // A line without its colon is a record only if nothing else can be meant.
            let has_colon = field.contains(':') || pattern.is_empty() || pattern.contains(':');
            let colon = if has_colon && !field.contains(':') {
                ":"
            } else {
                ""
            };
            lines.push(format!("{field}{colon} {pattern}{comment}"));
            if nth == 0 && has_delay && group == delayed {
                let delay = one_of(&["5", "2.5", "0", "-1", "soon", "1e2", " 7 # s"], random);
                lines.push(format!("Crawl-delay: {delay}"));
            }
            if random.below(6) == 0 {
                lines.push(
                    one_of(
                        &[
                            "Host: a.test",
                            "Colour: red",
                            "not a record",
                            ":",
                            "Disallow:",
                        ],
                        random,
                    )
                    .to_owned(),
                );
            }
        }
    }
    lines.join(ending)
}

fn agent(contested: Option<Contested>, random: &mut Random) -> &'static str {
    const AGENTS: [&str; 9] = [
        "*",
        "*",
        "crawler",
        "Crawler",
        "CRAWLER",
        "crawler-news",
        "crawler2",
        "otherbot",
        "mycrawler",
    ];
    let own: &[&str] = match contested {
        Some(Contested::StartOfToken) => &["crawl", "CRAW"],
        Some(Contested::AfterToken) => &["crawler/1.0", "crawler bot"],
        _ => &AGENTS,
    };
    match often(random) {
        true => one_of(own, random),
        false => one_of(&AGENTS, random),
    }
}
