//! The books of the shop, made up from word lists and a fixed seed.
//!
//! Titles, tags and descriptions contain `&`, `<`, `'`, `"` and letters beyond ASCII, so that only a crawl
//! that parses gets them right. Changing a list changes the truth, and nothing else.

use std::collections::HashSet;

use crate::random::SplitMix64;

const N_BOOKS: usize = 400;
const SEED: u64 = 0x0b00_c5e1_1e55;

/// A book of the shop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Book {
    /// Number of the book, from 1, without gaps.
    pub(super) id: usize,
    pub(super) title: String,
    pub(super) author: String,
    pub(super) price_pence: u32,
    /// Number of copies on the shelf; 0 is sold out.
    pub(super) stock: u32,
    /// Number of stars, 1 to 5.
    pub(super) rating: u32,
    pub(super) tags: Vec<&'static str>,
    pub(super) description: String,
}

/// Returns all books; every call returns the same.
pub(super) fn all() -> Vec<Book> {
    let mut random = SplitMix64::new(SEED);
    let mut titles = HashSet::new();
    (1..=N_BOOKS)
        .map(|id| {
            let title = loop {
                let title = title(&mut random);
                if titles.insert(title.clone()) {
                    break title;
                }
            };
            Book {
                id,
                title,
                author: format!("{} {}", random.pick(FIRST_NAMES), random.pick(LAST_NAMES)),
                price_pence: 299 + random.below(4_700),
                stock: if random.below(8) == 0 {
                    0
                } else {
                    1 + random.below(40)
                },
                rating: 1 + random.below(5),
                tags: tags(&mut random),
                description: description(&mut random),
            }
        })
        .collect()
}

fn title(random: &mut SplitMix64) -> String {
    let (adjective, noun, other) = (
        random.pick(ADJECTIVES),
        random.pick(NOUNS),
        random.pick(NOUNS),
    );
    match random.below(8) {
        0 => format!("The {adjective} {noun}"),
        1 => format!("{noun} & {other}"),
        2 => format!("The {noun}'s {other}"),
        3 => format!("Café {adjective}: A {noun} in {}", random.pick(PLACES)),
        4 => format!("Why {noun} < {other}, and Other {adjective} Proofs"),
        5 => format!("\"{adjective}\" Is Not a {noun}"),
        6 => format!(
            "From {} to {} by {noun}",
            random.pick(PLACES),
            random.pick(PLACES)
        ),
        _ => format!("{adjective} {noun}, {adjective} {other}"),
    }
}

fn tags(random: &mut SplitMix64) -> Vec<&'static str> {
    let n_tags = 1 + random.below(4) as usize;
    let mut tags = Vec::with_capacity(n_tags);
    while tags.len() < n_tags {
        let tag = random.pick(TAGS);
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

fn description(random: &mut SplitMix64) -> String {
    let opening = format!(
        "One {} {} arrives in {}, and nobody there is ready for it.",
        random.pick(ADJECTIVES).to_lowercase(),
        random.pick(NOUNS).to_lowercase(),
        random.pick(PLACES),
    );
    let middle = match random.below(4) {
        0 => format!(
            "What follows is a tale of {} & {}, told with a naïve charm.",
            random.pick(TAGS),
            random.pick(TAGS)
        ),
        1 => format!(
            "\"It's the {} that counts,\" says old {} <who should know>.",
            random.pick(NOUNS).to_lowercase(),
            random.pick(LAST_NAMES)
        ),
        2 => format!(
            "Chapter {} alone, where x < y && y > z is settled over a crème brûlée, is worth the price.",
            2 + random.below(30)
        ),
        _ => format!(
            "{} wrote most of it on the night train to {} – it shows.",
            random.pick(FIRST_NAMES),
            random.pick(PLACES)
        ),
    };
    format!("{opening} {middle} {}", random.pick(VERDICTS))
}

#[rustfmt::skip]
const ADJECTIVES: &[&str] = &[
    "Amber", "Borrowed", "Crooked", "Déjà-Vu", "Drowsy", "Eleventh", "Feathered", "Gilded", "Hollow",
    "Invisible", "Jolly", "Knotted", "Lunar", "Mossy", "Nameless", "Obstinate", "Paper", "Quiet",
    "Restless", "Salted", "Tin", "Unfinished", "Velvet", "Wandering", "Yellow", "Zealous",
];

#[rustfmt::skip]
const NOUNS: &[&str] = &[
    "Almanac", "Bridge", "Compass", "Dragonfly", "Engine", "Fjord", "Gardener", "Harbour", "Island",
    "Jackdaw", "Kettle", "Lantern", "Mountain", "Notebook", "Orchard", "Piñata", "Quarry", "Raincoat",
    "Staircase", "Teapot", "Umbrella", "Violin", "Windmill", "Xylophone", "Yardstick", "Zeppelin",
];

#[rustfmt::skip]
const PLACES: &[&str] = &[
    "Århus", "Bath", "Córdoba", "Dundee", "Évora", "Faro", "Ghent", "Husavík", "Ísafjörður", "Jena",
    "Kraków", "Łódź", "Málaga", "Nîmes", "Oban", "Pärnu", "Québec", "Ravenna", "St. John's", "Tromsø",
];

#[rustfmt::skip]
const FIRST_NAMES: &[&str] = &[
    "Agnès", "Bram", "Clío", "Dunja", "Edvin", "Fiadh", "Göran", "Hedda", "Iain", "José", "Katya",
    "Liang", "Maeve", "Noor", "Odile", "Pål", "Rhys", "Søren", "Tove", "Ursula", "Wren", "Zoë",
];

#[rustfmt::skip]
const LAST_NAMES: &[&str] = &[
    "Abernathy", "Bergström", "Castañeda", "D'Arcy", "Eskelinen", "Fairweather", "Grünwald", "Hollis",
    "Ivarsson", "Jones & Daughter", "Kováč", "Lindqvist", "Moreau", "Nakamura", "O'Hara", "Petrov",
    "Quill", "Rossi", "Szabó", "Tanaka", "Vance", "Whitlock", "Ying", "Żeromski",
];

#[rustfmt::skip]
const TAGS: &[&str] = &[
    "adventure", "biography", "children's", "cookery", "crime", "essays", "fantasy", "garden & home",
    "history", "letters", "mathematics", "mystery", "naïve art", "philosophy", "poetry",
    "science fiction", "sea stories", "travel",
];

#[rustfmt::skip]
const VERDICTS: &[&str] = &[
    "Readers under < 12 will want it twice.",
    "It's best read aloud.",
    "Illustrated by the author & her cat.",
    "The ending isn't what you think.",
    "With maps, an index and a très long footnote.",
    "Prix Éphémère, two years running.",
    "Our copy lost its cover; the story didn't mind.",
];
