//! `page.choose-links`: captures of a field whose addresses meet conditions. A rule gets their positions, and the
//! addresses stay with the host.

use std::sync::Arc;

use crawler_extract::{
    ADDRESS_MAX, Captures, ChooseBudget, ChooseError, LinkConditions, LinkFilter,
};
use url::Url;

use super::extract::{no_page, too_slow};
use super::named_bytes;
use super::state::{CallKind, CallState};
use crate::bindings::crawler::rules::types;
use crawler_model::crawl::URL_MAX;
use crawler_model::plugin::LimitName;

/// Largest fuel of links that are told apart on the executor's thread, in a few milliseconds: that of about a thousand
/// short ones.
const MAX_FUEL_AT_ONCE: u64 = 4 << 20;

// A link that may be followed may be chosen.
const _: () = assert!(ADDRESS_MAX == URL_MAX);

impl CallState {
    pub(super) async fn chosen_links(
        &mut self,
        plan: u32,
        field: u32,
        filter: types::LinkFilter,
    ) -> wasmtime::Result<Result<Vec<u32>, types::ChooseError>> {
        let patterns = filter.matching.iter().chain(&filter.not_matching);
        let n_bytes = patterns.map(String::len).sum::<usize>() + named_bytes(&filter.hints);
        self.charge(n_bytes)?;
        let reading = match self.read(plan).await? {
            Ok(reading) => reading,
            Err(error) => return Ok(Err(types::ChooseError::Unread(error))),
        };
        let description = self.described("chose links")?;
        let name = &description.plans[plan as usize].name;
        self.warn_if_cut(plan, name, &reading.captures);
        let (compiled, fuel) = LinkFilter::new(&conditions(filter));
        self.meter.charge(fuel);
        self.check_fuel()?;
        let filter = match compiled {
            Ok(filter) => filter,
            Err(error) => return Ok(Err(types::ChooseError::Refused(error.to_string()))),
        };
        let CallKind::Parse(page, _) = &self.kind else {
            return Err(no_page().into());
        };
        let (page, field) = (Arc::clone(page), field as usize);
        let before = self.limits.fuel.saturating_sub(self.meter.used());
        let budget = ChooseBudget {
            address_bytes: usize::try_from(self.limits.capture_bytes).unwrap_or(usize::MAX),
            deadline: self.limits.cpu.saturating_sub(self.reads.time),
        };
        let is_long = is_long(&filter, &reading.captures, field, &reading.base);
        let choose = move || {
            let mut left = before;
            let places = (&page.url, &reading.base);
            let chosen = filter.choose(&reading.captures, field, places, &budget, &mut left);
            (chosen, left)
        };
        let (chosen, left) = self.timed(is_long, choose).await?;
        let used = match &chosen {
            // More than there is: the call ends.
            Err(ChooseError::OutOfFuel) => before.saturating_add(1),
            _ => before - left,
        };
        self.meter.charge(used);
        let n_chosen = chosen.as_ref().map_or(0, Vec::len);
        self.charge(n_chosen * size_of::<u32>())?;
        match chosen {
            Ok(chosen) => Ok(Ok(chosen)),
            Err(ChooseError::TooSlow { .. }) => Err(too_slow("choosing links").into()),
            Err(ChooseError::TooLarge { limit }) => {
                let why = format!(
                    "the addresses of the links have more than {limit} bytes together; raise it with --limit {}=VALUE, or skip the page",
                    LimitName::CaptureBytes
                );
                let why = types::ExtractError::TooLarge(why);
                Ok(Err(types::ChooseError::Unread(why)))
            }
            Err(error) => Ok(Err(types::ChooseError::Refused(error.to_string()))),
        }
    }
}

/// Returns true if choosing from these links would make others wait.
fn is_long(filter: &LinkFilter, captures: &Captures, field: usize, base: &Url) -> bool {
    filter.max_fuel(captures, field, base) > MAX_FUEL_AT_ONCE
}

fn conditions(filter: types::LinkFilter) -> LinkConditions {
    LinkConditions {
        within_host: filter.within_host,
        matching: filter.matching,
        not_matching: filter.not_matching,
        distinct: filter.distinct,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_extract::Column;

    #[track_caller]
    fn check(n_links: u32, n_bytes: u32, pattern: Option<&str>, expected: bool) {
        let captures = Captures {
            text: "x".repeat(n_bytes as usize),
            columns: vec![Column {
                rows: vec![0; n_links as usize],
                spans: [0, n_bytes].repeat(n_links as usize),
            }],
            ..Captures::default()
        };
        let (filter, _fuel) = LinkFilter::new(&LinkConditions {
            matching: pattern.into_iter().map(str::to_owned).collect(),
            ..LinkConditions::default()
        });
        let base = Url::parse("http://a.test/").unwrap();
        let found = is_long(&filter.unwrap(), &captures, 0, &base);
        assert_eq!(found, expected, "{n_links} {n_bytes} {pattern:?}");
    }

    #[test]
    fn many_or_long_links_and_large_patterns_are_judged_elsewhere() {
        check(0, 0, Some("a{1000}"), false);
        check(1_000, 10, None, false);
        check(1_000, 10, Some("/books/"), false);
        check(2_000, 10, None, true);
        check(10, 8_000, None, false);
        check(10, 8_000, Some("a{1000}"), true);
        check(100, 8_000, None, true);
    }
}
