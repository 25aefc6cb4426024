//! Identity of what a page is parsed by, by which a page that is as it was is told from one that would now be read otherwise.

use std::collections::BTreeMap;

use super::id::{Digest, RunningDigest};
use super::settings::CrawlSettings;

/// Hash of all that decides what becomes of a body: the plugin, its params, the setting `limit body`, and the settings by
/// which links are followed. Those that bound a run as a whole are among them, because a page whose links were refused by
/// such a bound has to be parsed again once the bound is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedBy(pub [u8; 16]);

/// Plugin and params of a crawl: the part of [`ParsedBy`] that stays as it is while the crawl runs.
#[derive(Debug, Clone)]
pub struct Parser(RunningDigest);

impl Parser {
    /// Returns the parser of a crawl.
    pub fn of(plugin: Digest, params: &BTreeMap<String, String>) -> Self {
        let mut hash = RunningDigest::default();
        hash.add(plugin.as_bytes());
        for (name, value) in params {
            add_text(&mut hash, name);
            add_text(&mut hash, value);
        }
        Self(hash)
    }

    /// Returns what pages are parsed by under these settings, if at most so many bytes of a body are read.
    pub fn under(&self, settings: &CrawlSettings, max_body: u64) -> ParsedBy {
        let mut hash = self.0.clone();
        for number in [
            max_body,
            settings.max_depth().into(),
            settings.max_url_length().into(),
            settings.max_segment_repeats().into(),
            settings.max_pattern_urls(),
            settings.max_hosts(),
            settings.max_disk(),
        ] {
            hash.add(&number.to_be_bytes());
        }
        for pattern in &settings.scope {
            add_text(&mut hash, &pattern.to_string());
        }
        let mut parsed_by = [0; 16];
        parsed_by.copy_from_slice(&hash.digest().as_bytes()[..16]);
        ParsedBy(parsed_by)
    }
}

/// Adds a text with its length, so that no two lists of texts are the same bytes.
fn add_text(hash: &mut RunningDigest, text: &str) {
    hash.add(&(text.len() as u64).to_be_bytes());
    hash.add(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed_by(plugin: &[u8], params: &[(&str, &str)], change: CrawlSettings) -> ParsedBy {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let params = params.iter().map(owned);
        Parser::of(Digest::of(plugin), &params.collect()).under(&change, 8)
    }

    #[test]
    fn whatever_reads_a_page_otherwise_has_another_hash() {
        let usual = CrawlSettings::default;
        let first = parsed_by(b"1", &[("a", "b")], usual());
        let paced = CrawlSettings {
            delay_ms: Some(9),
            max_pages: Some(9),
            ..usual()
        };
        assert_eq!(parsed_by(b"1", &[("a", "b")], paced), first);
        let wider = CrawlSettings {
            scope: vec!["example.org".parse().unwrap()],
            ..usual()
        };
        let deeper = CrawlSettings {
            max_depth: Some(3),
            ..usual()
        };
        let more_of_a_pattern = CrawlSettings {
            max_pattern_urls: Some(3),
            ..usual()
        };
        let more_hosts = CrawlSettings {
            max_hosts: Some(3),
            ..usual()
        };
        let more_on_disk = CrawlSettings {
            max_disk: Some(3),
            ..usual()
        };
        let params = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let longer = Parser::of(Digest::of(b"1"), &params).under(&usual(), 9);
        for (other, why) in [
            (parsed_by(b"2", &[("a", "b")], usual()), "another plugin"),
            (parsed_by(b"1", &[("a", "c")], usual()), "another param"),
            (parsed_by(b"1", &[("ab", "")], usual()), "a longer name"),
            (parsed_by(b"1", &[("a", "b")], wider), "another scope"),
            (parsed_by(b"1", &[("a", "b")], deeper), "another depth"),
            (
                parsed_by(b"1", &[("a", "b")], more_of_a_pattern),
                "another bound of patterns",
            ),
            (
                parsed_by(b"1", &[("a", "b")], more_hosts),
                "another bound of hosts",
            ),
            (
                parsed_by(b"1", &[("a", "b")], more_on_disk),
                "another bound of the disk",
            ),
            (longer, "another limit of bodies"),
        ] {
            assert_ne!(other, first, "{why}");
        }
    }
}
