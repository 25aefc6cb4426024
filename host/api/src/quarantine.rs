//! The calls about held items, and their answers.

use crawler_proto as proto;

use super::answer;
use super::client::Client;
use super::forward::Origin;
use super::lists::bad_token;
use super::problem::Problem;
use super::{Api, CALL_DEADLINE, page_max};
use crawler_frontier::reader::HeldPage;
use crawler_master::control::quarantine::{Decided, HoldId};
use crawler_model::drift::{Action, Departs, Hold};

impl Api {
    pub(crate) async fn quarantine(
        &self,
        name: &str,
    ) -> Result<proto::ListQuarantineResponse, Problem> {
        let call = async {
            let name = self.resource_name(name)?;
            Ok::<_, Problem>(holds(self.control.holds(&name).await?))
        };
        self.within(CALL_DEADLINE, Box::pin(call)).await
    }

    pub(crate) async fn held_items(
        &self,
        request: proto::ReadQuarantineRequest,
    ) -> Result<proto::ReadQuarantineResponse, Problem> {
        let call = async {
            let name = self.resource_name(&request.name)?;
            let hold = hold_id(&request.hold)?;
            let from = match request.page_token.as_str() {
                "" => 0,
                token => token.parse().map_err(|_| bad_token())?,
            };
            let max = page_max(request.page_size);
            let page = self.control.held_items(&name, hold, from, max);
            Ok::<_, Problem>(items(page.await?))
        };
        self.within(CALL_DEADLINE, Box::pin(call)).await
    }

    /// Releases or drops held items: those of one hold, or all that there are now if none is named.
    pub(crate) async fn decide_quarantine(
        &self,
        origin: &Origin,
        request: proto::DecideQuarantineRequest,
    ) -> Result<proto::DecideQuarantineResponse, Problem> {
        let call = async {
            let name = &self.resource_name(&request.name)?;
            let action = request.action.parse::<Action>();
            let action = action.map_err(|why| Problem::invalid(format!("action {why}"), ""))?;
            let only: Option<HoldId> = match request.hold.as_str() {
                "" => None,
                hold => Some(hold_id(hold)?),
            };
            let own = || async move {
                let decided = self
                    .control
                    .decide_held(name, action, only, self.asked(origin));
                Ok(answered(decided.await?))
            };
            let theirs =
                |leader: Client| async move { leader.decide_quarantine(name, action, only).await };
            self.change(origin, own, theirs).await
        };
        self.logged(origin, "DecideQuarantine", &request.name, call)
            .await
    }
}

fn hold_id(text: &str) -> Result<HoldId, Problem> {
    let parsed = text.parse::<HoldId>();
    parsed.map_err(|why| Problem::invalid(why, ""))
}

pub(super) fn holds(found: Vec<(HoldId, Hold)>) -> proto::ListQuarantineResponse {
    let holds = found.into_iter().map(|(id, hold)| proto::Hold {
        id: id.to_string(),
        run: hold.run.0,
        kind: hold.group.kind,
        host: hold.group.host,
        field: hold.departure.field,
        departs: word(hold.departure.departs).to_owned(),
        before: hold.departure.before,
        now: hold.departure.now,
        plugin: hold.plugin.to_string(),
        since: hold.since,
        items: hold.n_items,
        bytes: hold.n_bytes,
    });
    proto::ListQuarantineResponse {
        holds: holds.collect(),
    }
}

pub(super) fn items(page: HeldPage) -> proto::ReadQuarantineResponse {
    let next = page.next.map(|next| next.to_string());
    let items = page.items.into_iter();
    // The position of a held item is its number, from which no reader of items goes on.
    let items = items.map(|(number, record)| answer::item_at(number.to_string(), record));
    proto::ReadQuarantineResponse {
        items: items.collect(),
        next_page_token: next.unwrap_or_default(),
    }
}

pub(super) fn answered(decided: Decided) -> proto::DecideQuarantineResponse {
    proto::DecideQuarantineResponse {
        holds: decided.n_holds,
        items: decided.n_items,
    }
}

fn word(departs: Departs) -> &'static str {
    match departs {
        Departs::Presence => "presence",
        Departs::Type => "type",
        Departs::Length => "length",
        Departs::Number => "number",
        Departs::Distinct => "distinct",
    }
}
