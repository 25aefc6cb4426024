//! Health of one process, a master or a worker, as its gRPC listener tells it to everybody.

use std::time::Duration;

use tonic::Status;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::connector::Callee;
use super::error::ClientError;
use super::masters::{parse, unreachable};
use super::transport::{ConnectionFailure, transport_failure};
use crate::grpc::JOINED;
use crate::problem::Problem;
use crate::tls::ClientTls;

/// Time that the process may take to answer, with the connection.
const DEADLINE: Duration = Duration::from_secs(5);

/// Health of a process that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// The process answers calls, and does not belong to the cluster yet.
    Waits,
    /// The process belongs to the cluster.
    Joined,
}

/// Asks the process at this URL, once. A URL with `https://` is called with the certificates in `tls`.
pub async fn health(url: &str, tls: &ClientTls) -> Result<Health, ClientError> {
    let server = parse(url, tls, Callee::Node)?;
    let asked = async {
        let channel = server.connect().await;
        let channel = channel.map_err(|error| unreachable(url, ConnectionFailure::of(&error)))?;
        let request = HealthCheckRequest {
            service: JOINED.to_owned(),
        };
        let answer = HealthClient::new(channel).check(request).await;
        let answer = answer.map_err(|status| refused(url, &status))?;
        Ok::<Health, ClientError>(match answer.into_inner().status() {
            ServingStatus::Serving => Health::Joined,
            ServingStatus::Unknown | ServingStatus::NotServing | ServingStatus::ServiceUnknown => {
                Health::Waits
            }
        })
    };
    let too_late = |_elapsed| ClientError::Unreachable {
        url: url.to_owned(),
        why: format!("no answer within {} s", DEADLINE.as_secs()),
    };
    tokio::time::timeout(DEADLINE, asked)
        .await
        .map_err(too_late)?
}

fn refused(url: &str, status: &Status) -> ClientError {
    match transport_failure(status) {
        Some(failure) => unreachable(url, failure),
        None => ClientError::Refused(Problem::from_status(status)),
    }
}
