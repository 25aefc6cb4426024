//! Content types that a crawl wants, such as `text/*, application/json`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::list::{entries, list};
use crate::text::as_text;

/// List of content types; an empty list stands for all. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContentTypes(Arc<[String]>);

impl ContentTypes {
    /// True if a response with this `content-type` is wanted. A response without the header, or with one
    /// that names no type, is wanted, because its type is unknown.
    pub fn want(&self, content_type: Option<&str>) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let essence = content_type.and_then(|header| header.split(';').next());
        let essence = essence.unwrap_or_default().trim();
        let Some((kind, _)) = essence.split_once('/') else {
            return true;
        };
        self.0.iter().any(|wanted| match wanted.strip_suffix("/*") {
            Some(wanted) => wanted.eq_ignore_ascii_case(kind),
            None => wanted.eq_ignore_ascii_case(essence),
        })
    }
}

impl FromStr for ContentTypes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // RFC 9110, 5.6.2: a token.
        let is_token = |part: &str| {
            let is_char = |c: char| c.is_ascii_alphanumeric() || "!#$%&'+-.^_`|~".contains(c);
            !part.is_empty() && part.chars().all(is_char)
        };
        let types: Option<Vec<String>> = entries(text, "all")?
            .map(|entry| {
                let (kind, subtype) = entry.split_once('/')?;
                let is_meant = is_token(kind) && (subtype == "*" || is_token(subtype));
                is_meant.then(|| entry.to_ascii_lowercase())
            })
            .collect();
        let types = types.ok_or_else(|| {
            format!("takes all, or content types like text/*, application/json, not {text:?}")
        })?;
        Ok(Self(types.into()))
    }
}

impl fmt::Display for ContentTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, &self.0, "all")
    }
}

as_text!(ContentTypes);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_wanted_by_its_type_whatever_follows_and_one_without_always() {
        let wanted: ContentTypes = "Text/*, application/ld+json".parse().unwrap();
        assert_eq!(wanted.to_string(), "text/*, application/ld+json");
        for (content_type, is_wanted) in [
            (Some("text/html; charset=utf-8"), true),
            (Some("TEXT/plain"), true),
            (Some("application/LD+JSON;x=y"), true),
            (Some("application/json"), false),
            (Some("textual/html"), false),
            (Some("image/png"), false),
            (Some("html"), true),
            (Some(""), true),
            (None, true),
        ] {
            assert_eq!(wanted.want(content_type), is_wanted, "{content_type:?}");
        }
        let all: ContentTypes = "all".parse().unwrap();
        assert!(all.want(Some("image/png")));
    }

    #[test]
    fn what_is_no_type_is_refused() {
        for text in [
            "html",
            "text/",
            "/html",
            "*/*",
            "text/*x",
            "text/html;q=1",
            "a b/c",
        ] {
            let error = text.parse::<ContentTypes>().unwrap_err();
            let expected =
                format!("takes all, or content types like text/*, application/json, not {text:?}");
            assert_eq!(error, expected);
        }
    }
}
