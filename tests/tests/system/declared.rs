//! Files that declare resources: `apply`, `export`, `init` and `config` of the real program.

use crawler_tests::guests;
use crawler_tests::process::Home;
use crawler_tests::web::Method;

use crate::server::Server;
use crate::sites;

#[test]
fn a_file_is_applied_once_and_its_export_changes_nothing() {
    let web = sites::chain(2).open();
    let server = Server::start();
    let guest = guests::guest("puppet").display().to_string();
    let text = format!(
        "[[plugin]]\npath = {guest:?}\n\n[[resource]]\nname = \"books\"\nplugin = \"puppet\"\n\
         labels = {{ team = \"shop\" }}\nparams = {{ start = {:?} }}\nmax-pages = 9\n",
        web.url("/0").to_string()
    );
    server.home.write("crawls.toml", &text);
    let apply = ["apply", "-f", "crawls.toml"];
    let first = server.ok(&apply);
    let lines: Vec<&str> = first.lines().collect();
    assert!(lines[0].starts_with("plugin puppet@"), "{first}");
    assert!(lines[0].ends_with(" created"), "{first}");
    assert_eq!(lines[1..], ["resource books created"]);
    server.finished("books");
    let again = server.ok(&apply);
    assert!(
        again.lines().all(|line| line.ends_with(" unchanged")),
        "{again}"
    );

    // What was changed by hand is told, and put back.
    server.ok(&[
        "resource",
        "update",
        "books",
        "--max-depth=3",
        "--label=team=",
    ]);
    let dry = server.ok(&["apply", "-f", "crawls.toml", "--dry-run"]);
    assert!(
        dry.ends_with(
            "resource books updated (dry run)\n  labels.team: none → \"shop\"\n  \
             max-depth: 3 → default (50)\n"
        ),
        "{dry}"
    );
    server.ok(&apply);
    let spec = &server.resource("books")["spec"];
    assert_eq!(spec["labels"]["team"], "shop");
    assert_eq!(spec["crawl"]["max_depth"], serde_json::Value::Null);

    for form in ["toml", "json"] {
        let exported = server.ok(&["export", "-o", form]);
        let file = server.home.write("exported", &exported);
        let file = file.display().to_string();
        let dry = server.ok(&["apply", "--dry-run", "-f", &file]);
        assert_eq!(dry, "resource books unchanged (dry run)\n");
    }
    let listed = |label: &str| server.ok(&["resource", "list", "-l", label]);
    assert!(listed("team=shop").contains("books"));
    assert!(!listed("team=other").contains("books"));

    let other = server.home.write("other.toml", "");
    let empty = ["apply", "-f", "other.toml", "--prune", "-l", "team=shop"];
    let refused = server.cli(&empty);
    assert_eq!(refused.code, Some(1));
    let told = "nothing is pruned, because the files declare no resource";
    assert!(refused.stderr.contains(told), "{}", refused.stderr);
    let text = "[[resource]]\nname = \"other\"\nplugin = \"puppet\"\n";
    server.home.write("other.toml", text);
    let prune = ["apply", "-f", &other.display().to_string(), "--prune", "-l"];
    let pruned = server.ok(&[&prune[..], &["team=other"]].concat());
    assert_eq!(pruned, "resource other created\n");
    let pruned = server.ok(&[&prune[..], &["team=shop"]].concat());
    assert_eq!(pruned, "resource other unchanged\nresource books pruned\n");
    let gone = server.http(Method::GET, "/crawler/resource/books", None);
    assert_eq!(gone.status, 404);
}

#[test]
fn faults_are_told_with_their_lines_and_the_rest_is_applied() {
    let server = Server::with_puppet();
    server.home.write(
        "crawls.json",
        "{\"resource\": [\n{\"name\": \"a\", \"plugin\": \"puppet\"},\n\
         {\"name\": \"b\", \"delay\": 1, \"wieght\": 2},\n{\"name\": \"c\", \"plugin\": \"gone\"}]}",
    );
    let applied = server.cli(&["apply", "-f", "crawls.json", "-f", "gone"]);
    assert_eq!(applied.code, Some(1));
    assert_eq!(applied.stdout, "resource a created\n");
    let told: Vec<&str> = applied.stderr.lines().collect();
    assert_eq!(
        told,
        [
            "error: crawls.json:3: [[resource]] has an unknown key \"wieght\"",
            "hint: did you mean \"weight\"?",
            "error: crawls.json:3: delay takes a time with its unit, like \"1ms\" or \"1s\", not 1",
            "error: cannot read gone: No such file or directory (os error 2)",
            "hint: name other files",
            "error: crawls.json:4: resource c: there is no plugin gone",
            "hint: push it first: `crawler plugin push PATH --as gone@VERSION`, or name another with --plugin when adding c",
            "error: 4 faults; 1 applied",
            "hint: mend what is told above, and apply again",
        ]
    );
    let without = server.cli(&["apply", "-f", "crawls.json", "-l", "a=b"]);
    assert_eq!(without.code, Some(1));
    assert!(
        without.stderr.contains("--prune is not given"),
        "{}",
        without.stderr
    );
}

#[test]
fn a_config_file_is_written_once_and_checked_without_a_master() {
    let home = Home::new();
    home.ok(["init"]);
    let checked = home.ok(["config", "check"]);
    assert_eq!(checked, "no fault in 1 file: 0 plugins, 0 resources\n");
    let again = home.run(["init"]);
    assert_eq!(again.code, Some(1));
    assert_eq!(
        again.stderr,
        "error: crawler.toml is there already\nhint: name another file, or write over it with --force\n"
    );
    home.ok(["init", "--force"]);
    home.write(
        "bad.toml",
        "[fetch]\ntimeout = '0s'\nparalel = 1\n[[plugin]]\npath = 'gone'\n",
    );
    let bad = home.run(["config", "check", "crawler.toml", "bad.toml"]);
    assert_eq!(bad.code, Some(1));
    assert_eq!(
        bad.stderr.lines().collect::<Vec<_>>(),
        [
            "error: bad.toml:2: timeout is longer than 0s",
            "error: bad.toml:3: [fetch] has an unknown key \"paralel\"",
            "hint: did you mean \"parallel\"?",
            "error: bad.toml:4: there is no plugin at gone",
            "hint: name a folder of source, or a .wasm file",
            "error: 3 faults",
        ]
    );
    let shown = home.ok(["config", "show", "worker", "--http", ":0"]);
    let row = |setting: &str| {
        let row = shown.lines().find(|line| line.starts_with(setting));
        let words = row.unwrap_or_default().split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("--http "), "--http :0 option");
    assert_eq!(row("[fetch] timeout "), "[fetch] timeout 30s default");
    assert_eq!(row("--config "), "--config crawler.toml default");
    let unknown = home.run(["config", "show", "demo"]);
    assert_eq!(unknown.code, Some(2));
}
