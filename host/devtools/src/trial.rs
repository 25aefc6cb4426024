//! Makes a saved call again in the sandbox, and compares its outcome with the one that was kept.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::outcome::Outcome;
use super::saved::{CallTarget, SavedCall, SavedError};
use crawler_model::crawl::{Kill, Page, PageContext, UnixMillis};
use crawler_model::guest_text::GuestText;
use crawler_model::plugin::{LimitOverrides, Limits};
use crawler_plugin::{
    CallConfig, CallFailure, CallOutput, CallReport, KillReport, RuleLog, Rules, Usage,
};
use crawler_process::memory::Account;

/// Settings with which saved calls are made again.
pub struct Trial {
    /// Rules of the plugin that is tried.
    pub rules: Arc<dyn Rules>,
    /// Limits that replace those that a call was saved with.
    pub limits: LimitOverrides,
    /// Params that replace those that a call was saved with.
    pub params: BTreeMap<String, String>,
    /// Number of times that each call is made, at least once.
    pub n_times: u32,
}

/// Result of a call that was made again.
#[derive(Debug)]
pub struct TrialResult {
    /// Comparison of the outcome with the one that was kept.
    pub verdict: Verdict,
    /// Outcome of the call. If `None`, the host ended it.
    pub outcome: Option<Outcome>,
    /// Usage of the first time; the time is the median of all.
    pub usage: Usage,
    /// Log lines of the first time.
    pub logs: Vec<RuleLog>,
    /// Place in the rule's source where it gave up the first time, if the rule tells.
    pub place: Option<GuestText>,
}

/// Comparison of an outcome with the one that was kept.
#[derive(Debug)]
pub enum Verdict {
    /// The outcome is the same.
    Same,
    /// No outcome was kept yet.
    New,
    /// The outcome differs: the lines that do.
    Differs(String),
    /// The outcome is not the same each time: the difference, in a sentence or in lines.
    Unsteady(String),
    /// The host ended the call.
    Killed(Box<KillReport>),
}

/// Reason why a call cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The call or its page cannot be read.
    #[error(transparent)]
    Saved(#[from] SavedError),
    /// The call names a rule that the plugin does not have.
    #[error("the plugin has no rule {rule}; it has {rules}")]
    NoRule {
        /// Name of the rule in the call.
        rule: String,
        /// Names of the plugin's rules.
        rules: String,
    },
}

impl Trial {
    /// Returns the limits of a call of a rule of the plugin.
    pub fn limits(&self, call: &SavedCall) -> Limits {
        self.set_limits(call).of_plugin(self.rules.description())
    }

    /// Returns the limits that are set for a call: its own, and those that replace them.
    fn set_limits(&self, call: &SavedCall) -> Limits {
        let limits = call.limits.and(&self.limits);
        let limits = Limits::default().with(&limits, &LimitOverrides::unlimited());
        limits.expect("no value is above a ceiling that allows all")
    }

    /// Makes a call of this folder again.
    pub async fn make(&self, folder: &Path, call: &SavedCall) -> Result<TrialResult, TrialError> {
        let ready = self.ready(folder, call)?;
        let first = self.make_once(&ready).await;
        let mut took = vec![first.usage.elapsed];
        let (usage, logs, place) = (first.usage, first.logs, first.place);
        let ended = |report| TrialResult {
            verdict: Verdict::Killed(report),
            outcome: None,
            usage,
            logs: logs.clone(),
            place: None,
        };
        let outcome = match outcome(first.result) {
            Ok(outcome) => outcome,
            Err(report) => return Ok(ended(report)),
        };
        let mut verdict = match &call.outcome {
            None => Verdict::New,
            Some(kept) if *kept == outcome => Verdict::Same,
            Some(kept) => Verdict::Differs(kept.difference(&outcome)),
        };
        for n in 2..=self.n_times {
            let again = self.make_once(&ready).await;
            took.push(again.usage.elapsed);
            match other(n, (&outcome, usage.fuel), again) {
                Ok(None) => {}
                Ok(Some(how)) => {
                    verdict = Verdict::Unsteady(how);
                    break;
                }
                Err(report) => return Ok(ended(report)),
            }
        }
        Ok(TrialResult {
            verdict,
            outcome: Some(outcome),
            usage: Usage {
                elapsed: median(took),
                ..usage
            },
            logs,
            place,
        })
    }

    /// Reads everything that a call needs once, so that a page that is edited meanwhile does not look like an
    /// unsteady rule.
    pub(super) fn ready(&self, folder: &Path, call: &SavedCall) -> Result<Ready, TrialError> {
        let mut params = call.params.clone();
        params.extend(self.params.clone());
        let limits = self.set_limits(call);
        let config = CallConfig {
            params: Arc::new(params),
            limits,
            account: Account::default(),
        };
        let called = match &call.called {
            CallTarget::Root { now } => ReadyCall::Root(*now),
            CallTarget::Rule { rule, page } => {
                let rules = &self.rules.description().rules;
                if !rules.iter().any(|known| **known == **rule) {
                    // A crawl would take this for a fault of the rule, which is no outcome to keep.
                    return Err(TrialError::NoRule {
                        rule: rule.clone(),
                        rules: rules.join(", "),
                    });
                }
                let (page, context) = page.page(folder, limits.body)?;
                ReadyCall::Rule(rule.clone(), page.into(), context)
            }
        };
        Ok(Ready { config, called })
    }

