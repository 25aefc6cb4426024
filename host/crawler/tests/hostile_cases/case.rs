//! The form of a case, and its expected end.

use bytes::Bytes;
use crawler_model::crawl::Kill;
use crawler_model::plugin::Limits;

/// One way in which a guest or a page may be hostile.
pub(crate) struct Case {
    /// Number of the case in the list that these tests follow.
    pub(crate) n: u8,
    /// Name of the case.
    pub(crate) name: &'static str,
    /// Way in which it is run.
    pub(crate) how: How,
    /// Test that checked it before this list did; empty if there was none.
    pub(crate) had: &'static str,
}

/// Way in which a case is run.
#[derive(Clone, Copy)]
pub(crate) enum How {
    /// A rule is called with the default limits and this change of them.
    Rule(Guest, &'static str, fn(&mut Limits), Expected),
    /// A rule is called with this page.
    Page(Guest, &'static str, fn() -> String, Expected),
    /// Bytes are pushed. The text is part of the refusal; if it is empty, the bytes are admitted.
    Push(fn() -> Bytes, &'static str),
    /// Bytes are pushed to an engine where compiling may take 64 MiB of memory.
    PushFenced(fn() -> Bytes, &'static str),
    /// The case has a function of its own.
    Own(Own),
    /// The case concerns another part of the system; these tests cover it.
    Elsewhere(&'static [&'static str]),
    /// The case cannot happen here, for this reason.
    NotHere(&'static str),
}

/// Plugin whose rules are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Guest {
    /// `tests/guests/hostile`.
    Hostile,
    /// [`crate::rules::SHARP`].
    Sharp,
    /// [`crate::rules::SPARSE`].
    Sparse,
    /// [`crate::rules::WIDE`].
    Wide,
}

/// Expected end of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// The host ends the call with this message.
    Killed(Kill, &'static str),
    /// The host ends the call for one of these reasons, whichever limit is met first.
    KilledByEither(Kill, Kill),
    /// The rule gives up, and passes on the host's message.
    GaveUp(&'static str),
    /// The call succeeds with this number of items.
    Items(usize),
}

/// Cases that are more than one call or one push.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Own {
    /// 10 000 pages that leak a MiB each.
    Leak,
    /// 1 000 calls at once.
    Crowd,
    /// A rule that marks everything and traps, then one that looks for the marks.
    Marks,
    /// A plugin cut after every KiB.
    Cut,
    /// Two plugins that differ in a section that nobody reads.
    Twins,
    /// Two resources of one plugin with params of their own.
    Params,
    /// The same page twice.
    Replay,
    /// `root` that ends badly.
    Root,
}

/// Creates a case, in the order of a table's columns.
pub(crate) const fn case(n: u8, name: &'static str, how: How, had: &'static str) -> Case {
    Case { n, name, how, had }
}

pub(crate) const fn rule(
    guest: Guest,
    rule: &'static str,
    change: fn(&mut Limits),
    expected: Expected,
) -> How {
    How::Rule(guest, rule, change, expected)
}

pub(crate) const fn page(
    guest: Guest,
    rule: &'static str,
    page: fn() -> String,
    expected: Expected,
) -> How {
    How::Page(guest, rule, page, expected)
}

pub(crate) const fn push(bytes: fn() -> Bytes, refusal: &'static str) -> How {
    How::Push(bytes, refusal)
}

pub(crate) const fn fenced(bytes: fn() -> Bytes, refusal: &'static str) -> How {
    How::PushFenced(bytes, refusal)
}

pub(crate) const fn own(own: Own) -> How {
    How::Own(own)
}

pub(crate) const fn elsewhere(tests: &'static [&'static str]) -> How {
    How::Elsewhere(tests)
}

pub(crate) const fn not_here(why: &'static str) -> How {
    How::NotHere(why)
}

pub(crate) const fn killed(kill: Kill, message: &'static str) -> Expected {
    Expected::Killed(kill, message)
}

pub(crate) const fn either(one: Kill, other: Kill) -> Expected {
    Expected::KilledByEither(one, other)
}

pub(crate) const fn gave_up(why: &'static str) -> Expected {
    Expected::GaveUp(why)
}

pub(crate) const fn items(n: usize) -> Expected {
    Expected::Items(n)
}
