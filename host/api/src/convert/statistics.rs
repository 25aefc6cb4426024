//! Conversion of statistics of a run.

use crawler_proto as proto;

use super::crawl::{counts_message, totals};
use crawler_model::id::Run;
use crawler_model::statistics::{
    HostLinks, Kind, LostRoot, PlanMatches, RunStatistics, Statistics, TopHosts,
};

/// Returns the message for statistics of a run.
pub fn statistics_message(of: RunStatistics) -> proto::RunStatistics {
    let (rate, took_ms) = (of.rate(), of.counts.took_ms());
    let statistics = of.statistics;
    let statuses = statistics.statuses.into_iter();
    let hosts = statistics.refused_hosts.into_iter();
    let hosts = hosts.map(|(reason, hosts)| (reason, hosts_message(&hosts)));
    let kinds = statistics.kinds.into_iter();
    let plans = statistics.plans.into_iter();
    let roots = statistics.lost_roots.into_iter();
    proto::RunStatistics {
        run: of.run.0,
        counts: Some(counts_message(of.counts, 0)),
        statuses: statuses.map(|(status, n)| (status.into(), n)).collect(),
        refused_hosts: hosts.collect(),
        dead_examples: statistics.dead_examples,
        lost_roots: roots.map(root_message).collect(),
        kinds: kinds
            .map(|(name, kind)| (name, kind_message(kind)))
            .collect(),
        plans: plans
            .map(|(name, plan)| (name, plan_message(plan)))
            .collect(),
        end: of.end,
        // More digits say nothing about a crawl.
        rate: (rate * 1_000.0).round() / 1_000.0,
        took_ms,
    }
}

fn hosts_message(hosts: &TopHosts) -> proto::HostLinks {
    let hosts = hosts.top(usize::MAX).into_iter();
    proto::HostLinks {
        hosts: hosts.map(|host| (host.host.clone(), host.n)).collect(),
    }
}

fn root_message(root: LostRoot) -> proto::LostRoot {
    proto::LostRoot {
        url: root.url,
        end: root.end,
        status: root.status.into(),
        target: root.target,
        refusal: root.refusal,
    }
}

fn kind_message(kind: Kind) -> proto::KindStatistics {
    proto::KindStatistics {
        items: kind.items,
        always_empty: kind.empty_fields().map(str::to_owned).collect(),
        filled: kind.fields,
    }
}

fn plan_message(plan: PlanMatches) -> proto::PlanStatistics {
    proto::PlanStatistics {
        pages: plan.pages,
        unmatched: plan.unmatched().map(str::to_owned).collect(),
        matched: plan.selectors,
    }
}

/// Returns the statistics of an answer.
pub fn statistics(message: proto::RunStatistics) -> RunStatistics {
    let statuses = message.statuses.into_iter();
    // A status that is none counts among those beyond the bound.
    let statuses = statuses.map(|(status, n)| (u16::try_from(status).unwrap_or_default(), n));
    let hosts = message.refused_hosts.into_iter();
    let roots = message.lost_roots.into_iter();
    let kinds = message.kinds.into_iter();
    let plans = message.plans.into_iter();
    RunStatistics {
        run: Run(message.run),
        counts: message.counts.map(totals).unwrap_or_default(),
        statistics: Statistics {
            statuses: statuses.collect(),
            refused_hosts: hosts.map(|(reason, hosts)| (reason, top(hosts))).collect(),
            dead_examples: message.dead_examples,
            lost_roots: roots.map(root).collect(),
            kinds: kinds.map(|(name, kind)| (name, self::kind(kind))).collect(),
            plans: plans.map(|(name, plan)| (name, self::plan(plan))).collect(),
        },
        end: message.end,
    }
}

fn top(message: proto::HostLinks) -> TopHosts {
    let hosts = message.hosts.into_iter();
    let error = 0;
    hosts
        .map(|(host, n)| HostLinks { host, n, error })
        .collect()
}

fn root(message: proto::LostRoot) -> LostRoot {
    LostRoot {
        request: 0,
        url: message.url,
        end: message.end,
        status: u16::try_from(message.status).unwrap_or_default(),
        target: message.target,
        refusal: message.refusal,
    }
}

fn kind(message: proto::KindStatistics) -> Kind {
    Kind {
        items: message.items,
        fields: message.filled,
    }
}

fn plan(message: proto::PlanStatistics) -> PlanMatches {
    PlanMatches {
        pages: message.pages,
        selectors: message.matched,
    }
}
