//! The settings of a crawl and of its placement, to and from their messages.

use crawler_proto as proto;

use crate::api::spec::{neighbour, scope, setting, setting_list};
use crate::master::ControlError;
use crate::model::placement::PlacementChange;
use crate::model::resource::CrawlSettings;

pub(super) fn crawl_settings(message: proto::CrawlSettings) -> Result<CrawlSettings, ControlError> {
    Ok(CrawlSettings {
        delay_ms: message.delay_ms,
        random_delay_ms: message.random_delay_ms,
        host_rate: setting("host-rate", message.host_rate.as_deref())?,
        rate: setting("rate", message.rate.as_deref())?,
        hours: setting("hours", message.hours.as_deref())?,
        concurrency: message.concurrency,
        max_pages: message.max_pages,
        max_bytes: message.max_bytes,
        max_depth: message.max_depth,
        max_url_length: message.max_url_length,
        max_segment_repeats: message.max_segment_repeats,
        max_pattern_urls: message.max_pattern_urls,
        max_hosts: message.max_hosts,
        max_disk: message.max_disk,
        max_undelivered: message.max_undelivered,
        max_attempts: message.max_attempts,
        max_retry_wait_ms: message.max_retry_wait_ms,
        unchanged: setting("unchanged", message.unchanged.as_deref())?,
        robots: setting("robots", message.robots.as_deref())?,
        max_crawl_delay_ms: message.max_crawl_delay_ms,
        user_agents: setting_list("user-agent", texts(&message.user_agents))?,
        cookies: setting("cookies", message.cookies.as_deref())?,
        cookie_seeds: setting_list("cookie", texts(&message.cookie_seeds))?,
        content_types: setting("content-types", message.content_types.as_deref())?,
        proxy: setting("proxy", message.proxy.as_deref())?,
        credentials: setting("credentials", message.credentials.as_deref())?,
        scope: scope(message.scope.iter().map(String::as_str))?,
    })
}

fn texts(list: &[String]) -> impl Iterator<Item = &str> {
    list.iter().map(String::as_str)
}

pub(super) fn crawl_message(crawl: CrawlSettings) -> proto::CrawlSettings {
    proto::CrawlSettings {
        delay_ms: crawl.delay_ms,
        random_delay_ms: crawl.random_delay_ms,
        host_rate: crawl.host_rate.map(|rates| rates.to_string()),
        rate: crawl.rate.map(|rates| rates.to_string()),
        hours: crawl.hours.map(|hours| hours.to_string()),
        concurrency: crawl.concurrency,
        max_pages: crawl.max_pages,
        max_bytes: crawl.max_bytes,
        max_depth: crawl.max_depth,
        max_url_length: crawl.max_url_length,
        max_segment_repeats: crawl.max_segment_repeats,
        max_pattern_urls: crawl.max_pattern_urls,
        max_hosts: crawl.max_hosts,
        max_disk: crawl.max_disk,
        max_undelivered: crawl.max_undelivered,
        max_attempts: crawl.max_attempts,
        max_retry_wait_ms: crawl.max_retry_wait_ms,
        unchanged: crawl.unchanged.map(|unchanged| unchanged.to_string()),
        robots: crawl.robots.map(|robots| robots.to_string()),
        max_crawl_delay_ms: crawl.max_crawl_delay_ms,
        user_agents: crawl.user_agents.iter().map(ToString::to_string).collect(),
        cookies: crawl.cookies.map(|cookies| cookies.to_string()),
        cookie_seeds: crawl.cookie_seeds.iter().map(ToString::to_string).collect(),
        content_types: crawl
            .content_types
            .map(|content_types| content_types.to_string()),
        proxy: crawl.proxy.map(|proxy| proxy.to_string()),
        credentials: crawl.credentials.map(|credentials| credentials.to_string()),
        scope: crawl.scope.iter().map(ToString::to_string).collect(),
    }
}

pub(super) fn placement_change(message: proto::Placement) -> Result<PlacementChange, ControlError> {
    let other = |field, text: Option<String>| match text {
        Some(text) => neighbour(field, &text).map(Some),
        None => Ok(None),
    };
    Ok(PlacementChange {
        shards: message.shards,
        weight: message.weight,
        selector: message.selector.into_iter().collect(),
        near: other("placement.near", message.near)?,
        apart: other("placement.apart", message.apart)?,
    })
}

pub(super) fn placement_message(placement: PlacementChange) -> proto::Placement {
    proto::Placement {
        shards: placement.shards,
        weight: placement.weight,
        selector: placement.selector.into_iter().collect(),
        near: placement.near.map(|near| near.to_string()),
        apart: placement.apart.map(|apart| apart.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::placement::Neighbour;

    #[test]
    fn s21_what_is_asked_of_placement_survives_its_message() {
        let change = PlacementChange {
            shards: Some(0),
            weight: Some(0),
            selector: [("gpu".into(), "true".into()), ("zone".into(), "".into())].into(),
            near: Some(Neighbour::Nobody),
            apart: Some("shop".parse().unwrap()),
        };
        for change in [change, PlacementChange::default()] {
            let message = placement_message(change.clone());
            assert_eq!(placement_change(message).unwrap(), change);
        }
        let message = proto::Placement {
            near: Some("a/b".into()),
            ..proto::Placement::default()
        };
        let error = placement_change(message).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("resource name \"a/b\" has '/'")
        );
    }

    use crate::model::resource::{Agent, Cookies, Robots, Unchanged};

    #[test]
    fn every_setting_survives_its_message() {
        let crawl = CrawlSettings {
            delay_ms: Some(1),
            random_delay_ms: Some(13),
            host_rate: Some("14/s".parse().unwrap()),
            rate: Some("15/m, 16/h".parse().unwrap()),
            hours: Some("17:00-18:00".parse().unwrap()),
            concurrency: Some(2),
            max_pages: Some(3),
            max_bytes: Some(4),
            max_depth: Some(5),
            max_url_length: Some(6),
            max_segment_repeats: Some(7),
            max_pattern_urls: Some(8),
            max_hosts: Some(17),
            max_disk: Some(19),
            max_undelivered: Some(20),
            max_attempts: Some(9),
            max_retry_wait_ms: Some(10),
            unchanged: Some(Unchanged::Skip),
            robots: Some(Robots::Ignore),
            max_crawl_delay_ms: Some(12),
            user_agents: vec![Agent::Browser, Agent::Named("x/1".into())],
            cookies: Some(Cookies::Keep),
            cookie_seeds: vec!["*.a.test:b=c".parse().unwrap()],
            content_types: Some("text/*".parse().unwrap()),
            proxy: Some("direct".parse().unwrap()),
            credentials: Some("a".parse().unwrap()),
            scope: vec!["a.test".parse().unwrap()],
        };
        assert_eq!(crawl_settings(crawl_message(crawl.clone())).unwrap(), crawl);
        let message = proto::CrawlSettings {
            unchanged: Some("ignore".into()),
            ..crawl_message(crawl.clone())
        };
        let error = crawl_settings(message).unwrap_err();
        let expected = "setting unchanged takes parse or skip, not \"ignore\"";
        assert_eq!(error.to_string(), expected);
        let message = proto::CrawlSettings {
            robots: Some("bend".into()),
            ..crawl_message(crawl)
        };
        let error = crawl_settings(message).unwrap_err();
        let expected = "setting robots takes obey or ignore, not \"bend\"";
        assert_eq!(error.to_string(), expected);
    }
}
