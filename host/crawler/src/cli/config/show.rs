//! `crawler config show`: the settings that a command would have, each with where it comes from.
//!
//! The options are those of the command's own definition, and the keys of the config file those of its tables, so
//! that none is missing here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command};
use serde::Serialize;

use crate::cli::args::OutputArgs;
use crate::cli::{Failure, table};
use crate::config::{
    self, CredentialConfig, DEFAULT_FILE, Environment, FETCH_KEYS, FileConfig, ProxyConfig,
    SecretRef, SinkConfig, TracesConfig, WebhookConfig,
};

/// Commands that read the config file.
const COMMANDS: [&str; 4] = ["up", "master", "worker", "run"];
/// Words of an option whose default is in its help text.
const DEFAULT: &str = "[default: ";

#[derive(Debug, Args)]
pub(in crate::cli) struct ShowArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// The command: up, master, worker or run, with its options [default: up]
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
}

/// A setting that holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Row {
    setting: String,
    value: String,
    /// Origin of the value: `default`, `option`, `environment`, or the path of the config file.
    source: String,
}

impl ShowArgs {
    /// Checks the command and its options against the definition of the command line.
    pub(in crate::cli) fn check(&self, definition: Command) -> anyhow::Result<()> {
        self.parsed(definition).map(drop)
    }

    /// Returns the definition of the command, and its options.
    fn parsed(&self, mut definition: Command) -> anyhow::Result<(Command, ArgMatches)> {
        let name = match self.command.first() {
            None => "up".to_owned(),
            Some(name) => name.to_string_lossy().into_owned(),
        };
        if !COMMANDS.contains(&name.as_str()) {
            let what = format!("{name:?} is no command that has a config file");
            let hint = format!(
                "name {} first, and its options behind it",
                COMMANDS.join(", ")
            );
            return Err(Failure::new(what, hint).into());
        }
        let options = self.command.iter().skip(1).cloned();
        let line = ["crawler".into(), OsString::from(&name)]
            .into_iter()
            .chain(options);
        // A plugin is what `run` is about, and no setting.
        let plugin = (name == "run").then(|| OsString::from("plugin.wasm"));
        let is_named = definition
            .clone()
            .try_get_matches_from(line.clone())
            .is_ok();
        let line = line.chain(plugin.filter(|_| !is_named));
        let matches = definition.try_get_matches_from_mut(line)?;
        let command = definition.find_subcommand(&name).cloned();
        let found = command.zip(matches.subcommand().map(|(_, matches)| matches.clone()));
        found.ok_or_else(|| Failure::new(format!("there is no command {name}"), "").into())
    }
}

pub(super) fn run(args: &ShowArgs, definition: Command) -> anyhow::Result<()> {
    let (command, matches) = args.parsed(definition)?;
    let rows = rows(&command, &matches, &Environment::read())?;
    if args.output.is_json() {
        return table::print_json(&rows);
    }
    let rows: Vec<[String; 3]> = rows
        .into_iter()
        .map(|row| [row.setting, table::plain(&row.value), row.source])
        .collect();
    table::print(["SETTING", "VALUE", "SOURCE"], &rows)?;
    Ok(())
}

fn rows(
    command: &Command,
    matches: &ArgMatches,
    environment: &Environment,
) -> anyhow::Result<Vec<Row>> {
    let named = matches.get_one::<PathBuf>("config").cloned();
    let path = named.or_else(|| {
        Path::new(DEFAULT_FILE)
            .exists()
            .then(|| DEFAULT_FILE.into())
    });
    let file = config::load(path.as_deref())?;
    let source = path.map(|path| path.display().to_string());
    let source = source.as_deref().unwrap_or("default");
    let options = command.get_arguments().filter(|option| {
        option.get_long().is_some() && !option.is_global_set() && option.get_id() != "help"
    });
    let mut rows: Vec<Row> = options
        .map(|option| of_option(option, matches, &file, source))
        .collect();
    let has = |option: &str| {
        let mut options = command.get_arguments();
        options.any(|known| known.get_id() == option)
    };
    if has("etcd") {
        let keys = file.etcd.keys();
        rows.extend(keys.map(|(key, value)| Row::new(format!("[etcd] {key}"), value, source)));
    }
    if has("grpc") {
        let keys = file.tls.keys();
        rows.extend(keys.map(|(key, value)| Row::new(format!("[tls] {key}"), value, source)));
        let keys = file.cluster.keys();
        rows.extend(keys.map(|(key, value)| Row::new(format!("[cluster] {key}"), value, source)));
        rows.extend(of_traces(&file.traces, source));
    }
    if has("api_rate") {
        rows.extend(file.webhooks.iter().map(|hook| of_webhook(hook, source)));
    }
    if has("data") {
        let keys = file.data.keys();
        rows.extend(keys.map(|(key, value)| Row::new(format!("[data] {key}"), value, source)));
    }
    if has("grpc") {
        rows.extend(file.sinks.iter().map(|sink| of_sink(sink, source)));
    }
    if has("allow_networks") {
        rows.extend(of_fetching(&file, source));
    }
    for plugin in &file.plugins {
        let path = plugin.path.display();
        rows.push(Row::new("[[plugin]]", path, source));
    }
    for resource in &file.resources {
        rows.push(Row::new("[[resource]]", &resource.name, source));
    }
    rows.extend(
        Environment::VARIABLES.map(|name| match environment.set.get(name) {
            Some(value) => Row::new(name, value, "environment"),
            None => Row::new(name, "none", "default"),
        }),
    );
    Ok(rows)
}

