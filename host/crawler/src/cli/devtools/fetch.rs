//! `crawler plugin fetch`, and the arguments of a page that the user asks for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use ipnet::IpNet;
use url::Url;

use super::pages::{PAGES, plugin_of};
use crate::cli::Failure;
use crate::cli::args::{RuleArgs, key_value};
use crate::cli::cache::CacheArgs;
use crate::cli::engine::EngineOptions;
use crate::cli::options::{NO_PORT, NetworkArgs};
use crate::config::{self, Environment, FetchConfig, FixedHosts};
use crawler_devtools::saved::CallName;
use crawler_fetch::cache::CacheSettings;
use crawler_model::crawl::{Request, STATE_MAX};
use crawler_model::plugin::LimitOverrides;
use crawler_model::resource::{Agent, CrawlSettings, CredentialNames, ProxyChoice, Robots};

/// Options of `crawler plugin fetch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchOptions {
    /// Request for the page, with the rule that it is for.
    pub request: Request,
    /// Settings of the fetch.
    pub fetch_setup: FetchSetup,
    /// Params with which the rule is called.
    pub params: BTreeMap<String, String>,
    /// State that the request carries for the rule.
    pub state: Option<String>,
    /// Limits of one call; `body` cuts the page.
    pub limits: LimitOverrides,
    /// Folder of the saved calls.
    pub pages: PathBuf,
    /// Plugin in whose folder they lie. If `None`, the rule is not looked for.
    pub plugin: Option<PathBuf>,
    /// Options of the sandbox in which the plugin tells its rules.
    pub engine: EngineOptions,
    /// Name of the call. If `None`, it is made of rule and address.
    pub name: Option<CallName>,
    /// True if a call of the same name is replaced.
    pub is_replacing: bool,
}

/// Settings with which pages are fetched as in a crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchSetup {
    /// Settings of a crawl.
    pub settings: CrawlSettings,
    /// Networks that may be fetched from although they are not public.
    pub allow_networks: Vec<IpNet>,
    /// Ports that may be fetched from in addition to the usual ones.
    pub allow_ports: Vec<u16>,
    /// Settings of the config file for fetching.
    pub fetch: FetchConfig,
    /// Fixed addresses of hosts from the config file.
    pub hosts: FixedHosts,
    /// Cache of the answers of sites. If `None`, sites are always asked.
    pub cache: Option<CacheSettings>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler plugin fetch https://books.example/ --rule list\n  crawler plugin fetch https://books.example/book/7 --rule detail --as sold-out --into plugins/books/pages\n\nWhat a rule makes of it is kept by: crawler plugin test --update"
)]
pub(in crate::cli) struct FetchArgs {
    /// The address of the page
    #[arg(value_name = "URL")]
    url: Url,
    /// The rule that the page is for
    #[arg(long, value_name = "RULE", value_parser = rule)]
    rule: String,
    /// The name of the call [default: made up from rule and address]
    #[arg(long = "as", value_name = "NAME")]
    name: Option<CallName>,
    /// Where saved calls lie
    #[arg(long, value_name = "DIR", default_value = PAGES)]
    into: PathBuf,
    /// Replace the page of a call of the same name; what came of it, its state and its params stay
    #[arg(long)]
    replace: bool,
    /// State that the rule of the page before gave to the request
    #[arg(long, value_name = "TEXT", value_parser = state)]
    state: Option<String>,
    /// Fetch the page as one whose body is kept as a file: it is not cut, and the rule sees its digest
    #[arg(long)]
    keep_body: bool,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    fetch_setup: FetchSetupArgs,
    #[command(flatten)]
    rules: RuleArgs,
}

/// One request.
#[derive(Debug, Args)]
pub(super) struct RequestArgs {
    /// The method of the request
    #[arg(long, value_name = "METHOD", default_value = "GET", value_parser = method)]
    method: String,
    /// A header of the request; may be given several times
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = key_value)]
    headers: Vec<(String, String)>,
    /// The body of the request
    #[arg(long, value_name = "TEXT")]
    body: Option<String>,
}

