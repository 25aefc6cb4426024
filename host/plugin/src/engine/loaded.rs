//! A loaded plugin: linked once, instantiated for every call.

use std::sync::Arc;

use async_trait::async_trait;
use crawler_schema::JsonSchema;
use sha2::Digest as _;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use super::Engine;
use super::budget::TooLarge;
use crate::admission::{Compiled, compiled_plans};
use crate::bindings::PluginPre;
use crate::host_calls::reads::Plans;
use crate::host_calls::{CallKind, CallState, Schemas};
use crate::host_error::host_error;
use crate::instance::{self, Call};
use crate::{CallConfig, CallFailure, CallReport, KillReport, PluginError, Rules, Usage, cache};
use crawler_model::crawl::{Kill, Page, PageContext, RuleError, UnixMillis};
use crawler_model::guest_text::GuestText;
use crawler_model::id::Digest;
use crawler_model::plugin::{Description, Schema};

/// A plugin that is ready to run.
pub struct Plugin {
    engine: Engine,
    digest: Digest,
    description: Arc<Description>,
    plans: Plans,
    schemas: Schemas,
    linked: PluginPre<CallState>,
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin")
            .field("digest", &self.digest)
            .field("description", &self.description)
            .finish_non_exhaustive()
    }
}

impl Plugin {
    pub(super) fn new(
        engine: Engine,
        digest: Digest,
        compiled: Compiled,
    ) -> Result<Self, PluginError> {
        let component = cache::deserialize(&engine.shared.wasmtime, &compiled.image)
            .map_err(host_error("load the compiled plugin"))?;
        let linked = engine
            .link(&component)
            .map_err(host_error("link the compiled plugin"))?;
        // They compiled once already, at admission.
        let plans = compiled_plans(&compiled.description.plans);
        let plans = plans.map_err(|why| PluginError::Host {
            doing: "compile the plans of the plugin",
            why: why.to_string(),
        })?;
        let schemas = compiled.description.schemas.iter().map(readable);
        let schemas: Vec<_> = schemas.collect();
        Ok(Self {
            engine,
            digest,
            description: Arc::new(compiled.description),
            plans: plans.into(),
            schemas: schemas.into(),
            linked,
        })
    }

    /// Returns the digest of the plugin's bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the span of one call, its wait for room included.
    fn span(&self, rule: &str) -> Span {
        let Description { name, version, .. } = &*self.description;
        tracing::debug_span!("call", %rule, plugin = %format_args!("{name}@{version}"))
    }

    async fn call(
        &self,
        kind: CallKind,
        rule: Option<u32>,
        config: CallConfig,
        now: UnixMillis,
        seed: [u8; 32],
    ) -> CallReport {
        let counts = self.engine.counts();
        let granted = config.limits.of_plugin(&self.description);
        let asked = Instant::now();
        let room = match self.engine.shared.calls.enter(granted.memory).await {
            Ok(room) => room,
            Err(refused) => {
                let report = no_room(&refused);
                counts.note(&report, asked.elapsed());
                return report;
            }
        };
        let waited = asked.elapsed();
        let call = Call {
            kind,
            description: Some(Arc::clone(&self.description)),
            plans: Arc::clone(&self.plans),
            schemas: Arc::clone(&self.schemas),
            config,
            now,
            seed,
        };
        let report = instance::run(&self.linked, call, rule).await;
        drop(room);
        counts.note(&report, waited);
        report
    }
}

/// Returns the schema that items are checked by, if it can be read. Admission refuses a schema that cannot be
/// read, but a plugin may have been pushed before it did.
fn readable(schema: &Schema) -> Option<JsonSchema> {
    let read = schema.read();
    read.unwrap_or_else(|why| {
        tracing::warn!(schema = schema.name, %why, "items are not checked; push the plugin again to see why");
        None
    })
}

#[async_trait]
impl Rules for Plugin {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn root(&self, config: CallConfig, now: u64) -> CallReport {
        let mut seed = Seed::new(&self.digest, "root");
        for (name, value) in config.params.iter() {
            seed.part(name.as_bytes());
            seed.part(value.as_bytes());
        }
        self.call(CallKind::Root, None, config, now, seed.finish())
            .instrument(self.span("root"))
            .await
    }

    async fn parse(
        &self,
        config: CallConfig,
        rule: &str,
        page: Arc<Page>,
        context: PageContext,
    ) -> CallReport {
        let Some(number) = self
            .description
            .rules
            .iter()
            .position(|name| **name == *rule)
        else {
            return no_such_rule(rule, &self.description);
        };
        let mut seed = Seed::new(&self.digest, "parse");
        seed.part(rule.as_bytes());
        seed.part(page.requested_url.as_str().as_bytes());
        let now = page.fetched_at;
        let number = u32::try_from(number).expect("admission allows 256 rules");
        self.call(
            CallKind::Parse(page, context),
            Some(number),
            config,
            now,
            seed.finish(),
        )
        .instrument(self.span(rule))
        .await
    }
}

/// Reports a call that has no room. Other workers may have more room, and so may this one after a restart, so
/// the host is to blame, not the rule.
fn no_room(refused: &TooLarge) -> CallReport {
    CallReport {
        result: Err(CallFailure::Killed(Box::new(KillReport {
            kill: Kill::NoRoom,
            message: GuestText::of(refused),
            backtrace: Vec::new(),
        }))),
        logs: Vec::new(),
        n_logs_dropped: 0,
        usage: Usage::default(),
        place: None,
        reads: Vec::new(),
    }
}

fn no_such_rule(rule: &str, description: &Description) -> CallReport {
    CallReport {
        result: Err(CallFailure::Rule(RuleError::Fatal(GuestText::of(
            format_args!(
                "plugin {}@{} has no rule {rule:?}; it has {}",
                description.name,
                description.version,
                description.rules.join(", ")
            ),
        )))),
        logs: Vec::new(),
        n_logs_dropped: 0,
        usage: Usage::default(),
        place: None,
        reads: Vec::new(),
    }
}

/// Seed of a guest's random numbers: the same call gets the same ones, everywhere.
struct Seed(sha2::Sha256);

impl Seed {
    fn new(digest: &Digest, call: &str) -> Self {
        let mut seed = Self(sha2::Sha256::new());
        seed.part(digest.as_bytes());
        seed.part(call.as_bytes());
        seed
    }

    fn part(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}
