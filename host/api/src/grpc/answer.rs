//! Answers of gRPC: a message, a stream or a status.

use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use tonic::{Response, Status};

use crate::problem::Problem;
use crawler_master::ControlError;

pub(super) type Answer<T> = Result<Response<T>, Status>;

pub(super) type Stream<T> = BoxStream<'static, Result<T, Status>>;

/// Waits for a call and returns its answer.
pub(super) async fn answer<M>(call: impl Future<Output = Result<M, Problem>>) -> Answer<M> {
    match call.await {
        Ok(message) => Ok(Response::new(message)),
        Err(problem) => Err(problem.to_status()),
    }
}

/// Waits for a stream to open and returns its messages.
pub(super) async fn stream<M: 'static>(
    call: impl Future<Output = Result<BoxStream<'static, Result<M, Problem>>, Problem>>,
) -> Answer<Stream<M>> {
    let messages = call.await.map_err(|p| p.to_status())?;
    let messages = messages.map_err(|problem| problem.to_status());
    Ok(Response::new(messages.boxed()))
}

pub(super) fn refused(error: ControlError) -> Status {
    Problem::from(error).to_status()
}
