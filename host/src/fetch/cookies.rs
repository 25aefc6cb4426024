//! The cookies of one crawl (RFC 6265): what sites have set, and what the resource begins with.
//!
//! They live in the frontier, so that a login outlives the process. All is bounded: a site cannot make
//! them grow without end, nor drive out those of another.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cookie_store::{CookieDomain, CookieStore, RawCookie, StoreAction};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::model::settings::CookieSeed;

/// Bytes of one cookie (RFC 6265, 6.1: at least 4096).
const MAX_COOKIE: usize = 4_096;
/// Of one host (RFC 6265, 6.1: at least 50).
const MAX_PER_HOST: usize = 50;
/// Bytes of one host, so that no few of them use up all.
const MAX_HOST_BYTES: usize = 16 << 10;
/// Bytes of all together.
const MAX_BYTES: usize = 256 << 10;

/// What a crawl sends back to the sites that set it.
pub struct CookieJar {
    state: Mutex<State>,
}

struct State {
    store: CookieStore,
    n_bytes: usize,
    /// Those of the resource that were put in.
    seeds: Vec<CookieSeed>,
    is_changed: bool,
}

/// As it is kept.
#[derive(Serialize, Deserialize)]
struct Saved {
    seeds: Vec<CookieSeed>,
    /// The host of each, and what it had set.
    cookies: Vec<cookie_store::Cookie<'static>>,
}

impl std::fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not what is in it: cookies are as good as passwords.
        f.debug_struct("CookieJar").finish_non_exhaustive()
    }
}

impl CookieJar {
    /// What was kept, and those of the resource that were not put in yet. What cannot be read any more
    /// is told and forgotten.
    pub fn open(saved: Option<&[u8]>, seeds: &[CookieSeed]) -> Self {
        let saved = saved.map(serde_json::from_slice::<Saved>).transpose();
        let saved = saved.unwrap_or_else(|error| {
            tracing::warn!(%error, "the cookies that were kept cannot be read; the crawl goes on without");
            None
        });
        let (known, cookies) = saved.map_or_else(Default::default, |s| (s.seeds, s.cookies));
        let is_meant = |seed: &CookieSeed| seeds.contains(seed);
        let (known, withdrawn): (Vec<_>, Vec<_>) = known.into_iter().partition(is_meant);
        let cookies = cookies.into_iter().map(Ok::<_, std::convert::Infallible>);
        let store = match CookieStore::from_cookies(cookies, false) {
            Ok(store) => store,
            Err(never) => match never {},
        };
        let n_bytes = store.iter_any().map(|c| size(c)).sum();
        let mut state = State {
            store,
            n_bytes,
            seeds: known,
            is_changed: false,
        };
        for gone in withdrawn {
            state.forget(&gone.host, "/", &gone.name);
        }
        for seed in seeds {
            if !state.seeds.contains(seed) {
                state.seed(seed);
                state.seeds.push(seed.clone());
            }
        }
        Self {
            state: Mutex::new(state),
        }
    }

    /// What a request for this URL sends.
    pub fn header(&self, url: &Url) -> Option<String> {
        let state = self.state();
        let mut header = String::new();
        for (name, value) in state.store.get_request_values(url) {
            let separator = if header.is_empty() { "" } else { "; " };
            header.extend([separator, name, "=", value]);
        }
        (!header.is_empty()).then_some(header)
    }

