//! Native reading by plans: the same code that the crawler runs, with its default limits unless they are set.

use std::time::Duration;

use crawler_extract::{
    Budget, ChooseBudget, CompiledPlan, Field, Group, LinkConditions, PlanLimits, Take, extract,
};
use url::Url;

use super::{Answer, Outlet};
use crate::extract::derived;
use crate::extract::page_links::{HREF, LinkFilter};
use crate::extract::reading::{Captures, Reading};
use crate::{Follow, PageLinks, Plan, Request, Result, RuleError};

/// Deadline that is long enough for unoptimized code on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

impl Answer {
    /// Returns a number that nothing uses: only the sandbox looks up plans by number.
    pub(crate) fn links_plan(&self) -> u32 {
        u32::MAX
    }

    pub(crate) fn extract(&self, _number: u32, plan: &Plan) -> Result<Captures> {
        let captures = self.read(plan)?;
        let base = self.base(&captures)?;
        let columns = captures.columns.into_iter();
        Ok(Captures {
            text: captures.text,
            groups: captures.groups,
            columns: columns.map(|column| (column.rows, column.spans)).collect(),
            base: base.map(String::from),
            truncated: captures.truncated,
        })
    }

    pub(crate) fn choose_links(
        &self,
        _number: u32,
        plan: &Plan,
        field: u32,
        filter: LinkFilter,
    ) -> Result<Vec<u32>> {
        // Native tests count no fuel.
        let (filter, _fuel) = crawler_extract::LinkFilter::new(&LinkConditions {
            within_host: filter.within_host,
            matching: filter.matching,
            not_matching: filter.not_matching,
            distinct: filter.distinct,
        });
        let filter = filter.map_err(|why| RuleError::fatal(why.to_string()))?;
        let captures = self.read(plan)?;
        let url = Url::parse(&self.url)?;
        let base = self.base(&captures)?.unwrap_or_else(|| url.clone());
        let budget = ChooseBudget {
            deadline: DEADLINE,
            ..ChooseBudget::default()
        };
        let places = (&url, &base);
        let chosen = filter.choose(&captures, field as usize, places, &budget, &mut {
            u64::MAX
        });
        Ok(chosen?)
    }

    fn read(&self, plan: &Plan) -> Result<crawler_extract::Captures> {
        // A plugin with such a plan could not be pushed.
        let plan = CompiledPlan::new(&engine_plan(plan), &PlanLimits::default())
            .map_err(|why| RuleError::fatal(why.to_string()))?;
        let mut budget = Budget {
            deadline: DEADLINE,
            ..Budget::default()
        };
        if let Some(n) = self.captures_limit {
            budget.n_captures = n;
        }
        Ok(extract(&plan, &self.text(), &budget)?)
    }

    /// Returns the base that the page declares, if it leads to pages.
    fn base(&self, captures: &crawler_extract::Captures) -> Result<Option<Url>> {
        let url = Url::parse(&self.url)?;
        let base = captures.base.as_ref();
        let base = base.and_then(|base| url.join(base).ok());
        Ok(base.filter(|base| matches!(base.scheme(), "http" | "https")))
    }
}

impl Outlet {
    pub(crate) fn follow_page_links(
        &mut self,
        links: &PageLinks<'_>,
        chosen: Option<&[u32]>,
        follow: Follow,
    ) -> Result {
        let reading = links.reading()?;
        self.follow_captures(links.number(), reading, HREF, chosen, follow)
    }

    pub(crate) fn follow_captures(
        &mut self,
        _plan: u32,
        reading: &Reading,
        field: u32,
        chosen: Option<&[u32]>,
        follow: Follow,
    ) -> Result {
        let all = || (0..reading.n_captures(field)).collect();
        let chosen: Vec<u32> = chosen.map_or_else(all, <[u32]>::to_vec);
        for position in chosen {
            let href = reading.text(field, position);
            let mut request = Request::get(href, follow.rule);
            request.priority = follow.priority;
            request.state = follow.state.clone();
            request.reload = follow.reload;
            request.hints = follow.hints.clone();
            self.take(request, reading.join(href));
        }
        Ok(())
    }
}

fn engine_plan(plan: &Plan) -> crawler_extract::Plan {
    let flat = plan.shape.flat();
    let groups = flat.groups.into_iter().map(|group| Group {
        name: group.name,
        parent: group.parent,
        selector: group.selector,
    });
    let fields = flat.fields.into_iter().map(|field| Field {
        name: field.name,
        group: field.group,
        selector: field.selector,
        take: match field.take {
            derived::Take::Text => Take::Text,
            derived::Take::Raw => Take::TextRaw,
            derived::Take::Inner => Take::Inner,
            derived::Take::Attr(name) => Take::Attr(name.to_owned()),
            derived::Take::Present => Take::Present,
            derived::Take::Tag => Take::Tag,
        },
        first: field.first,
        keep: field.keep,
    });
    crawler_extract::Plan {
        name: plan.name.to_owned(),
        groups: groups.collect(),
        fields: fields.collect(),
    }
}
