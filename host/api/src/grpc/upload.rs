//! Upload of a plugin that is pushed in pieces.

use bytes::BytesMut;
use crawler_proto as proto;
use tonic::{Code, Status, Streaming};

use crate::problem::Problem;
use crate::push::{PushRequest, Upload};
use crawler_master::ControlError;

/// Gathers the pieces of a plugin, up to the largest size that a plugin may have.
pub(super) async fn upload(
    mut pieces: Streaming<proto::PushPluginRequest>,
    max: u64,
) -> Result<Upload, Problem> {
    let mut request = None;
    let mut bytes = BytesMut::new();
    let broken = |status: Status| match status.code() {
        // There is no room for it now, which is no fault of the plugin.
        Code::ResourceExhausted => Problem::passing(status.message(), "push it again in a moment"),
        _ => Problem::invalid(
            format!("the plugin did not arrive whole: {}", status.message()),
            "push it again",
        ),
    };
    while let Some(piece) = pieces.message().await.map_err(broken)? {
        request.get_or_insert(PushRequest {
            push_as: piece.r#as,
            allow_breaking: piece.allow_breaking,
        });
        if bytes.len() as u64 + piece.chunk.len() as u64 > max {
            return Err(ControlError::PluginTooLarge { max }.into());
        }
        bytes.extend_from_slice(&piece.chunk);
    }
    Ok(Upload {
        request: request.unwrap_or_default(),
        bytes: bytes.freeze(),
    })
}
