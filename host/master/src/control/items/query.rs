//! Choice of items: a run, and conditions on its items.

use super::ItemPosition;
use crate::ControlError;
use crawler_model::crawl::{ItemRecord, UnixMillis};
use crawler_model::id::Run;

/// Items that a caller wants.
#[derive(Debug, Clone, Default)]
pub struct ItemQuery {
    /// Run to read. If `None`, the present run, or the newest of a deleted resource.
    pub run: Option<Run>,
    /// Name of the schema. If `None`, items of all kinds.
    pub kind: Option<String>,
    /// Earliest time at which the page of an item was fetched.
    pub since: Option<UnixMillis>,
    /// Largest number of items: the first of those that the other conditions leave.
    pub limit: Option<u64>,
    /// True if further items are waited for until the run is over.
    pub follow: bool,
    /// Position at which a reader that was interrupted continues: in the run that it was reading, whatever has become of
    /// the resource.
    pub after: Option<ItemPosition>,
}

impl ItemQuery {
    /// Returns the run to read of a resource with this newest run.
    pub(super) fn run(&self, name: &str, newest: Run) -> Result<Run, ControlError> {
        match (&self.after, self.run) {
            (Some(after), Some(run)) if after.run != run => Err(ControlError::Invalid {
                field: "after",
                why: format!(
                    "the position {after} is of run {}, not of run {run}",
                    after.run
                ),
            }),
            (Some(after), _) => Ok(after.run),
            (None, None) => Ok(newest),
            (None, Some(run)) if run > Run(0) && run <= newest => Ok(run),
            (None, Some(run)) => Err(ControlError::NoRun {
                name: name.to_owned(),
                run,
                newest,
            }),
        }
    }

    /// Returns true for an item that meets the conditions.
    pub(super) fn wants(&self, item: &ItemRecord) -> bool {
        let is_of_kind = self.kind.as_ref().is_none_or(|kind| *kind == item.schema);
        is_of_kind && self.since.is_none_or(|since| item.fetched_at >= since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::ResourceId;

    #[track_caller]
    fn check(run: Option<u64>, after: Option<&str>, expected: Result<u64, &str>) {
        let query = ItemQuery {
            run: run.map(Run),
            after: after.map(|text| text.parse().unwrap()),
            ..ItemQuery::default()
        };
        let found = query
            .run("books", Run(3))
            .map_err(|error| error.to_string());
        assert_eq!(found, expected.map(Run).map_err(str::to_owned));
    }

    #[test]
    fn a_run_is_the_newest_unless_another_is_named() {
        check(None, None, Ok(3));
        check(Some(2), None, Ok(2));
        check(Some(3), None, Ok(3));
        check(
            Some(4),
            None,
            Err("resource books has no run 4: the newest is 3"),
        );
        check(
            Some(0),
            None,
            Err("resource books has no run 0: the newest is 3"),
        );
        check(None, Some("7.2.5"), Ok(2));
        check(Some(2), Some("7.2.5"), Ok(2));
        check(
            Some(3),
            Some("7.2.5"),
            Err("the position 7.2.5 is of run 2, not of run 3"),
        );
        let after: ItemPosition = "7.2.5".parse().unwrap();
        assert_eq!(after.resource, ResourceId(7));
    }
}
