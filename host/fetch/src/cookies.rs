//! The cookies of one crawl (RFC 6265): those that sites have set, and those that the resource begins with.
//!
//! A site sets cookies for itself and for the domain that it belongs to, never for a public suffix such as
//! `co.uk`, because other sites would be sent them. Cookies that a user sets in the resource are accepted
//! without this check.
//!
//! The cookies are kept in the frontier, so that a login survives a restart of the process. Their number and
//! size are bounded: a site can neither make them grow without limit nor evict the cookies of another site.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cookie_store::{Cookie, CookieDomain, RawCookie, StoreAction};
use serde::{Deserialize, Serialize};
use url::Url;

use crawler_model::frontier::KeptCookies;
use crawler_model::settings::CookieSeed;
use crawler_model::suffix::is_public_suffix;
use domains::Domains;

mod domains;

/// Maximum size of one cookie in bytes (RFC 6265, 6.1: at least 4096).
const MAX_COOKIE: usize = 4_096;
/// Maximum number of cookies of one host (RFC 6265, 6.1: at least 50).
const MAX_PER_HOST: usize = 50;
/// Maximum size in bytes of the cookies of one host, so that a few hosts cannot use up the total.
const MAX_HOST_BYTES: usize = 16 << 10;
/// Maximum size in bytes of all cookies of a crawl.
const MAX_BYTES: usize = 256 << 10;

/// Cookies of one crawl, shared by all of its pages.
pub struct CookieJar {
    state: RwLock<State>,
}

struct State {
    cookies: Domains,
    n_bytes: usize,
    /// Cookies of the resource that were already inserted.
    seeds: Vec<CookieSeed>,
    /// Number of the changes so far: of two records, the one with the higher version is newer.
    version: u64,
    is_changed: bool,
}

/// The stored form of the jar.
#[derive(Serialize, Deserialize)]
struct Saved {
    seeds: Vec<CookieSeed>,
    /// The cookies that sites have set, with their hosts.
    cookies: Vec<Cookie<'static>>,
}

impl std::fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The content is left out: cookies are as sensitive as passwords.
        f.debug_struct("CookieJar").finish_non_exhaustive()
    }
}

impl CookieJar {
    /// Opens the stored cookies and inserts those of the resource that were not inserted yet. Stored cookies
    /// that cannot be read are logged and dropped.
    pub fn open(kept: Option<&KeptCookies>, seeds: &[CookieSeed]) -> Self {
        let version = kept.map_or(0, |kept| kept.version);
        let saved = kept.map(|kept| serde_json::from_slice::<Saved>(&kept.jar));
        let saved = saved.transpose();
        let saved = saved.unwrap_or_else(|error| {
            tracing::warn!(%error, "the cookies that were kept cannot be read; the crawl goes on without");
            None
        });
        let (known, mut cookies) = saved.map_or_else(Default::default, |s| (s.seeds, s.cookies));
        // Earlier versions accepted cookies for public suffixes from sites.
        cookies.retain(|cookie| suffix_of(cookie).is_none_or(|suffix| is_seed_for(suffix, seeds)));
        let is_meant = |seed: &CookieSeed| seeds.contains(seed);
        let (known, withdrawn): (Vec<_>, Vec<_>) = known.into_iter().partition(is_meant);
        let cookies = Domains::of(cookies);
        let n_bytes = cookies.iter().map(|cookie| size(cookie)).sum();
        let mut state = State {
            cookies,
            n_bytes,
            seeds: known,
            version,
            is_changed: false,
        };
        for gone in withdrawn {
            state.forget(vec![[gone.host, "/".to_owned(), gone.name]]);
        }
        for seed in seeds {
            if !state.seeds.contains(seed) {
                state.seed(seed);
                state.seeds.push(seed.clone());
            }
        }
        Self {
            state: RwLock::new(state),
        }
    }

    /// Returns the header `cookie` for a request to this URL.
    pub fn header(&self, url: &Url) -> Option<String> {
        let state = self.read();
        let mut header = String::new();
        for cookie in state.cookies.sent(url) {
            let separator = if header.is_empty() { "" } else { "; " };
            header.extend([separator, cookie.name(), "=", cookie.value()]);
        }
        (!header.is_empty()).then_some(header)
    }

