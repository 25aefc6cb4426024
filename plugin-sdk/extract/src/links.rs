//! Links that meet conditions on their addresses, chosen from the captures of a field.
//!
//! An address is resolved once for each text that leads to it, and judged once, however often a page has it. Patterns
//! come from a plugin and addresses from a page, and neither is trusted: their sizes are bounded, the work is charged
//! as fuel before it is done, and a deadline ends what takes longer than its price says.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use crawler_pattern::{Pattern, PatternError};
use url::Url;

use crate::captures::Captures;
use crate::clock::Clock;

/// Largest length of an address, in bytes. A link to a longer one is not chosen: it could not be fetched.
pub const ADDRESS_MAX: usize = 8 << 10;
/// Largest number of patterns of a filter.
const PATTERNS_MAX: usize = 32;
/// Largest length of the text of a pattern, in bytes.
const PATTERN_TEXT_MAX: usize = 4 << 10;
/// Largest size of all compiled patterns of a filter, in bytes.
const PATTERNS_SIZE_MAX: usize = 256 << 10;

/// Fuel for each byte of a compiled pattern.
const FUEL_PER_PATTERN_BYTE: u64 = 16;
/// Fuel for looking up a text.
const FUEL_PER_LINK: u64 = 100;
/// Fuel for resolving an address, beside that for each byte.
const FUEL_PER_ADDRESS: u64 = 2_000;
/// Fuel for each byte of a text that is resolved, and of what it is resolved against.
const FUEL_PER_ADDRESS_BYTE: u64 = 8;
/// Fuel after which the clock is read again. Reading it takes as long as looking up a few texts.
const FUEL_PER_CHECK: u64 = 64 << 10;
/// Bytes of an address for each byte of its text: an escaped byte has three.
const GROWTH: u64 = 3;

/// Conditions on links, as a rule states them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkConditions {
    /// True if the address must be of the host that the page came from: same name, any scheme and port.
    pub within_host: bool,
    /// Regular expressions that all have to be found in the address.
    pub matching: Vec<String>,
    /// Regular expressions of which none may be found in the address.
    pub not_matching: Vec<String>,
    /// True if each address is chosen once: the first link that leads to it.
    pub distinct: bool,
}

/// Conditions on links, ready to choose.
#[derive(Debug)]
pub struct LinkFilter {
    within_host: bool,
    /// Patterns, each with the answer that it must give.
    patterns: Vec<(Pattern, bool)>,
    distinct: bool,
}

/// A mistake in the conditions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkFilterError {
    /// A text is no pattern.
    #[error("`{pattern}` is no regular expression for links: {why}")]
    NoPattern {
        /// Start of the text.
        pattern: String,
        /// Reason.
        why: PatternError,
    },
    /// A pattern is too long.
    #[error(
        "a regular expression for links is {n_bytes} bytes long; at most {PATTERN_TEXT_MAX} are allowed: tell the rest apart by a filter in the rule"
    )]
    TooLong {
        /// Length of the text, in bytes.
        n_bytes: usize,
    },
    /// There are too many patterns.
    #[error(
        "there are {n} regular expressions for links; at most {PATTERNS_MAX} are allowed: join some with `|`"
    )]
    TooMany {
        /// Number of patterns.
        n: usize,
    },
    /// All patterns together are too large.
    #[error(
        "the regular expressions for links take more than {PATTERNS_SIZE_MAX} bytes once they are compiled: use fewer, with shorter repetitions"
    )]
    TooLarge,
}

/// Limits of the work on the links of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChooseBudget {
    /// Bytes of all distinct addresses together.
    pub address_bytes: usize,
    /// Processor time. It is checked after each 64 Ki of fuel. One text, or one search by a pattern, is not
    /// interrupted.
    pub deadline: Duration,
}

/// Reason why no links were chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// The captures have no such field.
    #[error("field {field} does not exist; the plan has {n}")]
    NoField {
        /// Number of the field.
        field: usize,
        /// Number of fields.
        n: usize,
    },
    /// Fuel is used up.
    #[error("choosing links takes more fuel than there is left")]
    OutOfFuel,
    /// The addresses are too long.
    #[error("the addresses of the links have more than {limit} bytes together")]
    TooLarge {
        /// Limit of the budget, in bytes.
        limit: usize,
    },
    /// Time is used up.
    #[error("choosing links takes longer than {deadline:?}")]
    TooSlow {
        /// Limit of the budget.
        deadline: Duration,
    },
}