    pub(super) async fn make_once(&self, ready: &Ready) -> CallReport {
        let config = ready.config.clone();
        match &ready.called {
            ReadyCall::Root(now) => self.rules.root(config, *now).await,
            ReadyCall::Rule(rule, page, context) => {
                let (page, context) = (page.clone(), context.clone());
                self.rules.parse(config, rule, page, context).await
            }
        }
    }
}

/// A call with everything that it needs.
pub(super) struct Ready {
    config: CallConfig,
    pub(super) called: ReadyCall,
}

impl Ready {
    /// Returns the same call on another page.
    pub(super) fn on(&self, page: Page) -> Self {
        let called = match &self.called {
            ReadyCall::Root(now) => ReadyCall::Root(*now),
            ReadyCall::Rule(rule, _, context) => {
                ReadyCall::Rule(rule.clone(), page.into(), context.clone())
            }
        };
        let config = self.config.clone();
        Self { config, called }
    }
}

pub(super) enum ReadyCall {
    Root(UnixMillis),
    Rule(String, Arc<Page>, PageContext),
}

pub(super) fn outcome(result: Result<CallOutput, CallFailure>) -> Result<Outcome, Box<KillReport>> {
    match result {
        Ok(output) => Ok(Outcome::of(&output)),
        Err(CallFailure::Rule(error)) => Ok(Outcome {
            error: Some(error.to_string()),
            ..Outcome::default()
        }),
        Err(CallFailure::Killed(report)) => Err(report),
    }
}

