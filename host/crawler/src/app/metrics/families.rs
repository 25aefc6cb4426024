//! The table of all metrics: names, kinds, labels and meanings.
//!
//! Names follow the conventions of Prometheus: a counter ends in `_total`, and units are seconds and bytes. The values of
//! each label are bounded: by enums and tables, by `--metrics-resources`, or by the bound on the words of a count. The
//! table of the book is written from this one, and no name that is not here may be in the alerts and dashboards below
//! `host/deploy`.

/// Kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Number that only grows for as long as the process lives.
    Counter,
    /// Number at the moment.
    Gauge,
    /// Durations by buckets.
    Histogram,
}

/// Process that tells a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Teller {
    /// Masters and workers.
    All,
    Worker,
    Master,
}

/// Metric with all of its labels.
#[derive(Debug)]
pub(super) struct Family {
    /// Name without the ending that its kind adds.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    #[cfg_attr(
        not(test),
        expect(
            dead_code,
            reason = "cells of the book are read by the test that writes it"
        )
    )]
    pub(super) teller: Teller,
    pub(super) labels: &'static [&'static str],
    /// Meaning, without a full stop.
    pub(super) help: &'static str,
}

impl Family {
    const fn new(
        teller: Teller,
        kind: Kind,
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            teller,
            labels,
            help,
        }
    }

    /// Returns the name as Prometheus shows it; that of a histogram without the ending of its parts.
    #[cfg(test)]
    pub(super) fn shown(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Gauge | Kind::Histogram => self.name.to_owned(),
        }
    }
}

