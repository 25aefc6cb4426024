//! Makes a saved call on copies of its page that have mistakes, and compares the items.

use std::path::Path;
use std::sync::Arc;

use crawler_extract::mutation::Mutation;
use encoding_rs::Encoding;
use sha2::{Digest as _, Sha256};

use super::changes::Changes;
use super::outcome::Outcome;
use super::saved::{CallName, SavedCall};
use super::trial::{Ready, ReadyCall, Trial, TrialError, outcome};
use crawler_fetch::charset::BINARY;
use crawler_model::page::Page;
use crawler_plugin::KillReport;

/// Choice of the copies of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copies {
    /// Number of copies for each way to mutate that is random.
    pub n_each: u32,
    /// Seed of the copies: the same seed makes the same copies, whichever other calls there are.
    pub seed: u32,
}

/// Outcomes of a call on the copies that were mutated in one way.
#[derive(Debug)]
pub struct MutationResult {
    /// Way to mutate.
    pub mutation: Mutation,
    /// Number of copies that differ from the page. Copies that do not differ are not tried.
    pub n_copies: u32,
    /// Number of these copies with the same outcome as the page.
    pub n_same: u32,
    /// Number of copies on which the rule gave up though it did not on the page.
    pub n_gave_up: u32,
    /// Number of copies on which the host ended the call.
    pub n_ended: u32,
    /// Changes on all copies on which the rule did not give up. `first` is the difference of the first copy
    /// that differs in any way.
    pub changes: Changes,
    /// Number of the copy with the first difference, from 1.
    pub first_copy: u32,
    /// First call that the host ended: the number of its copy and the report.
    pub ended: Option<(u32, Box<KillReport>)>,
}

impl MutationResult {
    /// Returns true if the host ended a call, or if the items changed though the page lost nothing.
    pub fn is_fault(&self) -> bool {
        self.n_ended > 0 || (self.mutation.is_harmless() && self.n_same < self.n_copies)
    }

    async fn add(&mut self, trial: &Trial, expected: &Outcome, ready: Ready) {
        self.n_copies += 1;
        let found = match outcome(trial.make_once(&ready).await.result) {
            Ok(found) => found,
            Err(report) => {
                self.n_ended += 1;
                self.ended.get_or_insert((self.n_copies, report));
                return;
            }
        };
        if found == *expected {
            self.n_same += 1;
            return;
        }
        if self.first_copy == 0 {
            self.first_copy = self.n_copies;
        }
        let mut changes = Changes::between(expected, &found);
        if found.error.is_some() && expected.error.is_none() {
            self.n_gave_up += 1;
            // The missing items follow from the error and are not counted.
            changes = Changes {
                first: changes.first,
                ..Changes::default()
            };
        }
        self.changes.add(changes);
    }
}

/// Makes a call on mutated copies of its page, by each way to mutate one. Returns nothing if the call has no
/// page, or one that is not HTML. `expected` is the outcome on the page itself.
pub async fn run(
    trial: &Trial,
    (folder, name): (&Path, &CallName),
    call: &SavedCall,
    expected: &Outcome,
    copies: Copies,
) -> Result<Vec<MutationResult>, TrialError> {
    let ready = trial.ready(folder, call)?;
    let ReadyCall::Rule(_, page, _) = &ready.called else {
        return Ok(Vec::new());
    };
    if !is_html(page) {
        return Ok(Vec::new());
    }
    let page = page.clone();
    let text = page.text();
    let mut all = Vec::new();
    for mutation in Mutation::ALL {
        let mut result = MutationResult {
            mutation,
            n_copies: 0,
            n_same: 0,
            n_gave_up: 0,
            n_ended: 0,
            changes: Changes::default(),
            first_copy: 0,
            ended: None,
        };
        let n_each = if mutation.is_random() {
            copies.n_each
        } else {
            1
        };
        for n in 0..n_each {
            let mutated = mutation.apply(&text, seed(copies.seed, name, mutation, n));
            if mutated != *text {
                let page = with_text(&page, mutated, mutation == Mutation::CutOff);
                result.add(trial, expected, ready.on(page)).await;
            }
        }
        all.push(result);
    }
    Ok(all)
}

/// Derives the seed of one copy; it does not depend on the other copies.
fn seed(seed: u32, name: &CallName, mutation: Mutation, n: u32) -> u64 {
    let text = format!("{seed} {name} {} {n}", mutation.as_str());
    let digest: [u8; 32] = Sha256::digest(text).into();
    let (first, _) = digest.split_first_chunk().expect("it has 32 bytes");
    u64::from_le_bytes(*first)
}

/// Returns true if the page is HTML. A page without a content type is taken for HTML, as rules do.
fn is_html(page: &Page) -> bool {
    let kind = page.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let is_html = ["", "text/html", "application/xhtml+xml"];
    page.text.charset != BINARY && is_html.iter().any(|html| kind.eq_ignore_ascii_case(html))
}

