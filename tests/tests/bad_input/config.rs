//! Config files that make no sense: the message names the file, the line and what was meant, and nothing is
//! started.

use crawler_tests::process::Home;

use crate::Differences;
use crate::server::failure;

#[test]
fn a_config_file_that_cannot_be_meant_starts_nothing_and_names_its_line() {
    let home = Home::new();
    let mut differences = Differences::default();
    let cases = [
        (
            "[[resource]]\nname = 'a'\nmax_pages = 3\n",
            r#"2: c.toml:3: [[resource]] has an unknown key "max_pages" | did you mean "max-pages"?"#,
        ),
        (
            "[[plugins]]\npath = 'a'\n",
            r#"2: c.toml:1: the file has an unknown key "plugins" | did you mean "plugin"?"#,
        ),
        (
            "[[resource]]\nname = 'a'\nmax-pages = 'many'\n",
            r#"2: c.toml:3: invalid type: string "many", expected u64"#,
        ),
        (
            "[[resource]]\nname = 'a'\nmax-bytes = 'much'\n",
            r#"2: c.toml:3: max-bytes takes a size like 64MiB or 4096, not "much""#,
        ),
        (
            "[[resource]]\nname = 'a'\nrobots = 'bend'\n",
            r#"2: c.toml:3: setting robots takes obey or ignore, not "bend""#,
        ),
        (
            "[[resource]]\nname = 'a'\nunchanged = 'ignore'\n",
            r#"2: c.toml:3: setting unchanged takes parse or skip, not "ignore""#,
        ),
        (
            "[[resource]]\nname = 'a'\nmax-atempts = 3\n",
            r#"2: c.toml:3: [[resource]] has an unknown key "max-atempts" | did you mean "max-attempts"?"#,
        ),
        (
            "[[resource]]\nname = 'a/'\n",
            r#"2: c.toml:2: resource name "a/" has an empty part; leave out the '/' beside it"#,
        ),
        (
            "\n[[resource]]\nname = 'a'\nlimits = { memroy = 1 }\n",
            r#"2: c.toml:4: there is no limit "memroy"; the limits are fuel, cpu, timeout, memory, body, items, item-bytes, requests, log-lines, captures, capture-bytes"#,
        ),
        (
            "[proxies]\nabroad = ['http://ann:secret@10.0.0.9:3128']\n",
            "2: c.toml:2: a proxy's URL has no user; write { url = …, user = …, password-file = … }",
        ),
        (
            "[proxies]\nabroad = ['10.0.0.9:3128']\n",
            "2: c.toml:2: a proxy is http, https, socks5 or socks5h://HOST:PORT and nothing behind it",
        ),
        (
            "[proxies]\nAbroad = ['http://10.0.0.9:3128']\n",
            r#"2: c.toml:2: a name has 1 to 63 characters of a-z, 0-9, -, _ and ., unlike "Abroad""#,
        ),
        (
            "[credentials.shop]\nhosts = ['*']\ntoken-env = 'T'\n",
            r#"2: c.toml:1: hosts of shop are like shop.example, or *.shop.example for that and all below it, without ports, not "*""#,
        ),
        (
            "[sink.out]\nurl = 'ftp://a.test/'\n",
            "2: c.toml:1: sink out: its url begins with file:///, s3://, gs://, az://, sqlite:, postgres://, mysql://, nats://, tls:// or https://, not with ftp:",
        ),
        (
            "[sink.a]\nurl = 'file:///srv'\n[sink.b]\nurl = 'file:///srv/'\n",
            "2: c.toml:3: sink b: its folder is that of sink a; each needs one of its own",
        ),
        (
            "[sink.A]\nurl = 'file:///srv'\n",
            "2: c.toml:1: [sink.A]: a name of a sink has 1 to 63 characters of a-z, 0-9, -, _ and .",
        ),
        (
            "[sink.db]\nurl = 'postgres://ann:secret@db.test/items'\n",
            "2: c.toml:1: sink db: its url has no password; name a file with password-file, or a variable with password-env",
        ),
        (
            "[sink.db]\nurl = 'mysql://db.test/items?pool=3'\n",
            r#"2: c.toml:1: sink db: the URL has a parameter "pool"; there are: ssl-mode, ssl-ca, ssl-cert, ssl-key, socket"#,
        ),
        (
            "[sink.db]\nurl = 'sqlite:items.db'\nmax-file = '1GiB'\n",
            "2: c.toml:1: sink db: max-file is for a folder or a bucket, and its url names a database",
        ),
        (
            "[sink.out]\nurl = 'file:///srv'\ntimeout = '1s'\n",
            "2: c.toml:1: sink out: timeout is for a database, a stream or a webhook, and its url names a folder",
        ),
        (
            "[sink.db]\nurl = 'sqlite:items.db'\ntimeout = '1h'\n",
            "2: c.toml:1: sink db: timeout is 1h; it goes from 1s to 10m",
        ),
        (
            "[sink.out]\nurl = 'file:///srv'\nformat = 'xml'\n",
            r#"2: c.toml:1: sink out: format "xml" is no format: there are jsonl, csv and parquet"#,
        ),
        (
            "[sink.out]\nurl = 's3://b/items'\npartition = '../{kind}'\n",
            r#"2: c.toml:1: sink out: partition "../{kind}" is no template of folders: ".." begins with a character with which readers skip files"#,
        ),
        (
            "[sink.out]\nurl = 's3://b/items'\nmax-file = '1GiB'\n",
            "2: c.toml:1: sink out: max-file is 1GiB; it goes from 64KiB to 8MiB",
        ),
        (
            "[sink.out]\nurl = 'nats://ann:secret@nats.test'\n",
            "2: c.toml:1: sink out: its url is nats://HOST or tls://HOST, with a port if it is not 4222, and perhaps USER@ before the host",
        ),
        (
            "[sink.out]\nurl = 'nats://nats.test'\ntoken-env = 'T'\n",
            "2: c.toml:1: sink out: a password or token would be sent to nats.test without protection; write tls:// instead of nats://, or use creds-file",
        ),
        (
            "[sink.out]\nurl = 'tls://nats.test'\nsubject = 'a b'\n",
            r#"2: c.toml:1: sink out: subject "a b" is no template of subjects: it has the character ' '; there are letters, digits, -, _ and ."#,
        ),
        (
            "[sink.out]\nurl = 'https://hooks.test/'\n",
            "2: c.toml:1: sink out: it has secret-file or secret-env, by which receivers verify its calls",
        ),
        (
            "[sink.out]\nurl = 'http://10.0.0.1/'\nsecret-env = 'S'\n",
            "2: c.toml:1: sink out: its url leads to 10.0.0.1, which is not a public address; allow-networks of the sink can allow it",
        ),
        (
            "[sink.out]\nurl = 'file:///srv'\nonly = ['book']\n",
            r#"2: c.toml:1: sink out: a condition is kind=NAME, not "book""#,
        ),
        (
            "[sink.out]\nurl = 'file:///srv'\nwhat = 'all'\n",
            r#"2: c.toml:1: sink out: what is "items" or "changes", not "all""#,
        ),
        (
            "[sink.out]\nurl = 'file:///srv'\nhistory = true\n",
            "2: c.toml:1: sink out: history is for a database, and its url names a folder",
        ),
        (
            "[sink.lines]\nurl = 'file:///srv'\n",
            "2: c.toml:1: sink lines is the data root, which every process has; choose another name",
        ),
        (
            "[[resource]]\nname = 'a'\nsink = ['A B']\n",
            r#"2: c.toml:3: setting sink takes names of sinks, which have 1 to 63 characters of a-z, 0-9, -, _ and ., unlike "A B""#,
        ),
        (
            "[[resource]]\nname = 'a'\nproxy = 'A B'\n",
            r#"2: c.toml:3: setting proxy takes direct, or a name from [proxies] of the workers' config file, not "A B""#,
        ),
        (
            "[[resource]]\nname = 'a'\ncontent-types = 'html'\n",
            r#"2: c.toml:3: setting content-types takes all, or content types like text/*, application/json, not "html""#,
        ),
        (
            "name = \n",
            "2: c.toml:1: string values must be quoted, expected literal string",
        ),
        (
            "[credentials.shop]\nhosts = ['shop.example']\ntoken-file = 'gone'\n",
            "1: credentials shop: cannot read gone: No such file or directory (os error 2)",
        ),
        (
            "[sink.db]\nurl = 'postgres://ann@db.test/items'\npassword-file = 'gone'\n",
            "1: sink db cannot be used: cannot read gone: No such file or directory (os error 2)",
        ),
        (
            "[fetch]\nca = 'gone.pem'\n",
            "1: ca of [fetch], gone.pem: No such file or directory (os error 2)",
        ),
    ];
    for (text, expected) in cases {
        differences.compare(text, &up(&home, text), expected);
        let has_data = home.path().join("crawler-data").exists();
        assert!(!has_data, "{text} started something");
    }
    // These faults only show on a running master.
    let started = [
        (
            "[[plugin]]\npath = 'gone'\n",
            "1: cannot find a plugin at gone: No such file or directory (os error 2)",
        ),
        (
            "[[resource]]\nname = 'a'\nlimits = { memory = '100GiB' }\n",
            "1: cannot add resource a: limit memory is 107374182400, above the ceiling of 671088640; the operator can raise it with --limit-ceiling memory=VALUE",
        ),
    ];
    let started = started.into_iter().chain([(
        "[[resource]]\nname = 'a'\nsink = ['gone']\n",
        "1: cannot add resource a: setting sink names gone, which is not declared; there are lines; add [sink.gone] to the config files of masters and workers",
    )]);
    for (text, expected) in started {
        differences.compare(text, &up(&home, text), expected);
    }
    let gone = home.run(["up", "--config=gone.toml"]);
    differences.compare(
        "gone.toml",
        &failure(&gone),
        "2: cannot read the config file gone.toml: No such file or directory (os error 2) | name another file with --config",
    );
    let alone = home.run(["worker", "--cluster=false"]);
    differences.compare(
        "a worker without a config file",
        &failure(&alone),
        "1: there is nothing to crawl: no [[resource]] is configured | write a crawler.toml here, or name a file with --config",
    );
    differences.assert_none();
}

/// Returns the end of the server with this config file.
fn up(home: &Home, text: &str) -> String {
    home.write("c.toml", text);
    let mut ended = home.run(["up", "--http=:0", "--grpc=:0", "--config=c.toml"]);
    // The log of the server stands before its error.
    let start = ended.stderr.find("error: ").unwrap_or(0);
    ended.stderr.drain(..start);
    failure(&ended)
}
