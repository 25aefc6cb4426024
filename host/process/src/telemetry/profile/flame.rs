//! Flame graph of a profile: a picture in which the width of a function is its share of the samples or bytes.
//!
//! Stacks with the same functions from the outside on are one. The functions that a function called are above it, in
//! the order of their names, so a place in the picture says nothing about a moment. The idea is Brendan Gregg's ("The
//! Flame Graph", ACM Queue 14/2, 2016). The picture has no script; a reader of it shows what a function took where
//! the pointer rests.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher as _};

/// Width of the picture, in pixels.
const WIDTH: f64 = 1600.0;
/// Height of a function.
const ROW: usize = 18;
/// Space around the functions.
const MARGIN: usize = 10;
/// Height of the line above the functions.
const HEAD: usize = 28;
/// Narrowest function that is drawn; narrower ones are left out with all that they called.
const MIN_WIDTH: f64 = 0.5;
/// Width of a character, about.
const CHARACTER: f64 = 7.0;

/// A function, as it was called along one way, and the functions that it called.
#[derive(Debug, Default)]
pub(super) struct Flame {
    /// Number of samples or bytes.
    n: u64,
    called: BTreeMap<String, Flame>,
}

/// A function and its place in the picture.
struct Place<'a> {
    name: &'a str,
    flame: &'a Flame,
    /// Number of functions that are below.
    depth: usize,
    /// Distance from the left side of all functions.
    left: f64,
}

impl Flame {
    /// Adds samples or bytes of one stack, whose functions are named from the outermost on.
    pub(super) fn add<'a>(&mut self, stack: impl IntoIterator<Item = &'a str>, n: u64) {
        let mut flame = self;
        flame.n += n;
        for name in stack {
            if !flame.called.contains_key(name) {
                flame.called.insert(name.to_owned(), Flame::default());
            }
            let Some(next) = flame.called.get_mut(name) else {
                return;
            };
            flame = next;
            flame.n += n;
        }
    }

    /// Draws the picture, with a line of text at its head. The unit is that of the numbers: `samples` or `bytes`.
    pub(super) fn draw(&self, head: &str, unit: &str) -> String {
        let per_unit = (WIDTH - 2.0 * MARGIN as f64) / self.n.max(1) as f64;
        let mut places = Vec::new();
        // The number of functions on a way is that of a stack, which the profiler bounds.
        let mut next = vec![Place {
            name: "all",
            flame: self,
            depth: 0,
            left: 0.0,
        }];
        while let Some(place) = next.pop() {
            let mut left = place.left;
            for (name, flame) in &place.flame.called {
                let width = flame.n as f64 * per_unit;
                if width >= MIN_WIDTH {
                    next.push(Place {
                        name,
                        flame,
                        depth: place.depth + 1,
                        left,
                    });
                }
                left += width;
            }
            places.push(place);
        }
        let n_rows = places.iter().map(|place| place.depth + 1).max();
        let n_rows = n_rows.unwrap_or_default();
        let height = HEAD + n_rows * ROW + MARGIN;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"monospace\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"{MARGIN}\" y=\"18\">{}</text>\n",
            escaped(head)
        );
        for place in &places {
            self.draw_place(place, n_rows, (per_unit, unit), &mut svg);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_place(
        &self,
        place: &Place<'_>,
        n_rows: usize,
        (per_unit, unit): (f64, &str),
        svg: &mut String,
    ) {
        let n = place.flame.n;
        let share = 100.0 * n as f64 / self.n.max(1) as f64;
        let (x, y) = (
            MARGIN as f64 + place.left,
            HEAD + (n_rows - 1 - place.depth) * ROW,
        );
        let width = n as f64 * per_unit;
        let [red, green, blue] = color(place.name);
        // Writing into a text does not fail.
        let _ = write!(
            svg,
            "<g><title>{}: {share:.1} %, {n} {unit}</title><rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" \
             height=\"{}\" fill=\"rgb({red},{green},{blue})\"/>",
            escaped(place.name),
            ROW - 1
        );
        let n_characters = ((width - 4.0) / CHARACTER).max(0.0) as usize;
        if n_characters >= 3 {
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\">{}</text>",
                x + 2.0,
                y + ROW - 5,
                escaped(&clipped(place.name, n_characters))
            );
        }
        svg.push_str("</g>\n");
    }
}

/// Returns a warm colour that stays the same for a name.
fn color(name: &str) -> [u64; 3] {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let hash = hasher.finish();
    [
        215 + hash % 36,
        120 + (hash >> 8) % 110,
        70 + (hash >> 16) % 50,
    ]
}

/// Returns the beginning of a name that has this many characters, with a mark if some are left out.
fn clipped(name: &str, n_characters: usize) -> String {
    if name.chars().count() <= n_characters {
        return name.to_owned();
    }
    name.chars().take(n_characters - 1).chain(['…']).collect()
}

/// Returns a text as it stands in XML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no such characters, however they are written.
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flame() -> Flame {
        let mut flame = Flame::default();
        flame.add(["main", "run", "parse<T>"], 30);
        flame.add(["main", "run", "commit"], 60);
        flame.add(["main"], 10);
        flame
    }

    /// Returns the numbers of an attribute of all rectangles of functions, in their order.
    fn all(svg: &str, attribute: &str) -> Vec<f64> {
        let functions = svg.lines().filter(|line| line.starts_with("<g>"));
        let rectangle = functions.map(|line| line.split_once("<rect").unwrap().1);
        let begin = format!(" {attribute}=\"");
        let values = rectangle.map(|line| line.split_once(&begin).unwrap().1);
        values
            .map(|value| value.split_once('"').unwrap().0.parse().unwrap())
            .collect()
    }

    #[test]
    fn functions_are_as_wide_as_their_shares() {
        let svg = flame().draw("1 s", "samples");
        assert_eq!(all(&svg, "width"), [1580.0, 1580.0, 1422.0, 474.0, 948.0]);
        assert_eq!(all(&svg, "x"), [10.0, 10.0, 10.0, 958.0, 10.0]);
        // What is called is above.
        assert_eq!(all(&svg, "y"), [82.0, 64.0, 46.0, 28.0, 28.0]);
        for title in [
            "<title>all: 100.0 %, 100 samples</title>",
            "<title>run: 90.0 %, 90 samples</title>",
            "<title>parse&lt;T&gt;: 30.0 %, 30 samples</title>",
        ] {
            assert!(svg.contains(title), "{title}: {svg}");
        }
    }

    #[test]
    fn narrow_functions_are_left_out_with_what_they_call() {
        let mut flame = flame();
        flame.add(["main", "run"], 1_000_000);
        let svg = flame.draw("1 s", "samples");
        assert!(svg.contains(">run<") && !svg.contains("commit"), "{svg}");
    }

    #[test]
    fn a_profile_without_samples_is_a_picture_too() {
        let svg = Flame::default().draw("nothing ran", "bytes");
        assert!(svg.contains("<title>all: 0.0 %, 0 bytes"), "{svg}");
    }

    #[test]
    fn names_are_text_and_are_cut_where_there_is_no_room() {
        let mut flame = Flame::default();
        let long = "ä".repeat(300);
        flame.add(["</text><script>\u{0}\"&", &long], 1);
        let svg = flame.draw("<head>", "samples");
        assert!(!svg.contains("<script") && !svg.contains('\0'), "{svg}");
        assert!(svg.contains("&lt;/text&gt;&lt;script&gt;\u{fffd}&quot;&amp;"));
        let cut = format!(">{}…</text>", "ä".repeat(224));
        assert!(svg.contains(&cut) && svg.contains(&format!("<title>{long}:")));
    }
}