/// Settings with which pages are asked for.
#[derive(Debug, Args)]
pub(super) struct FetchSetupArgs {
    /// User agent of the request: honest, browser, or other words [default: honest]
    #[arg(long, value_name = "NAME")]
    user_agent: Vec<Agent>,
    /// Whether the robots.txt of the site counts; ignore only what is yours [default: obey]
    #[arg(long, value_name = "obey|ignore")]
    robots: Option<Robots>,
    /// Proxy for the request: direct, or a name from [proxies] of the config file
    #[arg(long, value_name = "NAME")]
    proxy: Option<ProxyChoice>,
    /// Credentials that the host requires: names from [credentials] of the config file
    #[arg(long, value_name = "NAME,…")]
    credentials: Option<CredentialNames>,
    /// How to fetch: [fetch], [hosts], [proxies], [credentials] and allow-ports of it [default:
    /// crawler.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    networks: NetworkArgs,
}

impl FetchArgs {
    pub(super) fn into_options(self, environment: &Environment) -> anyhow::Result<FetchOptions> {
        check_scheme(&self.url)?;
        Ok(FetchOptions {
            plugin: plugin_of(&self.into),
            engine: EngineOptions::in_folder(environment.state_folder("run", NO_PORT)),
            params: self.rules.params(),
            state: self.state,
            limits: self.rules.limits(),
            request: Request {
                keep_body: self.keep_body,
                ..self.request.into_request(self.url, self.rule)
            },
            fetch_setup: self.fetch_setup.into_fetch_setup(environment)?,
            pages: self.into,
            name: self.name,
            is_replacing: self.replace,
        })
    }
}

impl RequestArgs {
    pub(super) fn into_request(self, url: Url, rule: String) -> Request {
        Request {
            method: self.method.into(),
            headers: self.headers,
            body: self.body.map(Into::into),
            ..Request::get(url, rule)
        }
    }
}

impl FetchSetupArgs {
    pub(super) fn into_fetch_setup(self, environment: &Environment) -> anyhow::Result<FetchSetup> {
        let config = config::load(self.config.as_deref())?;
        Ok(FetchSetup {
            settings: CrawlSettings {
                user_agents: self.user_agent,
                robots: self.robots,
                proxy: self.proxy,
                credentials: self.credentials,
                ..CrawlSettings::default()
            },
            allow_ports: self.networks.ports(&config),
            allow_networks: self.networks.allow_networks,
            fetch: config.fetch,
            hosts: config.hosts,
            cache: self.cache.into_settings(environment),
        })
    }
}

/// Checks that a URL is one that can be fetched.
pub fn check_scheme(url: &Url) -> Result<(), Failure> {
    match url.scheme() {
        "http" | "https" => Ok(()),
        _ => {
            let what = format!("{url}: only http and https are fetched");
            Err(Failure::new(what, "write it as in https://books.example/"))
        }
    }
}

/// Parses the name of a rule, with the rules of admission.
fn rule(text: &str) -> Result<String, String> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match !text.is_empty() && text.len() <= 128 && text.chars().all(is_fit) {
        true => Ok(text.to_owned()),
        false => Err("the name of a rule, like detail".to_owned()),
    }
}

/// Parses a state that a request may carry.
fn state(text: &str) -> Result<String, String> {
    match text.len() <= STATE_MAX {
        true => Ok(text.to_owned()),
        false => Err(format!("a request carries at most {STATE_MAX} bytes")),
    }
}

fn method(text: &str) -> Result<String, String> {
    let method = text.to_ascii_uppercase();
    match !method.is_empty() && method.chars().all(|c| c.is_ascii_uppercase()) {
        true => Ok(method),
        false => Err("a method of HTTP, like POST".to_owned()),
    }
}
