//! `crawler plugin new|sdk|check|test|diff|fetch` and `crawler shell`: the commands for authors of rules, made of
//! the parts of a crawl.

use std::path::Path;
use std::slice;
use std::time::Instant;

use super::parts;
use crate::cli;
use crate::cli::devtools::{
    CallResult, CheckOptions, DevtoolsOptions, FetchOptions, NewOptions, TestOptions, check_report,
    fetch_report, new_report, sdk_report, test_report,
};
use crate::cli::plugin::{build_plugin, refused};
use crate::config;
use crawler_devtools::mutation;
use crawler_devtools::saved::{CallName, Fetched, SavedCall, prune};
use crawler_devtools::template::Language;
use crawler_devtools::trial::{Trial, TrialResult, Verdict};
use crawler_devtools::watch::ChangeWatcher;
use crawler_devtools::{fetching, template};
use crawler_model::plugin::{LimitOverrides, Limits};
use crawler_plugin::Admit as _;
use crawler_plugin::engine::EngineSettings;

mod calls;
mod diff;
mod fetcher;
mod known_rule;
mod shell;

use calls::call_names;
use fetcher::fetcher;

/// Carries out a command for authors.
pub(super) async fn run(options: DevtoolsOptions) -> anyhow::Result<()> {
    let result = match options {
        DevtoolsOptions::New(options) => new(&options),
        DevtoolsOptions::Sdk(folder) => sdk(&folder),
        DevtoolsOptions::Check(options) => check(&options).await,
        DevtoolsOptions::Test(options) => test(&options).await,
        DevtoolsOptions::Diff(options) => diff::run(&options).await,
        DevtoolsOptions::Fetch(options) => fetch(&options).await,
        DevtoolsOptions::Shell(options) => shell::run(&options).await,
    };
    match result {
        // The reader of the output has closed it and wants no more.
        Err(error) if cli::is_closed_pipe(&error) => Ok(()),
        result => result,
    }
}

fn new(options: &NewOptions) -> anyhow::Result<()> {
    let NewOptions { name, folder, .. } = options;
    match options.language {
        Language::Rust => template::write_rust(name, folder)?,
        Language::JavaScript => template::write_javascript(name, folder)?,
        Language::Python => template::write_python(name, folder)?,
    }
    new_report(options)
}

fn sdk(folder: &Path) -> anyhow::Result<()> {
    sdk_report(folder, &template::renew_sdk(folder)?)
}

async fn check(options: &CheckOptions) -> anyhow::Result<()> {
    let wasm = build_plugin(&options.plugin).await?;
    let bytes = parts::read(&wasm).await?;
    let settings = EngineSettings {
        plugin_size: options.plugin_size,
        compile_time: options.compile_time,
        compile_memory: options.compile_memory,
        confinement: options.confinement,
        child_program: config::program(),
        // Code from a cache would not show how long compiling takes.
        cache_folder: None,
        ..EngineSettings::default()
    };
    let engine = parts::engine_with(settings).await?;
    let began = Instant::now();
    let admitted = engine.admit(bytes).await;
    let admitted = admitted.map_err(|error| {
        let what = format!("{} is no plugin", wasm.display());
        refused(error, slice::from_ref(&options.plugin), what)
    })?;
    let took = began.elapsed();
    check_report(
        &admitted,
        options.plugin_size,
        took,
        options.compile_time,
        options.is_json,
    )
}

/// Tests the saved calls once, or again after each change until the command is told to end.
async fn test(options: &TestOptions) -> anyhow::Result<()> {
    if !options.is_watching {
        return test_once(options).await;
    }
    // A folder without calls to test is an error at once, not something to watch.
    call_names(&options.pages, &options.calls)?;
    let mut changes = ChangeWatcher::of(&options.plugin, Some(&options.pages))?;
    loop {
        match test_once(options).await {
            // Nobody reads the output any more.
            Err(error) if cli::is_closed_pipe(&error) => return Ok(()),
            Err(error) => cli::print_error(&error),
            Ok(()) => {}
        }
        cli::print_waiting(&options.plugin);
        changes.next().await;
    }
}

async fn test_once(options: &TestOptions) -> anyhow::Result<()> {
    let mut names = call_names(&options.pages, &options.calls)?;
    let trial = Trial {
        rules: parts::rules(
            &options.plugin,
            slice::from_ref(&options.plugin),
            &options.engine,
        )
        .await?,
        limits: options.limits.clone(),
        params: options.params.clone(),
        n_times: options.n_times,
    };
    let mut pruned = Vec::new();
    if options.is_pruning {
        pruned = prune(&options.pages, &names, &trial.rules.description().rules)?;
        names.retain(|name| pruned.iter().all(|gone| gone.name != *name));
    }
    let mut all = Vec::new();
    for name in names {
        all.push(try_one(&trial, options, name).await);
    }
    test_report(&all, &pruned, options)
}

async fn try_one(trial: &Trial, options: &TestOptions, name: CallName) -> CallResult {
    let folder = &options.pages;
    let mut call = match SavedCall::read(folder, &name) {
        Ok(call) => call,
        Err(error) => {
            return CallResult {
                name,
                rule: None,
                limits: Limits::default(),
                tried: Err(error.into()),
                is_kept: false,
                mangled: Vec::new(),
            };
        }
    };
    let limits = trial.limits(&call);
    let mut tried = trial.make(folder, &call).await;
    let to_keep = match &tried {
        Ok(TrialResult {
            verdict: Verdict::New | Verdict::Differs(_) | Verdict::Same,
            outcome,
            ..
        }) => outcome.clone().filter(|_| options.is_update),
        _ => None,
    };
    let mut is_kept = false;
    if let Some(outcome) = to_keep {
        match call.update(folder, &name, outcome, &options.limits) {
            Ok(is_new) => is_kept = is_new,
            Err(error) => tried = Err(error.into()),
        }
    }
    let mut mangled = Vec::new();
    if let Some(copies) = options.mangled
        && let Ok(TrialResult {
            outcome: Some(outcome),
            ..
        }) = &tried
    {
        match mutation::run(trial, (folder, &name), &call, outcome, copies).await {
            Ok(results) => mangled = results,
            Err(error) => tried = Err(error),
        }
    }
    CallResult {
        rule: Some(call.called.name().to_owned()),
        name,
        limits,
        is_kept,
        tried,
        mangled,
    }
}

async fn fetch(options: &FetchOptions) -> anyhow::Result<()> {
    let folder = &options.pages;
    let request = &options.request;
    let settings = &options.fetch_setup.settings;
    let name = match &options.name {
        Some(name) => name.clone(),
        None => CallName::of(&request.rule, &request.url),
    };
    let limits = SavedCall::fetch_limits(folder, &name, &request.rule, &options.limits);
    let limits = Limits::default().with(&limits, &LimitOverrides::unlimited())?;
    let fetcher = fetcher(&options.fetch_setup)?;
    known_rule::check(options).await?;
    let page = fetching::page(&*fetcher, request, settings, limits.body).await?;
    anyhow::ensure!(
        (200..300).contains(&page.status),
        "{} answers with status {}, and only pages of status 200 to 299 are saved: nothing was saved",
        page.url,
        page.status
    );
    let fetched = Fetched {
        rule: &request.rule,
        params: options.params.clone(),
        limits: options.limits.clone(),
        state: options.state.as_deref(),
        page: &page,
        is_kept: request.keeps(page.status),
    };
    SavedCall::keep(folder, &name, fetched, options.is_replacing)?;
    fetch_report(folder, &name, &request.rule, &page)
}
