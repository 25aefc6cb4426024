//! `crawler resource …`: named crawls.

use clap::{Arg, Args, Subcommand};
use crawler_proto as proto;
use futures::stream::StreamExt as _;

use super::args::{LabelArgs, OutputArgs, PlacementArgs, RuleArgs};
use super::crawl::CrawlArgs;
use super::table;
use crawler_api::client::{Client, ClientError};
use crawler_api::spec::SpecRequest;
use crawler_master::control::Precondition;
use crawler_model::id::{PluginRef, ResourceName};

mod diff;
mod events;
mod get;
mod hosts;
mod list;
mod runs;
mod schedule;
mod stats;
mod wait;
mod watch;

pub(super) use hosts::{due as due_cell, line as host_line};
use list::FilterArgs;
pub(super) use list::selected;

#[derive(Debug, Subcommand)]
pub(super) enum ResourceCommand {
    /// Add a named crawl; it starts as soon as a worker takes it
    #[command(
        after_help = "Examples:\n  crawler resource add books --param start=https://books.example/\n  crawler resource add again --plugin books@1.2.0 --max-pages 100 --delay 250ms\n  crawler resource add heavy --weight 5 --selector gpu=true --apart books"
    )]
    Add(Box<SpecArgs>),
    /// Change the settings of a crawl while it runs; what is not named stays
    #[command(
        mut_args(without_default),
        after_help = "Examples:\n  crawler resource update books --max-pages 5000 --limit memory=128MiB\n  crawler resource update books --plugin books@1.2.0\n  crawler resource update heavy --selector gpu= --apart ''\n\nMost changes hold for pages taken from then on; placement, rates, concurrency and the plugin's version hold at\nonce, and a shard whose worker does not fit any more moves. Params, shards and another plugin need a new run:\n`crawler resource restart`."
    )]
    Update(Box<SpecArgs>),
    /// List all resources
    #[command(
        after_help = "Examples:\n  crawler resource list\n  crawler resource list --watch\n  crawler resource list -l team=shop -o json\n  crawler resource list --phase failed --prefix team/ --plugin books@1.2.0"
    )]
    List {
        /// Show it again whenever it changes, until Ctrl-C
        #[arg(long, conflicts_with = "format")]
        watch: bool,
        #[command(flatten)]
        filter: Box<FilterArgs>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show one resource: where it stands, its numbers, its settings
    #[command(after_help = "Example:\n  crawler resource get books -o json")]
    Get {
        /// The resource
        name: ResourceName,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// List the hosts of the present run: what each waits for, and why
    #[command(
        after_help = "Examples:\n  crawler resource hosts books\n  crawler resource hosts books --state given-up --limit 1000 -o json"
    )]
    Hosts(hosts::HostsArgs),
    /// Show statistics of the present run: statuses, refused links, items, empty fields, selectors
    #[command(after_help = "Example:\n  crawler resource stats books -o json")]
    Stats {
        /// The resource
        name: ResourceName,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Wait until a crawl is over; success only if it finished, and each root request that was tried gave a page
    #[command(
        after_help = "Examples:\n  crawler resource wait books --timeout 1h && crawler items books\n  crawler resource wait books --fail-on dead=1%,empty=price"
    )]
    Wait(wait::WaitArgs),
    /// Begin a new run, whatever the present one has come to; items of earlier runs stay, and so does what is not named
    #[command(
        mut_args(without_default),
        after_help = "What is over, failed or under way begins again from its root requests, with the changes that are\nnamed. A restart of the server needs none of this: it goes on in the same run.\n\nExamples:\n  crawler resource restart books && crawler items books --follow\n  crawler resource restart books --shards 4 --param start=https://books.example/new"
    )]
    Restart(Box<SpecArgs>),
    /// Take a crawl from its workers, and keep it as it is
    #[command(after_help = "Example:\n  crawler resource pause books")]
    Pause {
        /// The resource
        name: ResourceName,
    },
    /// Let a paused crawl go on where it was
    #[command(after_help = "Example:\n  crawler resource resume books")]
    Resume {
        /// The resource
        name: ResourceName,
    },
    /// List the present run and up to 100 before it, each with the difference to the one before
    #[command(after_help = "Example:\n  crawler resource runs books -o json")]
    Runs {
        /// The resource
        name: ResourceName,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Compare two runs: numbers, plugin, settings, and how many items were added, changed and removed between them
    #[command(
        after_help = "The present run may be one of both. Items are counted if the resource compares them: --changes.\n\nExamples:\n  crawler resource diff books 6 7\n  crawler resource diff books 6 7 -o json"
    )]
    Diff(diff::DiffArgs),
    /// List what happened to a resource, in order: where it was placed and why, runs, pauses, changes and who made them
    #[command(
        after_help = "The latest events are kept. With -o json, each event is a line.\n\nExamples:\n  crawler resource events books\n  crawler resource events books --since 2h --follow\n  crawler resource events books -o json"
    )]
    Events(events::EventsArgs),
    /// Let runs begin by themselves, at times or at intervals; without options, show when the next one begins
    #[command(
        after_help = "Any leader starts a run that is due, and each due time starts one run at most. Whatever is not named has its\ndefault: the schedule before is replaced.\n\nExamples:\n  crawler resource schedule books --cron '0 3 * * *' --tz Europe/Paris --jitter 10m\n  crawler resource schedule books --every 6h --overlap queue\n  crawler resource schedule books\n  crawler resource schedule books --off"
    )]
    Schedule(Box<schedule::ScheduleArgs>),
    /// List the resources that have a schedule, each with its next run and what became of the last due time
    #[command(after_help = "Example:\n  crawler resource schedules")]
    Schedules {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Stop a crawl and forget it; its name is free at once
    #[command(after_help = "Example:\n  crawler resource delete books --purge")]
    Delete {
        /// The resource
        name: ResourceName,
        /// Delete its items and kept files too
        #[arg(long)]
        purge: bool,
    },
    /// Print what the crawl logs: refused pages, killed calls, lines of its rules
    #[command(after_help = "Example:\n  crawler resource logs books --follow")]
    Logs {
        /// The resource
        name: ResourceName,
        /// Go on as lines come, until the crawl is over
        #[arg(long)]
        follow: bool,
    },
}

