//! `crawler shell`: a page, and lines that are carried out on it one after the other.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use crawler_extract::Budget;
use url::Url;

use crate::cli;
use crate::cli::devtools::{Lines, ShellOptions, ShellOutput, ShellPage, Terminal, check_scheme};
use crawler_devtools::fetching;
use crawler_devtools::saved::{self, CallTarget, SavedCall, SavedError, files};
use crawler_devtools::shell::{Command, Completions, Line, QueryResult, links, rust};
use crawler_fetch::{Fetch, charset};
use crawler_model::crawl::{Page, Request};
use crawler_model::headers::Headers;
use crawler_model::page::FetchRecord;
use crawler_model::plugin::Limits;
use crawler_model::settings::CrawlSettings;
use crawler_process::task::spawn_blocking;

/// State of the shell: the page that is looked at, and the means to fetch another.
struct Shell {
    fetcher: Arc<dyn Fetch>,
    settings: CrawlSettings,
    limits: Limits,
    page: Page,
    /// Result of the last query.
    found: Option<QueryResult>,
}

pub(super) async fn run(options: &ShellOptions) -> anyhow::Result<()> {
    let settings = options.fetch_setup.settings.clone();
    let limits = Limits::default();
    let fetcher = super::fetcher::fetcher(&options.fetch_setup)?;
    let page = match &options.page {
        ShellPage::Request(request) => {
            fetching::page(&*fetcher, request, &settings, limits.body).await?
        }
        ShellPage::File(path) => opened(path, &limits).await?,
    };
    let mut shell = Shell {
        fetcher,
        settings,
        limits,
        page,
        found: None,
    };
    let mut output = ShellOutput::begin();
    let mut lines = match output.is_terminal() {
        true => Lines::typed(options.history.as_deref())?,
        false => Lines::Given,
    };
    let _terminal = output.is_terminal().then(Terminal::keep);
    shell.complete(&mut lines, &output);
    output.opened(&shell.page)?;
    output.welcome()?;
    loop {
        let waiting = spawn_blocking(move || {
            let line = lines.read();
            (lines, line)
        });
        let (back, line) = waiting.await?;
        lines = back;
        let Some(line) = line? else { break };
        match shell.carry_out(&line, &output).await {
            Ok(Next::Line) => {}
            Ok(Next::Page) => shell.complete(&mut lines, &output),
            Ok(Next::End) => break,
            Err(error) if cli::is_closed_pipe(&error) => return Err(error),
            Err(error) => output.refused(&line, &error),
        }
    }
    output.end()
}

/// Next step after a line was carried out.
enum Next {
    Line,
    /// Reads the next line; the page is another one now.
    Page,
    End,
}

impl Shell {
    fn complete(&self, lines: &mut Lines, output: &ShellOutput) {
        if output.is_terminal() {
            lines.complete(Completions::of(&self.page.text()));
        }
    }

    async fn carry_out(&mut self, line: &str, output: &ShellOutput) -> anyhow::Result<Next> {
        let line = Line::read(line).map_err(anyhow::Error::msg)?;
        let command = match line {
            Line::Empty => return Ok(Next::Line),
            Line::Query(query) => {
                let budget = Budget {
                    deadline: self.limits.cpu,
                    ..Budget::default()
                };
                let found = QueryResult::read(&query, &self.page.text(), &budget);
                let found = found.map_err(anyhow::Error::msg)?;
                output.found(&found, false)?;
                self.found = Some(found);
                return Ok(Next::Line);
            }
            Line::Command(command) => command,
        };
        match command {
            Command::Fetch(to) => {
                let url = self.page.url.join(&to);
                let url = url.with_context(|| format!("{to} is no address"))?;
                check_scheme(&url)?;
                let request = Request::get(url, "shell");
                let max_body = self.limits.body;
                let page = fetching::page(&*self.fetcher, &request, &self.settings, max_body);
                self.page = page.await?;
                self.found = None;
                output.opened(&self.page)?;
                return Ok(Next::Page);
            }
            Command::Page => output.page(&self.page)?,
            Command::Headers => output.headers(&self.page)?,
            Command::Source => output.source(&self.page)?,
            Command::Links(pattern) => {
                let (page, url) = (self.page.text(), &self.page.url);
                let links = links(&page, url, pattern.as_deref());
                output.links(&links.map_err(anyhow::Error::msg)?)?;
            }
            Command::All => output.found(self.last()?, true)?,
            Command::Rust => output.say(rust(self.last()?).trim_end())?,
            Command::Save(path) => {
                let path = std::path::absolute(&path)?;
                let body = self.page.body.clone();
                let to = path.clone();
                match spawn_blocking(move || files::write(&to, &body, false)).await? {
                    Err(SavedError::Present { path }) => {
                        anyhow::bail!("{} is there already: give another name", path.display())
                    }
                    written => written?,
                }
                output.saved(&path, &self.page)?;
            }
            Command::Help => output.help()?,
            Command::Quit => return Ok(Next::End),
        }
        Ok(Next::Line)
    }

    fn last(&self) -> anyhow::Result<&QueryResult> {
        let found = self.found.as_ref();
        found.context("nothing was looked for on this page yet; type a selector first")
    }
}

/// Opens a page from a file: a page that was saved for a rule, or plain HTML.
async fn opened(path: &Path, limits: &Limits) -> anyhow::Result<Page> {
    if let Some((folder, name)) = saved::call_of(path) {
        let call = SavedCall::read(&folder, &name)?;
        let CallTarget::Rule { page, .. } = &call.called else {
            anyhow::bail!("{} is a call of root, which has no page", path.display());
        };
        return Ok(page.page(&folder, limits.body)?.0);
    }
    let (named, max) = (path.to_owned(), limits.body);
    let (body, is_cut) = spawn_blocking(move || {
        let path = std::fs::canonicalize(&named).unwrap_or(named);
        files::read(&path, max)
    })
    .await??;
    let path = std::path::absolute(path)?;
    let url = Url::from_file_path(&path);
    let url = url.map_err(|()| anyhow::anyhow!("{} is no absolute path", path.display()))?;
    Ok(html(body.into(), url, is_cut))
}

fn html(body: Bytes, url: Url, is_cut: bool) -> Page {
    let kind = "text/html";
    let mut headers = Headers::default();
    headers.push("content-type", kind);
    Page {
        requested_url: url.clone(),
        url,
        status: 200,
        text: charset::decode(&body, Some(kind), None),
        headers,
        redirects: Vec::new(),
        fetched_at: 0,
        truncated: is_cut,
        body,
        record: FetchRecord::default(),
    }
}
