//! `crawler top`: the cluster in a terminal, looked at again and again.
//!
//! [`state`] has what is shown and what keys make of it, [`view`] draws it, and [`looks`] asks a master. This module has the
//! loop between them and the terminal, which is left as it was found: after the end, after a signal and after a panic.

use std::io::{self, IsTerminal as _, Stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event as TerminalEvent, EventStream,
};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute};
use futures::future::{self, BoxFuture};
use futures::stream::StreamExt as _;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use self::looks::Answer;
use self::rates::Rates;
use self::state::{Ask, Event, Model, Step};
use super::{Failure, table};
use crawler_api::client::{Client, ClientError};
use crawler_process::retry::Backoff;

mod list;
mod looks;
mod rates;
mod state;
mod view;

/// First pause after a look that no master has answered.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause after such a look.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
#[command(
    after_help = "Keys: arrows, j and k choose, Enter opens a resource, Tab leads to the other part of the screen, / filters, p pauses,\nr restarts, d drains a worker, ? tells all of them, q leaves. A change is made only after a yes.\n\nExamples:\n  crawler top\n  crawler top --every 10s --master http://10.0.0.1:9091"
)]
pub(super) struct TopArgs {
    /// Time between two looks, from 500ms to 1h
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = every)]
    every: Duration,
}

/// Parses the time between two looks.
fn every(text: &str) -> Result<Duration, String> {
    let bounds = Duration::from_millis(500)..=Duration::from_secs(3_600);
    let time = humantime::parse_duration(text).ok();
    let time = time.filter(|time| bounds.contains(time));
    time.ok_or_else(|| "write a time from 500ms to 1h, such as 2s".to_owned())
}

/// Shows the cluster until the user leaves. It is an error if there is no terminal, or if no master can be reached at the
/// beginning.
pub(super) async fn run(
    args: TopArgs,
    connect: impl Future<Output = anyhow::Result<Client>>,
) -> anyhow::Result<()> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::new(
            "crawler top needs a terminal for its input and its output",
            "elsewhere, use `crawler resource list` and `crawler node list`; both take -o json",
        )
        .into());
    }
    let client = connect.await?;
    let mut screen = Screen::enter()?;
    let change = show(&mut screen.terminal, &client, args.every).await;
    let is_broken = !is_shown();
    drop(screen);
    if let Some(change) = change? {
        wait(change).await?;
    }
    if is_broken {
        return Err(Failure::new(
            "crawler top has ended because a part of it panicked",
            "the lines above tell where; `crawler resource list` and `crawler node list` show the same",
        )
        .into());
    }
    Ok(())
}

/// Waits for a change that was under way when the user left, and says what it has come to.
async fn wait(change: PendingChange) -> anyhow::Result<()> {
    table::print_line("waiting for the change")?;
    table::print_line(&looks::line(&change.await?))?;
    Ok(())
}

/// Look that is waited for.
type PendingLook = BoxFuture<'static, Result<Answer, ClientError>>;
/// Change that is under way. Its end is told in words.
type PendingChange = BoxFuture<'static, Result<String, ClientError>>;

