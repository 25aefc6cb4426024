//! The headers of an answer, in one piece of memory: a page has many small ones, and they come and go
//! with every page.

use std::fmt;

/// Names and values, in their order.
#[derive(Clone, Default)]
pub struct Headers {
    text: String,
    /// Of each, where its name and where its value ends.
    ends: Vec<(usize, usize)>,
}

impl Headers {
    /// For so many headers, of so many bytes.
    pub fn with_capacity(n: usize, n_bytes: usize) -> Self {
        Self {
            text: String::with_capacity(n_bytes),
            ends: Vec::with_capacity(n),
        }
    }

    /// Puts one behind the others.
    pub fn push(&mut self, name: &str, value: &str) {
        self.text.push_str(name);
        let name_end = self.text.len();
        self.text.push_str(value);
        self.ends.push((name_end, self.text.len()));
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let starts = [0].into_iter().chain(self.ends.iter().map(|&(_, end)| end));
        let each = starts.zip(&self.ends);
        each.map(|(start, &(name_end, end))| {
            (&self.text[start..name_end], &self.text[name_end..end])
        })
    }

    /// The value of the first one of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut named = self.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all names and values.
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