impl LinkFilter {
    /// Compiles conditions. Returns the result, and the fuel to charge for it: 16 for each byte of the compiled
    /// patterns, or of the largest size if the conditions are refused.
    pub fn new(conditions: &LinkConditions) -> (Result<Self, LinkFilterError>, u64) {
        let compiled = Self::compile(conditions);
        let size = match &compiled {
            Ok(filter) => filter.patterns.iter().map(|(one, _)| one.size()).sum(),
            Err(_) => PATTERNS_SIZE_MAX,
        };
        (compiled, size as u64 * FUEL_PER_PATTERN_BYTE)
    }

    fn compile(conditions: &LinkConditions) -> Result<Self, LinkFilterError> {
        let matching = conditions.matching.iter().map(|text| (text, true));
        let all = matching.chain(conditions.not_matching.iter().map(|text| (text, false)));
        let n = conditions.matching.len() + conditions.not_matching.len();
        if n > PATTERNS_MAX {
            return Err(LinkFilterError::TooMany { n });
        }
        let (mut patterns, mut size) = (Vec::with_capacity(n), 0);
        for (text, is_wanted) in all {
            let pattern = compiled(text)?;
            size += pattern.size();
            if size > PATTERNS_SIZE_MAX {
                return Err(LinkFilterError::TooLarge);
            }
            patterns.push((pattern, is_wanted));
        }
        Ok(Self {
            within_host: conditions.within_host,
            patterns,
            distinct: conditions.distinct,
        })
    }

    /// Returns about the largest charge of [`LinkFilter::choose`] for these captures: that of addresses which all
    /// differ. No address is resolved for it, so a caller learns at once if the work would make others wait.
    pub fn max_fuel(&self, captures: &Captures, field: usize, base: &Url) -> u64 {
        let patterns = self.patterns.iter();
        let per_byte: u64 = patterns.map(|(pattern, _)| pattern.work("")).sum();
        let n_base = base.as_str().len() as u64;
        let max = captures.values(field).map(|(_, text)| {
            let n_text = text.len() as u64;
            let of_text = FUEL_PER_LINK + n_text;
            let of_address = FUEL_PER_ADDRESS + (n_text + n_base) * FUEL_PER_ADDRESS_BYTE;
            let n_address = (n_text * GROWTH + n_base).min(ADDRESS_MAX as u64);
            of_text + of_address + (n_address + 1) * per_byte
        });
        max.fold(0, u64::saturating_add)
    }

    /// Returns the positions of the captures of a field that are links to pages and meet the conditions, in the order
    /// of the page. An address is judged without its fragment. Only `http` and `https` lead to pages.
    ///
    /// The charge is taken from `fuel`: 100 and the length for each capture; for each text that differs from those
    /// before 2 000, and 8 for each byte of it and of `base`; and for each address and pattern the work of the pattern.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use crawler_extract::{
    ///     Budget, ChooseBudget, CompiledPlan, Field, LinkConditions, LinkFilter, Plan, PlanLimits, Take, extract,
    /// };
    /// use url::Url;
    ///
    /// let links = Field {
    ///     name: "links".to_owned(),
    ///     group: None,
    ///     selector: "a".to_owned(),
    ///     take: Take::Attr("href".to_owned()),
    ///     first: false,
    ///     keep: false,
    /// };
    /// let plan = Plan { name: "all".to_owned(), groups: vec![], fields: vec![links] };
    /// let plan = CompiledPlan::new(&plan, &PlanLimits::default())?;
    /// let html = "<a href=/about></a><a href='/books/7#top'></a><a href=/books/7></a>";
    /// let captures = extract(&plan, html, &Budget::default())?;
    /// let books = LinkConditions {
    ///     matching: vec!["/books/".to_owned()],
    ///     distinct: true,
    ///     ..LinkConditions::default()
    /// };
    /// let (page, budget) = (Url::parse("http://a.test/")?, ChooseBudget::default());
    /// let (filter, _fuel) = LinkFilter::new(&books);
    /// let chosen = filter?.choose(&captures, 0, (&page, &page), &budget, &mut 1_000_000)?;
    /// assert_eq!(chosen, [1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn choose(
        &self,
        captures: &Captures,
        field: usize,
        (page, base): (&Url, &Url),
        budget: &ChooseBudget,
        fuel: &mut u64,
    ) -> Result<Vec<u32>, ChooseError> {
        if captures.n_values(field).is_none() {
            let n = captures.columns.len();
            return Err(ChooseError::NoField { field, n });
        }
        let mut addresses = Addresses {
            filter: self,
            page,
            base,
            budget,
            meter: Meter {
                fuel,
                clock: Clock::new(budget.deadline),
                // The clock is read before the first text.
                since_check: FUEL_PER_CHECK,
            },
            by_text: HashMap::new(),
            by_url: HashMap::new(),
            n_fitting: 0,
            n_bytes: 0,
        };
        let mut is_taken = Vec::new();
        let mut positions = Vec::new();
        for (position, (_, text)) in (0..).zip(captures.values(field)) {
            let Some(n) = addresses.fitting(text)? else {
                continue;
            };
            is_taken.resize(addresses.n_fitting, false);
            if !std::mem::replace(&mut is_taken[n], true) || !self.distinct {
                positions.push(position);
            }
        }
        Ok(positions)
    }
}

