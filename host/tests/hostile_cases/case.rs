//! What a case is, and what is expected of it.

use bytes::Bytes;
use crawler::model::crawl::Kill;
use crawler::model::plugin::Limits;

/// One way in which a guest or a page may be hostile.
pub(crate) struct Case {
    /// Number of the case in the list that these tests follow.
    pub(crate) n: u8,
    /// What is tried.
    pub(crate) name: &'static str,
    /// How.
    pub(crate) how: How,
    /// A test that checked it before this list did. Empty: there was none.
    pub(crate) had: &'static str,
}

/// How a case is run.
#[derive(Clone, Copy)]
pub(crate) enum How {
    /// A rule is called, within the default limits but for what this changes.
    Rule(Guest, &'static str, fn(&mut Limits), Expected),
    /// A rule is called with this page.
    Page(Guest, &'static str, fn() -> String, Expected),
    /// Bytes are pushed. The text is part of the refusal; empty, and they are admitted.
    Push(fn() -> Bytes, &'static str),
    /// The same, where compiling may take 64 MiB of memory.
    PushFenced(fn() -> Bytes, &'static str),
    /// Something of its own.
    Own(Own),
    /// It is about another part of the system; these tests are about it.
    Elsewhere(&'static [&'static str]),
    /// It cannot happen here, for this reason.
    NotHere(&'static str),
}

/// The plugins whose rules are called.
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

/// How a call ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// The host ends it, and says this.
    Killed(Kill, &'static str),
    /// The host ends it for one of these reasons, whichever limit is met first.
    KilledByEither(Kill, Kill),
    /// The rule gives up, and passes on what the host told it.
    GaveUp(&'static str),
    /// It succeeds with so many items.
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

/// A case, in the order of a table's columns.
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