/// Returns the page with another text, in its own encoding.
fn with_text(page: &Arc<Page>, text: String, is_cut: bool) -> Page {
    let mut page = Page::clone(page);
    // A part of a page is handed to a rule only if the page is longer than the limit.
    page.truncated |= is_cut;
    match page.text.decoded {
        None => page.body = text.into(),
        Some(_) => {
            // The body is not written in UTF-16; only rules that decode the body themselves would see that.
            let encoding = Encoding::for_label(page.text.charset.as_bytes());
            let bytes = encoding.map(|encoding| encoding.encode(&text).0.into_owned());
            page.body = bytes.unwrap_or_default().into();
            page.text.decoded = Some(text);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use serde_json::json;

    use super::*;
    use crawler_fetch::charset;
    use crawler_model::crawl::{Item, Kill, PageContext, RuleError};
    use crawler_model::plugin::{Description, LimitOverrides};
    use crawler_plugin::{CallConfig, CallFailure, CallOutput, CallReport, Rules, Usage};

    type Answer = Result<CallOutput, CallFailure>;

    /// Rules that answer a call with the result of a function of the page's text.
    struct Twin {
        description: Description,
        answer: fn(&str) -> Answer,
    }

    #[async_trait]
    impl Rules for Twin {
        fn description(&self) -> &Description {
            &self.description
        }

        async fn root(&self, _: CallConfig, _: u64) -> CallReport {
            panic!("root has no page that could be mutated")
        }

        async fn parse(
            &self,
            _: CallConfig,
            _: &str,
            page: Arc<Page>,
            _: PageContext,
        ) -> CallReport {
            let kind = page.header("content-type");
            let read = charset::decode(&page.body, kind, None);
            let read = Page {
                text: read,
                ..Page::clone(&page)
            };
            assert_eq!(read.text(), page.text(), "the body is that of the text");
            CallReport {
                result: (self.answer)(&page.text()),
                logs: Vec::new(),
                n_logs_dropped: 0,
                usage: Usage::default(),
                place: None,
                reads: Vec::new(),
            }
        }
    }

    fn item(n: usize) -> Answer {
        let item = Item {
            schema: "list".to_owned(),
            json: json!({ "n": n }).to_string(),
        };
        Ok(CallOutput {
            items: vec![item],
            ..CallOutput::default()
        })
    }

    const PAGE: &[u8] = b"<ul><li>caf\xe9</li>\n<li>b</li></ul><p>c</p>\n";

    /// Tries a rule on mangled copies of a page.
    async fn tried(kind: &str, answer: fn(&str) -> Answer) -> Vec<MutationResult> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.html"), PAGE).unwrap();
        let page = json!({"url": "http://a.test/", "body": "a.html",
            "headers": [["content-type", kind]]});
        let call = json!({"rule": "list", "page": page});
        let call: SavedCall = serde_json::from_value(call).unwrap();
        let trial = Trial {
            limits: LimitOverrides::default(),
            params: [].into(),
            n_times: 1,
            rules: Arc::new(Twin {
                description: Description {
                    name: "lists".parse().unwrap(),
                    version: "1.0.0".parse().unwrap(),
                    rules: vec!["list".into()],
                    schemas: Vec::new(),
                    plans: Vec::new(),
                    hosts: Vec::new(),
                    params: None,
                    limits: [].into(),
                },
                answer,
            }),
        };
        let copies = Copies { n_each: 8, seed: 3 };
        let name: CallName = "a".parse().unwrap();
        let tried = trial.make(folder.path(), &call).await.unwrap();
        let expected = tried.outcome.unwrap();
        let at = (folder.path(), &name);
        run(&trial, at, &call, &expected, copies).await.unwrap()
    }

    const HTML: &str = "text/html; charset=windows-1252";

    #[tokio::test]
    async fn a_rule_that_reads_on_withstands_all_but_a_page_that_breaks_off() {
        let all = tried(HTML, |text| match text.matches("<li>").count() {
            2 => item(2),
            0 => Err(CallFailure::Rule(RuleError::Skip("no list".into()))),
            n => item(n),
        });
        let all = all.await;
        assert_eq!(all.len(), 4);
        let counts = |w: &MutationResult| [w.n_copies, w.n_same, w.n_gave_up, w.n_ended];
        assert_eq!(counts(&all[0]), [1, 1, 0, 0]);
        assert_eq!(counts(&all[1]), [8, 8, 0, 0]);
        assert_eq!(counts(&all[2]), [8, 8, 0, 0]);
        let cut = &all[3];
        assert_eq!(cut.mutation, Mutation::CutOff);
        let n_changed = u32::try_from(cut.changes.items.changed).unwrap();
        assert_eq!(cut.n_same + cut.n_gave_up + n_changed, 8, "{cut:?}");
        assert!(cut.n_same < 8 && cut.changes.first.is_some(), "{cut:?}");
        assert!(!all.iter().any(MutationResult::is_fault));
    }

    #[tokio::test]
    async fn a_rule_that_needs_what_may_be_left_out_is_at_fault() {
        let all = tried(HTML, |text| item(text.matches("</li>").count())).await;
        assert!(all[0].is_fault(), "{:?}", all[0]);
        let first = "item 1: list.n: 2 -> 0";
        assert_eq!(all[0].changes.first.as_deref(), Some(first));
        assert_eq!(all[0].changes.fields, [("list.n".to_owned(), 1)].into());
        assert!(!all[1].is_fault() && all[1].n_same < 8, "{:?}", all[1]);
    }

    #[tokio::test]
    async fn a_call_that_the_host_ends_is_a_fault() {
        let all = tried(HTML, |text| match text.matches("</").count() {
            5.. => Err(CallFailure::Killed(Box::new(KillReport {
                kill: Kill::OutOfFuel,
                message: "too many tags".into(),
                backtrace: Vec::new(),
            }))),
            _ => item(0),
        });
        let all = all.await;
        let ended: Vec<_> = all.iter().map(|w| (w.n_ended, w.is_fault())).collect();
        assert_eq!(ended, [(0, false), (0, false), (8, true), (0, false)]);
        let (copy, report) = all[2].ended.as_ref().unwrap();
        assert_eq!((*copy, report.message.as_str()), (1, "too many tags"));
    }

    #[tokio::test]
    async fn what_is_no_html_is_not_mutated() {
        for kind in ["application/json", "text/plain", "image/png"] {
            assert!(tried(kind, |_| item(1)).await.is_empty(), "{kind}");
        }
    }
}
