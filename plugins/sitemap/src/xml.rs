//! Reads a sitemap as XML, with CDATA, references, comments and namespaces.
//!
//! An element counts if it is of the namespace of the root. Images and videos that extensions add to an entry have
//! namespaces of their own and are left out. A sitemap may use a prefix, or declare no namespace.

use crawler_plugin_sdk::{Require, Result, RuleError};
use quick_xml::NsReader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, Event};
use quick_xml::name::ResolveResult;

/// Content of a sitemap.
#[derive(Debug, PartialEq)]
pub(crate) struct Sitemap {
    /// True if the entries are further sitemaps, and false if they are pages.
    pub(crate) is_index: bool,
    pub(crate) entries: Vec<Entry>,
}

/// One address of a sitemap.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Entry {
    pub(crate) address: String,
    /// Time of the last change: a year, a month, a day, or a day and a time. Empty if the sitemap does not tell it.
    pub(crate) lastmod: String,
}

/// Kind of an open element.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Index,
    Pages,
    Entry,
    Address,
    LastMod,
    Other,
}

/// Reads a whole sitemap. It is an error if it is cut, or if its tags do not match. A lone `&` in an address is taken
/// as it is, since many sites forget to write `&amp;`.
pub(crate) fn read(text: &str) -> Result<Sitemap> {
    let mut reader = NsReader::from_str(text);
    reader.config_mut().allow_dangling_amp = true;
    reader.config_mut().expand_empty_elements = true;
    let mut root = None;
    let mut open: Vec<Part> = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        match reader.read_event()? {
            Event::Start(start) => {
                let (resolved, name) = reader.resolver().resolve_element(start.name());
                let namespace = namespace(&resolved);
                let (_, namespace_of_root) = root.get_or_insert_with(|| {
                    (
                        name.as_ref() == "sitemapindex",
                        namespace.map(str::to_owned),
                    )
                });
                let part = match namespace == namespace_of_root.as_deref() {
                    true => part(open.last(), name.as_ref()),
                    false => Part::Other,
                };
                match part {
                    Part::Other if open.is_empty() => {
                        let why = format!("the root of a sitemap is not `{}`", name.as_ref());
                        return Err(RuleError::unexpected(why));
                    }
                    Part::Entry => entries.push(Entry::default()),
                    _ => {}
                }
                open.push(part);
            }
            Event::End(_) => drop(open.pop()),
            Event::Eof => break,
            event => {
                if let (Some(part), Some(entry)) = (open.last(), entries.last_mut()) {
                    match part {
                        Part::Address => entry.address.push_str(&text_of(&event)?),
                        Part::LastMod => entry.lastmod.push_str(&text_of(&event)?),
                        _ => {}
                    }
                }
            }
        }
    }
    if !open.is_empty() {
        return Err(RuleError::unexpected(
            "the sitemap ends before its root does",
        ));
    }
    let (is_index, _) = root.require("any element of XML")?;
    for (n, entry) in (1..).zip(&mut entries) {
        *entry = Entry {
            address: entry.address.trim().to_owned(),
            lastmod: entry.lastmod.trim().to_owned(),
        };
        if entry.address.is_empty() {
            let why = format!("entry {n} of the sitemap has no address in `loc`");
            return Err(RuleError::unexpected(why));
        }
    }
    Ok(Sitemap { is_index, entries })
}

fn namespace<'n>(resolved: &'n ResolveResult<'_>) -> Option<&'n str> {
    match resolved {
        ResolveResult::Unbound => None,
        ResolveResult::Bound(namespace) => Some(namespace.0),
        // A prefix that is not declared stands for itself.
        ResolveResult::Unknown(prefix) => Some(prefix),
    }
}

fn part(parent: Option<&Part>, name: &str) -> Part {
    match (parent, name) {
        (None, "sitemapindex") => Part::Index,
        (None, "urlset") => Part::Pages,
        (Some(Part::Index), "sitemap") | (Some(Part::Pages), "url") => Part::Entry,
        (Some(Part::Entry), "loc") => Part::Address,
        (Some(Part::Entry), "lastmod") => Part::LastMod,
        _ => Part::Other,
    }
}

