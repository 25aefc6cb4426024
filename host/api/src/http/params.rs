//! Parameters of the query, one table for each call that has some. Handlers take the names of a table and no others, and
//! the book and the OpenAPI document describe them.

/// Parameter of the query.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryParam {
    pub(super) name: &'static str,
    pub(super) kind: ParamKind,
    /// Meaning, for the book and the OpenAPI document.
    pub(super) about: &'static str,
    pub(super) is_required: bool,
}

/// Values that a parameter takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum ParamKind {
    /// Nothing, `true`, `1`, `false` or `0`.
    Flag,
    /// A whole number of 32 bits.
    Number,
    /// A whole number above 0.
    Positive,
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
}

const fn param(name: &'static str, kind: ParamKind, about: &'static str) -> QueryParam {
    QueryParam {
        name,
        kind,
        about,
        is_required: false,
    }
}

const fn flag(name: &'static str, about: &'static str) -> QueryParam {
    param(name, ParamKind::Flag, about)
}

const fn positive(name: &'static str, about: &'static str) -> QueryParam {
    param(name, ParamKind::Positive, about)
}

const fn text(name: &'static str, about: &'static str) -> QueryParam {
    param(name, ParamKind::Text, about)
}

/// Size of a page. 0 stands for what an absent one stands for.
const PAGE_SIZE: QueryParam = param(
    "page_size",
    ParamKind::Number,
    "at most so many, 1 000 without it and at most",
);
const PAGE_TOKEN: QueryParam = text(
    "page_token",
    "goes on behind the page whose `next_page_token` it was",
);

pub(super) const PURGE: [QueryParam; 1] =
    [flag("purge", "its items and kept files are deleted too")];

/// Size of a page of a list that is at hand as a whole.
const SHORT_PAGE_SIZE: QueryParam = param(
    "page_size",
    ParamKind::Number,
    "at most so many, all without it",
);
const LABEL: QueryParam = text(
    "label",
    "with these labels: `KEY=VALUE`, and more with commas",
);
const PREFIX: QueryParam = text("prefix", "whose names begin so");

pub(super) const RESOURCES: [QueryParam; 6] = [
    PAGE_SIZE,
    PAGE_TOKEN,
    text(
        "phase",
        "in this phase: pending, running, paused, finished or failed",
    ),
    LABEL,
    PREFIX,
    text("plugin", "that run this plugin: `NAME`, or `NAME@VERSION`"),
];

pub(super) const SCHEDULES: [QueryParam; 3] = [PAGE_SIZE, PAGE_TOKEN, PREFIX];

pub(super) const PLUGINS: [QueryParam; 3] = [SHORT_PAGE_SIZE, PAGE_TOKEN, PREFIX];

pub(super) const TOKENS: [QueryParam; 3] = [
    SHORT_PAGE_SIZE,
    PAGE_TOKEN,
    text("subject", "of this subject"),
];

pub(super) const ITEMS: [QueryParam; 7] = [
    flag("follow", "goes on until the run is over"),
    flag(
        "envelope",
        "with key, page, rule, schema, run, time and position",
    ),
    text(
        "after",
        "goes on behind the item of this position, in its run",
    ),
    positive("run", "of this run"),
    text("kind", "of this kind, the name of a schema"),
    positive(
        "since",
        "of pages that were fetched then or later, in milliseconds since 1970",
    ),
    positive("limit", "at most so many"),
];

pub(super) const CHANGES: [QueryParam; 3] = [positive("run", "of this run"), PAGE_SIZE, PAGE_TOKEN];

pub(super) const HELD_ITEMS: [QueryParam; 3] = [
    QueryParam {
        is_required: true,
        ..text("hold", "of this hold, as the list names it, like `0.1`")
    },
    PAGE_SIZE,
    PAGE_TOKEN,
];

pub(super) const DIFF: [QueryParam; 2] = [
    QueryParam {
        is_required: true,
        ..positive("before", "the earlier run")
    },
    QueryParam {
        is_required: true,
        ..positive("after", "the later run")
    },
];

pub(super) const LOGS: [QueryParam; 1] = [flag("follow", "goes on until the crawl is over")];

pub(super) const URLS: [QueryParam; 3] = [
    param(
        "state",
        ParamKind::Word(&["due", "done", "dead"]),
        "only URLs in this state: due, done or dead",
    ),
    PAGE_SIZE,
    PAGE_TOKEN,
];

pub(super) const HOSTS: [QueryParam; 3] = [
    param(
        "state",
        ParamKind::Word(&["ready", "waiting", "backing-off", "given-up", "idle"]),
        "only hosts in this state: ready, waiting, backing-off, given-up or idle",
    ),
    PAGE_SIZE,
    PAGE_TOKEN,
];

pub(super) const WHY: [QueryParam; 3] = [
    QueryParam {
        is_required: true,
        ..text("url", "the URL, absolute")
    },
    text("method", "its method, GET without it"),
    text("body", "its body"),
];

pub(super) const NODES: [QueryParam; 5] = [
    flag("follow", "a stream of events about all nodes"),
    SHORT_PAGE_SIZE,
    PAGE_TOKEN,
    text("role", "of this role: master or worker"),
    LABEL,
];

pub(super) const EVENTS: [QueryParam; 2] = [
    PREFIX,
    text(
        "version",
        "resumes after the event with this id; the header `Last-Event-ID` has precedence",
    ),
];

pub(super) const HISTORY: [QueryParam; 3] = [
    flag(
        "follow",
        "goes on until the resource is deleted, as server-sent events",
    ),
    positive(
        "since",
        "only events from then on, in milliseconds since 1970",
    ),
    text(
        "version",
        "resumes after the event with this version; the header `Last-Event-ID` has precedence",
    ),
];

pub(super) const NODE_HISTORY: [QueryParam; 3] = [
    flag("follow", "goes on as events come, as server-sent events"),
    HISTORY[1],
    HISTORY[2],
];

pub(super) const DRAIN: [QueryParam; 1] = [flag("undo", "takes shards again")];

pub(super) const PUSH: [QueryParam; 2] = [
    text(
        "as",
        "`NAME@VERSION` to push it as; without it what the plugin says of itself",
    ),
    flag(
        "allow_breaking",
        "pushes it though its items differ so that readers could break",
    ),
];

pub(super) const AUDIT: [QueryParam; 4] = [
    text("subject", "only entries of this subject"),
    text(
        "name",
        "only entries about this resource, plugin, node or subject",
    ),
    positive(
        "since",
        "only entries from then on, in milliseconds since 1970",
    ),
    param(
        "limit",
        ParamKind::Number,
        "at most so many, the newest: 100 without it and 10 000 at most",
    ),
];

pub(super) const PROFILE: [QueryParam; 2] = [
    positive("seconds", "length of the profile"),
    text("node", "only if the process is this node"),
];
