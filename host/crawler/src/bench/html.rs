//! Text of a made-up page: a head, a menu, sections with paragraphs and links, a foot. The share of markup and the
//! letters beyond ASCII are like those of real pages.

use crate::random::SplitMix64;

/// Number of links in the menu at the top.
const N_MENU: usize = 8;
/// Number of paragraphs of a section.
const N_PARAGRAPHS: u32 = 4;
/// Usual size of a paragraph in bytes.
const PARAGRAPH_BYTES: usize = 600;

/// Page in the making.
pub(super) struct Html {
    text: String,
    random: SplitMix64,
    /// Size in bytes that the text should have.
    size: usize,
}

impl Html {
    /// Begins a page of about this size in bytes.
    pub(super) fn new(random: SplitMix64, size: usize) -> Self {
        Self {
            text: String::with_capacity(size + size / 8),
            random,
            size,
        }
    }

    /// Returns the page, with all links in their order. It is longer than it should be if it has many links.
    pub(super) fn page(mut self, title: &str, links: &[String]) -> String {
        let (menu, links) = links.split_at(links.len().min(N_MENU));
        self.head(title);
        self.menu(menu);
        self.sections(links);
        self.foot();
        self.text
    }

    fn head(&mut self, title: &str) {
        self.push("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>");
        self.push(title);
        self.push(
            "</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
        );
        self.push("<link rel=\"stylesheet\" href=\"/static/site.css\">\n</head>\n<body>\n");
        self.push("<header class=\"site-header\"><h1>");
        self.push(title);
        self.push("</h1></header>\n");
    }

    fn menu(&mut self, links: &[String]) {
        self.push("<nav class=\"menu\"><ul>\n");
        for link in links {
            self.push("<li class=\"menu-item\">");
            self.link(link);
            self.push("</li>\n");
        }
        self.push("</ul></nav>\n<main>\n");
    }

    /// Writes sections until there are no links left and the page is long enough.
    fn sections(&mut self, links: &[String]) {
        let n_left = self.size.saturating_sub(self.text.len());
        let n_paragraphs = (n_left / PARAGRAPH_BYTES).max(1);
        let mut batches = links.chunks(links.len().div_ceil(n_paragraphs).max(1));
        let mut batch = batches.next();
        while batch.is_some() || self.text.len() < self.size {
            self.push("<section class=\"content-block\">\n<h2>");
            self.words(3);
            self.push("</h2>\n");
            for _ in 0..N_PARAGRAPHS {
                if batch.is_none() && self.text.len() >= self.size {
                    break;
                }
                self.paragraph(batch.take().unwrap_or_default());
                batch = batches.next();
            }
            self.push("</section>\n");
        }
    }

    /// Writes a paragraph with these links. It is short if the page is long enough already.
    fn paragraph(&mut self, links: &[String]) {
        self.push("<p class=\"text\">");
        let is_full = self.text.len() >= self.size;
        let n_words = if is_full {
            3
        } else {
            50 + self.random.below(40)
        };
        let n_each = n_words / (links.len() as u32 + 1);
        for link in links {
            self.words(n_each.max(1));
            self.push(" ");
            self.link(link);
            self.push(" ");
        }
        self.words(n_each.max(1));
        self.push(".</p>\n<div class=\"meta\"><span class=\"date\">2026-05-04</span></div>\n");
    }

    fn link(&mut self, address: &str) {
        self.push("<a href=\"");
        self.push(address);
        self.push("\" class=\"link\">");
        self.words(2);
        self.push("</a>");
    }

    fn foot(&mut self) {
        self.push("</main>\n<footer class=\"site-footer\"><p>");
        self.words(6);
        self.push("</p></footer>\n</body>\n</html>\n");
    }

    fn words(&mut self, n: u32) {
        for place in 0..n {
            if place > 0 {
                self.push(" ");
            }
            let word = self.random.pick(&WORDS);
            self.push(word);
        }
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }
}

#[rustfmt::skip]
const WORDS: [&str; 64] = [
    "about", "across", "again", "amber", "answer", "autumn", "bread", "bridge", "café", "candle", "city", "cloud",
    "copper", "crème", "daily", "distant", "early", "engine", "evening", "façade", "field", "garden", "glass", "harbour",
    "history", "hollow", "hours &amp; prices", "island", "journey", "kettle", "ladder", "letter", "library", "lower",
    "market", "meadow", "morning", "naïve", "narrow", "number", "ocean", "orchard", "paper", "piñata", "quarry", "quiet",
    "river", "salt", "school", "season", "silver", "station", "stone", "summer", "table", "timber", "under", "valley",
    "violin", "water", "window", "winter", "yellow", "zéro",
];
