//! The process that serves the web of a benchmark. It ends with this one, also if this one is killed.

use std::process::Stdio;

use anyhow::{Context as _, anyhow, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::bench::messages::{COMMAND, Message, ServerSettings, VisitFigures};
use crate::config;
use crawler_plugin::admission;

/// A web that is served. Dropping it ends the process.
pub(super) struct WebProcess {
    /// Port on loopback, for all hosts.
    pub(super) port: u16,
    /// Number of hosts.
    pub(super) n_hosts: u32,
    /// Number of pages that can be reached.
    pub(super) n_pages: u64,
    /// Input, whose end ends the process. `None` once it was told to end.
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    process: Child,
}

impl WebProcess {
    /// Starts the process, and waits until it answers requests.
    pub(super) async fn start(settings: &ServerSettings) -> anyhow::Result<Self> {
        let program = match config::program() {
            Some(program) => program,
            None => admission::own_program()?,
        };
        let mut process = Command::new(&program)
            .arg(COMMAND)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for the process that crawls, which ends this one.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (mut input, output) = pipes.context("a pipe to the web is missing")?;
        let mut output = BufReader::new(output).lines();
        let line = format!("{}\n", serde_json::to_string(settings)?);
        // A process that has ended says more by its output.
        let _broken_pipe = input.write_all(line.as_bytes()).await;
        match message(&mut output).await? {
            Message::Serving {
                port,
                n_hosts,
                n_pages,
            } => Ok(Self {
                port,
                n_hosts,
                n_pages,
                input: Some(input),
                output,
                process,
            }),
            other => Err(unexpected(other)),
        }
    }

    /// Ends the process, and returns the figures of all requests.
    pub(super) async fn end(&mut self) -> anyhow::Result<VisitFigures> {
        self.input.take();
        let figures = match message(&mut self.output).await? {
            Message::Served(figures) => figures,
            other => return Err(unexpected(other)),
        };
        let status = self.process.wait().await?;
        match status.success() {
            true => Ok(figures),
            false => bail!("the process that serves the web ended with {status}"),
        }
    }
}

async fn message(output: &mut Lines<BufReader<ChildStdout>>) -> anyhow::Result<Message> {
    let line = output.next_line().await?;
    let line = line.context("the process that serves the web has ended")?;
    serde_json::from_str(&line).context("cannot read what the process that serves the web says")
}

fn unexpected(message: Message) -> anyhow::Error {
    match message {
        Message::Failed(why) => anyhow!("{why}"),
        Message::Serving { .. } | Message::Served(_) => {
            anyhow!("the process that serves the web said {message:?} out of turn")
        }
    }
}