    /// Stores the cookies that an answer from this URL sets, as far as the site may set them.
    pub fn receive<'a>(&self, url: &Url, set: impl Iterator<Item = &'a str>) {
        let set = set.filter(|text| text.len() <= MAX_COOKIE);
        let set: Vec<_> = set.filter_map(|text| heard(text, url)).collect();
        // Most answers set only cookies that the jar has already, and all pages of a crawl share the jar.
        if set.is_empty() || self.read().has_all(&set) {
            return;
        }
        // All cookies of one answer are stored under one lock, because cookies that belong together are sent
        // together.
        let mut state = self.write();
        for cookie in set {
            if !state.has(&cookie) {
                state.set(cookie, url);
            }
        }
    }

    /// Returns the record to store, if the jar has changed since the last call. Each record has a higher
    /// version than the one before, because two tasks may hand theirs to the frontier in either order.
    pub fn unsaved(&self) -> Option<KeptCookies> {
        let mut state = self.write();
        if !state.is_changed {
            return None;
        }
        let unexpired = state.cookies.iter().filter(|cookie| !cookie.is_expired());
        let saved = Saved {
            seeds: state.seeds.clone(),
            cookies: unexpired.cloned().collect(),
        };
        state.is_changed = false;
        state.version += 1;
        match serde_json::to_vec(&saved) {
            Ok(bytes) => Some(KeptCookies {
                version: state.version,
                jar: bytes.into(),
            }),
            Err(error) => {
                tracing::error!(%error, "cookies cannot be written down");
                None
            }
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
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
        if let Ok(cookie) = Cookie::try_from_raw_cookie(&cookie, &url)
            && !self.has(&cookie)
        {
            self.set(cookie, &url);
        }
    }

    fn has_all(&self, cookies: &[Cookie<'_>]) -> bool {
        cookies.iter().all(|cookie| self.has(cookie))
    }

    /// Returns true if the jar has this cookie with the same value and attributes.
    fn has(&self, cookie: &Cookie<'_>) -> bool {
        self.cookies.like(cookie).is_some_and(|here| {
            let is_for_same = here.expires == cookie.expires && here.domain == cookie.domain;
            let says_same = here.value() == cookie.value()
                && here.secure() == cookie.secure()
                && here.http_only() == cookie.http_only();
            is_for_same && says_same && !here.is_expired()
        })
    }

    fn set(&mut self, cookie: Cookie<'_>, url: &Url) {
        let Some(domain) = cookie.domain.as_cow() else {
            return;
        };
        self.forget(expired(self.cookies.of_domain(&domain)));
        if self.n_bytes + size(&cookie) > MAX_BYTES {
            self.forget(expired(self.cookies.iter()));
        }
        let n_before = self.cookies.like(&cookie).map(size);
        // The jar does not distinguish a cookie for one host from a cookie for that host and all names below it.
        let here = self.cookies.of_domain(&domain);
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
        match self.cookies.insert(cookie.into_owned(), url) {
            Ok(StoreAction::Inserted | StoreAction::UpdatedExisting) => self.n_bytes = n_bytes,
            Ok(StoreAction::ExpiredExisting) => {}
            Err(_of_another_host_or_past) => return,
        }
        self.is_changed = true;
    }

    fn forget(&mut self, names: Vec<[String; 3]>) {
        for [domain, path, name] in names {
            if let Some(gone) = self.cookies.remove(&domain, &path, &name) {
                self.n_bytes = self.n_bytes.saturating_sub(size(&gone));
                self.is_changed = true;
            }
        }
    }
}

/// Parses a cookie that an answer from this URL sets. Returns `None` if the site may not set it.
fn heard<'a>(text: &'a str, url: &Url) -> Option<Cookie<'a>> {
    let mut raw = RawCookie::parse(text).ok()?;
    // Both attributes concern pages of other sites, and would be kept with a `Secure` that the site has not set.
    raw.set_same_site(None);
    raw.set_partitioned(None);
    let mut cookie = Cookie::try_from_raw_cookie(&raw, url).ok()?;
    if let Some(suffix) = suffix_of(&cookie) {
        // RFC 6265, 5.3: a host that is a public suffix itself may set cookies for itself only.
        if Some(suffix) != url.host_str() {
            return None;
        }
        cookie.domain = CookieDomain::HostOnly(suffix.to_owned());
    }
    cookie.domain.matches(url).then(|| cookie.into_owned())
}

