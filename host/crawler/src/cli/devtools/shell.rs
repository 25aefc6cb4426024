//! `crawler shell`: its arguments and its output.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::Args;
use url::Url;

use super::cached::from_cache;
use super::fetch::{FetchSetup, FetchSetupArgs, RequestArgs, check_scheme};
use crate::cli::{Failure, table};
use crate::config::Environment;
use crawler_devtools::shell::{COMMANDS, Links, QueryResult, TAKES, Table};
use crawler_model::crawl::{Page, Request};
use crawler_process::telemetry::chain;

/// File of the history, within the folder of state that is local to the machine.
const HISTORY: &str = "shell-history";
/// Name in the place of a rule: the shell has none.
const NO_RULE: &str = "shell";
/// Note that is added where a limit cuts the result off.
const TOO_MUCH: &str = "; the page has more than a call may read at once";
/// Number of characters of a page that are shown.
const SOURCE_SHOWN: usize = 4_000;
/// Number of links that are shown.
const LINKS_SHOWN: usize = 100;

/// Options of `crawler shell`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellOptions {
    /// First page.
    pub page: ShellPage,
    /// Settings with which pages are fetched.
    pub fetch_setup: FetchSetup,
    /// File of the history. If `None`, lines are not kept.
    pub history: Option<PathBuf>,
}

/// Source of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellPage {
    /// Page on the web.
    Request(Box<Request>),
    /// File of HTML, or a saved call.
    File(PathBuf),
}

#[derive(Debug, Args)]
#[command(
    after_help = "What to type:\n  h1                                          the text of elements, by a selector\n  a.next -> @href                             an attribute\n  article { title: h3; link: h3 a -> @href }  rows, and fields of each\n  /links, /fetch URL, /rust, /help            and more\n\n--method, --header and --body are of the first page; /fetch asks by GET, without them.\n\nExamples:\n  crawler shell https://books.example/\n  crawler shell pages/book.call.json\n  echo 'h1' | crawler shell page.html"
)]
pub(in crate::cli) struct ShellArgs {
    /// The address of a page; or a file of HTML, or a saved call
    #[arg(value_name = "URL_OR_FILE")]
    page: String,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    fetch_setup: FetchSetupArgs,
    /// Keep no lines that are typed
    #[arg(long)]
    no_history: bool,
}

impl ShellArgs {
    pub(in crate::cli) fn into_options(
        self,
        environment: &Environment,
    ) -> anyhow::Result<ShellOptions> {
        let history = environment.state_home.as_ref();
        let history = history.map(|home| home.join("crawler").join(HISTORY));
        // Except for `C:`, an argument with a scheme is no path.
        let page = match Url::parse(&self.page) {
            Ok(url) if !Path::new(&self.page).exists() => {
                check_scheme(&url)?;
                let request = self.request.into_request(url, NO_RULE.to_owned());
                ShellPage::Request(Box::new(request))
            }
            _ if !Path::new(&self.page).exists() => {
                let what = format!("there is no file {}", self.page);
                let hint = format!("an address has its scheme: https://{}", self.page);
                return Err(Failure::new(what, hint).into());
            }
            _ => ShellPage::File(PathBuf::from(self.page)),
        };
        Ok(ShellOptions {
            page,
            fetch_setup: self.fetch_setup.into_fetch_setup(environment)?,
            history: history.filter(|_| !self.no_history),
        })
    }
}

/// Prints answers to the user.
#[derive(Debug)]
pub struct ShellOutput {
    /// True if a user types; otherwise lines come from a file or a program.
    is_terminal: bool,
    n_refused: u32,
}

impl ShellOutput {
    /// Begins with the user or program at standard input.
    pub fn begin() -> Self {
        Self {
            is_terminal: io::stdin().is_terminal() && io::stdout().is_terminal(),
            n_refused: 0,
        }
    }

    /// Returns true if a user types.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Prints that a page was opened.
    pub fn opened(&self, page: &Page) -> io::Result<()> {
        if self.is_terminal {
            table::print_line(&about(page))?;
        }
        Ok(())
    }

    /// Prints how to go on.
    pub fn welcome(&self) -> io::Result<()> {
        match self.is_terminal {
            true => table::print_line("a selector shows what it finds; /help tells more"),
            false => Ok(()),
        }
    }

    /// Prints where a page came from, and how.
    pub fn page(&self, page: &Page) -> io::Result<()> {
        table::print_line(&about(page))?;
        if page.requested_url != page.url {
            table::print_line(&format!("asked for: {}", page.requested_url))?;
        }
        let known = page.metadata().into_iter();
        let known: Vec<String> = known
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        table::print_line(&table::plain(&known.join(" ")))
    }

    /// Prints the headers of an answer.
    pub fn headers(&self, page: &Page) -> io::Result<()> {
        for (name, value) in page.headers.iter() {
            table::print_line(&table::plain(&format!("{name}: {value}")))?;
        }
        Ok(())
    }

