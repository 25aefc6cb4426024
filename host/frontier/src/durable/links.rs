//! Recognition of new links of a page: by the cache first, and for the rest by the database, in the order of
//! its keys, so that the links to one host share its blocks.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use super::candidates::{Link, Links};
use super::inner::Inner;
use super::new_links::{NewLink, NewLinks, OutgoingLink};
use crate::records::{self, Stage};
use crate::seen::{FoldHasher, SeenKey};
use crate::workbench::HostId;
use crate::{FrontierError, NewRequest, keys};
use crawler_model::crawl::{Fingerprint, Request};
use crawler_model::id::Shard;
use crawler_model::pattern::{PatternKey, path_pattern};
use crawler_model::scope::GrowthBounds;

/// Maximum number of patterns whose counts are kept in memory.
const MAX_PATTERNS: usize = 16 << 10;

/// Facts that decide which links are new, besides the links themselves.
#[derive(Debug, Default)]
pub(super) struct DedupContext {
    /// The page's own request, which no longer waits.
    pub(super) ending: Option<Fingerprint>,
    /// Target of the page's redirects.
    pub(super) redirect_target: Option<Fingerprint>,
    /// Limits on new links. If `None`, links are stored however many there are.
    pub(super) growth: Option<GrowthBounds>,
    /// Links that other pages have stored in the same batch.
    pub(super) stored_here: HashSet<Fingerprint>,
}

/// Result of counting a link for its pattern.
enum PatternCount {
    /// The link has no pattern, or patterns are not counted.
    Uncounted,
    /// The link has this number among those of its pattern.
    As([u8; 8], u64),
    /// The pattern has as many URLs as it may.
    Full,
}

impl Inner {
    /// Drops links that are known to be stored. Of two links with the same request, the first counts.
    pub(super) fn links(
        &self,
        mut requests: Vec<NewRequest>,
        mut for_peers: Vec<(Shard, NewRequest)>,
    ) -> Links {
        let all = requests.iter().chain(for_peers.iter().map(|(_, new)| new));
        let all = all.map(|new| &new.request);
        let mut kept = self.frontiers.seen.unknown(self.opening, all);
        let reloads = |n: usize| match n.checked_sub(requests.len()) {
            None => requests[n].request.reload,
            Some(n) => for_peers[n].1.request.reload,
        };
        let mut met = HashSet::<_, BuildHasherDefault<FoldHasher>>::default();
        kept.retain(|(n, key)| met.insert((*key, reloads(*n))));
        let mut places = kept.iter().map(|(n, _)| *n).peekable();
        let mut n = 0;
        let mut is_kept = || {
            n += 1;
            places.next_if_eq(&(n - 1)).is_some()
        };
        // A request is large: most are known, and are dropped in place.
        requests.retain(|_| is_kept());
        for_peers.retain(|_| is_kept());
        let own = requests.into_iter().map(|new| (None, new));
        let for_peers = for_peers.into_iter().map(|(to, new)| (Some(to), new));
        let links = own
            .chain(for_peers)
            .zip(kept)
            .map(|((to, new), (place, key))| Link {
                place,
                host: keys::host_of(&new.request),
                fingerprint: new.request.fingerprint(),
                key,
                new,
                to,
            });
        Links(links.collect())
    }

    /// Returns the links that are to be stored.
    pub(super) async fn deduplicate(
        &self,
        Links(mut links): Links,
        context: DedupContext,
    ) -> Result<NewLinks, FrontierError> {
        links.sort_by_key(|link| (link.host, link.fingerprint));
        let (mut new_links, mut for_peers) = (Vec::new(), Vec::new());
        let (mut n_over_pattern, mut n_over_hosts) = (0, 0);
        let mut n_met = 0;
        // Links to one host are next to each other.
        let mut last_met = None;
        let mut stored_here = context.stored_here;
        stored_here.extend(context.redirect_target);
        for link in links {
            let Link {
                place,
                host,
                fingerprint,
                key,
                new,
                to,
            } = link;
            let is_stored = stored_here.contains(&fingerprint)
                || self.is_stored(key, host, fingerprint).await?;
            if let Some(to) = to {
                // A pending visit of a URL that asks to be reloaded is recorded there.
                let is_again = new.request.reload && !stored_here.contains(&fingerprint);
                if !is_stored || is_again {
                    stored_here.insert(fingerprint);
                    let link = OutgoingLink {
                        to,
                        new,
                        fingerprint,
                        host,
                    };
                    for_peers.push((place, link));
                }
                continue;
            }
            let link = if !is_stored {
                let meets_host = last_met != Some(host) && self.is_new_host(host).await?;
                let max_hosts = context.growth.map_or(u64::MAX, |growth| growth.hosts);
                if meets_host && self.state().counts.hosts + n_met >= max_hosts {
                    n_over_hosts += 1;
                    continue;
                }
                let pattern = match context.growth {
                    Some(growth) => {
                        let max = growth.pattern_urls;
                        self.count_pattern(&new.request, max).await?
                    }
                    None => PatternCount::Uncounted,
                };
                let pattern = match pattern {
                    PatternCount::Full => {
                        n_over_pattern += 1;
                        continue;
                    }
                    PatternCount::As(pattern, n) => Some((pattern, n)),
                    PatternCount::Uncounted => None,
                };
                stored_here.insert(fingerprint);
                if meets_host {
                    last_met = Some(host);
                    n_met += 1;
                }
                let link = self.first_visit(host, fingerprint, new).await?;
                NewLink {
                    pattern,
                    meets_host,
                    ..link
                }
            } else if new.request.reload && !stored_here.contains(&fingerprint) {
                match self
                    .next_visit(host, fingerprint, new, context.ending)
                    .await?
                {
                    Some(link) => link,
                    None => continue,
                }
            } else {
                continue;
            };
            new_links.push((place, link));
        }
        new_links.sort_by_key(|(place, _)| *place);
        for_peers.sort_by_key(|(place, _)| *place);
        Ok(NewLinks {
            links: new_links.into_iter().map(|(_, link)| link).collect(),
            for_peers: for_peers.into_iter().map(|(_, link)| link).collect(),
            n_over_pattern,
            n_over_hosts,
            stored_here,
        })
    }