/// The public suffix that a cookie is for, with all names below it.
fn suffix_of<'a>(cookie: &'a Cookie<'_>) -> Option<&'a str> {
    match &cookie.domain {
        CookieDomain::Suffix(domain) if is_public_suffix(domain) => Some(domain),
        _ => None,
    }
}

/// Returns true if the user has set a cookie for all names below this domain.
fn is_seed_for(domain: &str, seeds: &[CookieSeed]) -> bool {
    let mut seeds = seeds.iter();
    seeds.any(|seed| seed.and_below && seed.host == domain)
}

/// Returns domain, path and name of the expired cookies, which would otherwise hold their places for ever.
fn expired<'a>(cookies: impl Iterator<Item = &'a Cookie<'static>>) -> Vec<[String; 3]> {
    let expired = cookies.filter(|cookie| cookie.is_expired());
    let names = expired.filter_map(|cookie| {
        let domain = cookie.domain.as_cow()?.into_owned();
        Some([domain, cookie.path.to_string(), cookie.name().to_owned()])
    });
    names.collect()
}

fn size(cookie: &Cookie<'_>) -> usize {
    let domain = cookie.domain.as_cow().map_or(0, |domain| domain.len());
    domain + cookie.path.len() + cookie.name().len() + cookie.value().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn receive(jar: &CookieJar, from: &str, set: &[&str]) {
        jar.receive(&url(from), set.iter().copied());
    }

    /// Returns the cookies that are sent, in order of their names.
    fn sent(jar: &CookieJar, to: &str) -> Vec<String> {
        let header = jar.header(&url(to)).unwrap_or_default();
        let mut sent: Vec<String> = header.split("; ").map(str::to_owned).collect();
        sent.sort();
        sent.retain(|cookie| !cookie.is_empty());
        sent
    }

    /// Builds a record as it was stored before there were versions.
    fn of_old(jar: &'static [u8]) -> KeptCookies {
        let jar = jar.into();
        KeptCookies { version: 0, jar }
    }

    #[test]
    fn r09_a_site_sets_no_cookie_for_a_public_suffix() {
        let jar = CookieJar::open(None, &["*.gov.uk:lang=en".parse().unwrap()]);
        let set = [
            "a=1; Domain=co.uk; Path=/",
            "b=2; Domain=.CO.uk; Path=/",
            "c=3; Domain=uk; Path=/",
            "d=4; Domain=evil.co.uk; Path=/",
        ];
        receive(&jar, "https://www.evil.co.uk/", &set);
        assert_eq!(sent(&jar, "https://bank.co.uk/"), Vec::<String>::new());
        assert_eq!(sent(&jar, "https://evil.co.uk/"), ["d=4"]);
        // A host that is a public suffix itself may set a cookie for itself.
        receive(
            &jar,
            "https://github.io/",
            &["own=1; Domain=github.io; Path=/"],
        );
        receive(
            &jar,
            "http://localhost/",
            &["own=2; Domain=localhost; Path=/"],
        );
        assert_eq!(sent(&jar, "https://github.io/"), ["own=1"]);
        assert_eq!(sent(&jar, "https://ann.github.io/"), Vec::<String>::new());
        assert_eq!(sent(&jar, "http://localhost/"), ["own=2"]);
        // A cookie of the user is accepted for a public suffix.
        assert_eq!(sent(&jar, "https://www.gov.uk/"), ["lang=en"]);
    }

    #[test]
    fn r09_cookies_for_a_suffix_that_were_kept_are_forgotten() {
        let old = of_old(
            br#"{"seeds":[],"cookies":[
                {"raw_cookie":"a=1; Domain=co.uk","path":["/",true],"domain":{"Suffix":"co.uk"},"expires":"SessionEnd"},
                {"raw_cookie":"b=2; Domain=shop.co.uk","path":["/",true],"domain":{"Suffix":"shop.co.uk"},"expires":"SessionEnd"}
            ]}"#,
        );
        let jar = CookieJar::open(Some(&old), &[]);
        assert_eq!(sent(&jar, "https://shop.co.uk/"), ["b=2"]);
        assert_eq!(sent(&jar, "https://other.co.uk/"), Vec::<String>::new());
    }

    #[test]
    fn r11_each_change_has_a_higher_version_also_after_a_restart() {
        let old = of_old(br#"{"seeds":[],"cookies":[]}"#);
        let jar = CookieJar::open(Some(&old), &[]);
        let mut version = 0;
        let mut last = None;
        for n in 0..3 {
            receive(&jar, "http://a.test/", &[&format!("login={n}; Path=/")]);
            let kept = jar.unsaved().unwrap();
            assert!(kept.version > version);
            version = kept.version;
            last = Some(kept);
        }
        let jar = CookieJar::open(last.as_ref(), &[]);
        receive(&jar, "http://a.test/", &["login=9; Path=/"]);
        assert!(jar.unsaved().unwrap().version > version);
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
            receive(&jar, "https://shop.test/", &[set]);
            assert_eq!(sent(&jar, "https://shop.test/"), ["id=1"], "{set}");
            assert_eq!(sent(&jar, "http://a.shop.test/").len(), n_below, "{set}");
            assert_eq!(sent(&jar, "http://shop.test/").len(), n_plain, "{set}");
            assert!(jar.unsaved().is_some(), "{set}");
            receive(&jar, "https://shop.test/", &[set]);
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
            receive(&jar, "http://shop.test/", &[set]);
            let name = set.split(';').next().unwrap();
            assert_eq!(sent(&jar, "http://shop.test/"), [name]);
            assert_eq!(sent(&jar, "http://a.shop.test/").len(), below, "{set}");
        }
        let state = jar.read();
        let kept: Vec<usize> = state.cookies.iter().map(size).collect();
        assert_eq!(kept, [state.n_bytes]);
    }

    #[test]
    fn what_a_site_sets_is_sent_back_to_it_alone() {
        let jar = CookieJar::open(None, &[]);
        receive(
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
        receive(
            &jar,
            "https://shop.test/a/",
            &["host=7", "below=; Domain=shop.test; Path=/; Max-Age=0"],
        );
        assert_eq!(sent(&jar, "https://shop.test/a/c"), ["host=7", "safe=4"]);
    }

    #[test]
    fn cookies_are_sent_longer_paths_first_and_a_domain_without_any_takes_no_room() {
        let jar = CookieJar::open(None, &[]);
        let set = [
            "z=1; Path=/a/b",
            "a=2; Path=/",
            "b=3; Path=/a",
            "c=4; Path=/; Domain=shop.test",
        ];
        receive(&jar, "http://x.shop.test/", &set);
        let header = jar.header(&url("http://x.shop.test/a/b/"));
        assert_eq!(header.as_deref(), Some("z=1; b=3; a=2; c=4"));
        for host in ["[::1]:80", "127.0.0.1", "shop.test."] {
            let here = format!("http://{host}/");
            receive(&jar, &here, &["own=1"]);
            assert_eq!(sent(&jar, &here), ["own=1"]);
            receive(
                &jar,
                &here,
                &[
                    "own=1; Max-Age=0",
                    "other=1; Domain=other.test",
                    "x=1; Domain=x",
                ],
            );
            receive(&jar, &here, &["next=1"]);
            receive(&jar, &here, &["next=1; Max-Age=0"]);
            assert_eq!(sent(&jar, &here), Vec::<String>::new());
        }
        let gone = expired(jar.read().cookies.iter());
        jar.write().forget(gone);
        assert_eq!(jar.read().cookies.n_domains(), 2);
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
        receive(
            &jar,
            "http://a.test/",
            &["session=3; Path=/", "s=4; Path=/"],
        );
        let kept = jar.unsaved().unwrap();
        // Setting the same cookie again is no change.
        receive(&jar, "http://a.test/", &["session=3; Path=/"]);
        assert_eq!(jar.unsaved(), None);
        receive(&jar, "http://a.test/", &["more=5; Path=/"]);
        assert!(jar.unsaved().is_some());
        assert_eq!(jar.unsaved(), None);
        // A cookie that the site has set is not overwritten by the seed that the crawl began with, but by a
        // seed that is new since.
        let again = CookieJar::open(Some(&kept), &seeds);
        assert_eq!(sent(&again, "http://a.test/"), ["s=4", "session=3"]);
        let other = CookieJar::open(Some(&kept), &["a.test:s=9".parse().unwrap()]);
        assert_eq!(sent(&other, "http://a.test/"), ["s=9", "session=3"]);
        let withdrawn = CookieJar::open(Some(&kept), &seeds[..1]);
        assert_eq!(sent(&withdrawn, "http://www.b.test/"), Vec::<String>::new());
        // A cookie that names where it may be sent from is accepted over http, too.
        let from_elsewhere = ["any=1; SameSite=None", "each=2; Partitioned"];
        receive(&jar, "http://c.test/", &from_elsewhere);
        let again = CookieJar::open(jar.unsaved().as_ref(), &seeds);
        assert_eq!(sent(&again, "http://c.test/"), ["any=1", "each=2"]);
        let damaged = CookieJar::open(Some(&of_old(b"?")), &seeds);
        assert_eq!(sent(&damaged, "http://a.test/"), ["s=1"]);
    }

    #[test]
    fn what_has_expired_holds_no_place_whoever_has_set_it() {
        let large = "x".repeat(4_000);
        let jar = CookieJar::open(None, &[]);
        for host in 0..100 {
            let url = format!("http://h{host}.test/");
            receive(&jar, &url, &[&format!("c={large}; Path=/; Max-Age=1")]);
        }
        let saved = jar.unsaved().unwrap();
        assert!(jar.read().n_bytes > MAX_BYTES - 5_000);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !jar.read().cookies.iter().all(|cookie| cookie.is_expired()) {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        receive(&jar, "http://new.test/", &[&format!("c={large}; Path=/")]);
        assert_eq!(sent(&jar, "http://new.test/").len(), 1);
        assert_eq!(jar.read().cookies.n_domains(), 1);
        let again = CookieJar::open(Some(&saved), &[]);
        assert_eq!(again.read().n_bytes, 0);
    }

    #[test]
    fn no_site_makes_them_grow_without_end_or_drives_out_those_of_another() {
        let jar = CookieJar::open(None, &[]);
        receive(&jar, "http://a.test/", &["kept=1; Path=/"]);
        for n in 0..200 {
            receive(&jar, "http://greedy.test/", &[&format!("c{n}=1; Path=/")]);
        }
        assert_eq!(sent(&jar, "http://greedy.test/").len(), MAX_PER_HOST);
        // Expired cookies hold no place.
        receive(
            &jar,
            "http://greedy.test/",
            &["c0=; Path=/; Max-Age=0", "new=1; Path=/"],
        );
        assert!(sent(&jar, "http://greedy.test/").contains(&"new=1".to_owned()));
        // A cookie that is stored can be changed.
        receive(&jar, "http://greedy.test/", &["c1=2; Path=/"]);
        assert!(sent(&jar, "http://greedy.test/").contains(&"c1=2".to_owned()));
        let large = "x".repeat(4_000);
        let many: Vec<String> = (0..20).map(|n| format!("c{n}={large}; Path=/")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        receive(&jar, "http://large.test/", &many);
        assert_eq!(
            sent(&jar, "http://large.test/").len(),
            MAX_HOST_BYTES / 4_010
        );
        for host in 0..200 {
            let url = format!("http://h{host}.test/");
            receive(&jar, &url, &[&format!("c={large}; Path=/")]);
        }
        assert!(jar.read().n_bytes <= MAX_BYTES);
        receive(
            &jar,
            "http://b.test/",
            &[&format!("c={}; Path=/", "x".repeat(MAX_COOKIE))],
        );
        assert_eq!(sent(&jar, "http://b.test/"), Vec::<String>::new());
        assert_eq!(sent(&jar, "http://a.test/"), ["kept=1"]);
        assert!(!format!("{jar:?}").contains("kept"));
    }
}
