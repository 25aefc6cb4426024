//! Mistakes on the command line, and plugins that cannot be built: the message says what was meant, and the exit
//! code says that nothing was done.

use std::fs;
use std::path::Path;

use crawler_tests::guests;
use crawler_tests::process::Home;
use tokio::net::TcpSocket;

use crate::Differences;
use crate::server::failure;

const USAGE: &str = "\n\nFor more information, try '--help'.";

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_done() {
    let home = Home::new();
    home.write("rules.txt", "no rules");
    fs::create_dir(home.path().join("empty")).expect("a folder can be made");
    let limits = "fuel, cpu, timeout, memory, body, items, item-bytes, requests, log-lines, captures, capture-bytes";
    let address = "write :PORT, or an address like 127.0.0.1:8081; port 0 takes a free one";
    let cases: &[(&str, String)] = &[
        ("zoom", format!("2: unrecognized subcommand 'zoom'\n\nUsage: crawler [OPTIONS] <COMMAND>{USAGE}")),
        (
            "up --wings",
            format!("2: unexpected argument '--wings' found\n\nUsage: crawler up [OPTIONS]{USAGE}"),
        ),
        (
            "up --log-file missing/up.log",
            "2: cannot log to missing/up.log; name a file in a folder that exists with --log-file: No such file or directory (os error 2)".into(),
        ),
        ("up --log-file empty", "2: cannot log to empty; name a file in a folder that exists with --log-file: Is a directory (os error 21)".into()),
        (
            "up --log-file-size 0",
            format!("2: invalid value '0' for '--log-file-size <SIZE>': write a size like 64MiB or 4096{USAGE}"),
        ),
        (
            "up --metrics-resources many",
            format!("2: invalid value 'many' for '--metrics-resources <N>': invalid digit found in string{USAGE}"),
        ),
        (
            "up --api-rate many",
            format!("2: invalid value 'many' for '--api-rate <N>': invalid digit found in string{USAGE}"),
        ),
        (
            "run a.wasm --limit memroy=1",
            format!("2: invalid value 'memroy=1' for '--limit <NAME=VALUE>': there is no limit \"memroy\"; the limits are {limits}{USAGE}"),
        ),
        (
            "run a.wasm --limit memory=much",
            format!("2: invalid value 'memory=much' for '--limit <NAME=VALUE>': limit memory takes a size like 64MiB or 4096, not \"much\"{USAGE}"),
        ),
        (
            "run a.wasm --limit fuel",
            format!("2: invalid value 'fuel' for '--limit <NAME=VALUE>': write it as NAME=VALUE{USAGE}"),
        ),
        ("run a.wasm --concurrency 0", "1: setting concurrency must be above zero".into()),
        (
            "run a.wasm --concurrency many",
            format!("2: invalid value 'many' for '--concurrency <N>': invalid digit found in string{USAGE}"),
        ),
        (
            "run a.wasm --delay 5",
            format!("2: invalid value '5' for '--delay <TIME>': write a time like 250ms or 1s{USAGE}"),
        ),
        ("run a.wasm --max-bytes 0", format!("2: invalid value '0' for '--max-bytes <SIZE>': write a size like 64MiB or 4096{USAGE}")),
        (
            "run a.wasm --max-url-length 8193",
            "1: setting max-url-length is 8193; at most 8192 are allowed".into(),
        ),
        (
            "run a.wasm --content-types html",
            format!("2: invalid value 'html' for '--content-types <TYPE,…>': takes all, or content types like text/*, application/json, not \"html\"{USAGE}"),
        ),
        (
            "run a.wasm --proxy A",
            format!("2: invalid value 'A' for '--proxy <NAME>': takes direct, or a name from [proxies] of the workers' config file, not \"A\"{USAGE}"),
        ),
        ("run a.wasm --max-segment-repeats 0", "1: setting max-segment-repeats must be above zero".into()),
        ("run a.wasm --max-pattern-urls 0", "1: setting max-pattern-urls must be above zero".into()),
        ("run a.wasm --max-hosts 0", "1: setting max-hosts must be above zero".into()),
        (
            "run a.wasm --max-undelivered 1GiB",
            "1: setting max-undelivered is 1073741824; at most 268435456 are allowed".into(),
        ),
        ("run a.wasm --max-attempts 0", "1: setting max-attempts must be above zero".into()),
        ("run a.wasm --max-retry-wait 2d", "1: setting max-retry-wait is longer than a day".into()),
        (
            "run a.wasm --max-retry-wait 5",
            format!("2: invalid value '5' for '--max-retry-wait <TIME>': write a time like 250ms or 1s{USAGE}"),
        ),
        ("run a.wasm --max-crawl-delay 2d", "1: setting max-crawl-delay is longer than a day".into()),
        ("run a.wasm --revisit 500d", "1: setting revisit is longer than 366 days".into()),
        (
            "run a.wasm --revisit 1d",
            "1: --revisit has no meaning for `crawler run`, which knows no pages of earlier runs | leave it out, or crawl with `crawler up`".into(),
        ),
        (
            "run a.wasm --robots bend",
            format!("2: invalid value 'bend' for '--robots <obey|ignore>': takes obey or ignore, not \"bend\"{USAGE}"),
        ),
        (
            "run a.wasm --unchanged ignore",
            format!("2: invalid value 'ignore' for '--unchanged <parse|skip>': takes parse or skip, not \"ignore\"{USAGE}"),
        ),
        (
            "run a.wasm --scope http://a.test",
            format!("2: invalid value 'http://a.test' for '--scope <HOST,…>': setting scope has \"http://a.test\", which is not a host; write example.org, *.example.org, site:example.org, *, or one of them with a port{USAGE}"),
        ),
        (
            "run a.wasm --scope site:co.uk",
            "1: setting scope has site:co.uk, and co.uk is a public suffix, whose names have different owners; write the domain that is registered below it, like site:example.co.uk, or *.co.uk for all of them".into(),
        ),
        (
            "up --http 8081",
            format!("2: invalid value '8081' for '--http <ADDRESS>': {address}{USAGE}"),
        ),
        (
            "up --http 0.0.0.0:8081",
            "2: --http 0.0.0.0:8081 is reached by other machines, and has no TLS | listen on this machine only, --http :8081, name a certificate in [tls] of the config file, or add --insecure".into(),
        ),
        (
            "up --grpc 0.0.0.0:9091 --insecure",
            "2: --grpc 0.0.0.0:9091 is no address that others can reach | say how they do: --advertise HOST[:PORT]".into(),
        ),
        (
            "up --advertise http://a/",
            "2: --advertise http://a/ is no address | write HOST or HOST:PORT, like 10.0.0.5:9091".into(),
        ),
        (
            "worker --pprof 0.0.0.0:9982",
            "2: --pprof 0.0.0.0:9982 would show the program's insides to everybody who reaches it | listen on this machine only: --pprof :9982".into(),
        ),
        (
            "worker --id=",
            "2: --id \"\" names nobody | write a short one, like --id=2".into(),
        ),
        (
            "worker --etcd etcd.test:2379",
            "2: etcd endpoint \"etcd.test:2379\" is no http:// or https:// URL with a host and nothing behind it".into(),
        ),
        (
            "master --keep-revisions 10",
            "2: --keep-revisions 10 leaves readers too little time | keep at least 1000, or 0 where etcd compacts itself".into(),
        ),
        (
            "plugin push a.wasm --as books",
            format!("2: invalid value 'books' for '--as <NAME@VERSION>': name its version too: books@VERSION{USAGE}"),
        ),
        (
            "resource add books --weight -1",
            format!("2: invalid value '-1' for '--weight <N>': -1 is not in 0..=4294967295{USAGE}"),
        ),
        (
            "resource add books --weight NaN",
            format!("2: invalid value 'NaN' for '--weight <N>': invalid digit found in string{USAGE}"),
        ),
        (
            "resource add books --shards -1",
            format!("2: invalid value '-1' for '--shards <N>': -1 is not in 0..=4294967295{USAGE}"),
        ),
        (
            "resource add books --selector gpu==1",
            format!("2: invalid value 'gpu==1' for '--selector <KEY=VALUE>': the value of label gpu has '='; use letters, digits, '-', '_', '.' and ':'{USAGE}"),
        ),
        (
            "resource add a/",
            format!("2: invalid value 'a/' for '<NAME>': resource name \"a/\" has an empty part; leave out the '/' beside it{USAGE}"),
        ),
        (
            "frontier list books --state lost",
            format!("2: invalid value 'lost' for '--state <STATE>'\n  [possible values: due, done, dead]{USAGE}"),
        ),
        (
            "frontier list books --limit 0",
            format!("2: invalid value '0' for '--limit <N>': 0 is not in 1..18446744073709551615{USAGE}"),
        ),
        (
            "frontier why books",
            format!("2: the following required arguments were not provided:\n  <URL>\n\nUsage: crawler frontier why <NAME> <URL>{USAGE}"),
        ),
        (
            "resource restart a/-b",
            format!("2: invalid value 'a/-b' for '<NAME>': resource name \"a/-b\" has '-'; each part between slashes has letters, digits, '-', '_' and '.', and starts with a letter or digit{USAGE}"),
        ),
        (
            "items books --follow --patience 5",
            format!("2: invalid value '5' for '--patience <TIME>': write a time like 250ms or 1s{USAGE}"),
        ),
        (
            "items books --patience 5s",
            format!("2: the following required arguments were not provided:\n  --follow\n\nUsage: crawler items --follow --patience <TIME> <NAME>{USAGE}"),
        ),
        ("bench --hosts 0", format!("2: invalid value '0' for '--hosts <N>': 0 is not in 1..=100000{USAGE}")),
        (
            "bench --pages 10000001",
            format!("2: invalid value '10000001' for '--pages <N>': 10000001 is not in 1..=10000000{USAGE}"),
        ),
        (
            "bench --hosts 20 --pages 10",
            "2: --hosts 20 needs more pages than --pages 10: each host has at least one | give --pages 20 or more, or fewer --hosts".into(),
        ),
        (
            "bench --latency 6s",
            format!("2: invalid value '6s' for '--latency <TIME>': at most 5s{USAGE}"),
        ),
        (
            "bench --crawl-delay 2m",
            format!("2: invalid value '2m' for '--crawl-delay <TIME>': at most 1m{USAGE}"),
        ),
        (
            "bench --errors 60%",
            format!("2: invalid value '60%' for '--errors <SHARE>': write a share from 0% to 50%, like 1% or 0.5%{USAGE}"),
        ),
        (
            "bench --redirects 1",
            format!("2: invalid value '1' for '--redirects <SHARE>': write a share from 0% to 50%, like 1% or 0.5%{USAGE}"),
        ),
        ("bench --concurrency 0", "1: setting concurrency must be above zero".into()),
        (
            "bench --proxy abroad",
            "2: --proxy has no meaning for a benchmark, whose web is on this machine | leave it out".into(),
        ),
        (
            "bench --credentials shop",
            "2: --credentials has no meaning for a benchmark, whose web is on this machine | leave it out".into(),
        ),
        (
            "bench --folder gone",
            "1: cannot list gone: No such file or directory (os error 2)".into(),
        ),
        (
            "bench --folder empty",
            "1: empty has no HTML files; name a folder with files that end in .html or .htm".into(),
        ),
        (
            "run gone.wasm",
            "1: cannot find a plugin at gone.wasm: No such file or directory (os error 2)".into(),
        ),
        (
            "plugin build empty",
            "1: folder empty has no Cargo.toml, package.json or pyproject.toml | name the folder of a plugin, as `crawler plugin new` makes one, or a .wasm file".into(),
        ),
        (
            "run gone.wasm --archive warc",
            "2: --archive warc needs a folder for its files | name one: --archives DIR".into(),
        ),
        (
            "run gone.wasm --archives pages",
            "2: --archives names a folder, and nothing is archived | say in which form: --archive warc".into(),
        ),
        (
            "run gone.wasm --archive warc --archives pages --cache",
            "2: --cache gives answers of earlier runs, and --archive records what sites answer now | leave one of them out".into(),
        ),
        (
            "archive wacz empty -o empty",
            "1: empty is there already | name another file for -o, or move this one away".into(),
        ),
        (
            "archive wacz empty -o books.wacz",
            "1: there is no WARC file in what was named | name files that end in .warc or .warc.gz, or a folder with some; a WACZ file is packed if it is named itself".into(),
        ),
        (
            "archive check empty",
            "1: there is no archive in what was named | name files that end in .warc, .warc.gz or .wacz, or a folder with some".into(),
        ),
        (
            "run empty",
            "1: folder empty has no Cargo.toml, package.json or pyproject.toml | name the folder of a plugin, as `crawler plugin new` makes one, or a .wasm file".into(),
        ),
        (
            "plugin push rules.txt",
            "1: rules.txt is neither a folder nor a .wasm file | name the folder of a plugin, or a component that is built already".into(),
        ),
        (
            "node list --master there",
            "1: \"there\" is not the URL of a master: it does not start with http:// or https:// | write it like http://127.0.0.1:9091, or with https:// if the master speaks TLS".into(),
        ),
    ];
    let mut differences = Differences::default();
    for (line, expected) in cases {
        let ended = home.run(line.split(' '));
        differences.compare(line, &failure(&ended), expected);
        differences.compare(line, &ended.stdout, "");
    }
    differences.assert_none();
    assert!(
        !home.path().join("crawler-data").exists(),
        "nothing half-written stays"
    );
}

