//! The call that lists changes of items, and its answer.

use crawler_proto as proto;

use super::lists::bad_token;
use super::problem::Problem;
use super::{Api, CALL_DEADLINE, page_max};
use crawler_frontier::reader::ChangePage;
use crawler_master::control::changes::ChangeQuery;
use crawler_model::changes::{ChangeTotals, ItemChange};
use crawler_model::id::Run;

impl Api {
    pub(crate) async fn changes(
        &self,
        request: proto::ListChangesRequest,
    ) -> Result<proto::ListChangesResponse, Problem> {
        let call = async {
            let name = self.resource_name(&request.name)?;
            let from = match request.page_token.as_str() {
                "" => 0,
                token => token.parse::<u64>().map_err(|_| bad_token())?,
            };
            let query = ChangeQuery {
                run: Some(Run(request.run)).filter(|run| run.0 > 0),
                from,
                max: page_max(request.page_size),
            };
            Ok::<_, Problem>(changes(self.control.changes(&name, query).await?))
        };
        self.within(CALL_DEADLINE, Box::pin(call)).await
    }
}

pub(super) fn changes(page: ChangePage) -> proto::ListChangesResponse {
    proto::ListChangesResponse {
        changes: page.changes.into_iter().map(change).collect(),
        next_page_token: page.next.map(|next| next.to_string()).unwrap_or_default(),
        totals: Some(totals(page.totals)),
    }
}

fn change(change: ItemChange) -> proto::ItemChange {
    proto::ItemChange {
        change: change.change.to_string(),
        key: change.key,
        kind: change.kind,
        run: change.run.0,
        fields: change.fields,
        old: change.old,
        item: change.item,
    }
}

fn totals(totals: ChangeTotals) -> proto::ChangeTotals {
    proto::ChangeTotals {
        added: totals.added,
        changed: totals.changed,
        unchanged: totals.unchanged,
        removed: totals.removed,
        repeated: totals.repeated,
        lacking_key: totals.lacking_key,
        complete: totals.is_complete,
    }
}