/// Removes the default from the help of an option: of a resource that is there, what is not named stays.
fn without_default(arg: Arg) -> Arg {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    match help.rfind(" [default: ") {
        Some(end) => arg.help(help[..end].to_owned()),
        None => arg,
    }
}

#[derive(Debug, Args)]
pub(super) struct SpecArgs {
    /// The resource
    name: ResourceName,
    /// The plugin that runs [default: the one of the resource's name]
    #[arg(long, value_name = "NAME[@VERSION]")]
    plugin: Option<PluginRef>,
    #[command(flatten)]
    rules: RuleArgs,
    /// Take a param away, in a restart; may be given several times
    #[arg(long = "no-param", value_name = "KEY")]
    no_params: Vec<String>,
    #[command(flatten)]
    crawl: CrawlArgs,
    #[command(flatten)]
    placement: PlacementArgs,
    #[command(flatten)]
    labels: LabelArgs,
}

impl SpecArgs {
    pub(super) fn into_request(self) -> SpecRequest {
        SpecRequest {
            plugin: self.plugin,
            params: self.rules.params(),
            no_params: self.no_params.into_iter().collect(),
            limits: self.rules.limits(),
            crawl: self.crawl.settings(),
            placement: self.placement.change(),
            labels: self.labels.labels(),
            ..SpecRequest::named(self.name)
        }
    }
}

