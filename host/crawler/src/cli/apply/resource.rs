//! One resource as a file declares it: read, compared, and changed in one call.
//!
//! The call is refused if somebody else has changed the resource since it was read; then it is read again. So no
//! change is half done, and none undoes another.

use anyhow::Context as _;

use super::ApplyOptions;
use crate::cli::Failure;
use crate::config::{Change, changes};
use crawler_api::client::{Client, ClientError};
use crawler_api::resource_spec;
use crawler_api::spec::SpecRequest;
use crawler_master::Code;
use crawler_master::control::Precondition;
use crawler_model::id::{Generation, ResourceId, ResourceName};
use crawler_model::resource::ResourceSpec;
use crawler_proto as proto;

/// Number of times that a resource is read before others count as too busy with it.
const MAX_TRIES: usize = 5;

/// Makes a resource as its file declares it. Returns the lines that tell what was done.
pub(super) async fn apply_resource(
    client: &Client,
    wanted: &ResourceSpec,
    options: &ApplyOptions,
) -> anyhow::Result<Vec<String>> {
    for _try in 0..MAX_TRIES {
        let applied = match client.resource(&wanted.name).await {
            Ok(present) => change(client, &present, wanted, options).await,
            Err(error) if has_code(&error, &[Code::NotFound]) => {
                create(client, wanted, options).await
            }
            Err(error) => Err(error.into()),
        };
        match applied {
            Err(error) if is_lost_race(&error) => {}
            applied => return applied,
        }
    }
    let what = format!("others changed it at the same time, {MAX_TRIES} times in a row");
    Err(Failure::new(what, "apply again").into())
}

async fn create(
    client: &Client,
    wanted: &ResourceSpec,
    options: &ApplyOptions,
) -> anyhow::Result<Vec<String>> {
    let name = &wanted.name;
    if options.is_dry_run {
        let bare = SpecRequest::named(name.clone()).into_spec()?;
        let changes = changes(&bare, wanted);
        return Ok(dry_lines(name, "created", &changes));
    }
    client
        .add_resource(SpecRequest::whole(wanted.clone()))
        .await?;
    Ok(vec![format!("resource {name} created")])
}

async fn change(
    client: &Client,
    present: &proto::Resource,
    wanted: &ResourceSpec,
    options: &ApplyOptions,
) -> anyhow::Result<Vec<String>> {
    let (name, spec) = (&wanted.name, resource_spec(present.spec())?);
    let differences = changes(&spec, wanted);
    if differences.is_empty() {
        let dry = if options.is_dry_run { " (dry run)" } else { "" };
        return Ok(vec![format!("resource {name} unchanged{dry}")]);
    }
    let only_by_restart = spec.only_by_restart(wanted);
    if let Some(field) = only_by_restart
        && !options.restarts
    {
        let what = format!("{} can only change with a new run", field.as_str());
        return Err(Failure::new(what, "--restart begins one").into());
    }
    if options.is_dry_run {
        let word = match only_by_restart {
            Some(_) => "updated, in a new run",
            None => "updated",
        };
        return Ok(dry_lines(name, word, &differences));
    }
    let request = SpecRequest {
        precondition: unchanged(present)?,
        ..SpecRequest::whole(wanted.clone())
    };
    let (changed, line) = match only_by_restart {
        Some(_) => {
            let changed = client.restart_resource(request).await?;
            let line = format!("resource {name} updated; run {} begins", changed.run);
            (changed, line)
        }
        None => {
            let changed = client.update_resource(request).await?;
            (changed, format!("resource {name} updated"))
        }
    };
    let left = changes(&resource_spec(changed.spec())?, wanted);
    match left.first() {
        // Somebody may have changed it since, who has the last word.
        _ if changed.generation > present.generation + 1 => Ok(vec![line]),
        None => Ok(vec![line]),
        Some(left) => {
            let what = format!("the master has left {} as it was", left.field);
            Err(Failure::new(what, "it is older than this program: upgrade the masters").into())
        }
    }
}

/// Returns the condition that a resource is still as it was read.
pub(super) fn unchanged(present: &proto::Resource) -> anyhow::Result<Precondition> {
    let id = present.spec().id.parse();
    let id = id.with_context(|| format!("the master sends the id {:?}", present.spec().id))?;
    let generation = Generation(present.generation);
    Ok(Precondition::unchanged(ResourceId(id), generation))
}

fn dry_lines(name: &ResourceName, word: &str, changes: &[Change]) -> Vec<String> {
    let head = format!("resource {name} {word} (dry run)");
    let changes = changes.iter();
    let changes = changes.map(|Change { field, old, new }| format!("  {field}: {old} → {new}"));
    std::iter::once(head).chain(changes).collect()
}

/// True if somebody else has added, changed or deleted the resource since it was read.
fn is_lost_race(error: &anyhow::Error) -> bool {
    let lost = [Code::Aborted, Code::AlreadyExists, Code::NotFound];
    let error = error.downcast_ref::<ClientError>();
    error.is_some_and(|error| has_code(error, &lost))
}

fn has_code(error: &ClientError, codes: &[Code]) -> bool {
    matches!(error, ClientError::Refused(problem) if codes.contains(&problem.code))
}