    /// Empties the cache of pattern counts if it is full. This is called after a batch only, because its
    /// counts are in memory alone until then.
    pub(super) fn forget_patterns(&self) {
        let mut state = self.state();
        if state.patterns.len() >= MAX_PATTERNS {
            state.patterns.clear();
        }
    }

    /// Returns the keys of all requests and hosts that the batch stores as seen.
    pub(super) fn seen_keys(&self, new_links: &NewLinks) -> Vec<SeenKey> {
        let own = new_links.links.iter().map(|link| &link.request);
        let for_peers = new_links.for_peers.iter().map(|link| &link.new.request);
        let requests = own.chain(for_peers);
        let requests = requests.map(|request| self.seen_key(request));
        let met = new_links.links.iter().filter(|link| link.meets_host);
        let hosts = met.map(|link| self.frontiers.seen.host_key(self.opening, link.host));
        requests.chain(hosts).collect()
    }

    pub(super) fn seen_key(&self, request: &Request) -> SeenKey {
        self.frontiers.seen.key(self.opening, request)
    }

    /// Returns true if this run has stored the request, or was redirected to it.
    async fn is_stored(
        &self,
        key: SeenKey,
        host: HostId,
        fingerprint: Fingerprint,
    ) -> Result<bool, FrontierError> {
        let seen = &self.frontiers.seen;
        if seen.knows(key) {
            return Ok(true);
        }
        if seen.is_complete(self.opening) {
            return Ok(false);
        }
        let record = keys::seen(self.run, host, fingerprint);
        let is_stored = self.get(record).await?.is_some();
        if is_stored {
            seen.insert(key);
        }
        Ok(is_stored)
    }

    /// Counts one more URL of the request's pattern, if it has one and there is room.
    async fn count_pattern(
        &self,
        request: &Request,
        max: u64,
    ) -> Result<PatternCount, FrontierError> {
        let Some(PatternKey(pattern)) = path_pattern(&request.url) else {
            return Ok(PatternCount::Uncounted);
        };
        let known = self.state().patterns.get(&pattern).copied();
        let n = match known {
            Some(n) => n,
            None => {
                let bytes = self.get(keys::pattern(self.run, pattern)).await?;
                let number = bytes.map(|bytes| self.decode::<records::Number>(&bytes, "pattern"));
                number.transpose()?.map_or(0, |number| number.n)
            }
        };
        if n >= max {
            return Ok(PatternCount::Full);
        }
        self.state().patterns.insert(pattern, n + 1);
        Ok(PatternCount::As(pattern, n + 1))
    }

    async fn first_visit(
        &self,
        host: HostId,
        fingerprint: Fingerprint,
        new: NewRequest,
    ) -> Result<NewLink, FrontierError> {
        // A page that is not parsed again leads nowhere. Only URLs of runs whose URLs are all due again may
        // therefore be skipped.
        let carry_from = self.state().head.carry_from;
        let known = match carry_from {
            0 => None,
            _ => self.state_of(host, fingerprint).await?,
        };
        let known = known.filter(|state| state.run >= carry_from);
        let validators = known.and_then(|state| state.validators);
        Ok(NewLink {
            request: new.request,
            fingerprint,
            host,
            depth: new.depth,
            visit: 0,
            validators: validators.map(|validators| Box::new(validators.into())),
            pattern: None,
            meets_host: false,
        })
    }

    /// Returns the next visit of a stored URL that asks to be fetched again, or `None` if it will be fetched
    /// anyway.
    async fn next_visit(
        &self,
        host: HostId,
        fingerprint: Fingerprint,
        new: NewRequest,
        ending: Option<Fingerprint>,
    ) -> Result<Option<NewLink>, FrontierError> {
        let state = self.state_of(host, fingerprint).await?;
        // A state from an earlier run says nothing about this one.
        let Some(state) = state.filter(|state| state.run == self.run.0) else {
            // The URL was the target of redirects; its first visit is still to come.
            return self.first_visit(host, fingerprint, new).await.map(Some);
        };
        let waits = state.stage() == Stage::Due
            && ending != Some(fingerprint)
            && !self.state().is_in_flight(state.entry);
        Ok((!waits).then_some(NewLink {
            request: new.request,
            fingerprint,
            host,
            depth: state.depth,
            visit: state.visit.saturating_add(1),
            validators: None,
            pattern: None,
            meets_host: false,
        }))
    }

    pub(super) async fn state_of(
        &self,
        host: HostId,
        fingerprint: Fingerprint,
    ) -> Result<Option<records::State>, FrontierError> {
        let bytes = self.get(keys::state(host, fingerprint)).await?;
        bytes.map(|bytes| self.decode(&bytes, "state")).transpose()
    }

    /// Returns true if this run has stored the request, or was redirected to it.
    pub(super) async fn knows(&self, request: &Request) -> Result<bool, FrontierError> {
        self.check()?;
        let (key, host) = (self.seen_key(request), keys::host_of(request));
        self.is_stored(key, host, request.fingerprint()).await
    }
}