/// Returns the row of an option, which the config file may say too.
fn of_option(option: &Arg, matches: &ArgMatches, file: &FileConfig, source: &str) -> Row {
    let id = option.get_id().as_str();
    let setting = format!("--{}", option.get_long().unwrap_or(id));
    let given = matches.get_raw(id).into_iter().flatten();
    let given: Vec<String> = given
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    let is_given = matches.value_source(id) == Some(ValueSource::CommandLine);
    let ports = || file.allow_ports.iter().map(ToString::to_string);
    match id {
        "allow_ports" if is_given && !file.allow_ports.is_empty() => {
            let all: Vec<String> = given.into_iter().chain(ports()).collect();
            Row::new(setting, all.join(", "), &format!("option, and {source}"))
        }
        _ if is_given => Row::new(setting, given.join(", "), "option"),
        "allow_ports" if !file.allow_ports.is_empty() => {
            Row::new(setting, ports().collect::<Vec<_>>().join(", "), source)
        }
        "confinement" if file.confinement.is_some() => {
            let word = file.confinement.map(|word| word.to_string());
            Row::new(setting, word.unwrap_or_default(), source)
        }
        "etcd" if !file.etcd.endpoints.is_empty() => {
            Row::new(setting, file.etcd.endpoints.join(", "), source)
        }
        "config" if source != "default" => Row::new(setting, source, "default"),
        _ if given.is_empty() => Row::new(setting, described_default(option), "default"),
        _ => Row::new(setting, given.join(", "), "default"),
    }
}

/// Returns the default that the help text of an option tells.
fn described_default(option: &Arg) -> String {
    let help = option.get_help().map(ToString::to_string);
    let told = help.and_then(|help| {
        let (_, told) = help.rsplit_once(DEFAULT)?;
        Some(told.trim_end_matches(']').to_owned())
    });
    told.unwrap_or_else(|| "none".to_owned())
}

/// Returns the rows of how this process fetches.
fn of_fetching(file: &FileConfig, source: &str) -> Vec<Row> {
    let keys = FETCH_KEYS.iter().map(|key| {
        let setting = format!("[fetch] {}", key.name);
        match (key.value)(&file.fetch.values) {
            Some(value) => Row::new(setting, value, source),
            None => Row::new(setting, (key.default)().replace('`', ""), "default"),
        }
    });
    let mut rows: Vec<Row> = keys.collect();
    for (name, addresses) in &file.hosts {
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let setting = format!("[hosts] {name}");
        rows.push(Row::new(setting, addresses.join(", "), source));
    }
    for (name, proxies) in &file.fetch.proxies {
        let proxies: Vec<String> = proxies.iter().map(proxy).collect();
        let setting = format!("[proxies] {name}");
        rows.push(Row::new(setting, proxies.join(", "), source));
    }
    for credential in &file.fetch.credentials {
        let setting = format!("[credentials] {}", credential.name);
        rows.push(Row::new(setting, self::credential(credential), source));
    }
    rows
}

/// Returns the rows of the receiver of traces, if there is one.
fn of_traces(traces: &TracesConfig, source: &str) -> Vec<Row> {
    if traces.endpoint.is_none() {
        return vec![Row::new("[traces] endpoint", "none", "default")];
    }
    let keys = traces.keys();
    keys.map(|(key, value)| Row::new(format!("[traces] {key}"), value, source))
        .collect()
}

/// Returns the row of a webhook. The path of its URL may be a secret.
fn of_webhook(webhook: &WebhookConfig, source: &str) -> Row {
    let origin = webhook.origin().ascii_serialization();
    let places: Vec<String> = webhook.secrets().map(SecretRef::place).collect();
    let value = format!("{origin}, secret from {}", places.join(" and "));
    Row::new(format!("[webhook] {}", webhook.name), value, source)
}

fn of_sink(sink: &SinkConfig, source: &str) -> Row {
    let selection = &sink.selection;
    let mut value = sink.place.shown();
    if let Some(place) = sink.place.secret_place() {
        value.push_str(&format!(", {place}"));
    }
    for condition in selection.only() {
        value.push_str(&format!(", {condition}"));
    }
    let fields: Vec<String> = selection.fields().iter().map(ToString::to_string).collect();
    if !fields.is_empty() {
        value.push_str(&format!(", fields {}", fields.join(" ")));
    }
    Row::new(format!("[sink] {}", sink.name), value, source)
}

fn proxy(proxy: &ProxyConfig) -> String {
    match &proxy.login {
        Some((user, password)) => {
            format!(
                "{} as {user}, password from {}",
                proxy.url,
                password.place()
            )
        }
        None => proxy.url.to_string(),
    }
}