impl Default for ChooseBudget {
    fn default() -> Self {
        Self {
            address_bytes: 8 << 20,
            deadline: Duration::from_millis(500),
        }
    }
}

fn compiled(text: &str) -> Result<Pattern, LinkFilterError> {
    if text.len() > PATTERN_TEXT_MAX {
        let n_bytes = text.len();
        return Err(LinkFilterError::TooLong { n_bytes });
    }
    Pattern::new(text).map_err(|why| LinkFilterError::NoPattern {
        pattern: text[..text.floor_char_boundary(200)].to_owned(),
        why,
    })
}

/// Addresses of a page, judged so far.
struct Addresses<'a> {
    filter: &'a LinkFilter,
    page: &'a Url,
    base: &'a Url,
    budget: &'a ChooseBudget,
    meter: Meter<'a>,
    /// Numbers of the fitting addresses by the texts that lead to them. `None` if the address does not fit.
    by_text: HashMap<&'a str, Option<usize>>,
    /// Numbers by the addresses.
    by_url: HashMap<Box<str>, Option<usize>>,
    n_fitting: usize,
    n_bytes: usize,
}

impl<'a> Addresses<'a> {
    /// Returns the number of the address that a text leads to, or `None` if the address does not fit.
    fn fitting(&mut self, text: &'a str) -> Result<Option<usize>, ChooseError> {
        self.meter.spend(FUEL_PER_LINK + text.len() as u64)?;
        // Texts that differ only in their fragments lead to one address. The mark stays, because white space before
        // it counts, and at the end of a text it does not.
        let text = text.find('#').map_or(text, |mark| &text[..=mark]);
        if let Some(known) = self.by_text.get(text) {
            return Ok(*known);
        }
        let fitting = self.resolved(text)?;
        self.by_text.insert(text, fitting);
        Ok(fitting)
    }

    fn resolved(&mut self, text: &str) -> Result<Option<usize>, ChooseError> {
        let n_bytes = (text.len() + self.base.as_str().len()) as u64;
        self.meter
            .spend(FUEL_PER_ADDRESS + n_bytes * FUEL_PER_ADDRESS_BYTE)?;
        let Ok(mut url) = self.base.join(text) else {
            return Ok(None);
        };
        url.set_fragment(None);
        if !matches!(url.scheme(), "http" | "https") || url.as_str().len() > ADDRESS_MAX {
            return Ok(None);
        }
        if self.filter.within_host && url.host() != self.page.host() {
            return Ok(None);
        }
        let entry = match self.by_url.entry(String::from(url).into()) {
            Entry::Occupied(known) => return Ok(*known.get()),
            Entry::Vacant(entry) => entry,
        };
        self.n_bytes += entry.key().len();
        if self.n_bytes > self.budget.address_bytes {
            let limit = self.budget.address_bytes;
            return Err(ChooseError::TooLarge { limit });
        }
        let is_fitting = is_fitting(&self.filter.patterns, entry.key(), &mut self.meter)?;
        let number = is_fitting.then_some(self.n_fitting);
        self.n_fitting += usize::from(is_fitting);
        Ok(*entry.insert(number))
    }
}

fn is_fitting(
    patterns: &[(Pattern, bool)],
    address: &str,
    meter: &mut Meter<'_>,
) -> Result<bool, ChooseError> {
    for (pattern, is_wanted) in patterns {
        meter.spend(pattern.work(address))?;
        if pattern.is_match(address) != *is_wanted {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Fuel and time that are left for the work.
struct Meter<'a> {
    fuel: &'a mut u64,
    clock: Clock,
    /// Fuel that was spent since the clock was read.
    since_check: u64,
}

impl Meter<'_> {
    /// Spends the fuel for the work that comes next.
    fn spend(&mut self, cost: u64) -> Result<(), ChooseError> {
        let Some(left) = self.fuel.checked_sub(cost) else {
            *self.fuel = 0;
            return Err(ChooseError::OutOfFuel);
        };
        *self.fuel = left;
        if self.since_check >= FUEL_PER_CHECK {
            self.since_check = 0;
            if self.clock.is_over() {
                let deadline = self.clock.deadline;
                return Err(ChooseError::TooSlow { deadline });
            }
        }
        self.since_check = self.since_check.saturating_add(cost);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
