//! Links between shards, as workers send them to each other.

use crawler_proto as proto;
use prost::Message as _;

use crawler_frontier::{LinkBatch, NewRequest};
use crawler_model::accept_status::AcceptStatus;
use crawler_model::crawl::{REFERRER_MAX, Request, STATE_MAX, URL_MAX};
use crawler_model::id::{Epoch, ResourceId, Run, Shard};
use crawler_model::resource::ShardId;
use crawler_worker::links::{LinkDelivery, LinkDeliveryError, MAX_CALL_BYTES};

pub(crate) fn links_message(links: LinkDelivery) -> proto::ApplyLinksRequest {
    proto::ApplyLinksRequest {
        resource_id: links.to.resource.0,
        shard: links.to.shard.0,
        epoch: links.epoch.0,
        run: links.run.0,
        from: links.from.0,
        first: links.batch.first,
        links: links.batch.links.into_iter().map(link_message).collect(),
    }
}

fn link_message(NewRequest { request, depth }: NewRequest) -> proto::ShardLink {
    let header = |(name, value)| proto::LinkHeader { name, value };
    proto::ShardLink {
        url: request.url.into(),
        method: match &*request.method {
            "GET" => String::new(),
            _ => request.method.into_owned(),
        },
        headers: request.headers.into_iter().map(header).collect(),
        body: request.body.map(Into::into),
        rule: request.rule.to_string(),
        priority: request.priority,
        state: request.state.into(),
        reload: request.reload,
        depth,
        accept_status: request.accept_status.to_string(),
        referrer: request.referrer.as_deref().unwrap_or_default().to_owned(),
        keep_body: request.keep_body,
    }
}

/// Parses links that another shard sends. A call with more bytes than it may bring is refused before any of them is parsed.
/// Their number was checked before the message was decoded.
pub(crate) fn links(request: proto::ApplyLinksRequest) -> Result<LinkDelivery, LinkDeliveryError> {
    check_size(&request)?;
    let links = request.links.into_iter().map(link);
    Ok(LinkDelivery {
        to: ShardId {
            resource: ResourceId(request.resource_id),
            shard: Shard(request.shard),
        },
        epoch: Epoch(request.epoch),
        run: Run(request.run),
        from: Shard(request.from),
        batch: LinkBatch {
            first: request.first,
            links: links.collect::<Result<_, _>>()?,
        },
    })
}

fn check_size(request: &proto::ApplyLinksRequest) -> Result<(), LinkDeliveryError> {
    let (n_links, n_bytes) = (request.links.len(), request.encoded_len());
    // One link may be as large as a message.
    if n_links > 1 && n_bytes > MAX_CALL_BYTES {
        let why = format!("{n_links} links of {n_bytes} bytes, at most {MAX_CALL_BYTES}");
        return Err(LinkDeliveryError::Refused(why));
    }
    Ok(())
}

fn link(link: proto::ShardLink) -> Result<NewRequest, LinkDeliveryError> {
    let refused = |why: String| Err(LinkDeliveryError::Refused(why));
    if link.url.len() > URL_MAX {
        let n_bytes = link.url.len();
        return refused(format!("a URL of {n_bytes} bytes, at most {URL_MAX}"));
    }
    if link.state.len() > STATE_MAX {
        let n_bytes = link.state.len();
        return refused(format!("a state of {n_bytes} bytes, at most {STATE_MAX}"));
    }
    let url: url::Url = match link.url.parse() {
        Ok(url) => url,
        Err(why) => return refused(format!("URL {:?}: {why}", link.url)),
    };
    if link.referrer.len() > REFERRER_MAX {
        let n_bytes = link.referrer.len();
        let why = format!("a referrer of {n_bytes} bytes, at most {REFERRER_MAX}");
        return refused(why);
    }
    let accept_status = match AcceptStatus::from_kept(&link.accept_status) {
        Ok(accept_status) => accept_status,
        Err(why) => return refused(format!("accept-status {why}")),
    };
    let referrer = Some(link.referrer).filter(|referrer| !referrer.is_empty());
    let headers = link.headers.into_iter();
    Ok(NewRequest {
        request: Request {
            url,
            method: match link.method.as_str() {
                "" => "GET".into(),
                _ => link.method.into(),
            },
            headers: headers.map(|header| (header.name, header.value)).collect(),
            body: link.body.map(Into::into),
            rule: link.rule.into(),
            priority: link.priority,
            state: link.state.into(),
            reload: link.reload,
            accept_status,
            keep_body: link.keep_body,
            referrer: referrer.map(Into::into),
        },
        depth: link.depth,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_worker::links::MAX_LINKS;

    fn given() -> LinkDelivery {
        let form = Request {
            url: "http://b.test:8080/form?x=1".parse().unwrap(),
            method: "POST".into(),
            headers: vec![("accept".into(), "text/html".into())],
            body: Some(bytes::Bytes::from_static(b"q=\x00\xff")),
            rule: "form".into(),
            priority: -7,
            state: bytes::Bytes::from_static(b"state"),
            reload: true,
            accept_status: "404,500-599".parse().unwrap(),
            keep_body: true,
            referrer: Some("http://a.test/form".into()),
        };
        let plain = Request::get("http://a.test/".parse().unwrap(), "page");
        let links = [(form, 3), (plain, 0)].map(|(request, depth)| NewRequest { request, depth });
        LinkDelivery {
            to: ShardId {
                resource: ResourceId(u64::MAX),
                shard: Shard(31),
            },
            epoch: Epoch(7),
            run: Run(2),
            from: Shard(4),
            batch: LinkBatch {
                first: 9,
                links: links.into(),
            },
        }
    }

    #[test]
    fn links_arrive_as_they_were_sent() {
        assert_eq!(links(links_message(given())), Ok(given()));
    }

    #[test]
    fn r03_a_call_with_more_bytes_than_it_may_have_is_refused() {
        let message = |n_links: usize, n_bytes: usize| {
            let mut message = links_message(given());
            let mut link = message.links.remove(0);
            link.body = Some(vec![0; n_bytes]);
            message.links = vec![link; n_links];
            message
        };
        links(message(0, 0)).unwrap();
        links(message(MAX_LINKS, 1_000)).unwrap();
        links(message(1, MAX_CALL_BYTES)).unwrap();
        let refused = links(message(2, MAX_CALL_BYTES / 2)).unwrap_err();
        let why = refused.to_string();
        assert!(why.ends_with("bytes, at most 4194304"), "{why}");
        links(message(2, MAX_CALL_BYTES / 2 - 1_000)).unwrap();
    }

    #[test]
    fn links_that_cannot_be_are_refused_with_the_reason() {
        let refused = |change: fn(&mut proto::ShardLink)| {
            let mut message = links_message(given());
            change(&mut message.links[1]);
            links(message).unwrap_err().to_string()
        };
        let why = "URL \"nowhere\": relative URL without a base";
        assert_eq!(refused(|link| link.url = "nowhere".into()), why);
        let why = "a URL of 8193 bytes, at most 8192";
        assert_eq!(refused(|link| link.url = "x".repeat(URL_MAX + 1)), why);
        let why = "a state of 4097 bytes, at most 4096";
        assert_eq!(refused(|link| link.state = vec![0; STATE_MAX + 1]), why);
        let why = "a referrer of 2049 bytes, at most 2048";
        let refusal = refused(|link| link.referrer = "x".repeat(REFERRER_MAX + 1));
        assert_eq!(refusal, why);
        let why = refused(|link| link.accept_status = "4xx".into());
        assert!(why.starts_with("accept-status has \"4xx\""), "{why}");
    }
}
