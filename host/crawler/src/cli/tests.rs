//! Tests of command lines and their options, and of messages about invalid ones.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::cli::engine::EngineOptions;
use crate::cli::items_file::ItemsFile;
use crate::cli::report::hint;
use crate::cli::resource::ResourceCommand;
use crate::config::DEFAULT_MASTER;
use crawler_api::requests::RequestSettings;
use crawler_api::tls::IdentityFiles;
use crawler_model::placement::{AffinityTarget, PlacementChange};
use crawler_model::plugin::LimitName;
use crawler_model::resource::{CrawlSettings, Robots, Unchanged};
use crawler_process::confine::Confinement;
use crawler_process::telemetry::chain;
use crawler_store::breaker::BreakerSettings;

mod reference;

fn parse(line: &str) -> anyhow::Result<Command> {
    let args = std::iter::once("crawler").chain(line.split_whitespace());
    let environment = Environment::default();
    Ok(Cli::parse(args.map(OsString::from), &environment)?.command)
}

#[track_caller]
fn check_refused(line: &str, message: &str) {
    let error = parse(line).unwrap_err();
    let text = match error.downcast_ref::<clap::Error>() {
        Some(usage) => usage.to_string(),
        None => format!("error: {error}\nhint: {}", hint(&error)),
    };
    assert!(text.contains(message), "{line}: {text}");
}

#[test]
fn options_of_the_terminal_win_over_the_environment() {
    let environment = Environment {
        log: telemetry::Settings {
            filter: Some("error".to_owned()),
            colors: Colors::Never,
            ..telemetry::Settings::default()
        },
        ..Environment::default()
    };
    let log = |line: &str| {
        let args = line.split_whitespace().map(OsString::from);
        let log = Cli::parse(args, &environment).unwrap().log(&environment);
        (log.filter.unwrap(), log.colors)
    };
    let (filter, colors) = log("crawler version");
    assert_eq!((filter.as_str(), colors), ("error", Colors::Never));
    let (filter, colors) = log("crawler version -v --color always");
    assert_eq!(
        (filter.as_str(), colors),
        ("warn,async_nats=off,crawler=info", Colors::Always)
    );
    // The parser keeps one of the places in which a global option stands, so its counts do not add up.
    assert_eq!(
        log("crawler -v version -v").0,
        "warn,async_nats=off,crawler=info"
    );
}

#[test]
fn a_view_that_fills_the_terminal_has_no_log_beside_it() {
    let default_log = |line: &str| parse(line).unwrap().default_log();
    assert_eq!(default_log("top"), "off");
    assert_eq!(default_log("node list"), "warn,async_nats=off");
    assert!(default_log("up").starts_with("info,"));
}

#[test]
fn more_and_less_of_the_log_exclude_each_other_anywhere() {
    let why = "cannot be used with '--";
    check_refused("version -v -q", why);
    check_refused("-v version -q", why);
    check_refused("-q node -v list", why);
}

