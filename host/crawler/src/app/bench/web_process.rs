//! The process that serves the web of a benchmark. It ends with this one, also if this one is killed.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::bench::messages::{COMMAND, Message, ServerSettings, VisitFigures};
use crate::config;
use crawler_plugin::admission;

/// Longest time until requests are answered. A folder of many files on a slow disk takes long to list.
const START_DEADLINE: Duration = Duration::from_secs(120);
/// Longest time from the end of the crawl to the end of the process.
const END_DEADLINE: Duration = Duration::from_secs(30);

/// A web that is served. Dropping it ends the process.
pub(super) struct WebProcess {
    /// Place and size of the web.
    pub(super) site: Site,
    /// Input, whose end ends the process. `None` once the process has been asked to end.
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    process: Child,
}

/// Place and size of a web.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site {
    /// Port on loopback, for all hosts.
    pub(super) port: u16,
    /// Number of hosts.
    pub(super) n_hosts: u32,
    /// Number of pages that can be reached.
    pub(super) n_pages: u64,
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
        let answer = async {
            // A process that has ended says more by its output.
            let _broken_pipe = input.write_all(line.as_bytes()).await;
            message(&mut output).await
        };
        let Ok(answer) = timeout(START_DEADLINE, answer).await else {
            bail!(
                "the process that serves the web did not start within {} s",
                START_DEADLINE.as_secs()
            );
        };
        match answer? {
            Message::Serving {
                port,
                n_hosts,
                n_pages,
            } => Ok(Self {
                site: Site {
                    port,
                    n_hosts,
                    n_pages,
                },
                input: Some(input),
                output,
                process,
            }),
            other => Err(unexpected(other)),
        }
    }

    /// Waits for the end of the process before [`end`](Self::end), and returns the error that reports it. It may be
    /// dropped and called again.
    pub(super) async fn lost(&mut self) -> anyhow::Error {
        match self.process.wait().await {
            Ok(status) => anyhow!(
                "the process that serves the web has ended unexpectedly with {status}; run the benchmark again"
            ),
            Err(error) => {
                anyhow::Error::new(error).context("cannot wait for the process that serves the web")
            }
        }
    }

    /// Ends the process, and returns the figures of all requests.
    pub(super) async fn end(&mut self) -> anyhow::Result<VisitFigures> {
        let Ok(figures) = timeout(END_DEADLINE, self.ended()).await else {
            bail!(
                "the process that serves the web did not end within {} s",
                END_DEADLINE.as_secs()
            );
        };
        figures
    }

    async fn ended(&mut self) -> anyhow::Result<VisitFigures> {
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