    /// Prints the beginning of a page.
    pub fn source(&self, page: &Page) -> io::Result<()> {
        let text = page.text();
        let end = text.char_indices().nth(SOURCE_SHOWN).map(|(end, _)| end);
        let shown = &text[..end.unwrap_or(text.len())];
        let shown = shown.replace("\r\n", "\n").replace('\t', "    ");
        table::print_line(&table::plain(&shown))?;
        match end {
            Some(end) => {
                let n_more = text[end..].chars().count();
                table::print_line(&format!(
                    "… {n_more} characters more; /save FILE keeps all of it"
                ))
            }
            None => Ok(()),
        }
    }

    /// Prints that the body was saved.
    pub fn saved(&self, path: &Path, page: &Page) -> io::Result<()> {
        let cut = if page.truncated {
            ", cut by limit body"
        } else {
            ""
        };
        let line = format!("{} has the body of {}{cut}", path.display(), page.url);
        self.say(&line)
    }

    /// Prints addresses.
    pub fn links(&self, links: &Links) -> io::Result<()> {
        let Links { urls, is_truncated } = links;
        for link in urls.iter().take(LINKS_SHOWN) {
            table::print_line(link.as_str())?;
        }
        let mut end = counted(urls.len(), "link", "links");
        let n_more = urls.len().saturating_sub(LINKS_SHOWN);
        if n_more > 0 {
            end += &format!("; {n_more} of them are not shown, a PATTERN chooses some");
        }
        if *is_truncated {
            end += TOO_MUCH;
        }
        table::print_line(&end)
    }

    /// Prints the result of a query.
    pub fn found(&self, found: &QueryResult, is_whole: bool) -> io::Result<()> {
        let Table {
            head,
            rows,
            n_more,
            is_cut,
        } = found.shown(is_whole);
        if !rows.is_empty() {
            let rows = rows.into_iter();
            let plain = |row: Vec<String>| row.iter().map(|cell| table::plain(cell)).collect();
            let rows: Vec<Vec<String>> = rows.map(plain).collect();
            table::print_columns(&head, &rows)?;
        }
        let mut end = format!(
            "{}, {} fuel, {:.1} ms",
            counted(found.n_rows(), "row", "rows"),
            found.fuel,
            found.took.as_secs_f64() * 1_000.0,
        );
        if n_more > 0 {
            end += &format!("; {n_more} more are not shown, /all shows them");
        } else if is_cut {
            end += "; long values are cut, /all shows them whole";
        }
        if found.is_truncated() {
            end += TOO_MUCH;
        }
        table::print_line(&end)
    }

    /// Prints a text unchanged, except for control characters.
    pub fn say(&self, text: &str) -> io::Result<()> {
        table::print_line(&table::plain(text))
    }

    /// Prints the lines that can be typed.
    pub fn help(&self) -> io::Result<()> {
        let mut rows = vec![
            [
                "SELECTOR [-> WHAT]",
                "what the elements hold: h3 a -> @href",
            ],
            [
                "ROWS { NAME: SELECTOR [-> WHAT]; … }",
                "fields of each row: li { title: h3; link: a -> @href }",
            ],
            ["", ""],
            ["WHAT", "IS READ OF AN ELEMENT"],
        ];
        rows.extend(TAKES.iter().map(|(name, what)| [*name, *what]));
        let rows = rows.iter().map(|row| row.map(str::to_owned).to_vec());
        let mut rows: Vec<Vec<String>> = rows.collect();
        rows.push(vec![String::new(); 2]);
        rows.extend(
            COMMANDS
                .iter()
                .map(|(name, rest, what)| vec![format!("{name} {rest}"), (*what).to_owned()]),
        );
        let head = ["TYPE", "AND SEE"].map(str::to_owned);
        table::print_columns(&head, &rows)
    }

    /// Prints why a line cannot be carried out. The next one can.
    pub fn refused(&mut self, line: &str, error: &anyhow::Error) {
        self.n_refused += 1;
        let why = chain(error.as_ref());
        match self.is_terminal {
            true => eprintln!("error: {why}"),
            false => eprintln!("error: {}: {why}", table::plain(line.trim())),
        }
    }

    /// Returns an error if lines that nobody typed were not carried out.
    pub fn end(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.is_terminal || self.n_refused == 0,
            "{} could not be carried out",
            counted(self.n_refused as usize, "line", "lines")
        );
        Ok(())
    }
}

fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Describes a page in one line.
fn about(page: &Page) -> String {
    let kind = page.header("content-type").unwrap_or("no content type");
    let mut about = format!(
        "{}: status {}, {kind}, {} as {}",
        page.url,
        page.status,
        table::size(page.body.len() as u64),
        page.text.charset,
    );
    if page.truncated {
        about += ", cut by limit body";
    }
    if let Some(note) = from_cache(page) {
        about += ", ";
        about += &note;
    }
    if !(200..300).contains(&page.status) {
        about += "; a rule gets it only if its request accepts this status";
    }
    table::plain(&about)
}
