//! The calls about the schedule of a resource, and about its runs.

use crawler_proto as proto;

use super::client::Client;
use super::forward::Origin;
use super::problem::Problem;
use super::spec::invalid;
use super::{Api, CALL_DEADLINE, answer};
use crawler_master::ControlError;
use crawler_model::id::Run;
use crawler_model::schedule::{RawSchedule, ScheduleSpec};

impl Api {
    /// Lets runs of a resource begin by a schedule.
    pub(crate) async fn set_schedule(
        &self,
        origin: &Origin,
        request: proto::SetScheduleRequest,
    ) -> Result<proto::Schedule, Problem> {
        let proto::SetScheduleRequest { name, spec } = request;
        let call = async {
            let resource = &self.resource_name(&name)?;
            let spec = &schedule_spec(spec.unwrap_or_default())?;
            let own = || async move {
                let set = self
                    .control
                    .set_schedule(resource, spec.clone(), self.asked(origin));
                Ok(answer::schedule(set.await?))
            };
            let theirs =
                |leader: Client| async move { leader.set_schedule(resource, spec.clone()).await };
            self.change(origin, own, theirs).await
        };
        self.logged(origin, "SetSchedule", &name, call).await
    }

    /// Takes the schedule of a resource away.
    pub(crate) async fn delete_schedule(&self, origin: &Origin, name: &str) -> Result<(), Problem> {
        let call = async {
            let resource = &self.resource_name(name)?;
            let own = || async move {
                let deleted = self.control.delete_schedule(resource, self.asked(origin));
                Ok(deleted.await?)
            };
            let theirs = |leader: Client| async move { leader.delete_schedule(resource).await };
            self.change(origin, own, theirs).await
        };
        self.logged(origin, "DeleteSchedule", name, call).await
    }

    /// Lists the runs of a resource.
    pub(crate) async fn runs(&self, name: &str) -> Result<proto::ListRunsResponse, Problem> {
        let call = async {
            let name = self.resource_name(name)?;
            Ok::<_, Problem>(self.control.runs(&name).await?)
        };
        Ok(answer::runs(
            self.within(CALL_DEADLINE, Box::pin(call)).await?,
        ))
    }

    /// Compares two runs of a resource.
    pub(crate) async fn diff_runs(
        &self,
        request: proto::DiffRunsRequest,
    ) -> Result<proto::RunsDiff, Problem> {
        let call = async {
            let proto::DiffRunsRequest {
                name,
                before,
                after,
            } = request;
            let name = self.resource_name(&name)?;
            let diff = self.control.diff_runs(&name, Run(before), Run(after));
            Ok::<_, Problem>(diff.await?)
        };
        Ok(answer::runs_diff(
            self.within(CALL_DEADLINE, Box::pin(call)).await?,
        ))
    }

    /// Returns the schedule of a resource.
    pub(crate) async fn schedule(&self, name: &str) -> Result<proto::Schedule, Problem> {
        let call = async {
            let name = self.resource_name(name)?;
            Ok::<_, Problem>(self.control.schedule(&name).await?)
        };
        Ok(answer::schedule(self.within(CALL_DEADLINE, call).await?))
    }
}

/// Parses the schedule that a caller sets.
fn schedule_spec(message: proto::ScheduleSpec) -> Result<ScheduleSpec, ControlError> {
    let proto::ScheduleSpec {
        cron,
        tz,
        every_ms,
        jitter_ms,
        overlap,
        missed,
    } = message;
    let raw = RawSchedule {
        cron,
        tz,
        every_ms,
        jitter_ms,
        overlap,
        missed,
    };
    ScheduleSpec::try_from(raw).map_err(|error| invalid(error.setting, error))
}

/// Converts a schedule into a message.
pub(crate) fn schedule_message(spec: ScheduleSpec) -> proto::ScheduleSpec {
    let raw = RawSchedule::from(spec);
    proto::ScheduleSpec {
        cron: raw.cron,
        tz: raw.tz,
        every_ms: raw.every_ms,
        jitter_ms: raw.jitter_ms,
        overlap: raw.overlap,
        missed: raw.missed,
    }
}
