//! Headers of a response in one piece of memory. A page has many small ones, and they are allocated
//! and freed with every page.

use std::fmt;

/// Names and values of headers, in order.
#[derive(Clone, Default)]
pub struct Headers {
    text: String,
    /// End of the name and end of the value of each header, as offsets in `text`.
    ends: Vec<(usize, usize)>,
}

impl Headers {
    /// Creates an empty list with room for `n` headers of `n_bytes` bytes in all.
    pub fn with_capacity(n: usize, n_bytes: usize) -> Self {
        Self {
            text: String::with_capacity(n_bytes),
            ends: Vec::with_capacity(n),
        }
    }

    /// Appends a header.
    pub fn push(&mut self, name: &str, value: &str) {
        self.text.push_str(name);
        let name_end = self.text.len();
        self.text.push_str(value);
        self.ends.push((name_end, self.text.len()));
    }

    /// Iterates over all headers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let starts = [0].into_iter().chain(self.ends.iter().map(|&(_, end)| end));
        let each = starts.zip(&self.ends);
        each.map(|(start, &(name_end, end))| {
            (&self.text[start..name_end], &self.text[name_end..end])
        })
    }

    /// Returns the value of the first header with this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut named = self.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value)
    }

    /// Number of headers.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are no headers.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Total bytes of names and values.
    pub fn n_bytes(&self) -> usize {
        self.text.len()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Headers {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'a str)>>(all: T) -> Self {
        let mut headers = Self::default();
        for (name, value) in all {
            headers.push(name, value);
        }
        headers
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_keep_their_order_and_the_first_of_a_name_is_found_in_any_spelling() {
        let all = [
            ("etag", "\"v\""),
            ("vary", ""),
            ("set-cookie", "a=1"),
            ("set-cookie", "ü"),
        ];
        let headers: Headers = all.into_iter().collect();
        assert_eq!(headers.iter().collect::<Vec<_>>(), all);
        assert_eq!(headers.get("ETag"), Some("\"v\""));
        assert_eq!(headers.get("vary"), Some(""));
        assert_eq!(headers.get("Set-Cookie"), Some("a=1"));
        assert_eq!(headers.get("eta"), None);
        assert_eq!((headers.len(), headers.n_bytes()), (4, 7 + 4 + 13 + 12));
        assert_eq!(Headers::default().iter().next(), None);
    }
}
