//! The chart for Kubernetes: its options and keys as the templates have them, and rendered by Helm with two sets of
//! values, one for each branch of most templates.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command as Program, Output};

use crawler::cli::Command;
use crawler_tests::process::Home;
use crawler_tests::python::python;
use crawler_tests::repository;
use serde_json::{Value, json};

use super::{CONFIG, check_command, check_health, read, texts, yaml};

const CHART: &str = "helm/crawler";
/// Packages of PyPI: Helm as a library, and the schemas of Kubernetes.
const PACKAGES: [&str; 2] = ["helm-python-sdk==0.2.2", "kubernetes-validate==1.37.0"];
/// Program that prints the rendered templates as JSON, or fails with the reason of Helm.
const RENDER: &str = "
import helm_python as helm, json, sys
with helm.Chart.load(sys.argv[1]) as chart:
    values = json.loads(sys.argv[2])
    chart.validate_schema(chart.merge_values(values))
    print(json.dumps(chart.render(values, name='shop', namespace='crawls')))
";

fn template(name: &str) -> String {
    read(&format!("{CHART}/templates/{name}"))
}

/// Replaces each action of a template by a text.
fn without_actions(line: &str, instead: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some((before, action)) = rest.split_once("{{") {
        let (_, after) = action.split_once("}}").expect("an action ends on its line");
        plain.push_str(before);
        plain.push_str(instead);
        rest = after;
    }
    plain + rest
}

/// Returns the options that a template can give to the command, all at once.
fn options(template: &str) -> Vec<String> {
    let options = template.lines().filter_map(|line| {
        let option = line.trim().strip_prefix("- ")?;
        // Beside an "s" it is a time, beside a dot the part of a name.
        option
            .starts_with("--")
            .then(|| without_actions(option, "1m"))
    });
    options.map(|option| substituted(&option)).collect()
}

/// Replaces the variables that Kubernetes replaces.
fn substituted(option: &str) -> String {
    let option = option.replace("$(POD_NAME)", "shop-pod-1");
    option.replace("$(POD_INDEX)", "1")
}

/// Returns the config file with all keys that the template can give it.
fn config() -> String {
    let template = template("config.yaml");
    let (_, lines) = template
        .split_once("crawler.toml: |\n")
        .expect("it has the file");
    let lines = lines.lines().filter(|line| !line.trim().starts_with("{{"));
    let line = |line: &str| {
        let value = match line.contains("endpoints") {
            true => r#"["https://etcd:2379"]"#,
            false => r#""http://x:1""#,
        };
        without_actions(line, value) + "\n"
    };
    lines.map(line).collect()
}

