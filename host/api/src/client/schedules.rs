//! The calls about the schedule of a resource, and about its runs.

use crawler_proto as proto;

use super::{CALL_DEADLINE, Client, ClientError};
use crate::schedules::schedule_message;
use crawler_model::id::{ResourceName, Run};
use crawler_model::schedule::ScheduleSpec;

impl Client {
    /// Lets runs of a resource begin by a schedule.
    pub async fn set_schedule(
        &self,
        name: &ResourceName,
        spec: ScheduleSpec,
    ) -> Result<proto::Schedule, ClientError> {
        let message = proto::SetScheduleRequest {
            name: name.to_string(),
            spec: Some(schedule_message(spec)),
        };
        let call = self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.set_schedule(message).await }
        });
        call.await
    }

    /// Takes the schedule of a resource away.
    pub async fn delete_schedule(&self, name: &ResourceName) -> Result<(), ClientError> {
        let name = name.to_string();
        let message = proto::ResourceRequest { name };
        let call = self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.delete_schedule(message).await }
        });
        call.await
    }

    /// Returns the runs of a resource that are remembered, the latest first.
    pub async fn runs(&self, name: &ResourceName) -> Result<Vec<proto::RunSummary>, ClientError> {
        let name = name.to_string();
        let message = proto::ResourceRequest { name };
        let answer = self.read(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.list_runs(message).await }
        });
        Ok(answer.await?.runs)
    }

    /// Compares two runs of a resource.
    pub async fn diff_runs(
        &self,
        name: &ResourceName,
        before: Run,
        after: Run,
    ) -> Result<proto::RunsDiff, ClientError> {
        let message = proto::DiffRunsRequest {
            name: name.to_string(),
            before: before.0,
            after: after.0,
        };
        self.read(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.diff_runs(message).await }
        })
        .await
    }

    /// Returns the schedule of a resource.
    pub async fn schedule(&self, name: &ResourceName) -> Result<proto::Schedule, ClientError> {
        let name = name.to_string();
        let message = proto::ResourceRequest { name };
        self.read(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.get_schedule(message).await }
        })
        .await
    }
}
