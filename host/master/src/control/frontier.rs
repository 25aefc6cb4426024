//! Calls that look into a resource's frontier, beside its owner and without taking it over.

use bytes::Bytes;
use url::Url;

use super::Control;
use super::reads::Live;
use crate::ControlError;
use crate::explain::{Explanation, Question, explain, held_up};
use crawler_frontier::FrontierError;
use crawler_frontier::reader::pool::PooledReader;
use crawler_model::crawl::Request;
use crawler_model::frontier::{FrontierStats, HostEntry, HostState, UrlEntry, UrlFilter};
use crawler_model::id::{ResourceName, Shard};
use crawler_model::links::shard_of;
use crawler_model::resource::{Resource, ShardId, ShardRecord};
use crawler_model::scope::Bounds;
use crawler_store::catalog::Versioned;

/// States in the order in which they are listed.
const STATES: [UrlFilter; 3] = [UrlFilter::Due, UrlFilter::Dead, UrlFilter::Done];

/// Position at which a list of URLs continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlCursor {
    /// State of the URLs.
    pub state: UrlFilter,
    /// Shard of the URLs.
    pub shard: Shard,
    /// Position within that state of the shard. If `None`, the list begins at its first URL.
    pub place: Option<Vec<u8>>,
}

/// Page of a list of URLs.
#[derive(Debug, Default)]
pub struct UrlsPage {
    /// URLs, at most as many as requested.
    pub entries: Vec<UrlEntry>,
    /// Position of the next page. If `None`, this is the last page.
    pub next: Option<UrlCursor>,
}

/// Position at which a list of hosts continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCursor {
    /// Shard of the hosts.
    pub shard: Shard,
    /// Position within the shard. If `None`, the list begins at its first host.
    pub place: Option<Vec<u8>>,
}

/// Page of a list of hosts.
#[derive(Debug, Default)]
pub struct HostsPage {
    /// Hosts, at most as many as requested.
    pub entries: Vec<HostEntry>,
    /// Position of the next page. If `None`, this is the last page.
    pub next: Option<HostCursor>,
}

/// A request that a user asks about, as typed.
#[derive(Debug, Clone, Default)]
pub struct UrlQuery {
    /// URL, as in a link.
    pub url: String,
    /// Method; if empty, `GET`.
    pub method: String,
    /// Body of the request.
    pub body: Bytes,
}

impl Control {
    /// Returns the totals of a resource's frontiers, over all shards that were opened.
    pub async fn frontier_stats(&self, name: &ResourceName) -> Result<FrontierStats, ControlError> {
        let resource = self.existing(name).await?.value;
        let mut sum: Option<FrontierStats> = None;
        for id in resource.shard_ids() {
            let Some(reader) = self.frontier(id).await? else {
                continue;
            };
            let stats = Box::pin(reader.stats(self.parts.clock.unix_millis())).await;
            reader.close().await;
            match &mut sum {
                Some(sum) => sum.add(&stats?),
                None => sum = Some(stats?),
            }
        }
        sum.ok_or_else(|| never_crawled(name))
    }

    /// Returns at most `max` URLs of the present run: those in one state, or one state after the other; within
    /// each state, shard by shard.
    pub async fn urls(
        &self,
        name: &ResourceName,
        only: Option<UrlFilter>,
        from: Option<UrlCursor>,
        max: usize,
    ) -> Result<UrlsPage, ControlError> {
        let resource = self.existing(name).await?.value;
        let shards = self.created_shards(&resource).await?;
        Box::pin(self.list(&shards, only, from, max)).await
    }

    /// Returns at most `max` hosts of the present run, those in one state or all, shard by shard.
    pub async fn hosts(
        &self,
        name: &ResourceName,
        only: Option<HostState>,
        from: Option<HostCursor>,
        max: usize,
    ) -> Result<HostsPage, ControlError> {
        let resource = self.existing(name).await?.value;
        let shards = self.created_shards(&resource).await?;
        let live = self.live_of(&resource).await.unwrap_or_else(|error| {
            tracing::warn!(%error, resource = %name, "showing hosts without what is in flight");
            Live::default()
        });
        let now = self.parts.clock.unix_millis();
        let first = from.as_ref().map_or(Shard(0), |from| from.shard);
        let mut place = from.and_then(|from| from.place);
        let mut page = HostsPage::default();
        for id in shards.iter().filter(|id| id.shard >= first) {
            // The place belongs to the shard at which the list continues.
            let place = place.take().filter(|_| id.shard == first);
            let reader = self.opened(*id).await?;
            let wanted = max - page.entries.len();
            let hosts = Box::pin(reader.hosts(only, place, wanted, now)).await;
            reader.close().await;
            let hosts = hosts?;
            let present = live.get(id).and_then(|crawl| crawl.hosts.as_ref());
            let in_flight = |hash| present.map(|hosts| hosts.in_flight.get(&hash).copied());
            page.entries
                .extend(hosts.entries.into_iter().map(|host| HostEntry {
                    n_in_flight: in_flight(host.hash).map(Option::unwrap_or_default),
                    ..host
                }));
            if hosts.next.is_some() {
                let (shard, place) = (id.shard, hosts.next);
                page.next = Some(HostCursor { shard, place });
                break;
            }
        }
        Ok(page)
    }

    /// Returns the shards whose frontiers were opened.
    async fn created_shards(&self, resource: &Resource) -> Result<Vec<ShardId>, ControlError> {
        let mut shards = Vec::new();
        for id in resource.shard_ids() {
            if self.was_created(id).await? {
                shards.push(id);
            }
        }
        match shards.is_empty() {
            true => Err(never_crawled(&resource.spec.name)),
            false => Ok(shards),
        }
    }

