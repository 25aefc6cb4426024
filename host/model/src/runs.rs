//! Runs of a resource that are over: their numbers, and the plugin and settings by which they were crawled.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::crawl::{Counts, Done, UnixMillis};
use super::id::{Digest, Generation, PluginRef, Run};
use super::named_settings::{differing, named_settings};
use super::resource::{Resource, ShardRecord, ShardState};

/// Largest number of runs that a resource remembers.
pub const RUNS_MAX: usize = 100;
/// Largest number of bytes of all runs that a resource remembers: with some room, what a record of the store may have.
const RUNS_BYTES_MAX: usize = 192 << 10;
/// Largest number of bytes of a reason that is remembered.
const REASON_MAX: usize = 256;
/// Largest number of reasons of dead letters that are remembered of a run: the most frequent ones.
const DEAD_REASONS_MAX: usize = 16;
/// Word under which all pages are counted that were given up for further reasons.
const OTHERS: &str = "others";
/// Largest number of bytes of a word for a reason of dead letters.
const WORD_MAX: usize = 64;
/// Number of hexadecimal digits of the hash of a setting's value.
const HASH_DIGITS: usize = 8;

/// Returns a reason as it is remembered: cut, if it is too long.
pub(super) fn cut_reason(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(REASON_MAX));
    reason
}

/// Last runs of a resource before the present one, as the store keeps them under `runs/<id>`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunHistory {
    /// The runs, the latest last.
    pub runs: Vec<EndedRun>,
    /// Beginning of the present run. `None` for the first run of a resource, and for one that a master of an earlier
    /// version began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<BegunRun>,
}

/// Beginning of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BegunRun {
    /// Number of the run.
    pub run: Run,
    /// Spec that it began with.
    pub spec: RunSpec,
}

/// A run that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedRun {
    /// Number of the run.
    pub run: Run,
    /// Time at which the run was requested; 0 if it is not known.
    #[serde(default)]
    pub started_at: UnixMillis,
    /// Time of its latest answer, or 0 if none came; that of its end if the next run ended it.
    pub ended_at: UnixMillis,
    /// Outcome of the run.
    #[serde(flatten)]
    pub outcome: RunOutcome,
    /// Pages that came to an end.
    pub pages: u64,
    /// Items stored.
    pub items: u64,
    /// Pages given up.
    pub dead: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Pages that were not given up, by their outcome; empty in records from before the field existed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outcomes: BTreeMap<String, u64>,
    /// Pages given up, by reason, as [`dead_reasons`] has them; empty in records from before the field existed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dead_by_reason: BTreeMap<String, u64>,
    /// Spec of the run, as [`RunHistory::spec_of`] has it. `None` in records from before the field existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<RunSpec>,
}

/// Spec of a run, by which runs are compared. It has no values, which may be long or secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Generation of the spec.
    pub generation: Generation,
    /// Plugin with its version, or as the user named it if none was found.
    pub plugin: PluginRef,
    /// Digest of the bytes of the plugin. `None` if none was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Settings that were given, by name, each with the beginning of a hash of its value. All params together are the
    /// setting `params`. Labels are left out: they change nothing in a run.
    pub settings: BTreeMap<String, String>,
}

impl RunSpec {
    /// Returns the spec that a resource has at present.
    pub fn of(resource: &Resource) -> Self {
        let spec = &resource.spec;
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in named_settings(spec) {
            let group = match name.split_once(' ') {
                Some(("label", _)) => continue,
                Some(("param", _)) => "params".to_owned(),
                None if name == "plugin" => continue,
                Some(_) | None => name.clone(),
            };
            *texts.entry(group).or_default() += &format!("{name}: {value}\n");
        }
        let hashed = texts.into_iter().map(|(name, text)| {
            let mut hash = Digest::of(text.as_bytes()).to_string();
            hash.truncate(HASH_DIGITS);
            (name, hash)
        });
        let pinned = resource.pinned.as_ref();
        Self {
            generation: resource.generation,
            plugin: PluginRef {
                name: spec.plugin.name.clone(),
                version: match pinned {
                    Some(pinned) => Some(pinned.version.clone()),
                    None => spec.plugin.version.clone(),
                },
            },
            digest: pinned.map(|pinned| pinned.digest),
            settings: hashed.collect(),
        }
    }

    /// Returns the names of the settings in which another run differs, in order. The plugin is none of them.
    pub fn differing(&self, other: &Self) -> Vec<String> {
        differing(&self.settings, &other.settings)
    }
}

