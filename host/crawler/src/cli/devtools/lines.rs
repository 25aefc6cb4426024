//! Lines that are typed into `crawler shell`, with history and completion, or lines of standard input.

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use crawler_devtools::shell::{Completions, is_open};

const PROMPT: &str = "> ";
/// Sequence that makes the terminal stop marking pasted text.
const NO_BRACKETS: &[u8] = b"\x1b[?2004l";
/// Number of lines that the history keeps.
const HISTORY_MAX: usize = 1_000;
/// Largest length in bytes of a line that is not typed.
const LINE_MAX: usize = 64 << 10;

/// Source of lines. Waiting for one blocks the thread.
pub enum Lines {
    /// A user types.
    Typed {
        /// Editor of the line; it keeps the history.
        editor: Box<Editor<ShellHelper, DefaultHistory>>,
        /// File of the history between runs.
        history: Option<PathBuf>,
    },
    /// Standard input is no terminal.
    Given,
}

impl Lines {
    /// Reads lines from a terminal, with the history of earlier runs.
    pub fn typed(history: Option<&Path>) -> anyhow::Result<Self> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .history_ignore_dups(true)?
            .history_ignore_space(true)
            .max_history_size(HISTORY_MAX)?
            .auto_add_history(true);
        let mut editor = Editor::with_config(config.build())?;
        editor.set_helper(Some(ShellHelper(Completions::default())));
        let mut history = history.map(Path::to_owned);
        if let Some(path) = &history
            && path.exists()
            && let Err(error) = editor.load_history(path)
        {
            forget(&mut history, &error.into());
        }
        Ok(Self::Typed {
            editor: Box::new(editor),
            history,
        })
    }

    /// Completes the names of a page in lines from now on.
    pub fn complete(&mut self, names: Completions) {
        if let Self::Typed { editor, .. } = self {
            editor.set_helper(Some(ShellHelper(names)));
        }
    }

    /// Reads the next line; `None` at the end.
    pub fn read(&mut self) -> anyhow::Result<Option<String>> {
        let Self::Typed { editor, history } = self else {
            return given();
        };
        let line = loop {
            match editor.readline(PROMPT) {
                Ok(line) => break line,
                // The line that was begun is dropped, as in any shell.
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        };
        // The history is written at once, because the shell may end at any time.
        if let Some(path) = history.clone()
            && let Err(error) = append(editor, &path)
        {
            forget(history, &error);
        }
        Ok(Some(line))
    }
}

fn append(editor: &mut Editor<ShellHelper, DefaultHistory>, path: &Path) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    Ok(editor.append_history(path)?)
}

/// Goes on without a history after an error: the shell works without one.
fn forget(history: &mut Option<PathBuf>, error: &anyhow::Error) {
    if let Some(path) = history.take() {
        eprintln!(
            "warning: {} cannot be used, and lines are not kept: {error}; remove it, or type --no-history",
            path.display()
        );
    }
}

/// Restores the terminal's state when it is dropped: a signal may end the shell while a user types.
#[derive(Debug)]
pub struct Terminal {
    /// State of the terminal at the start. If `None`, there is no terminal.
    before: Option<Termios>,
}

impl Terminal {
    /// Keeps the present state.
    pub fn keep() -> Self {
        Self {
            before: tcgetattr(io::stdin()).ok(),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // If it fails, there is no terminal any more. Pasted text is not marked again.
            let _gone = tcsetattr(io::stdin(), OptionalActions::Now, before);
            let mut stdout = io::stdout();
            let _gone = stdout.write_all(NO_BRACKETS).and_then(|()| stdout.flush());
        }
    }
}

fn given() -> anyhow::Result<Option<String>> {
    let mut text = String::new();
    let mut stdin = io::stdin().lock();
    loop {
        let room = LINE_MAX.saturating_sub(text.len()) as u64;
        let mut line = Vec::new();
        let n_read = (&mut stdin).take(room).read_until(b'\n', &mut line)?;
        // Bytes that are no text mean nothing; the error shows them with the line.
        text += &String::from_utf8_lossy(&line);
        anyhow::ensure!(
            text.len() < LINE_MAX,
            "a line has at most {LINE_MAX} bytes, up to the }} of its fields"
        );
        if n_read == 0 {
            return Ok(Some(text).filter(|text| !text.is_empty()));
        }
        if !is_open(&text) {
            return Ok(Some(text));
        }
    }
}

/// Completion of words, and continuation of lines.
pub struct ShellHelper(Completions);

impl Completer for ShellHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.0.completed(&line[..pos]))
    }
}

impl Validator for ShellHelper {
    fn validate(&self, line: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_open(line.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Hinter for ShellHelper {
    type Hint = String;
}

impl Highlighter for ShellHelper {}

impl Helper for ShellHelper {}
