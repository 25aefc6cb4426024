//! Pages of a fake web with a known closure, made from a seed.
//!
//! The depth of a page (the links between the first page and it) must not depend on the order in which a crawler
//! comes by, or the cut of the traps and the depth in the items would not be known. So links go one level down, to
//! any page there, or to pages that were stored before for certain. These are the first page and those it leads
//! to; and, from a page that only its parent leads to, its parent and the parent's other children. Redirects
//! within a host lead to pages that nothing else leads to until they have been followed, so that it is also known
//! which of two ways to a page comes first.

use std::time::Duration;

use crate::random::Random;

/// Properties of the pages to make.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Number of addresses that answer, including those that are gone and those that redirect.
    pub n_pages: usize,
    /// Seed; the same seed makes the same pages.
    pub seed: u64,
    /// Largest depth that its crawls are given: endless pages are cut off there.
    pub max_depth: u32,
    /// Delay before each answer; a slow page waits twelve times as long.
    pub pace: Duration,
}

/// Number of hosts, each at an address of its own.
pub(super) const N_HOSTS: usize = 4;
/// Number of pages that the first page leads to.
const N_FIRST: usize = 12;
/// Factor by which a slow page takes longer.
pub(super) const SLOW: u32 = 12;

/// An address and its answer.
#[derive(Debug)]
pub(super) struct Page {
    /// Number of the host.
    pub(super) host: usize,
    pub(super) path: String,
    /// A page that is asked for by POST, with this body.
    pub(super) body: Option<String>,
    /// Depth of the requests that lead to it.
    pub(super) depth: u32,
    pub(super) answer: Answer,
    /// Failures that the first requests get instead of the answer.
    pub(super) failures: Vec<Failure>,
    pub(super) is_slow: bool,
    /// True if only its parent leads to it, so that it may lead back.
    is_private: bool,
    parent: usize,
    /// True if nothing but a redirect leads to it.
    is_target: bool,
}

#[derive(Debug)]
pub(super) enum Answer {
    /// A page with these links.
    Links(Vec<Link>),
    /// 404 or 410.
    Gone(u16),
    /// A redirect with this status to this page.
    Redirect(u16, usize),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Failure {
    /// 503.
    Busy,
    /// The connection breaks within the answer.
    Reset,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) to: To,
    pub(super) spelling: Spelling,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum To {
    Page(usize),
    /// The next page of a trap, deeper than crawls may go.
    Beyond,
    /// A host that is out of scope.
    Outside,
    /// An address that is not on the web.
    Mail,
}

/// Ways to write one address.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spelling {
    Plain,
    Fragment,
    Dots,
    Capitals,
    Number,
    Spaces,
    Encoded,
    Question,
}

impl Page {
    pub(super) fn is_target(&self) -> bool {
        self.is_target
    }
}

struct Making {
    random: Random,
    pages: Vec<Page>,
    max_depth: u32,
}

/// Makes all pages, the first page first.
pub(super) fn make(plan: &Plan) -> Vec<Page> {
    let mut making = Making {
        random: Random::seeded(plan.seed),
        pages: Vec::new(),
        max_depth: plan.max_depth,
    };
    making.add(0, "/".to_owned(), None, 0, 0);
    for trap in ["/calendar/2024", "/search"] {
        making.add_trap(trap);
    }
    making.add_spin();
    let n_special = making.pages.len();
    assert!(
        plan.n_pages > n_special + N_FIRST,
        "a web of {} pages has no room for its traps; make it larger",
        plan.n_pages
    );
    // Pages are in the order of their levels, except for targets, which have the level of their redirect.
    let mut parents: std::collections::VecDeque<usize> = [0].into();
    while making.pages.len() < plan.n_pages {
        let parent = parents.pop_front().expect("every page may have children");
        let n = match parent {
            0 => N_FIRST,
            _ => 1 + making.below(6),
        };
        for _ in 0..n {
            if making.pages.len() < plan.n_pages {
                parents.extend(making.add_child(parent));
            }
        }
    }
    let deepest = making.pages[n_special..]
        .iter()
        .map(|page| page.depth)
        .max();
    assert!(
        deepest < Some(plan.max_depth),
        "{deepest:?}: the depth must cut off nothing but traps; raise max_depth"
    );
    making.cross(n_special);
    making.pages
}