/// Returns the pages of a run that were not given up, by outcome.
pub fn outcomes(counts: &Counts) -> BTreeMap<String, u64> {
    let mut outcomes = counts.outcomes.clone();
    if counts.parsed > 0 {
        outcomes.insert(Done::Parsed.as_str().to_owned(), counts.parsed);
    }
    outcomes
}

/// Returns the pages of a run that were given up, by reason. What is beyond the 16 most frequent reasons is counted as
/// `others`.
pub fn dead_reasons(counts: &Counts) -> BTreeMap<String, u64> {
    let mut reasons: Vec<_> = counts.dead_by_reason.iter().collect();
    reasons.sort_by_key(|(reason, n)| (std::cmp::Reverse(**n), *reason));
    let mut kept: BTreeMap<String, u64> = BTreeMap::new();
    for (place, (reason, n)) in reasons.into_iter().enumerate() {
        let word = match place < DEAD_REASONS_MAX {
            true => &reason[..reason.floor_char_boundary(WORD_MAX)],
            false => OTHERS,
        };
        *kept.entry(word.to_owned()).or_default() += *n;
    }
    kept
}

/// Outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "outcome")]
pub enum RunOutcome {
    /// The run came to its end.
    Finished,
    /// The run could not go on.
    Failed {
        /// Reason in one sentence.
        reason: String,
    },
    /// The next run ended it. Its numbers are those of the last change of its shards.
    Stopped,
}

impl RunOutcome {
    /// Returns the word that the API uses.
    pub fn as_str(&self) -> &'static str {
        match self {
            RunOutcome::Finished => "finished",
            RunOutcome::Failed { .. } => "failed",
            RunOutcome::Stopped => "stopped",
        }
    }

    /// Returns the reason of a failure; empty if there is none.
    pub fn reason(&self) -> &str {
        match self {
            RunOutcome::Failed { reason } => reason,
            RunOutcome::Finished | RunOutcome::Stopped => "",
        }
    }
}

impl EndedRun {
    /// Sums up a run that the next one follows now. The iterator yields its shards.
    pub fn of<'a>(
        run: Run,
        started_at: Option<UnixMillis>,
        shards: impl Iterator<Item = &'a ShardRecord>,
        now: UnixMillis,
    ) -> Self {
        let mut counts = Counts::default();
        let mut outcome = RunOutcome::Finished;
        for shard in shards {
            counts.add(&shard.counts);
            match &shard.state {
                ShardState::Failed { reason } => {
                    let reason = cut_reason(reason.clone());
                    outcome = RunOutcome::Failed { reason };
                }
                ShardState::Finished => {}
                ShardState::Free
                | ShardState::Assigned
                | ShardState::Idle
                | ShardState::Revoking => {
                    if outcome == RunOutcome::Finished {
                        outcome = RunOutcome::Stopped;
                    }
                }
            }
        }
        let ended_at = match &outcome {
            RunOutcome::Stopped => now,
            RunOutcome::Finished | RunOutcome::Failed { .. } => counts.ended_at,
        };
        Self {
            run,
            started_at: started_at.unwrap_or_default(),
            ended_at,
            outcome,
            pages: counts.pages(),
            items: counts.items,
            dead: counts.dead,
            bytes: counts.bytes,
            outcomes: outcomes(&counts),
            dead_by_reason: dead_reasons(&counts),
            spec: None,
        }
    }
}

impl RunHistory {
    /// Returns the spec that the present run of a resource began with. If that is not known, it is the one of now; the same
    /// goes for a plugin that was not there yet. The history may be read after the resource, and know that the run is over.
    pub fn spec_of(&self, resource: &Resource) -> RunSpec {
        let present = RunSpec::of(resource);
        let begun = self.begun.as_ref();
        let Some(begun) = begun.filter(|begun| begun.run == resource.run) else {
            let ended = self.runs.iter().find(|ended| ended.run == resource.run);
            let spec = ended.and_then(|ended| ended.spec.clone());
            return spec.unwrap_or(present);
        };
        match begun.spec.digest {
            Some(_) => begun.spec.clone(),
            None => RunSpec {
                plugin: present.plugin,
                digest: present.digest,
                ..begun.spec.clone()
            },
        }
    }

    /// Notes that the present run of a resource begins.
    pub fn begin(&mut self, resource: &Resource) {
        self.begun = Some(BegunRun {
            run: resource.run,
            spec: RunSpec::of(resource),
        });
    }