#[test]
fn templates_have_options_and_keys_that_the_program_knows() {
    let config = config();
    for table in ["[etcd]", "[data]", "[tls]"] {
        assert!(config.contains(table), "{config}");
    }
    for (role, n_least) in [("master", 8), ("worker", 8)] {
        let mut words = options(&template(&format!("{role}.yaml")));
        assert!(words.len() > n_least, "{words:?}");
        assert!(words.iter().any(|word| word == CONFIG), "{words:?}");
        words.insert(0, role.to_owned());
        match check_command(&words, &config) {
            Command::Master(options) => assert!(options.node.exposure.requires_tokens),
            Command::Worker(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn actions_are_replaced_where_they_stand() {
    let line = without_actions("--a={{ .b }}.{{ include \"c\" . }}:1", "x");
    assert_eq!(line, "--a=x.x:1");
}

/// Values that use most of what there is.
fn full() -> Value {
    json!({
        "image": {"repository": "registry.example/crawler", "tag": "1", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "etcd": {
            "endpoints": ["https://etcd-0.etcd:2379", "https://etcd-1.etcd:2379"],
            "tlsSecret": "etcd-client",
            "user": "crawler",
            "passwordSecret": "etcd-password"
        },
        "data": {
            "url": "s3://crawls/production",
            "endpoint": "https://objects.example:9000",
            "region": "eu-west-1",
            "accessKey": "key-id",
            "secretKeySecret": "objects"
        },
        "tls": {"secret": "node"},
        "config": "[fetch]\ncontact = \"https://shop.example/crawler\"\n",
        "extraEnv": [{"name": "RUST_BACKTRACE", "value": "1"}],
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
        "serviceAccount": {"annotations": {"role": "crawler"}},
        "podAnnotations": {"team": "shop"},
        "masters": {
            "extraArgs": ["--strategy=round-robin"],
            "storage": {"className": "fast"},
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"operator": "Exists"}],
            "affinity": {"nodeAffinity": {}}
        },
        "workers": {"extraArgs": ["--label=gpu=true"], "drainTimeoutSeconds": 20},
        "networkPolicy": {"clients": [{"namespaceSelector": {}}]}
    })
}

/// Values without which there is no cluster.
fn least() -> Value {
    json!({
        "etcd": {"endpoints": ["http://etcd:2379"]},
        "data": {"url": "gs://crawls/production"},
        "tls": {"insecure": true},
        "networkPolicy": {"enabled": false}
    })
}

fn run_render(python: &Path, values: &Value) -> Output {
    Program::new(python)
        .args(["-c", RENDER])
        .arg(repository().join("host/deploy").join(CHART))
        .arg(values.to_string())
        .output()
        .expect("Python starts")
}

fn render(python: &Path, values: &Value) -> Vec<Value> {
    let rendered = run_render(python, values);
    let said = String::from_utf8_lossy(&rendered.stderr);
    assert!(rendered.status.success(), "{said}");
    let files: BTreeMap<String, String> =
        serde_json::from_slice(&rendered.stdout).expect("it prints JSON");
    let is_manifest = |name: &str, text: &str| name.ends_with(".yaml") && !text.trim().is_empty();
    let files = files.iter().filter(|(name, text)| is_manifest(name, text));
    files.flat_map(|(_, text)| yaml(text)).collect()
}

/// Checks manifests with the schemas of Kubernetes, in which no field may be unknown.
fn check_schemas(home: &Home, python: &Path, manifests: &[Value]) {
    let files = (0..).zip(manifests).map(|(n, manifest)| {
        let file = home.path().join(format!("manifest-{n}.json"));
        fs::write(&file, manifest.to_string()).expect("the file can be written");
        file
    });
    let checked = Program::new(python.with_file_name("kubernetes-validate"))
        .arg("--strict")
        .args(files.collect::<Vec<_>>())
        .output()
        .expect("it starts");
    let said =
        [checked.stdout, checked.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(checked.status.success(), "{}", said.concat());
}

fn of_kind<'a>(manifests: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let is_meant = |manifest: &&Value| manifest["kind"] == kind;
    manifests.iter().filter(is_meant).collect()
}

/// Checks the pods of the manifests: their commands with their config file, their probes and their rights.
fn check_pods(manifests: &[Value]) {
    let configs = of_kind(manifests, "ConfigMap");
    let config = configs[0]["data"]["crawler.toml"].as_str();
    let config = config.expect("it has the file");
    let sets = of_kind(manifests, "StatefulSet");
    assert_eq!(sets.len(), 2);
    for set in sets {
        let pod = &set["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let words = texts(&container["args"]);
        let words: Vec<String> = words.iter().map(|word| substituted(word)).collect();
        let command = check_command(&words, config);
        let is_node = matches!(command, Command::Master(_) | Command::Worker(_));
        assert!(is_node, "{command:?}");
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            check_health(&texts(&container[probe]["exec"]["command"]));
        }
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        let seccomp = &pod["securityContext"]["seccompProfile"]["type"];
        assert_eq!(seccomp, "RuntimeDefault");
        let rights = &container["securityContext"];
        assert_eq!(rights["allowPrivilegeEscalation"], false);
        assert_eq!(rights["readOnlyRootFilesystem"], true);
        assert_eq!(rights["capabilities"]["drop"], json!(["ALL"]));
    }
    assert!(
        of_kind(manifests, "Secret").is_empty(),
        "secrets are named only"
    );
}

#[test]
fn rendered_manifests_run_commands_that_the_program_knows() {
    let home = Home::new();
    let Some(python) = python(home.path(), "helm", &PACKAGES) else {
        return;
    };
    let (full, least) = (render(&python, &full()), render(&python, &least()));
    for manifests in [&full, &least] {
        check_pods(manifests);
        check_schemas(&home, &python, manifests);
    }
    assert_eq!(of_kind(&full, "NetworkPolicy").len(), 2);
    assert!(of_kind(&least, "NetworkPolicy").is_empty());
}

#[test]
fn values_that_contradict_each_other_are_refused() {
    let home = Home::new();
    let Some(python) = python(home.path(), "helm", &PACKAGES) else {
        return;
    };
    let without = |table: &str, value: Value| {
        let mut values = least();
        values[table] = value;
        values
    };
    let refused = [
        (without("tls", json!({})), "nodes need TLS"),
        (
            without("tls", json!({"secret": "node", "insecure": true})),
            "contradict each other",
        ),
        (
            without("data", json!({"url": "s3://a/b", "accessKey": "id"})),
            "data.accessKey and data.secretKeySecret come together",
        ),
        (
            without("etcd", json!({"endpoints": ["http://a:1"], "user": "a"})),
            "etcd.user and etcd.passwordSecret come together",
        ),
        (
            without("workers", json!({"drainTimeoutSeconds": 60})),
            "workers.terminationGracePeriodSeconds has to be longer",
        ),
        (
            without("workers", json!({"drainTimeoutSeconds": 37})),
            "drainTimeoutSeconds and 53 s together",
        ),
        (without("etcd", json!({"endpoints": []})), "endpoints"),
        (without("data", json!({"url": "/mnt/crawler"})), "url"),
        (without("masers", json!({})), "masers"),
    ];
    for (values, why) in refused {
        let rendered = run_render(&python, &values);
        let said = String::from_utf8_lossy(&rendered.stderr);
        assert!(!rendered.status.success(), "{values} is accepted");
        assert!(said.contains(why), "{values}: {said}");
    }
}
