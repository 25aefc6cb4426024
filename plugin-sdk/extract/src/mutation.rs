//! Pages with mistakes, made from good ones: tags that are missing or superfluous, and pages that break off.
//!
//! Tests mutate real pages to see that the engine reads them as a browser would. `crawler plugin test --mangle`
//! does so to show how a rule copes. The same seed makes the same page. Nothing here panics, whatever the page is.

mod optional;
mod random;
mod tags;

pub use optional::without_optional_end_tags;
pub use random::Random;

use tags::name;

/// One way to mutate a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutation {
    /// End tags that HTML lets an author leave out are left out: to a browser the page stays the same, except for
    /// white space that moves into the element before it.
    OptionalEndTags,
    /// 2 % of the end tags are left out, and at least one.
    DroppedEndTags,
    /// A superfluous end tag follows each 200th tag, and at least one.
    StrayEndTags,
    /// The page breaks off.
    CutOff,
}

impl Mutation {
    /// Every mutation.
    pub const ALL: [Self; 4] = [
        Self::OptionalEndTags,
        Self::DroppedEndTags,
        Self::StrayEndTags,
        Self::CutOff,
    ];

    /// Name of the mutation, as reports show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OptionalEndTags => "optional-end-tags",
            Self::DroppedEndTags => "dropped-end-tags",
            Self::StrayEndTags => "stray-end-tags",
            Self::CutOff => "cut-off",
        }
    }

    /// Returns true if another seed makes another page. Otherwise there is only one mutated page.
    pub fn is_random(self) -> bool {
        self != Self::OptionalEndTags
    }

    /// Returns true if a browser reads the mutated page like the original, so that a rule should too.
    pub fn is_harmless(self) -> bool {
        self == Self::OptionalEndTags
    }

    /// Returns the page, mutated in this way. If there is nothing to change, the page stays as it was.
    ///
    /// ```
    /// use crawler_extract::mutation::Mutation;
    ///
    /// let page = "<ul><li>a</li><li>b</li></ul>";
    /// assert_eq!(Mutation::OptionalEndTags.apply(page, 0), "<ul><li>a<li>b</ul>");
    /// assert_eq!(Mutation::CutOff.apply(page, 7), Mutation::CutOff.apply(page, 7));
    /// ```
    pub fn apply(self, page: &str, seed: u64) -> String {
        let random = &mut Random::new(seed);
        match self {
            Self::OptionalEndTags => without_optional_end_tags(page),
            Self::DroppedEndTags => without_end_tags(page, random, |_| true),
            Self::StrayEndTags => with_stray_end_tags(page, random, |_| true),
            Self::CutOff => cut_off(page, random),
        }
    }
}

/// Returns the page without each 50th of the `wanted` end tags, by chance, and at least without one.
pub fn without_end_tags(page: &str, random: &mut Random, wanted: impl Fn(&str) -> bool) -> String {
    let mut tags = tags::all(page);
    tags.retain(|tag| tags::is_end(&page[tag.clone()]) && wanted(name(&page[tag.clone()])));
    let mut mutated = String::new();
    let mut kept = 0;
    for n in chosen(tags.len(), 50, random) {
        if tags[n].start >= kept {
            mutated.push_str(&page[kept..tags[n].start]);
            kept = tags[n].end;
        }
    }
    mutated + &page[kept..]
}

/// Names of end tags that are inserted even if a page does not have them.
const NAMES: [&str; 32] = [
    "a", "b", "body", "br", "button", "caption", "code", "dd", "details", "div", "em", "form",
    "h2", "head", "html", "li", "ol", "option", "p", "pre", "section", "select", "span", "strong",
    "summary", "svg", "table", "tbody", "td", "title", "tr", "ul",
];

/// Returns the page with an end tag behind each 200th tag, by chance, and at least with one: either one that the
/// page has, or any other. If the page has no end tag that is `wanted`, it stays as it was.
pub fn with_stray_end_tags(
    page: &str,
    random: &mut Random,
    wanted: impl Fn(&str) -> bool,
) -> String {
    let tags = tags::all(page);
    let own = tags.iter().map(|tag| &page[tag.clone()]);
    let own = own.filter(|tag| tags::is_end(tag)).map(name);
    let own: Vec<&str> = own.filter(|name| wanted(name)).collect();
    if own.is_empty() {
        return page.to_owned();
    }
    let others: Vec<&str> = NAMES.into_iter().filter(|name| wanted(name)).collect();
    let mut mutated = String::new();
    let mut kept = 0;
    for n in chosen(tags.len(), 200, random) {
        let is_own = others.is_empty() || random.below(2) == 0;
        let names = if is_own { &own } else { &others };
        mutated.push_str(&page[kept..tags[n].end]);
        mutated.push_str(&format!("</{}>", random.pick(names)));
        kept = tags[n].end;
    }
    mutated + &page[kept..]
}

/// Returns the page without all tags that are `unwanted`.
pub fn without_tags(page: &str, unwanted: impl Fn(&str) -> bool) -> String {
    let mut mutated = String::new();
    let mut kept = 0;
    for tag in tags::all(page) {
        if tag.start >= kept && unwanted(name(&page[tag.clone()])) {
            mutated.push_str(&page[kept..tag.start]);
            kept = tag.end;
        }
    }
    mutated + &page[kept..]
}

/// Returns the page up to a random place.
pub fn cut_off(page: &str, random: &mut Random) -> String {
    let end = random.below(page.len().max(1));
    page[..page.floor_char_boundary(end)].to_owned()
}

/// Chooses from `n_all` numbers, each with a chance of one in `one_in`, and at least one if there are any.
fn chosen(n_all: usize, one_in: usize, random: &mut Random) -> Vec<usize> {
    let mut chosen: Vec<usize> = (0..n_all).filter(|_| random.below(one_in) == 0).collect();
    if chosen.is_empty() && n_all > 0 {
        chosen.push(random.below(n_all));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<ul><li><b>a</b></li><li>b</li></ul>";

    #[test]
    fn a_seed_makes_the_same_page_and_another_seed_another() {
        for mutation in Mutation::ALL {
            let all = |seed| mutation.apply(PAGE, seed);
            assert_eq!(all(3), all(3), "{mutation:?}");
            let n_others = (0..50).filter(|seed| all(*seed) != all(0)).count();
            assert_eq!(n_others > 0, mutation.is_random(), "{mutation:?}");
        }
    }

    #[test]
    fn small_pages_are_mangled_too() {
        for seed in 0..50 {
            let count = |page: &str| page.matches("</").count();
            assert_eq!(count(&Mutation::DroppedEndTags.apply(PAGE, seed)), 3);
            assert_eq!(count(&Mutation::StrayEndTags.apply(PAGE, seed)), 5);
            assert!(PAGE.starts_with(&Mutation::CutOff.apply(PAGE, seed)));
        }
    }

    #[test]
    fn a_page_without_anything_to_mangle_stays_as_it_is() {
        for page in ["", "a < b", "<br>", "</", "<a é"] {
            for mutation in Mutation::ALL {
                let mutated = mutation.apply(page, 1);
                match mutation {
                    Mutation::CutOff => assert!(page.starts_with(&mutated)),
                    _ => assert_eq!(mutated, page, "{mutation:?}"),
                }
            }
        }
    }

    #[test]
    fn what_looks_like_tags_within_a_tag_breaks_nothing() {
        let page = "<a </b </i></a><i <i></i>";
        for seed in 0..200 {
            for mutation in Mutation::ALL {
                mutation.apply(page, seed);
            }
        }
        assert_eq!(without_tags(page, |_| true), "");
    }
}