/// Returns the text that an event stands for; a comment is none.
fn text_of(event: &Event<'_>) -> Result<String> {
    Ok(match event {
        Event::Text(text) => (**text).to_owned(),
        Event::CData(text) => (**text).to_owned(),
        Event::GeneralRef(reference) => referred(reference)?,
        _ => String::new(),
    })
}

/// Returns the text of a reference like `&amp;` or `&#38;`. XML knows five names; any other is taken as it is written.
fn referred(reference: &BytesRef<'_>) -> Result<String> {
    if let Some(character) = reference.resolve_char_ref()? {
        return Ok(character.to_string());
    }
    let known = resolve_predefined_entity(reference);
    Ok(known.map_or_else(|| format!("&{};", &**reference), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"";

    #[track_caller]
    fn check(text: &str, is_index: bool, expected: &[(&str, &str)]) {
        let entry = |(address, lastmod): &(&str, &str)| Entry {
            address: (*address).to_owned(),
            lastmod: (*lastmod).to_owned(),
        };
        let entries = expected.iter().map(entry).collect();
        assert_eq!(read(text).unwrap(), Sitemap { is_index, entries });
    }

    #[track_caller]
    fn check_error(text: &str, why: &str) {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn cdata_references_and_comments_are_read_like_text() {
        let urls = "<url><loc><![CDATA[ http://a.test/?a=1&b=2 ]]></loc></url>
            <url><loc>/?a=1&amp;b=2&#38;c=&#x33;</loc><lastmod> 2026 </lastmod></url>
            <url><!-- <loc>/no</loc> --><loc>/t<!-- h -->wo</loc><lastmod/></url>
            <!-- <url><loc>/no</loc></url> -->
            <url><loc>/?a=1&b=2&copy;</loc></url>";
        let expected = [
            ("http://a.test/?a=1&b=2", ""),
            ("/?a=1&b=2&c=3", "2026"),
            ("/two", ""),
            ("/?a=1&b=2&copy;", ""),
        ];
        let text = format!("\u{feff}<?xml version=\"1.0\"?>\n<urlset {NS}>{urls}</urlset>\n");
        check(&text, false, &expected);
    }

    #[test]
    fn elements_of_other_namespaces_are_passed_over() {
        let image =
            "<i:image><i:loc>/no.png</i:loc></i:image><i:loc>/no</i:loc><i:lastmod>1</i:lastmod>";
        let urls = format!("<url>{image}<loc>/1</loc></url><i:url><loc>/no</loc></i:url>");
        let declared = "xmlns:i=\"http://www.google.com/schemas/sitemap-image/1.1\"";
        for attributes in [
            format!("{NS} {declared}"),
            declared.to_owned(),
            String::new(),
        ] {
            let text = format!("<urlset {attributes}>{urls}</urlset>");
            check(&text, false, &[("/1", "")]);
        }
    }

    #[test]
    fn a_prefix_for_sitemaps_is_understood() {
        let maps = "<s:sitemap><s:loc>/1.xml</s:loc></s:sitemap><sitemap><loc>/no</loc></sitemap>";
        let declared = NS.replace("xmlns", "xmlns:s");
        let text = format!("<s:sitemapindex {declared}>{maps}</s:sitemapindex>");
        check(&text, true, &[("/1.xml", "")]);
    }

    #[test]
    fn an_empty_sitemap_has_no_entries() {
        check("<urlset/>", false, &[]);
        check("<sitemapindex></sitemapindex>", true, &[]);
    }

    #[test]
    fn what_is_no_whole_sitemap_is_an_error() {
        check_error("", "lacks any element of XML");
        check_error("http://a.test/1\n", "lacks any element of XML");
        check_error(
            "<html><body/></html>",
            "the root of a sitemap is not `html`",
        );
        check_error(
            "<urlset><url><loc>/1</loc></url>",
            "ends before its root does",
        );
        check_error("<urlset><url><loc>/1</url></urlset>", "</loc>");
        check_error(
            "<urlset><url><loc>/1</loc></url><url><lastmod>2026</lastmod></url></urlset>",
            "entry 2 of the sitemap has no address in `loc`",
        );
    }
}