impl Making {
    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.random.below(n as u64)).expect("below a number of this type")
    }

    fn link(&mut self, from: usize, to: To) {
        let spelling = match self.below(14) {
            0 | 1 => Spelling::Fragment,
            2 => Spelling::Dots,
            3 => Spelling::Capitals,
            4 => Spelling::Number,
            5 => Spelling::Spaces,
            6 => Spelling::Encoded,
            7 => Spelling::Question,
            _ => Spelling::Plain,
        };
        match &mut self.pages[from].answer {
            Answer::Links(links) => links.push(Link { to, spelling }),
            Answer::Gone(_) | Answer::Redirect(..) => unreachable!("leads nowhere"),
        }
    }

    fn add(
        &mut self,
        host: usize,
        path: String,
        body: Option<String>,
        depth: u32,
        parent: usize,
    ) -> usize {
        self.pages.push(Page {
            host,
            path,
            body,
            depth,
            answer: Answer::Links(Vec::new()),
            failures: Vec::new(),
            is_slow: false,
            is_private: false,
            parent,
            is_target: false,
        });
        self.pages.len() - 1
    }

    /// Adds a page that leads to the next like it, without end; only pages within the depth are made.
    fn add_trap(&mut self, path: &str) {
        let mut from = 0;
        for depth in 1..=self.max_depth {
            let path = match path {
                "/search" => format!("{path}?page={depth}"),
                _ => format!("{path}/{depth}"),
            };
            let page = self.add(0, path, None, depth, from);
            self.link(from, To::Page(page));
            from = page;
        }
        self.link(from, To::Beyond);
    }

    /// Adds two hosts that redirect to each other.
    fn add_spin(&mut self) {
        let one = self.add(0, "/spin".to_owned(), None, 1, 0);
        let other = self.add(1, "/spin".to_owned(), None, 1, 0);
        self.pages[one].answer = Answer::Redirect(302, other);
        self.pages[other].answer = Answer::Redirect(307, one);
        self.link(0, To::Page(one));
    }

    /// Adds one page or a few that belong together; returns those that may have children.
    fn add_child(&mut self, parent: usize) -> Vec<usize> {
        let depth = self.pages[parent].depth + 1;
        let host = match self.below(10) {
            0..7 => self.pages[parent].host,
            _ => self.below(N_HOSTS),
        };
        let n = self.pages.len();
        let path = match self.below(10) {
            0 => format!("/~{n}/a%20b"),
            1 => format!("/list?n={n}&sort=a"),
            _ => format!("/p/{n}"),
        };
        let page = self.add(host, path, None, depth, parent);
        self.link(parent, To::Page(page));
        self.pages[page].is_private = self.below(2) == 0;
        match self.below(100) {
            0..4 => {
                self.pages[page].answer = Answer::Gone(if n.is_multiple_of(2) { 404 } else { 410 });
                Vec::new()
            }
            4..8 => self.add_target(page),
            8..12 => {
                let there = (host + 1 + self.below(N_HOSTS - 1)) % N_HOSTS;
                let target = self.add(there, format!("/moved/{n}"), None, depth, page);
                self.pages[page].answer = Answer::Redirect(302, target);
                vec![target]
            }
            12..16 => self.add_paging(page),
            16..18 => {
                self.pages[page].is_slow = true;
                vec![page]
            }
            18..26 => {
                let n_failures = 1 + self.below(2);
                for _ in 0..n_failures {
                    let failure = match self.below(2) {
                        0 => Failure::Busy,
                        _ => Failure::Reset,
                    };
                    self.pages[page].failures.push(failure);
                }
                vec![page]
            }
            _ => vec![page],
        }
    }

    /// Makes a page redirect within its host. The target leads to another page that redirects to it: that one
    /// always comes too late.
    fn add_target(&mut self, page: usize) -> Vec<usize> {
        let (host, depth) = (self.pages[page].host, self.pages[page].depth);
        let target = self.add(host, format!("/target/{page}"), None, depth, page);
        self.pages[target].is_target = true;
        self.pages[page].answer = Answer::Redirect(301, target);
        let late = self.add(host, format!("/late/{page}"), None, depth + 1, target);
        self.pages[late].answer = Answer::Redirect(308, target);
        self.link(target, To::Page(late));
        self.link(target, To::Page(target));
        vec![target]
    }

    /// Adds a list whose further parts are asked for by POST at the same address.
    fn add_paging(&mut self, page: usize) -> Vec<usize> {
        let (host, path) = (self.pages[page].host, self.pages[page].path.clone());
        let mut parts = vec![page];
        for n in 2..4 + self.below(4) {
            let from = parts[parts.len() - 1];
            let depth = self.pages[from].depth + 1;
            let part = self.add(host, path.clone(), Some(format!("page={n}")), depth, from);
            self.link(from, To::Page(part));
            parts.push(part);
        }
        parts
    }

    /// Adds links that lead to nothing new, or to pages that other pages lead to as well.
    fn cross(&mut self, n_special: usize) {
        let mut levels: Vec<Vec<usize>> = vec![Vec::new(); self.max_depth as usize + 2];
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.pages.len()];
        for n in n_special..self.pages.len() {
            let page = &self.pages[n];
            let is_led_to = page.body.is_none()
                && !page.is_target
                && !matches!(self.pages[page.parent].answer, Answer::Redirect(..))
                && !self.pages[page.parent].is_target;
            if is_led_to && !page.is_private {
                levels[page.depth as usize].push(n);
            }
            if is_led_to {
                children[page.parent].push(n);
            }
        }
        for n in n_special..self.pages.len() {
            let page = &self.pages[n];
            if !matches!(page.answer, Answer::Links(_)) {
                continue;
            }
            let (parent, is_private) = (page.parent, page.is_private && page.body.is_none());
            let below = &levels[page.depth as usize + 1];
            let mut targets = vec![0, children[0][n % children[0].len()], n];
            if !below.is_empty() {
                let nth = usize::try_from(self.random.below(below.len() as u64));
                targets.push(below[nth.expect("below a number of this type")]);
            }
            if is_private && matches!(self.pages[parent].answer, Answer::Links(_)) {
                targets.push(parent);
                targets.extend(&children[parent]);
            }
            // A target leads to itself, by its own address, only after it was reached.
            for target in targets {
                if self.below(2) == 0 {
                    self.link(n, To::Page(target));
                }
            }
            match self.below(40) {
                0 => self.link(n, To::Outside),
                1 => self.link(n, To::Mail),
                _ => {}
            }
        }
    }
}
