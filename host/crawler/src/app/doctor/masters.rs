//! The masters, and the access token that they are shown.

use crate::cli::CalledMasters;
use crate::cli::doctor::{self, Finding};
use crawler_api::client::ClientError;

pub(super) async fn check(masters: &CalledMasters) -> Finding {
    match Box::pin(ask(masters)).await {
        Ok(finding) => finding,
        // A node is checked before there is a master, too.
        Err(error) if is_transient(&error) => {
            let found = format!("no master answers at {}", masters.urls.join(", "));
            Finding::warning("token", found, "start one, or name one with --master")
        }
        Err(error) => Finding::of_error("token", &error),
    }
}

async fn ask(masters: &CalledMasters) -> anyhow::Result<Finding> {
    let client = masters.connect().await?;
    Ok(doctor::of_caller(&client.caller().await?))
}

fn is_transient(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| {
        let error = cause.downcast_ref::<ClientError>();
        error.is_some_and(ClientError::is_transient)
    })
}