fn up(line: &str) -> UpOptions {
    match parse(line) {
        Ok(Command::Up(options)) => *options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_definition_of_the_command_line_is_sound() {
    Args::command().debug_assert();
}

#[test]
fn every_command_has_an_example_in_its_help() {
    fn check(command: &clap::Command) {
        let n_below = command.get_subcommands().count();
        if n_below == 0 && !["help", "version"].contains(&command.get_name()) {
            let help = command.get_after_help().map(ToString::to_string);
            let has_example = help.is_some_and(|text| text.contains("Example"));
            assert!(has_example, "{}", command.get_name());
        }
        command.get_subcommands().for_each(check);
    }
    check(&Args::command());
}

#[test]
fn a_host_of_a_certificate_is_a_name_or_an_address() {
    parse("cert dev tls --host node-1.example,10.0.0.1 --host ::2").unwrap();
    let why = "is not a host; write a name like node-1.example, or an IP address";
    check_refused("cert dev tls --host https://node-1.example:9091", why);
    check_refused("cert dev tls --host a,,b", why);
    check_refused("cert dev", "<DIR>");
}

#[test]
fn a_benchmark_has_only_the_bounds_that_are_set() {
    let bench = |line: &str| match parse(line) {
        Ok(Command::Bench(options)) => *options,
        other => panic!("{other:?}"),
    };
    let options = bench("bench");
    assert_eq!(options.plugin, None);
    assert_eq!(options.crawl.max_pages(), u64::MAX);
    assert_eq!(options.crawl.max_depth(), u32::MAX);
    assert_eq!(options.crawl.concurrency(), 64);
    assert_eq!(options.crawl.scope, ["*.bench.test".parse().unwrap()]);
    let requests: Vec<_> = options.limits.iter().collect();
    assert_eq!(requests, [(LimitName::Requests, 100_000)]);
    let web = &options.server.web;
    assert_eq!((web.seed, web.n_hosts, web.n_pages), (1, 16, 10_000));
    // What is measured is the crawler: it waits neither for answers nor for further attempts.
    assert!(options.server.latency.is_zero());
    assert_eq!(web.errors, crate::bench::Share::default());
    assert!(options.server.promised.after_page.is_zero());
    let options = bench(
        "bench a.wasm --folder site --delay 1s --crawl-delay 2s --max-pages 5 --limit requests=7 \
         --param a=b --in-memory --json",
    );
    assert_eq!(options.plugin.as_deref(), Some(Path::new("a.wasm")));
    assert_eq!(options.server.folder.as_deref(), Some(Path::new("site")));
    assert_eq!(options.server.promised.after_robots.as_secs(), 1);
    assert_eq!(options.server.promised.after_page.as_secs(), 2);
    assert_eq!(options.crawl.max_pages(), 5);
    let requests: Vec<_> = options.limits.iter().collect();
    assert_eq!(requests, [(LimitName::Requests, 7)]);
    assert_eq!(options.params["a"], "b");
    assert!(options.is_in_memory && options.is_json);
    let conflict = "'--folder <DIR>' cannot be used with '--pages <N>'";
    check_refused("bench --folder site --pages 5", conflict);
}

#[test]
fn up_takes_ports_of_this_machine_and_fills_in_defaults() {
    let options = up(
        "up --http :0 --grpc localhost:9092 --allow-networks 127.0.0.0/8,10.0.0.0/8 \
         --allow-ports 81,8000",
    );
    assert_eq!(options.http.to_string(), "127.0.0.1:0");
    assert_eq!(options.grpc.to_string(), "127.0.0.1:9092");
    assert_eq!(options.allow_networks.len(), 2);
    assert_eq!(options.allow_ports, [81, 8_000]);
    let options = up("up");
    assert_eq!(options.http.to_string(), "127.0.0.1:8081");
    assert_eq!(options.grpc.to_string(), "127.0.0.1:9091");
    assert_eq!(options.data, "crawler-data");
    let folder = options.engine.state.clone();
    assert_eq!(options.engine, EngineOptions::in_folder(folder));
    assert_eq!(options.engine.plugin_size, 64 << 20);
    assert_eq!(options.engine.compile_time.as_secs(), 120);
    assert_eq!(options.engine.compile_memory, 1 << 30);
    assert_eq!(options.engine.compiled_size, 2 << 30);
    assert_eq!(options.engine.pool_instances, 64);
    assert_eq!(options.requests, RequestSettings::default());
    assert_eq!(options.calls, CallOptions::default());
    let impatient = up("up --store-failures=1 --store-pause=2s --store-probe-timeout=100ms");
    let expected = BreakerSettings {
        failures: 1,
        pause: Duration::from_secs(2),
        probe_timeout: Duration::from_millis(100),
    };
    assert_eq!(impatient.calls.breaker, expected);
    for refused in ["up --store-pause=0s", "up --store-probe-timeout=2h"] {
        check_refused(refused, "write a time from 1ms to 1h, such as 5s");
    }
    check_refused("up --store-failures=0", "0 is not in 1..=1000000");
    assert_eq!(options.engine.memory, None);
    assert_eq!(up("up --memory 2GiB").engine.memory, Some(2 << 30));
    check_refused("up --memory 100MiB", "a process needs at least 128MiB");
    assert_eq!(options.engine.confinement, Confinement::On);
    assert_eq!(options.lease_ttl.as_secs(), 10);
    assert_eq!(options.frontier_min_age.as_secs(), 86_400);
    assert_eq!(
        UpOptions::in_folder(Path::new("")).lease_ttl,
        options.lease_ttl
    );
    assert_eq!(
        UpOptions::in_folder(Path::new("")).frontier_min_age,
        options.frontier_min_age
    );
    assert_eq!(options.advertise, None);
}

#[test]
fn f35_a_listener_that_others_reach_is_asked_for_in_so_many_words() {
    check_refused(
        "up --http 0.0.0.0:8081",
        "error: --http 0.0.0.0:8081 is reached by other machines, and has no TLS\nhint: listen on this machine only, --http :8081, name a certificate in [tls] of the config file, or add --insecure",
    );
    check_refused(
        "up --grpc [::]:9091 --insecure",
        "error: --grpc [::]:9091 is no address that others can reach\nhint: say how they do: --advertise HOST[:PORT]",
    );
    let options = up("up --grpc 0.0.0.0:9091 --insecure --advertise node.test");
    assert_eq!(options.advertise.as_deref(), Some("node.test:9091"));
    let options = up("up --advertise [fd00::1]:80");
    assert_eq!(options.advertise.as_deref(), Some("[fd00::1]:80"));
    check_refused("up --advertise a/b", "--advertise a/b is no address");
    check_refused("up --grpc :0 --advertise a", "write HOST:PORT");
}

#[test]
fn s16_a_worker_is_alone_or_says_that_clusters_are_not_there() {
    check_refused(
        "worker --id=a/b",
        "--id \"a/b\": node id \"worker-a/b\" has '/'",
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    std::fs::write(&file, "[[resource]]\nname = 'books'\n").unwrap();
    let line = format!("worker --cluster=false --config {}", file.display());
    match parse(&line) {
        Ok(Command::Worker(options)) => match *options {
            WorkerOptions::Alone(options) => assert_eq!(options.config.resources.len(), 1),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
    check_refused(
        "up --config /nowhere/c.toml",
        "cannot read the config file /nowhere/c.toml",
    );
}

#[test]
fn the_commands_of_the_course_are_taken() {
    let page = include_str!("../../../docs/src/guide/course.md");
    let cells = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let commands = cells.filter_map(|cell| Some(cell.split_once('`')?.0));
    let of_nodes = |line: &&str| line.starts_with("master ") || line.starts_with("worker ");
    let commands: Vec<&str> = commands.filter(of_nodes).collect();
    assert!(commands.len() >= 5, "{commands:?}");
    for command in commands {
        let parsed = parse(command);
        assert!(parsed.is_ok(), "{command}: {parsed:?}");
    }
}

#[test]
fn run_takes_params_limits_and_settings() {
    let Ok(Command::Run(options)) = parse(
        "run p --param a=b=c --param d= -o i.jsonl --max-pages 3 --scope a.test,*.b.test --limit cpu=1s --delay 0s \
         --max-bytes 2GiB --max-url-length 99 --max-segment-repeats 4 --max-pattern-urls 5 --max-hosts 6 --max-attempts 6 --max-disk 3GiB --max-undelivered 4MiB \
         --max-retry-wait 7s --unchanged skip --robots ignore --max-crawl-delay 8s --random-delay 9s \
         --rate 1/s,2/m --host-rate 3/h --hours 01:00-02:00,03:00-04:00 \
         --user-agent browser --user-agent x/1 --cookies ignore --cookie a.test:b=c --credentials a --proxy direct --content-types text/*",
    ) else {
        panic!("not parsed")
    };
    assert_eq!(
        (options.params["a"].as_str(), options.params["d"].as_str()),
        ("b=c", "")
    );
    assert_eq!(options.crawl.scope.len(), 2);
    assert_eq!(
        (options.crawl.delay_ms, options.crawl.max_pages),
        (Some(0), Some(3))
    );
    let expected = CrawlSettings {
        max_bytes: Some(2 << 30),
        max_url_length: Some(99),
        max_segment_repeats: Some(4),
        max_pattern_urls: Some(5),
        max_hosts: Some(6),
        max_attempts: Some(6),
        max_disk: Some(3 << 30),
        max_undelivered: Some(4 << 20),
        max_retry_wait_ms: Some(7_000),
        unchanged: Some(Unchanged::Skip),
        robots: Some(Robots::Ignore),
        max_crawl_delay_ms: Some(8_000),
        random_delay_ms: Some(9_000),
        rate: Some("1/s, 2/m".parse().unwrap()),
        host_rate: Some("3/h".parse().unwrap()),
        hours: Some("01:00-02:00, 03:00-04:00".parse().unwrap()),
        user_agents: vec!["browser".parse().unwrap(), "x/1".parse().unwrap()],
        cookies: "ignore".parse().ok(),
        cookie_seeds: vec!["a.test:b=c".parse().unwrap()],
        content_types: "text/*".parse().ok(),
        proxy: "direct".parse().ok(),
        credentials: "a".parse().ok(),
        ..options.crawl.clone()
    };
    assert_eq!(options.crawl, expected);
    assert_eq!(
        options.limits.iter().map(|(_, v)| v).collect::<Vec<_>>(),
        [1000]
    );
    assert_eq!(options.output, ItemsFile::new("i.jsonl".into()).ok());
}

#[test]
fn s21_placement_is_asked_for_and_taken_back_by_flags() {
    let change = |line: &str| {
        let Ok(Command::Client(command)) = parse(line) else {
            panic!("not parsed: {line}")
        };
        let Family::Resource(command) = command.family else {
            panic!("{line}")
        };
        match command {
            ResourceCommand::Add(args) | ResourceCommand::Update(args) => {
                args.into_request().placement
            }
            other => panic!("{other:?}"),
        }
    };
    let labels = |labels: [(&str, &str); 2]| labels.map(|(k, v)| (k.into(), v.into())).into();
    let asked = change(
        "resource add books --weight 5 --selector gpu=true --selector id=worker-1 --near shop --apart forum",
    );
    let expected = PlacementChange {
        shards: None,
        weight: Some(5),
        selector: labels([("gpu", "true"), ("id", "worker-1")]),
        near: Some("shop".parse().unwrap()),
        apart: Some("forum".parse().unwrap()),
    };
    assert_eq!(asked, expected);
    let changed = change("resource update books --selector gpu= --selector id=a --near= --apart=");
    let expected = PlacementChange {
        shards: None,
        weight: None,
        selector: labels([("gpu", ""), ("id", "a")]),
        near: Some(AffinityTarget::Cleared),
        apart: Some(AffinityTarget::Cleared),
    };
    assert_eq!(changed, expected);
    assert_eq!(change("resource add books"), PlacementChange::default());
    check_refused("resource add a --selector gpu", "write it as NAME=VALUE");
    check_refused(
        "resource add a --selector g/u=1",
        "label key \"g/u\" has '/'",
    );
    check_refused(
        "resource add a --selector gpu=a=b",
        "the value of label gpu has '='",
    );
    check_refused(
        "resource add a --near ../b",
        "resource name \"../b\" has '.'",
    );
}

#[test]
fn demo_serves_the_site_alone_only_when_asked() {
    let demo = |line| match parse(line) {
        Ok(Command::Demo(options)) => options,
        other => panic!("{other:?}"),
    };
    assert!(!demo("demo").site_only);
    let site = demo("demo --site-only --port 8000");
    assert_eq!((site.site_only, site.port), (true, 8000));
    check_refused("demo --port 8000", "--site-only");
    let stats = demo("demo --stats a.json").stats;
    assert_eq!(stats, Some("a.json".into()));
    check_refused("demo --site-only --stats a.json", "--stats <FILE>");
}

#[test]
fn the_master_is_named_by_flag_then_environment_then_default() {
    let master = |line: &str, variable: Option<&str>| {
        let environment = Environment {
            master: variable.map(str::to_owned),
            ..Environment::default()
        };
        let args = line.split_whitespace().map(OsString::from);
        match Cli::parse(args, &environment).unwrap().command {
            Command::Client(command) => command.masters.urls.join(" "),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(master("crawler node list", None), DEFAULT_MASTER);
    assert_eq!(
        master("crawler node list", Some("http://e:1")),
        "http://e:1"
    );
    assert_eq!(
        master("crawler node list --master http://f:1", Some("http://e:1")),
        "http://f:1"
    );
    assert_eq!(
        master("crawler node list --master http://f:1,http://g:2", None),
        "http://f:1 http://g:2"
    );
    assert_eq!(
        master("crawler node list", Some("http://e:1, http://f:2")),
        "http://e:1 http://f:2"
    );
}

#[test]
fn certificates_are_named_by_options_then_by_the_environment() {
    let environment = Environment {
        ca: Some("e/ca.pem".into()),
        certificate: Some("e/cert.pem".into()),
        key: Some("e/key.pem".into()),
        ..Environment::default()
    };
    let masters = |line: &str| {
        let args = line.split_whitespace().map(OsString::from);
        match Cli::parse(args, &environment).unwrap().command {
            Command::Client(command) => command.masters,
            other => panic!("{other:?}"),
        }
    };
    let identity = |folder: &str| {
        Some(IdentityFiles {
            certificate: format!("{folder}/cert.pem").into(),
            key: format!("{folder}/key.pem").into(),
        })
    };
    let named = masters("crawler node list");
    assert_eq!(named.ca, Some("e/ca.pem".into()));
    assert_eq!(named.identity, identity("e"));
    let named = masters("crawler --ca o/ca.pem node list --certificate o/cert.pem --key o/key.pem");
    assert_eq!(named.ca, Some("o/ca.pem".into()));
    assert_eq!(named.identity, identity("o"));
    check_refused(
        "node list --key a",
        "--key has no use without its certificate",
    );
    check_refused(
        "node list --certificate a",
        "--certificate has no use without its key",
    );
    // Servers call no master.
    parse("up --certificate a").unwrap();
}

#[tokio::test]
async fn a_ca_that_is_not_there_is_named() {
    let line = "node list --master https://127.0.0.1:1 --ca /nowhere/ca.pem";
    let Ok(Command::Client(command)) = parse(line) else {
        panic!("not parsed")
    };
    let error = run(command).await.unwrap_err();
    let why = "cannot read /nowhere/ca.pem: No such file or directory (os error 2)";
    assert_eq!(chain(error.as_ref()), why);
    assert_eq!(hint(&error), "name a file that this user may read");
}

#[test]
fn a_bad_value_is_told_what_it_takes() {
    check_refused(
        "up --http 8081",
        "write :PORT, or an address like 127.0.0.1:8081",
    );
    check_refused(
        "up --allow-networks local",
        "invalid value 'local' for '--allow-networks",
    );
    check_refused(
        "up --allow-ports 65536",
        "invalid value '65536' for '--allow-ports",
    );
    check_refused("up --plugin-size big", "write a size like 64MiB or 4096");
    check_refused(
        "up --request-memory 64MiB",
        "error: --request-memory of 67108864 bytes is too little for a plugin of --plugin-size: 67108864 bytes\nhint: allow more, or less there; one body may have seven eighths of it at the most",
    );
    check_refused(
        "worker --request-memory 16MiB --plugin-size 1MiB",
        "16777216 bytes is too little for the links of one page: 20971520 bytes",
    );
    check_refused(
        "top --every 0s",
        "write a time from 500ms to 1h, such as 2s",
    );
    check_refused("up --stall-timeout 0s", "use at least 1s");
    check_refused("up --uploads 0", "0 is not in 1..=512");
    check_refused("up --keep-events 0", "0 is not in 1..=1000");
    check_refused("up --limit-ceiling ram=1", "there is no limit \"ram\"");
    check_refused("up --lease-ttl 1ms", "too short to be renewed in time");
    check_refused(
        "up --frontier-min-age 59s",
        "shorter than reads and writes may take",
    );
    for command in ["up", "master", "worker", "worker --cluster=false"] {
        check_refused(
            &format!("{command} --pprof 0.0.0.0:9982"),
            "would show the program's insides to everybody",
        );
    }
    check_refused("run p --param start", "write it as NAME=VALUE");
    check_refused("run p --limit items=0", "limit items must be above zero");
    check_refused("run p --delay 5", "write a time like 250ms or 1s");
    check_refused("resource add ../x", "resource name \"../x\" has '.'");
    check_refused("plugin delete books", "name its version too: books@VERSION");
    check_refused("fronteer stats", "a similar subcommand exists: 'frontier'");
}

#[tokio::test]
async fn a_master_that_is_not_there_is_named_with_the_way_to_start_one() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let Ok(Command::Client(command)) = parse(&format!("node list --master {url}")) else {
        panic!("not parsed")
    };
    let error = run(command).await.unwrap_err();
    let said = format!("{error}");
    assert!(
        said.starts_with(&format!(
            "cannot reach the master at {url}: Connection refused"
        )),
        "{said}"
    );
    assert_eq!(
        hint(&error),
        "start one with `crawler up`, or name another with --master URL"
    );
}

#[test]
fn the_command_lines_of_the_course_work_word_for_word() {
    for line in [
        "master --id=2 --http=:8081 --grpc=:9091",
        "master --id=3 --http=:8082 --grpc=:9092 --pprof=:9982",
        "worker --pprof=:9983",
        "worker --id=2 --http=:8079 --grpc=:9089",
        "worker --cluster=false",
    ] {
        parse(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
    let Ok(Command::Master(master)) = parse("master --id=2 --http=:8081 --grpc=:9091") else {
        panic!("it is a master");
    };
    let node = &master.node;
    assert_eq!(node.id, WantedId::Is("master-2".parse().unwrap()));
    assert_eq!(node.grpc.to_string(), "127.0.0.1:9091");
    assert_eq!(node.etcd.endpoints, ["http://127.0.0.1:2379"]);
    assert_eq!(
        (node.data.as_str(), node.lease_ttl.as_secs()),
        ("crawler-data", 10)
    );
    let Ok(Command::Worker(worker)) = parse("worker --pprof=:9983") else {
        panic!("it is a worker");
    };
    let WorkerOptions::Cluster(worker) = *worker else {
        panic!("it belongs to a cluster");
    };
    assert_eq!(worker.node.id, WantedId::Number);
    assert_eq!(worker.node.http.to_string(), "127.0.0.1:8080");
    assert_eq!(worker.node.grpc.to_string(), "127.0.0.1:9090");
    assert_eq!(worker.node.pprof.unwrap().to_string(), "127.0.0.1:9983");
    for (line, is_in_cluster) in [
        ("worker --cluster --id=2", true),
        ("worker --cluster=true", true),
        ("worker --id=2 --cluster", true),
        ("worker --cluster=false", false),
    ] {
        let Ok(Command::Worker(worker)) = parse(line) else {
            panic!("{line}: it is a worker");
        };
        let is_cluster = matches!(*worker, WorkerOptions::Cluster(_));
        assert_eq!(is_cluster, is_in_cluster, "{line}");
    }
    let Ok(Command::Worker(worker)) = parse("worker --id auto-host") else {
        panic!("it is a worker");
    };
    let WorkerOptions::Cluster(worker) = *worker else {
        panic!("it belongs to a cluster");
    };
    assert_eq!(worker.node.id, WantedId::Host);
}

#[test]
fn plugin_test_and_plugin_diff_make_each_call_as_often_as_told() {
    let n_times = |line: &str| match parse(line) {
        Ok(Command::Devtools(DevtoolsOptions::Test(options))) => options.n_times,
        Ok(Command::Devtools(DevtoolsOptions::Diff(options))) => options.n_times,
        other => panic!("{other:?}"),
    };
    assert_eq!(n_times("plugin test"), 1);
    assert_eq!(n_times("plugin test --repeat 20"), 20);
    assert_eq!(n_times("plugin diff a.wasm b.wasm"), 5);
    assert_eq!(n_times("plugin diff a.wasm b.wasm --repeat=20"), 20);
}

#[test]
fn workers_share_turns_unless_they_are_told_not_to() {
    let shares_turns = |line: &str| match parse(line) {
        Ok(Command::Worker(options)) => match *options {
            WorkerOptions::Cluster(options) => options.shared_turns,
            WorkerOptions::Alone(options) => panic!("{options:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert!(shares_turns("worker"));
    assert!(shares_turns("worker --shared-turns on"));
    assert!(!shares_turns("worker --shared-turns off"));
    check_refused("worker --shared-turns maybe", "write on or off");
}