#[test]
fn a_master_that_is_not_there_is_named_with_the_flag_and_the_way_to_start_one() {
    let home = Home::new();
    // It is bound and does not listen, so nobody else gets the port meanwhile.
    let socket = TcpSocket::new_v4().expect("it is a socket");
    let any = "127.0.0.1:0".parse().expect("it is an address");
    socket.bind(any).expect("a port is free");
    let url = format!("http://{}", socket.local_addr().expect("it is bound"));
    home.write("a.wasm", "text");
    for line in ["resource list", "items a --follow", "plugin push a.wasm"] {
        let ended = home.run(line.split(' ').chain(["--master", &url]));
        assert_eq!(
            failure(&ended),
            format!(
                "1: cannot reach the master at {url}: Connection refused (os error 111) | start one with `crawler up`, or name another with --master URL"
            )
        );
    }
}

fn crate_of(folder: &Path, source: &str) {
    let manifest = "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[lib]\ncrate-type = [\"cdylib\"]\n\n[workspace]\n";
    fs::create_dir_all(folder.join("src")).expect("a folder can be made");
    fs::write(folder.join("Cargo.toml"), manifest).expect("a file can be written");
    fs::write(folder.join("src/lib.rs"), source).expect("a file can be written");
}

#[test]
fn a_plugin_that_does_not_compile_shows_what_the_compiler_says() {
    let home = Home::new();
    crate_of(
        &home.path().join("shop"),
        "pub fn price() -> u32 { \"ten\" }\n",
    );
    for line in [["plugin", "build"], ["plugin", "push"]] {
        let mut command = home.command(line.iter().chain(&["shop"]));
        // The crate has a target folder of its own, because it is not part of this workspace.
        command.env_remove("CARGO_TARGET_DIR");
        let ended =
            crawler_tests::process::Process::start(&mut command).wait(crawler_tests::PATIENCE);
        assert_eq!(ended.code, Some(1));
        let said = &ended.stderr;
        assert!(said.contains("error[E0308]: mismatched types"), "{said}");
        assert!(said.contains("src/lib.rs:1:25"), "{said}");
        let end =
            "error: plugin shop does not build\nhint: the messages above are those of cargo\n";
        assert!(said.ends_with(end), "{said}");
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn a_needed_param_is_asked_for_and_items_stay() {
    let home = Home::new();
    let forum = guests::guest("forum_list").display().to_string();
    let items = home.path().join("items.jsonl");
    fs::write(&items, "of the last crawl\n").expect("it can be written");
    let ended = home.run(["run", &forum, "-o", "items.jsonl"]);
    assert_eq!(ended.code, Some(1));
    let left = fs::read_to_string(&items).expect("it is there");
    assert_eq!(left, "of the last crawl\n", "this one has none");
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert_eq!(
        last,
        "error: the crawl failed: plugin forum_list@0.1.0 needs the param start (Address of the first list page); give it as --param start=VALUE"
    );
}
