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
            let wanted = Some(Run(request.run)).filter(|run| run.0 > 0);
            let (run, from) = match request.page_token.as_str() {
                "" => (wanted, 0),
                token => {
                    let (run, from) = parsed(token, wanted).ok_or_else(bad_token)?;
                    (Some(run), from)
                }
            };
            let query = ChangeQuery {
                run,
                from,
                max: page_max(request.page_size),
            };
            Ok::<_, Problem>(changes(self.control.changes(&name, query).await?))
        };
        self.within(CALL_DEADLINE, Box::pin(call)).await
    }
}

pub(super) fn changes(page: ChangePage) -> proto::ListChangesResponse {
    let next = page.next.map(|next| token(page.run, next));
    proto::ListChangesResponse {
        changes: page.changes.into_iter().map(change).collect(),
        next_page_token: next.unwrap_or_default(),
        totals: Some(totals(page.totals)),
    }
}

/// Returns the token of the page that begins with this change. It holds the run: another one may have begun when it
/// comes back.
fn token(run: Run, number: u64) -> String {
    format!("{}.{number}", run.0)
}

/// Parses a page token: the run, which is the wanted one if the caller names it, and the number of a change.
fn parsed(token: &str, wanted: Option<Run>) -> Option<(Run, u64)> {
    let (run, number) = token.split_once('.')?;
    let run = Run(run.parse().ok()?);
    let is_wanted = run.0 > 0 && wanted.is_none_or(|wanted| wanted == run);
    let number = number.parse().ok()?;
    is_wanted.then_some((run, number))
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

pub(super) fn totals(totals: ChangeTotals) -> proto::ChangeTotals {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_token_holds_the_run() {
        let next = token(Run(7), 3);
        for wanted in [None, Some(Run(7))] {
            assert_eq!(parsed(&next, wanted), Some((Run(7), 3)));
        }
        assert_eq!(parsed(&next, Some(Run(8))), None);
        for other in ["3", "7.", ".3", "7.x", "0.3", "7.3.1"] {
            assert_eq!(parsed(other, None), None, "{other}");
        }
    }
}