    /// Reads shard by shard, with one reader at a time.
    async fn list(
        &self,
        shards: &[ShardId],
        only: Option<UrlFilter>,
        from: Option<UrlCursor>,
        max: usize,
    ) -> Result<UrlsPage, ControlError> {
        let first = |state| from_first(shards, state, Shard(0));
        let mut next = match from {
            Some(from) => Some(from),
            None => first(only.unwrap_or(STATES[0])),
        };
        let mut entries = Vec::new();
        while entries.len() < max
            && let Some(UrlCursor {
                state,
                shard,
                place,
            }) = next
        {
            let id = shards.iter().find(|id| id.shard == shard);
            let place = match id {
                Some(id) => {
                    let reader = self.opened(*id).await?;
                    let page = reader.list(state, place, max - entries.len()).await;
                    reader.close().await;
                    let page = page?;
                    entries.extend(page.entries);
                    page.next
                }
                None => None,
            };
            next = match place {
                Some(_) => Some(UrlCursor {
                    state,
                    shard,
                    place,
                }),
                None => from_first(shards, state, Shard(shard.0.saturating_add(1))).or_else(|| {
                    let state = after(state).filter(|_| only.is_none())?;
                    first(state)
                }),
            };
        }
        Ok(UrlsPage { entries, next })
    }

    /// Explains why a URL was, or was not, fetched. There is an answer for every URL, known or not.
    pub async fn explain_url(
        &self,
        name: &ResourceName,
        query: UrlQuery,
    ) -> Result<Explanation, ControlError> {
        let request = request(query)?;
        let resource = self.existing(name).await?.value;
        let n_shards = resource.spec.placement.n_shards();
        let shard = ShardId {
            resource: resource.id,
            shard: shard_of(&request.url, n_shards),
        };
        let now = self.parts.clock.unix_millis();
        let (stats, entry) = match self.frontier(shard).await? {
            Some(reader) => {
                let known = Box::pin(async {
                    futures::try_join!(reader.stats(now), reader.find(&request, now))
                });
                let known = known.await;
                reader.close().await;
                let (stats, entry) = known?;
                (Some(stats), entry)
            }
            None => (None, None),
        };
        let catalog = &self.parts.catalog;
        let record = catalog.keys().shard(shard);
        let record: Option<Versioned<ShardRecord>> = catalog.read(&record).await?;
        let hosts = stats.iter().flat_map(|stats| &stats.root_hosts);
        let bounds = Bounds {
            root_hosts: &hosts.cloned().collect(),
            settings: &resource.spec.crawl,
        };
        Ok(explain(Question {
            resource: name,
            run: resource.run,
            request: &request,
            // The depth of the request is not known: each page that may lead to it has its own.
            refusal: bounds.refusal(&request, 0),
            stats: stats.as_ref(),
            entry,
            settings: &resource.spec.crawl,
            held_up: record.and_then(|record| held_up(&resource, &record.value)),
            now,
        }))
    }

    /// Returns the frontier of a shard, or `None` if it was never opened.
    pub(super) async fn frontier(
        &self,
        shard: ShardId,
    ) -> Result<Option<PooledReader>, ControlError> {
        match self.was_created(shard).await? {
            true => self.opened(shard).await.map(Some),
            false => Ok(None),
        }
    }

    async fn was_created(&self, shard: ShardId) -> Result<bool, ControlError> {
        let catalog = &self.parts.catalog;
        let record: Option<Versioned<ShardRecord>> =
            catalog.read(&catalog.keys().shard(shard)).await?;
        Ok(record.is_some_and(|record| record.value.created))
    }

    async fn opened(&self, shard: ShardId) -> Result<PooledReader, ControlError> {
        // The future that opens a database is large, and would be part of every call that opens one.
        let reader = Box::pin(self.readers.open(shard)).await?;
        Ok(reader.ok_or(FrontierError::Missing { shard })?)
    }
}

/// Returns the beginning of a state in the first of these shards, from `first` on.
fn from_first(shards: &[ShardId], state: UrlFilter, first: Shard) -> Option<UrlCursor> {
    let shard = shards.iter().map(|id| id.shard);
    Some(UrlCursor {
        state,
        shard: shard.filter(|shard| *shard >= first).min()?,
        place: None,
    })
}

fn after(state: UrlFilter) -> Option<UrlFilter> {
    let place = STATES.iter().position(|s| *s == state)?;
    STATES.get(place + 1).copied()
}

fn never_crawled(name: &ResourceName) -> ControlError {
    ControlError::NoFrontier { name: name.clone() }
}

/// Builds a request like one that a rule makes.
fn request(query: UrlQuery) -> Result<Request, ControlError> {
    let invalid = |field, why: String| Err(ControlError::Invalid { field, why });
    let url = match Url::parse(&query.url) {
        Ok(url) => url,
        Err(_) if query.url.is_empty() => {
            return invalid(
                "url",
                "url is missing; write one like http://example.org/page".to_owned(),
            );
        }
        Err(url::ParseError::RelativeUrlWithoutBase) => {
            let why = format!(
                "url {:?} is relative; write the whole of it, like http://example.org/page",
                cut(&query.url)
            );
            return invalid("url", why);
        }
        Err(e) => {
            return invalid(
                "url",
                format!("url {:?} does not parse: {e}", cut(&query.url)),
            );
        }
    };
    let method = query.method.to_ascii_uppercase();
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if !method.bytes().all(is_token) {
        let why = format!(
            "method {:?} is not a method; write one like GET or POST",
            cut(&query.method)
        );
        return invalid("method", why);
    }
    Ok(Request {
        method: if method.is_empty() {
            "GET".into()
        } else {
            method.into()
        },
        body: Some(query.body).filter(|body| !body.is_empty()),
        ..Request::get(url, "")
    })
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(80)]
}