/// Declares the metrics, each as a constant, and the list of all of them.
macro_rules! families {
    ($($constant:ident: $teller:ident $kind:ident $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(
            pub(super) const $constant: Family =
                Family::new(Teller::$teller, Kind::$kind, $name, &[$($label),*], $help);
        )+

        /// All metrics, in the order of the book.
        #[cfg(test)]
        pub(super) const ALL: &[&Family] = &[$(&$constant),+];
    };
}

families! {
    BUILD: All Gauge "crawler_build_info" ["version"]
        "1, with the version of the program";
    START: All Gauge "process_start_time_seconds" []
        "Start of the process, in seconds since 1970";
    CPU: All Counter "process_cpu_seconds" []
        "Processor time of the process";
    RESIDENT: All Gauge "process_resident_memory_bytes" []
        "Memory of the process that the system cannot take away";
    STORE_CALLS: All Counter "crawler_store_calls" ["call", "result"]
        "Calls to the store; `lost` is a transaction whose guards did not hold, `unknown` one whose answer was lost";
    STORE_DURATIONS: All Histogram "crawler_store_call_duration_seconds" ["call"]
        "Durations of calls to the store";
    LEASE: All Gauge "crawler_lease_held" ["role"]
        "1 if the node can count on its lease";
    LOADS: All Counter "crawler_plugin_loads" ["source"]
        "Plugins that were made ready to run or checked, from compiled code that was kept (`cache`) or `compiled`";
    COMPILES: All Histogram "crawler_plugin_compile_duration_seconds" []
        "Times that plugins took to compile";
    READY: All Gauge "crawler_plugins_ready" []
        "Plugins that are ready to run";
    TRACE_SPANS: All Counter "crawler_trace_spans" ["result"]
        "Spans of traces: `sent` to the receiver, `failed` to be taken by it, or lost for want of room while they waited (`no-room`); told only if there is a receiver";

    PAGES: Worker Counter "crawler_pages" ["resource", "outcome"]
        "Pages that came to an end, by outcome: `parsed`, `dead`, `gone`, …";
    STATUSES: Worker Counter "crawler_page_statuses" ["resource", "status"]
        "Attempts that ended a page, by the status of the answer";
    RETRIES: Worker Counter "crawler_page_retries" ["resource"]
        "Attempts that failed and are tried again";
    DEAD: Worker Counter "crawler_pages_dead" ["resource", "reason"]
        "Pages given up, by reason";
    REFUSED: Worker Counter "crawler_links_refused" ["resource", "reason"]
        "Links that are not followed, by reason";
    ITEMS: Worker Counter "crawler_items" ["resource"]
        "Items stored in frontiers";
    BODY_BYTES: Worker Counter "crawler_body_bytes" ["resource"]
        "Bytes of the bodies of pages";
    KEPT_BYTES: Worker Counter "crawler_kept_bytes" ["resource"]
        "Bytes of bodies that were kept as files";
    CRAWLS: Worker Gauge "crawler_crawls" ["resource"]
        "Crawls that are assigned to the worker";
    DUE: Worker Gauge "crawler_urls_due" ["resource"]
        "URLs that wait or are in flight";
    IN_FLIGHT: Worker Gauge "crawler_pages_in_flight" ["resource"]
        "Pages that are fetched, parsed or committed";
    READY_HOSTS: Worker Gauge "crawler_hosts_ready" ["resource"]
        "Hosts that may be asked once their clocks allow it, with URLs in memory";
    OUTBOX_ITEMS: Worker Gauge "crawler_outbox_items" ["resource"]
        "Items that wait for their sink";
    OUTBOX_BYTES: Worker Gauge "crawler_outbox_bytes" ["resource"]
        "Bytes of items that wait for their sink";
    DISK_BYTES: Worker Gauge "crawler_frontier_disk_bytes" ["resource"]
        "Bytes of open frontiers on disk";
    WAITING: Worker Gauge "crawler_crawls_waiting" ["condition"]
        "Crawls that cannot go on, by condition";

    SINK_WRITES: Worker Counter "crawler_sink_writes" ["result"]
        "Writes to sinks, by result: `ok`, `retry`, `permanent` or `closed`";
    SINK_ITEMS: Worker Counter "crawler_sink_items" []
        "Items that sinks have taken";
    SINK_REJECTED: Worker Counter "crawler_sink_rejected_items" []
        "Items that did not fit their destination, and are kept as rejected ones with the reason";
    SINK_DURATIONS: Worker Histogram "crawler_sink_write_duration_seconds" []
        "Durations of writes to sinks";

    REQUESTS: Worker Counter "crawler_fetch_requests" ["result"]
        "Requests to sites, by the class of the status, `cached`, or the reason of the failure";
    RECEIVED: Worker Counter "crawler_fetch_received_bytes" []
        "Bytes of bodies as they were received";
    PHASES: Worker Histogram "crawler_fetch_phase_duration_seconds" ["phase"]
        "Durations of the phases of answered requests: `wait` for the turn of the host, `lookup`, `connect`, `first_byte`, `body`";
    KNOWN_HOSTS: Worker Gauge "crawler_fetch_hosts" []
        "Hosts whose clocks the worker keeps in memory";

    RULE_CALLS: Worker Counter "crawler_rule_calls" ["result"]
        "Calls of rules, by result: `ok`, `rule-error` or `killed`";
    KILLS: Worker Counter "crawler_rule_kills" ["kind"]
        "Calls of rules that the sandbox ended, by kind";
    FUEL: Worker Counter "crawler_rule_fuel" []
        "Fuel that calls of rules have used";
    RULE_DURATIONS: Worker Histogram "crawler_rule_call_duration_seconds" []
        "Durations of calls of rules";
    RULE_WAITS: Worker Histogram "crawler_rule_wait_duration_seconds" []
        "Waits of calls for a place in the pool and for memory";
    INSTANCES: Worker Gauge "crawler_instances" []
        "Places of the instance pool that are taken";
    MAX_INSTANCES: Worker Gauge "crawler_instances_limit" []
        "Places of the instance pool: `--pool-instances`";
    CALL_MEMORY: Worker Gauge "crawler_call_memory_bytes" []
        "Memory that the present calls may use together";
    MAX_CALL_MEMORY: Worker Gauge "crawler_call_memory_limit_bytes" []
        "Memory that all calls may use together: half of `--memory`";

    OPENINGS: Worker Counter "crawler_frontier_openings" []
        "Openings of frontiers";
    BATCHES: Worker Counter "crawler_frontier_batches" ["result"]
        "Batches that were handed to frontiers' databases: `ok`, `failed`, or `closed` if the frontier was closed or has another owner";
    BATCH_PAGES: Worker Counter "crawler_frontier_batch_pages" []
        "Ends of pages in these batches";
    DURABLE: Worker Histogram "crawler_frontier_durable_duration_seconds" []
        "Times until batches were durable";
    MAX_MEMORY: Worker Gauge "crawler_memory_limit_bytes" []
        "Memory that the worker may use: `--memory`";
    IS_SHORT: Worker Gauge "crawler_memory_short" []
        "1 while memory is short and no page is taken";
    PUT_BACK: Worker Counter "crawler_crawls_put_back" []
        "Times that a crawl was stopped for want of memory";

    IS_LEADER: Master Gauge "crawler_leader" []
        "1 if this master leads";
    HAS_LEADER: Master Gauge "crawler_leader_known" []
        "1 if this master knows who leads";
    TERMS: Master Counter "crawler_leader_terms" []
        "Terms of this master as the leader";
    ACTIONS: Master Counter "crawler_placement_actions" ["action", "result"]
        "Decisions of the leader about shards, by their kind: `done`, `lost` to another write, or `failed`";
    PASSES: Master Histogram "crawler_placement_pass_duration_seconds" []
        "Durations of looks of the leader at all shards, with the writes";
    FOLLOWED: Master Gauge "crawler_cluster_followed" []
        "1 if this master follows the records of the store; otherwise the numbers of the cluster are old";
    WORKERS: Master Gauge "crawler_cluster_workers" ["state"]
        "Workers: `ready` or `draining`";
    RESOURCES: Master Gauge "crawler_cluster_resources" ["phase"]
        "Resources by phase";
    SHARDS: Master Gauge "crawler_cluster_shards" ["state"]
        "Shards by state";
    UNREADABLE: Master Gauge "crawler_cluster_unreadable_records" []
        "Records of resources and shards that this version cannot read";
    DELETIONS: Master Gauge "crawler_cluster_deletions" []
        "Deleted resources whose data is not removed yet";
    API_CALLS: Master Counter "crawler_api_calls" ["call", "code"]
        "Calls of clients, by the code of the answer";
    API_DURATIONS: Master Histogram "crawler_api_call_duration_seconds" ["call"]
        "Durations of calls of clients; of streams until they were open";
}