    /// Adds a run that is over. The oldest ones are forgotten if there are too many, or if they take too much room.
    pub fn push(&mut self, ended: EndedRun) {
        self.runs.push(ended);
        let mut n_bytes = 0;
        let from_latest = self.runs.iter().rev().take(RUNS_MAX);
        let kept = from_latest.take_while(|run| {
            n_bytes += size(run);
            n_bytes <= RUNS_BYTES_MAX
        });
        let n_beyond = self.runs.len() - kept.count();
        self.runs.drain(..n_beyond);
    }
}

/// Returns the bytes of a run in the record.
fn size(run: &EndedRun) -> usize {
    let json = serde_json::to_vec(run).expect("a run has text for keys in all its maps");
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ResourceId;
    use crate::resource::PinnedPlugin;
    use crate::settings::examples;

    fn shard(state: ShardState, parsed: u64) -> ShardRecord {
        ShardRecord {
            state,
            counts: Counts {
                parsed,
                dead: 1,
                items: 2 * parsed,
                began_at: 1_000,
                ended_at: 5_000 + parsed,
                ..Counts::default()
            },
            ..ShardRecord::new("books".parse().unwrap())
        }
    }

    #[track_caller]
    fn check(shards: &[ShardRecord], outcome: RunOutcome, ended_at: UnixMillis) {
        let ended = EndedRun::of(Run(3), Some(900), shards.iter(), 9_000);
        assert_eq!((ended.outcome, ended.ended_at), (outcome, ended_at));
        assert_eq!((ended.run, ended.started_at), (Run(3), 900));
    }

    #[test]
    fn a_run_ends_as_its_shards_did() {
        let failed = || ShardState::Failed {
            reason: "no".into(),
        };
        let finished = shard(ShardState::Finished, 10);
        let all = [finished.clone(), shard(ShardState::Finished, 20)];
        check(&all, RunOutcome::Finished, 5_020);
        let ended = EndedRun::of(Run(1), None, all.iter(), 9_000);
        assert_eq!((ended.pages, ended.items, ended.dead), (32, 60, 2));
        let reason = "no".to_owned();
        for others in [ShardState::Finished, ShardState::Assigned] {
            let shards = [
                shard(others.clone(), 1),
                shard(failed(), 2),
                shard(others, 3),
            ];
            let reason = reason.clone();
            check(&shards, RunOutcome::Failed { reason }, 5_003);
        }
        check(
            &[shard(ShardState::Assigned, 1), finished],
            RunOutcome::Stopped,
            9_000,
        );
        let unanswered = ShardRecord {
            counts: Counts::default(),
            ..shard(failed(), 1)
        };
        check(&[unanswered], RunOutcome::Failed { reason }, 0);
        check(&[], RunOutcome::Finished, 0);
    }

    #[test]
    fn the_oldest_run_is_forgotten_when_there_are_too_many() {
        let mut history = RunHistory::default();
        for run in 1..=RUNS_MAX as u64 + 5 {
            let long = ShardState::Failed {
                reason: "é".repeat(1_000),
            };
            history.push(EndedRun::of(Run(run), None, [shard(long, 1)].iter(), 9_000));
        }
        assert_eq!(history.runs.len(), RUNS_MAX);
        assert_eq!(history.runs[0].run, Run(6));
        let json = serde_json::to_string(&history).unwrap();
        assert!(json.len() < 50_000, "{}", json.len());
        assert_eq!(serde_json::from_str::<RunHistory>(&json).unwrap(), history);
    }

    fn resource(spec: &str) -> Resource {
        let pinned = PinnedPlugin {
            version: "1.2.0".parse().unwrap(),
            digest: Digest::of(b"plugin"),
            interface: String::new(),
        };
        Resource {
            id: ResourceId(1),
            assigned_node: String::new(),
            creation_time: 0,
            generation: Generation(4),
            run: Run(1),
            resharded_at: Run(0),
            run_started_at: None,
            pinned: Some(pinned),
            paused: false,
            requests: Vec::new(),
            spec: serde_json::from_str(spec).unwrap(),
        }
    }

    #[test]
    fn runs_are_compared_by_settings_without_their_values() {
        let before = resource(
            r#"{"name":"books","plugin":"books","params":{"start":"a","key":"secret"},
                "labels":{"team":"shop"},"crawl":{"delay_ms":9,"max_pages":7}}"#,
        );
        let same = resource(
            r#"{"name":"books","plugin":"books@1.2.0","params":{"start":"a","key":"secret"},
                "crawl":{"delay_ms":9,"max_pages":7}}"#,
        );
        let after = resource(
            r#"{"name":"books","plugin":"books","params":{"start":"a","key":"other"},
                "limits":{"items":5},"crawl":{"delay_ms":9,"max_depth":3}}"#,
        );
        let [before, same, after] = [&before, &same, &after].map(RunSpec::of);
        assert_eq!(before.differing(&same), [] as [&str; 0]);
        let expected = ["limit items", "max-depth", "max-pages", "params"];
        assert_eq!(before.differing(&after), expected);
        assert_eq!(before.plugin.to_string(), "books@1.2.0");
        let json = serde_json::to_string(&before).unwrap();
        assert!(!json.contains("secret") && !json.contains("team"), "{json}");
        assert_eq!(serde_json::from_str::<RunSpec>(&json).unwrap(), before);
    }

    #[test]
    fn a_run_keeps_the_settings_that_it_began_with() {
        let mut books = resource(r#"{"name":"books","plugin":"books","crawl":{"delay_ms":9}}"#);
        let mut history = RunHistory::default();
        let begun = RunSpec::of(&books);
        history.begin(&books);
        books.spec.crawl.max_pages = Some(7);
        books.generation = Generation(5);
        assert_eq!(history.spec_of(&books), begun);
        let read = serde_json::to_string(&history).unwrap();
        let read: RunHistory = serde_json::from_str(&read).unwrap();
        assert_eq!(read, history);
        // An earlier master has begun the next run.
        books.run = Run(2);
        assert_eq!(history.spec_of(&books), RunSpec::of(&books));
        // The plugin came later.
        let pinned = books.pinned.take();
        history.begin(&books);
        books.pinned = pinned;
        assert_eq!(history.spec_of(&books).digest, Some(Digest::of(b"plugin")));
    }

    #[test]
    fn a_run_that_has_just_ended_keeps_its_spec() {
        let mut books = resource(r#"{"name":"books","plugin":"books","crawl":{"delay_ms":9}}"#);
        let begun = RunSpec::of(&books);
        let mut history = RunHistory::default();
        let ended = EndedRun::of(books.run, None, std::iter::empty(), 9_000);
        history.push(EndedRun {
            spec: Some(begun.clone()),
            ..ended
        });
        let next = Resource {
            run: Run(books.run.0 + 1),
            ..books.clone()
        };
        history.begin(&next);
        // This is read before the next run begins, and the history after it.
        books.spec.crawl.max_pages = Some(7);
        assert_eq!(history.spec_of(&books), begun);
    }

    #[test]
    fn the_most_frequent_reasons_of_a_run_are_remembered() {
        let reasons = (0..20_u64).map(|n| (format!("reason-{n:02}"), n + 1));
        let counts = Counts {
            dead_by_reason: reasons.collect(),
            ..Counts::default()
        };
        let kept = dead_reasons(&counts);
        assert_eq!(kept.len(), DEAD_REASONS_MAX + 1);
        assert_eq!((kept["reason-19"], kept[OTHERS]), (20, 1 + 2 + 3 + 4));
    }

    #[test]
    fn runs_of_many_settings_and_reasons_have_a_bound() {
        let mut long = resource(r#"{"name":"books","plugin":"books"}"#);
        long.spec.crawl = examples();
        let params = (0..1_000).map(|n| (format!("param-{n}"), "x".repeat(100)));
        long.spec.params = params.collect();
        let reasons = (0..100_u64).map(|n| (format!("{n:02}{}", "é".repeat(300)), n));
        let shard = ShardRecord {
            counts: Counts {
                dead_by_reason: reasons.collect(),
                ..Counts::default()
            },
            ..shard(ShardState::Finished, 1)
        };
        let mut history = RunHistory::default();
        for run in 1..=100 {
            let ended = EndedRun::of(Run(run), None, std::iter::once(&shard), 9_000);
            history.push(EndedRun {
                spec: Some(RunSpec::of(&long)),
                ..ended
            });
            history.begin(&long);
        }
        let n_bytes = serde_json::to_string(&history).unwrap().len();
        assert!((1..=RUNS_BYTES_MAX + 8_000).contains(&n_bytes), "{n_bytes}");
        assert!(history.runs.len() > 30, "{}", history.runs.len());
        assert_eq!(history.runs.last().unwrap().run, Run(100));
    }

    #[test]
    fn a_run_of_an_earlier_version_has_no_spec() {
        let json = r#"{"run":1,"ended_at":2,"outcome":"failed","reason":"no","pages":3,"items":4,"dead":5,"bytes":6}"#;
        let ended: EndedRun = serde_json::from_str(json).unwrap();
        assert_eq!((ended.spec, ended.outcomes), (None, BTreeMap::new()));
        assert_eq!(ended.outcome.reason(), "no");
    }
}