    /// Takes what an answer from this URL sets, as far as it may.
    pub fn hear<'a>(&self, url: &Url, set: impl Iterator<Item = &'a str>) {
        let mut state = self.state();
        for text in set.filter(|text| text.len() <= MAX_COOKIE) {
            if let Ok(mut cookie) = RawCookie::parse(text.to_owned()) {
                // Both are about pages of other sites, and would be kept with a `Secure` that the site has
                // not set.
                cookie.set_same_site(None);
                cookie.set_partitioned(None);
                state.set(&cookie, url);
            }
        }
    }

    /// What is to be kept, where it has changed since this was asked last.
    pub fn unsaved(&self) -> Option<Bytes> {
        let mut state = self.state();
        if !state.is_changed {
            return None;
        }
        let saved = Saved {
            seeds: state.seeds.clone(),
            cookies: state.store.iter_unexpired().cloned().collect(),
        };
        state.is_changed = false;
        match serde_json::to_vec(&saved) {
            Ok(bytes) => Some(bytes.into()),
            Err(error) => {
                tracing::error!(%error, "cookies cannot be written down");
                None
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn seed(&mut self, seed: &CookieSeed) {
        let Ok(url) = Url::parse(&format!("http://{}/", seed.host)) else {
            return;
        };
        let mut cookie = RawCookie::new(seed.name.clone(), seed.value.clone());
        cookie.set_path("/");
        if seed.and_below {
            cookie.set_domain(seed.host.clone());
        }
        self.set(&cookie, &url);
    }

    fn set(&mut self, raw: &RawCookie<'_>, url: &Url) {
        let Ok(cookie) = cookie_store::Cookie::try_from_raw_cookie(raw, url) else {
            return;
        };
        let Some(domain) = cookie.domain.as_cow() else {
            return;
        };
        // Not for all of a top-level domain.
        if matches!(cookie.domain, CookieDomain::Suffix(_)) && !domain.contains('.') {
            return;
        }
        let before = self.store.get_any(&domain, &cookie.path, cookie.name());
        let is_same = before.is_some_and(|before| {
            let is_for_same = before.expires == cookie.expires && before.domain == cookie.domain;
            let says_same = before.value() == cookie.value()
                && before.secure() == cookie.secure()
                && before.http_only() == cookie.http_only();
            is_for_same && says_same && !before.is_expired()
        });
        // What most answers say.
        if is_same {
            return;
        }
        self.forget_expired();
        let before = self.store.get_any(&domain, &cookie.path, cookie.name());
        let n_before = before.map(size);
        // The jar knows no difference between a cookie of a host and one of it and all below it.
        let is_here =
            |other: &&cookie_store::Cookie<'_>| other.domain.as_cow().as_ref() == Some(&domain);
        let here = self.store.iter_any().filter(is_here);
        let (n, n_bytes_here) =
            here.fold((0, 0), |(n, n_bytes), other| (n + 1, n_bytes + size(other)));
        let has_place = n_before.is_some() || n < MAX_PER_HOST;
        let after = |n_bytes: usize| n_bytes - n_before.unwrap_or(0) + size(&cookie);
        let n_bytes = after(self.n_bytes);
        let fits = after(n_bytes_here) <= MAX_HOST_BYTES && n_bytes <= MAX_BYTES;
        let is_kept = cookie.is_expired() || (has_place && fits);
        if !is_kept {
            tracing::debug!(%url, "a cookie is not kept: there is no room for more");
            return;
        }
        match self.store.insert(cookie.into_owned(), url) {
            Ok(StoreAction::Inserted | StoreAction::UpdatedExisting) => self.n_bytes = n_bytes,
            Ok(StoreAction::ExpiredExisting) => {}
            Err(_of_another_host_or_past) => return,
        }
        self.is_changed = true;
    }

    /// They would hold a place for ever.
    fn forget_expired(&mut self) {
        let expired = self.store.iter_any().filter(|cookie| cookie.is_expired());
        let expired: Vec<_> = expired
            .filter_map(|cookie| {
                let domain = cookie.domain.as_cow()?.into_owned();
                Some((domain, cookie.path.to_string(), cookie.name().to_owned()))
            })
            .collect();
        for (domain, path, name) in expired {
            self.forget(&domain, &path, &name);
        }
    }

    fn forget(&mut self, domain: &str, path: &str, name: &str) {
        if let Some(gone) = self.store.remove(domain, path, name) {
            self.n_bytes = self.n_bytes.saturating_sub(size(&gone));
            self.is_changed = true;
        }
    }
}

fn size(cookie: &cookie_store::Cookie<'_>) -> usize {
    let domain = cookie.domain.as_cow().map_or(0, |domain| domain.len());
    domain + cookie.path.len() + cookie.name().len() + cookie.value().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn hear(jar: &CookieJar, from: &str, set: &[&str]) {
        jar.hear(&url(from), set.iter().copied());
    }

    /// Those that are sent, in order of their names.
    fn sent(jar: &CookieJar, to: &str) -> Vec<String> {
        let header = jar.header(&url(to)).unwrap_or_default();
        let mut sent: Vec<String> = header.split("; ").map(str::to_owned).collect();
        sent.sort();
        sent.retain(|cookie| !cookie.is_empty());
        sent
    }

    #[test]
    fn a_cookie_may_change_in_whom_it_is_sent_to_alone() {
        let jar = CookieJar::open(None, &[]);
        for (set, n_below, n_plain) in [
            ("id=1", 0, 1),
            ("id=1; Domain=shop.test", 1, 1),
            ("id=1; Domain=shop.test; Secure", 0, 0),
            ("id=1", 0, 1),
        ] {
            hear(&jar, "https://shop.test/", &[set]);
            assert_eq!(sent(&jar, "https://shop.test/"), ["id=1"], "{set}");
            assert_eq!(sent(&jar, "http://a.shop.test/").len(), n_below, "{set}");
            assert_eq!(sent(&jar, "http://shop.test/").len(), n_plain, "{set}");
            assert!(jar.unsaved().is_some(), "{set}");
            hear(&jar, "https://shop.test/", &[set]);
            assert!(jar.unsaved().is_none(), "{set} says nothing new");
        }
    }

    #[test]
    fn a_cookie_of_a_host_may_become_one_of_its_domain_and_back() {
        let jar = CookieJar::open(None, &[]);
        let long = format!("id={}", "x".repeat(100));
        for (set, below) in [
            (long.as_str(), 0),
            ("id=1; Domain=shop.test", 1),
            (long.as_str(), 0),
        ] {
            hear(&jar, "http://shop.test/", &[set]);
            let name = set.split(';').next().unwrap();
            assert_eq!(sent(&jar, "http://shop.test/"), [name]);
            assert_eq!(sent(&jar, "http://a.shop.test/").len(), below, "{set}");
        }
        let state = jar.state();
        let kept: Vec<usize> = state.store.iter_any().map(size).collect();
        assert_eq!(kept, [state.n_bytes]);
    }

    #[test]
    fn what_a_site_sets_is_sent_back_to_it_alone() {
        let jar = CookieJar::open(None, &[]);
        hear(
            &jar,
            "https://shop.test/a/b",
            &[
                "host=1",
                "below=2; Domain=shop.test; Path=/",
                "path=3; Path=/x",
                "safe=4; Secure; Path=/",
                "past=5; Max-Age=0; Path=/",
                "other=6; Domain=other.test",
                "all=7; Domain=test; Path=/",
                "nonsense",
            ],
        );
        for (to, expected) in [
            (
                "https://shop.test/a/c",
                &["below=2", "host=1", "safe=4"][..],
            ),
            ("http://shop.test/a/c", &["below=2", "host=1"]),
            ("https://shop.test/x/", &["below=2", "path=3", "safe=4"]),
            ("https://www.shop.test/a/", &["below=2"]),
            ("https://other.test/a/", &[]),
        ] {
            assert_eq!(sent(&jar, to), expected, "{to}");
        }
        hear(
            &jar,
            "https://shop.test/a/",
            &["host=7", "below=; Domain=shop.test; Path=/; Max-Age=0"],
        );
        assert_eq!(sent(&jar, "https://shop.test/a/c"), ["host=7", "safe=4"]);
    }

    #[test]
    fn what_has_changed_is_kept_and_there_after_a_restart() {
        let seeds: Vec<CookieSeed> = vec![
            "a.test:s=1".parse().unwrap(),
            "*.b.test:t=2".parse().unwrap(),
        ];
        let jar = CookieJar::open(None, &seeds);
        assert_eq!(sent(&jar, "http://a.test/"), ["s=1"]);
        assert_eq!(sent(&jar, "http://www.a.test/"), Vec::<String>::new());
        assert_eq!(sent(&jar, "http://www.b.test/"), ["t=2"]);
        hear(
            &jar,
            "http://a.test/",
            &["session=3; Path=/", "s=4; Path=/"],
        );
        let kept = jar.unsaved().unwrap();
        // What is as before is no change.
        hear(&jar, "http://a.test/", &["session=3; Path=/"]);
        assert_eq!(jar.unsaved(), None);
        hear(&jar, "http://a.test/", &["more=5; Path=/"]);
        assert!(jar.unsaved().is_some());
        assert_eq!(jar.unsaved(), None);
        // What the site has set instead is not undone by what the crawl began with, but by what it is
        // told to begin with since.
        let again = CookieJar::open(Some(&kept), &seeds);
        assert_eq!(sent(&again, "http://a.test/"), ["s=4", "session=3"]);
        let other = CookieJar::open(Some(&kept), &["a.test:s=9".parse().unwrap()]);
        assert_eq!(sent(&other, "http://a.test/"), ["s=9", "session=3"]);
        let withdrawn = CookieJar::open(Some(&kept), &seeds[..1]);
        assert_eq!(sent(&withdrawn, "http://www.b.test/"), Vec::<String>::new());
        // What says where else it may be sent from is no less one for http.
        let from_elsewhere = ["any=1; SameSite=None", "each=2; Partitioned"];
        hear(&jar, "http://c.test/", &from_elsewhere);
        let again = CookieJar::open(jar.unsaved().as_deref(), &seeds);
        assert_eq!(sent(&again, "http://c.test/"), ["any=1", "each=2"]);
        let damaged = CookieJar::open(Some(b"?"), &seeds);
        assert_eq!(sent(&damaged, "http://a.test/"), ["s=1"]);
    }

    #[test]
    fn no_site_makes_them_grow_without_end_or_drives_out_those_of_another() {
        let jar = CookieJar::open(None, &[]);
        hear(&jar, "http://a.test/", &["kept=1; Path=/"]);
        for n in 0..200 {
            hear(&jar, "http://greedy.test/", &[&format!("c{n}=1; Path=/")]);
        }
        assert_eq!(sent(&jar, "http://greedy.test/").len(), MAX_PER_HOST);
        // What has expired holds no place.
        hear(
            &jar,
            "http://greedy.test/",
            &["c0=; Path=/; Max-Age=0", "new=1; Path=/"],
        );
        assert!(sent(&jar, "http://greedy.test/").contains(&"new=1".to_owned()));
        // One that is there can be changed.
        hear(&jar, "http://greedy.test/", &["c1=2; Path=/"]);
        assert!(sent(&jar, "http://greedy.test/").contains(&"c1=2".to_owned()));
        let large = "x".repeat(4_000);
        let many: Vec<String> = (0..20).map(|n| format!("c{n}={large}; Path=/")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        hear(&jar, "http://large.test/", &many);
        assert_eq!(
            sent(&jar, "http://large.test/").len(),
            MAX_HOST_BYTES / 4_010
        );
        for host in 0..200 {
            let url = format!("http://h{host}.test/");
            hear(&jar, &url, &[&format!("c={large}; Path=/")]);
        }
        assert!(jar.state().n_bytes <= MAX_BYTES);
        hear(
            &jar,
            "http://b.test/",
            &[&format!("c={}; Path=/", "x".repeat(MAX_COOKIE))],
        );
        assert_eq!(sent(&jar, "http://b.test/"), Vec::<String>::new());
        assert_eq!(sent(&jar, "http://a.test/"), ["kept=1"]);
        assert!(!format!("{jar:?}").contains("kept"));
    }
}
