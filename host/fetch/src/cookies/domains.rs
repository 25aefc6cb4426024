//! Cookies grouped by domain, so that a request to one host does not search the cookies of all others.

use std::cmp::Reverse;
use std::collections::HashMap;

use cookie_store::{Cookie, CookieError, CookieStore, StoreAction};
use url::Url;

/// A jar for each domain that has a cookie.
#[derive(Default)]
pub(super) struct Domains {
    by_name: HashMap<String, CookieStore>,
}

impl Domains {
    /// Groups the stored cookies by domain and drops those that have expired since.
    pub(super) fn of(cookies: Vec<Cookie<'static>>) -> Self {
        let mut by_name = HashMap::<String, Vec<_>>::new();
        for cookie in cookies {
            if let Some(domain) = cookie.domain.as_cow() {
                let here = by_name.entry(domain.into_owned()).or_default();
                here.push(Ok::<_, std::convert::Infallible>(cookie));
            }
        }
        let each = by_name.into_iter();
        let by_name =
            each.map(
                |(domain, cookies)| match CookieStore::from_cookies(cookies, false) {
                    Ok(store) => (domain, store),
                    Err(never) => match never {},
                },
            );
        Self {
            by_name: by_name.collect(),
        }
    }

    /// Returns the cookies that a request to this URL sends: longer paths first (RFC 6265, 5.4), then by name.
    pub(super) fn sent(&self, url: &Url) -> Vec<&Cookie<'static>> {
        let domains = std::iter::successors(url.host_str(), |domain| {
            domain.split_once('.').map(|(_, above)| above)
        });
        let stores = domains.filter_map(|domain| self.by_name.get(domain));
        let mut sent: Vec<_> = stores
            .flat_map(CookieStore::iter_unexpired)
            .filter(|cookie| cookie.matches(url))
            .collect();
        sent.sort_by_key(|cookie| (Reverse(cookie.path.len()), cookie.name()));
        sent
    }

    /// Returns the stored cookie that this one would replace.
    pub(super) fn like(&self, cookie: &Cookie<'_>) -> Option<&Cookie<'static>> {
        let domain = cookie.domain.as_cow()?;
        let store = self.by_name.get(&*domain)?;
        store.get_any(&domain, &cookie.path, cookie.name())
    }

    /// Iterates over the cookies of one domain.
    pub(super) fn of_domain(&self, domain: &str) -> impl Iterator<Item = &Cookie<'static>> {
        let store = self.by_name.get(domain).into_iter();
        store.flat_map(CookieStore::iter_any)
    }

    /// Iterates over all cookies.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Cookie<'static>> {
        self.by_name.values().flat_map(CookieStore::iter_any)
    }

    #[cfg(test)]
    pub(super) fn n_domains(&self) -> usize {
        self.by_name.len()
    }

    /// Inserts a cookie that this URL has set.
    pub(super) fn insert(
        &mut self,
        cookie: Cookie<'static>,
        url: &Url,
    ) -> Result<StoreAction, CookieError> {
        let domain = cookie.domain.as_cow().unwrap_or_default().into_owned();
        let store = self.by_name.entry(domain.clone()).or_default();
        let inserted = store.insert(cookie, url);
        self.tidy(&domain);
        inserted
    }

    /// Removes a cookie and returns it.
    pub(super) fn remove(
        &mut self,
        domain: &str,
        path: &str,
        name: &str,
    ) -> Option<Cookie<'static>> {
        let store = self.by_name.get_mut(domain)?;
        let gone = store.remove(domain, path, name);
        self.tidy(domain);
        gone
    }

    /// Removes the entry of a domain that has no cookies left.
    fn tidy(&mut self, domain: &str) {
        if self.of_domain(domain).next().is_none() {
            self.by_name.remove(domain);
        }
    }
}
