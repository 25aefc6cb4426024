//! The links of a page.

use std::collections::BTreeSet;

use crawler_extract::{Budget, Take, extract};
use regex_lite::Regex;
use url::Url;

use super::plan::plan_of;
use crawler_model::page::{base_of, leads_on};

/// Links of a page.
#[derive(Debug, PartialEq, Eq)]
pub struct Links {
    /// Addresses of http and https, and others like that of the page; each once, in the page's order.
    pub urls: Vec<Url>,
    /// True if the page has more than may be read at once.
    pub is_truncated: bool,
}

/// Returns the links of a page; with a pattern, only those that match it.
pub fn links(page: &str, url: &Url, pattern: Option<&str>) -> Result<Links, String> {
    let pattern = pattern.map(Regex::new).transpose();
    let pattern = pattern.map_err(|why| format!("it is no regular expression: {why}"))?;
    let href = Take::Attr("href".to_owned());
    let plan = plan_of(&[("href", "a[href], area[href]", href)]);
    let captures = extract(&plan, page, &Budget::default()).map_err(|error| error.to_string())?;
    let base = base_of(captures.base.as_deref(), url);
    let mut seen = BTreeSet::new();
    let all = captures.values(0).filter_map(|(_, href)| {
        let mut link = base.join(href).ok()?;
        link.set_fragment(None);
        Some(link).filter(|link| leads_on(link, url))
    });
    let fits = |link: &Url| {
        let pattern = pattern.as_ref();
        pattern.is_none_or(|pattern| pattern.is_match(link.as_str()))
    };
    let all = all.filter(fits).filter(|link| seen.insert(link.clone()));
    Ok(Links {
        urls: all.collect(),
        is_truncated: captures.truncated,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_absolute_and_each_is_there_once() {
        let page = "<base href=/b/><a href=x>1</a><a href=/b/x>2</a><a href=mailto:a@b>3</a><a href='y.pdf'>4</a><a href='x#a'>5</a>";
        let url = Url::parse("http://a.test/1").unwrap();
        let found = |pattern: Option<&str>| {
            let links = links(page, &url, pattern)?;
            Ok(links.urls.into_iter().map(String::from).collect::<Vec<_>>())
        };
        let all = ["http://a.test/b/x", "http://a.test/b/y.pdf"];
        assert_eq!(found(None), Ok(all.map(str::to_owned).to_vec()));
        assert_eq!(found(Some("pdf$")), Ok(vec![all[1].to_owned()]));
        let nowhere = links("<base href=data:x><a href=x>1</a>", &url, None).unwrap();
        assert_eq!(nowhere.urls, [Url::parse("http://a.test/x").unwrap()]);
        let why: Result<_, String> = found(Some("("));
        assert!(
            why.unwrap_err()
                .starts_with("it is no regular expression: ")
        );
    }
    #[test]
    fn links_of_a_file_are_those_of_files_and_what_is_left_out_is_marked() {
        let url = Url::parse("file:///a/b.html").unwrap();
        let found = links("<a href=c.html>c</a>", &url, None).unwrap();
        assert_eq!(found.urls, [Url::parse("file:///a/c.html").unwrap()]);
        assert!(!found.is_truncated);
        let many = format!("<a href={}>", "x".repeat(9_000)).repeat(1_200);
        assert!(links(&many, &url, None).unwrap().is_truncated);
    }
}