fn credential(credential: &CredentialConfig) -> String {
    let hosts: Vec<String> = credential.hosts.iter().map(ToString::to_string).collect();
    let (hosts, place) = (hosts.join(", "), credential.secret.place());
    match &credential.user {
        Some(user) => format!("{hosts}: {user}, password from {place}"),
        None => format!("{hosts}: token from {place}"),
    }
}

impl Row {
    fn new(setting: impl Into<String>, value: impl ToString, source: &str) -> Self {
        Self {
            setting: setting.into(),
            value: value.to_string(),
            source: source.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Args as Definition;
    use crate::cli::args::Format;

    fn shown(line: &str) -> anyhow::Result<Vec<Row>> {
        let args = ShowArgs {
            output: OutputArgs {
                format: Format::Table,
            },
            command: line.split_whitespace().map(OsString::from).collect(),
        };
        let (command, matches) = args.parsed(Definition::command())?;
        let environment = Environment {
            set: [("CRAWLER_LOG", "crawler=debug".to_owned())].into(),
            ..Environment::default()
        };
        rows(&command, &matches, &environment)
    }

    #[track_caller]
    fn check(rows: &[Row], setting: &str, value: &str, source: &str) {
        let row = rows.iter().find(|row| row.setting == setting);
        let row = row.unwrap_or_else(|| panic!("no {setting} in {rows:?}"));
        assert_eq!((&*row.value, &*row.source), (value, source), "{setting}");
    }

    #[test]
    fn each_setting_is_shown_with_its_source() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        let text = "allow-ports = [81]\nconfinement = 'off'\n[fetch]\ntimeout = '5s'\n\
            [proxies]\nabroad = [{ url = 'http://p.test:1', user = 'ann', password-env = 'PW' }]\n\
            [credentials.shop]\nhosts = ['shop.test']\ntoken-file = '/t'\n\
            [tls]\ncertificate = '/c.pem'\nkey = '/k.pem'\n\
            [traces]\nendpoint = 'http://traces.test:4317'\nsample = 0.5\nheaders.x-key.secret-env = 'K'\n\
            [webhook.chat]\nurl = 'https://hooks.test/T0KEN'\nsecret-env = 'S'\nprevious-secret-env = 'O'\n\
            [sink.db]\nurl = 'mysql://ann@db.test/items'\npassword-env = 'PW'\nonly = ['kind=book']\n\
            [[resource]]\nname = 'books'\n";
        std::fs::write(&path, text).unwrap();
        let file = path.display().to_string();
        let rows = shown(&format!(
            "up --config {file} --http :0 --allow-ports 82 --limit-ceiling items=5"
        ));
        let rows = rows.unwrap();
        check(&rows, "--http", ":0", "option");
        check(&rows, "--grpc", "127.0.0.1:9091", "default");
        check(
            &rows,
            "--allow-ports",
            "82, 81",
            &format!("option, and {file}"),
        );
        check(&rows, "--confinement", "off", &file);
        check(&rows, "--limit-ceiling", "items=5", "option");
        check(&rows, "--advertise", "none", "default");
        check(
            &rows,
            "--memory",
            "80 % of what the cgroup or the machine has",
            "default",
        );
        check(&rows, "[fetch] timeout", "5s", &file);
        check(&rows, "[fetch] resolver", "dns", "default");
        check(
            &rows,
            "[proxies] abroad",
            "http://p.test:1/ as ann, password from variable PW",
            &file,
        );
        check(
            &rows,
            "[credentials] shop",
            "shop.test: token from /t",
            &file,
        );
        check(&rows, "[tls] key", "/k.pem", &file);
        check(&rows, "[traces] sample", "0.5", &file);
        check(&rows, "[traces] headers.x-key", "variable K", &file);
        check(
            &rows,
            "[webhook] chat",
            "https://hooks.test, secret from variable S and variable O",
            &file,
        );
        check(
            &rows,
            "[sink] db",
            "mysql://db.test/items, password from variable PW, kind=book",
            &file,
        );
        check(&rows, "[[resource]]", "books", &file);
        check(&rows, "CRAWLER_LOG", "crawler=debug", "environment");
        check(&rows, "NO_COLOR", "none", "default");
        let rows = shown(&format!("worker --config {file} --confinement on")).unwrap();
        check(&rows, "--confinement", "on", "option");
        check(&rows, "--etcd", "http://127.0.0.1:2379", "default");
        let rows = shown(&format!("master --config {file}")).unwrap();
        assert!(!rows.iter().any(|row| row.setting.starts_with("[fetch]")));
        let rows = shown(&format!("run --config {file} --delay 1s")).unwrap();
        check(&rows, "--delay", "1s", "option");
        check(&rows, "--max-pages", "1000000", "default");
        let rows = shown("master").unwrap();
        check(&rows, "[traces] endpoint", "none", "default");
    }

    #[test]
    fn a_command_without_a_config_file_and_a_wrong_option_are_refused() {
        let error = shown("demo").unwrap_err().to_string();
        assert_eq!(error, "\"demo\" is no command that has a config file");
        let error = shown("up --htp :0").unwrap_err().to_string();
        assert!(error.contains("unexpected argument '--htp'"), "{error}");
    }
}