/// Returns how the `n`-th outcome differs from the first, if it does. It is an error if the clock ended the
/// call: that says nothing about the rule.
fn other(
    n: u32,
    (first, first_fuel): (&Outcome, u64),
    again: CallReport,
) -> Result<Option<String>, Box<KillReport>> {
    let fuel = again.usage.fuel;
    match outcome(again.result) {
        Ok(outcome) if outcome != *first => Ok(Some(first.difference(&outcome))),
        Ok(_) if fuel != first_fuel => Ok(Some(format!(
            "call {n} used {fuel} fuel, the first {first_fuel}"
        ))),
        Ok(_) => Ok(None),
        Err(report) if matches!(report.kill, Kill::OutOfCpu | Kill::OutOfTime | Kill::NoRoom) => {
            Err(report)
        }
        Err(report) => Ok(Some(format!(
            "call {n} was ended ({}): {}",
            report.kill, report.message
        ))),
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use async_trait::async_trait;

    use super::*;
    use crate::saved::path_of;
    use crawler_model::crawl::{Item, RuleError};
    use crawler_model::plugin::Description;

    /// Rules that give prepared answers, call by call.
    struct Twin {
        description: Description,
        answers: Mutex<VecDeque<(Result<CallOutput, CallFailure>, u64)>>,
    }

    impl Twin {
        fn answer(&self) -> CallReport {
            let (result, fuel) = self.answers.lock().unwrap().pop_front().unwrap();
            CallReport {
                result,
                logs: Vec::new(),
                n_logs_dropped: 0,
                place: None,
                reads: Vec::new(),
                usage: Usage {
                    fuel,
                    ..Usage::default()
                },
            }
        }
    }

    #[async_trait]
    impl Rules for Twin {
        fn description(&self) -> &Description {
            &self.description
        }

        async fn root(&self, _: CallConfig, _: u64) -> CallReport {
            self.answer()
        }

        async fn parse(
            &self,
            config: CallConfig,
            _: &str,
            page: Arc<Page>,
            _: PageContext,
        ) -> CallReport {
            assert_eq!(page.text(), "<p>hi");
            assert_eq!(config.params["lang"], "de");
            self.answer()
        }
    }

    fn items(words: &[&str]) -> Result<CallOutput, CallFailure> {
        let items = words.iter().map(|word| Item {
            schema: "word".to_owned(),
            json: format!("{{\"word\": \"{word}\"}}"),
        });
        Ok(CallOutput {
            items: items.collect(),
            ..CallOutput::default()
        })
    }

    fn gives_up() -> Result<CallOutput, CallFailure> {
        Err(CallFailure::Rule(RuleError::Skip("old".into())))
    }

    fn ended(kill: Kill) -> Result<CallOutput, CallFailure> {
        Err(CallFailure::Killed(Box::new(KillReport {
            kill,
            message: "too much".into(),
            backtrace: Vec::new(),
        })))
    }

    const CALL: &str = r#"{"rule": "word", "params": {"lang": "en"},
        "page": {"url": "http://a.test/", "body": "hi.html"}}"#;

    /// Tries a call with these answers, when the outcome of the first answer was kept.
    async fn tried(
        kept: Option<Result<CallOutput, CallFailure>>,
        answers: Vec<(Result<CallOutput, CallFailure>, u64)>,
    ) -> TrialResult {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("hi.html"), "<p>hi").unwrap();
        let hi = "hi".parse().unwrap();
        std::fs::write(path_of(folder.path(), &hi), CALL).unwrap();
        let mut call = SavedCall::read(folder.path(), &hi).unwrap();
        call.outcome = kept.map(|kept| outcome(kept).unwrap());
        let trial = trial(answers);
        trial.make(folder.path(), &call).await.unwrap()
    }

    fn trial(answers: Vec<(Result<CallOutput, CallFailure>, u64)>) -> Trial {
        Trial {
            limits: LimitOverrides::default(),
            params: [("lang".to_owned(), "de".to_owned())].into(),
            n_times: u32::try_from(answers.len()).unwrap().max(1),
            rules: Arc::new(Twin {
                description: Description {
                    name: "words".parse().unwrap(),
                    version: "1.0.0".parse().unwrap(),
                    rules: vec!["word".into()],
                    schemas: Vec::new(),
                    plans: Vec::new(),
                    hosts: Vec::new(),
                    params: None,
                    limits: BTreeMap::new(),
                },
                answers: Mutex::new(answers.into()),
            }),
        }
    }

    #[tokio::test]
    async fn what_comes_of_a_call_is_held_beside_what_was_kept() {
        let new = tried(None, vec![(items(&["a"]), 5)]).await;
        assert!(matches!(new.verdict, Verdict::New), "{new:?}");
        assert_eq!((new.usage.fuel, new.outcome.unwrap().items.len()), (5, 1));
        let same = tried(Some(items(&["a"])), vec![(items(&["a"]), 5)]).await;
        assert!(matches!(same.verdict, Verdict::Same), "{same:?}");
        let same = tried(Some(gives_up()), vec![(gives_up(), 5)]).await;
        assert!(matches!(same.verdict, Verdict::Same), "{same:?}");
        let other = tried(Some(items(&["a"])), vec![(gives_up(), 5)]).await;
        let Verdict::Differs(lines) = &other.verdict else {
            panic!("{other:?}");
        };
        assert!(lines.contains("+  \"error\": \"skip: old\","), "{lines}");
    }

    #[tokio::test]
    async fn a_call_that_is_not_the_same_each_time_is_found() {
        let cases = [
            (
                vec![(items(&["a"]), 5), (items(&["a"]), 5), (items(&["b"]), 5)],
                "\"b\"",
            ),
            (
                vec![(items(&["a"]), 5), (items(&["a"]), 6)],
                "call 2 used 6 fuel, the first 5",
            ),
            (
                vec![(items(&["a"]), 5), (ended(Kill::OutOfFuel), 5)],
                "call 2 was ended (out-of-fuel): too much",
            ),
        ];
        for (answers, expected) in cases {
            let unsteady = tried(Some(items(&["a"])), answers).await;
            let Verdict::Unsteady(how) = &unsteady.verdict else {
                panic!("{unsteady:?}");
            };
            assert!(how.contains(expected), "{how}");
        }
        let steady = vec![(items(&["a"]), 5), (items(&["a"]), 5)];
        let steady = tried(Some(items(&["a"])), steady).await;
        assert!(matches!(steady.verdict, Verdict::Same), "{steady:?}");
    }

    #[tokio::test]
    async fn a_call_that_the_host_ends_has_no_outcome() {
        let killed = tried(Some(items(&["a"])), vec![(ended(Kill::OutOfFuel), 9)]).await;
        assert!(matches!(killed.verdict, Verdict::Killed(_)), "{killed:?}");
        assert_eq!((killed.outcome, killed.usage.fuel), (None, 9));
        // The clock of a busy machine ended the call: that does not make the rule unsteady.
        let late = vec![(items(&["a"]), 5), (ended(Kill::OutOfCpu), 5)];
        let late = tried(Some(items(&["a"])), late).await;
        assert!(matches!(late.verdict, Verdict::Killed(_)), "{late:?}");
    }

    #[tokio::test]
    async fn a_rule_that_is_not_there_is_not_called() {
        let call = serde_json::from_str(&CALL.replace("\"word\"", "\"wrod\"")).unwrap();
        let error = trial(Vec::new()).make(Path::new("."), &call).await;
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "the plugin has no rule wrod; it has word");
    }

    #[test]
    fn limits_of_a_call_are_its_own_and_those_of_the_trial_before_them() {
        let saved = CALL.replace(
            "{\"rule\"",
            "{\"limits\": {\"fuel\": 7, \"items\": 8}, \"rule\"",
        );
        let call: SavedCall = serde_json::from_str(&saved).unwrap();
        let mut trial = trial(Vec::new());
        trial.limits.set("items", "9").unwrap();
        let Limits {
            fuel,
            items,
            requests,
            ..
        } = trial.limits(&call);
        assert_eq!((fuel, items, requests), (7, 9, Limits::default().requests));
    }
}