pub(super) async fn run(command: ResourceCommand, client: Client) -> anyhow::Result<()> {
    match command {
        ResourceCommand::Add(args) => {
            let name = args.name.clone();
            let placed = client.add_resource(args.into_request()).await?;
            if placed.id.is_empty() {
                let reason = client.resource(&name).await?.reason;
                table::print_line(&format!("resource {name} added; it waits: {reason}"))?;
            } else {
                let line = format!("resource {name} added; {} crawls it", placed.id);
                table::print_line(&line)?;
            }
        }
        ResourceCommand::Update(args) => {
            let resource = client.update_resource(args.into_request()).await?;
            let (name, generation) = (resource.spec().name, resource.generation);
            table::print_line(&format!("resource {name} changed; generation {generation}"))?;
        }
        ResourceCommand::List {
            watch: true,
            filter,
            ..
        } => watch::run(&client, &filter).await?,
        ResourceCommand::List { filter, output, .. } => {
            list::print(list::filtered(&client, &filter).await?, &output)?;
        }
        ResourceCommand::Hosts(args) => hosts::list(&client, args).await?,
        ResourceCommand::Get { name, output } => {
            get::run(&client, &name, &output).await?;
        }
        ResourceCommand::Stats { name, output } => stats::run(&client, &name, &output).await?,
        ResourceCommand::Wait(args) => wait::run(&client, args).await?,
        ResourceCommand::Restart(args) => {
            table::print_line(&restart(&client, args.into_request()).await?)?;
        }
        ResourceCommand::Pause { name } => {
            table::print_line(&pause(&client, &name).await?)?;
        }
        ResourceCommand::Resume { name } => {
            table::print_line(&resume(&client, &name).await?)?;
        }
        ResourceCommand::Runs { name, output } => runs::run(&client, &name, &output).await?,
        ResourceCommand::Diff(args) => diff::run(&client, args).await?,
        ResourceCommand::Events(args) => events::run(&client, args).await?,
        ResourceCommand::Schedule(args) => schedule::run(&client, *args).await?,
        ResourceCommand::Schedules { output } => schedule::list(&client, &output).await?,
        ResourceCommand::Delete { name, purge } => {
            client
                .delete_resource(&name, purge, Precondition::default())
                .await?;
            table::print_line(&format!("deleted {name}"))?;
        }
        ResourceCommand::Logs { name, follow } => {
            let mut lines = client.logs(&name, follow).await?;
            while let Some(line) = lines.next().await {
                table::print_line(&log_line(line?))?;
            }
        }
    }
    Ok(())
}

/// Begins a new run of a resource. Returns what was done, in words.
pub(super) async fn restart(client: &Client, request: SpecRequest) -> Result<String, ClientError> {
    let name = request.name.clone();
    let resource = client.restart_resource(request).await?;
    let done = format!("resource {name} restarted; run {}", resource.run);
    Ok(match resource.phase.as_str() {
        "Paused" => {
            format!("{done} begins when it is resumed: `crawler resource resume {name}`")
        }
        _ => done,
    })
}

/// Pauses a resource. Returns what was done, in words.
pub(super) async fn pause(client: &Client, name: &ResourceName) -> Result<String, ClientError> {
    let phase = client.pause_resource(name, true).await?.phase;
    Ok(match phase.as_str() {
        "Paused" => format!("resource {name} is paused"),
        phase => format!("resource {name} is {phase}; a new run of it waits until it is resumed"),
    })
}

/// Lets a paused resource go on. Returns what was done, in words.
pub(super) async fn resume(client: &Client, name: &ResourceName) -> Result<String, ClientError> {
    let phase = client.pause_resource(name, false).await?.phase;
    Ok(format!("resource {name} goes on; it is {phase}"))
}

/// Formats a line of a log. The page of a line that counts pages is one of them.
pub(super) fn log_line(line: proto::LogLine) -> String {
    let more = match line.more {
        0 => String::new(),
        n => format!("(and {n} more)"),
    };
    let parts = [
        table::time(line.at),
        line.level,
        line.rule,
        line.url,
        more,
        line.message,
    ];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

fn node_id(assigned_node: &str) -> &str {
    assigned_node.split('|').next().unwrap_or_default()
}