/// Shows the cluster, and returns the change that is under way when the user leaves.
async fn show(
    terminal: &mut Terminal<CrosstermBackend<Stdout>>,
    client: &Client,
    every: Duration,
) -> anyhow::Result<Option<PendingChange>> {
    let mut model = Model::new(every, terminal.size()?.height);
    let mut events = EventStream::new();
    let mut rates = Rates::default();
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    let mut answered = Instant::now();
    let mut asked = model.ask();
    let mut look = look_after(Duration::ZERO, client, asked.clone());
    let mut change: Option<PendingChange> = None;
    // A panic of another thread has left the view already.
    while is_shown() {
        model.age = answered.elapsed();
        terminal.draw(|frame| view::draw(&model, frame))?;
        // Each branch may be dropped at any await: an event stays in its stream, and the others go on in the next turn.
        let step = tokio::select! {
            event = events.next() => match event {
                Some(Ok(TerminalEvent::Key(key))) => model.handle(Event::Key(key)),
                Some(Ok(TerminalEvent::Resize(_, height))) => model.handle(Event::Resized(height)),
                // Text that is pasted presses no keys.
                Some(Ok(_)) => Step::Show,
                Some(Err(error)) => return Err(error.into()),
                // The stream has no end: if the terminal is gone, it gives errors.
                None => Step::Leave,
            },
            ended = ended(&mut change) => {
                change = None;
                let words = ended.unwrap_or_else(|error| error.to_string());
                model.handle(Event::Changed(looks::line(&words)))
            }
            answer = &mut look => {
                let (event, pause) = match answer {
                    Ok(answer) => {
                        backoff.reset();
                        answered = Instant::now();
                        let look = looks::look(answer, answered, &mut rates);
                        (Event::Looked(look), every)
                    }
                    Err(error) => {
                        let failed = Event::Failed(looks::line(&error.to_string()));
                        (failed, backoff.next_delay())
                    }
                };
                look = look_after(pause, client, asked.clone());
                model.handle(event)
            }
            // The age in the title goes on, also while an answer is waited for.
            () = tokio::time::sleep(every) => Step::Show,
        };
        match step {
            Step::Show => {}
            Step::Leave => return Ok(change),
            Step::Look => look = look_after(Duration::ZERO, client, asked.clone()),
            Step::Change(wanted) => {
                let client = client.clone();
                change = Some(Box::pin(
                    async move { looks::change(&client, wanted).await },
                ));
            }
        }
        // A question that nobody asks any more is dropped with its answer.
        let ask = model.ask();
        if ask != asked {
            asked = ask;
            look = look_after(Duration::ZERO, client, asked.clone());
        }
    }
    Ok(change)
}

/// Asks a master after a pause.
fn look_after(pause: Duration, client: &Client, ask: Ask) -> PendingLook {
    let client = client.clone();
    Box::pin(async move {
        tokio::time::sleep(pause).await;
        looks::ask(&client, ask).await
    })
}

/// Waits for the end of a change; for ever if there is none.
async fn ended(change: &mut Option<PendingChange>) -> Result<String, ClientError> {
    match change {
        Some(change) => change.await,
        None => future::pending().await,
    }
}

/// True while the terminal shows the view instead of what it showed before. It becomes false when the screen is dropped,
/// and when any thread panics.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Terminal that shows the view. Dropping it brings back what the terminal showed before.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    fn enter() -> io::Result<Self> {
        // The text of a panic is for the terminal as it was.
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let _left_as_far_as_possible = leave();
            hook(info);
        }));
        IS_TAKEN.store(true, Ordering::SeqCst);
        let terminal = enable_raw_mode()
            .and_then(|()| execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste))
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match terminal {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                let _left_as_far_as_possible = leave();
                Err(error)
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // An error means that the terminal is gone.
        let _left_as_far_as_possible = leave();
    }
}

/// Returns false if a panic has brought back what the terminal showed before.
fn is_shown() -> bool {
    IS_TAKEN.load(Ordering::SeqCst)
}

/// Leaves the terminal as it was; once, because another time would move the cursor over what was written since.
fn leave() -> io::Result<()> {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return Ok(());
    }
    let is_usual = disable_raw_mode();
    let is_left = execute!(
        io::stdout(),
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    is_usual.and(is_left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_that_fails_after_q_is_an_error() {
        let failed = ClientError::Unreachable {
            url: "http://a.test".to_owned(),
            why: "refused".to_owned(),
        };
        let change: Result<String, ClientError> = Err(failed.clone());
        let result = wait(Box::pin(future::ready(change))).await;
        let error = result.expect_err("the change has failed");
        assert_eq!(error.downcast_ref::<ClientError>(), Some(&failed));
        let change: Result<String, ClientError> = Ok("resource books is paused".to_owned());
        assert!(wait(Box::pin(future::ready(change))).await.is_ok());
    }

    #[test]
    fn the_time_between_looks_has_bounds() {
        assert_eq!(every("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(every("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(every("1h"), Ok(Duration::from_secs(3_600)));
        for refused in ["0s", "499ms", "2h", "2", "soon"] {
            let why = "write a time from 500ms to 1h, such as 2s";
            assert_eq!(every(refused), Err(why.to_owned()), "{refused}");
        }
    }
}
