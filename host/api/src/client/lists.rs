//! The calls that list. Most ask for page after page, and return all entries; two return one page, for views that show a
//! part of a long list.

use crawler_proto as proto;
use tonic::{Response, Status};

use super::{Calls, Client, ClientError};
use crate::CALL_DEADLINE;

/// Number of entries that one call asks for.
const PAGE: u32 = 200;

impl Client {
    /// Returns the resources that a request selects, from all pages.
    pub async fn resources(
        &self,
        request: proto::ListResourcesRequest,
    ) -> Result<Vec<proto::Resource>, ClientError> {
        let ask = |mut calls: Calls, page_token| {
            let request = proto::ListResourcesRequest {
                page_size: PAGE,
                page_token,
                ..request.clone()
            };
            async move { calls.list_resources(request).await }
        };
        let entries = |page: proto::ListResourcesResponse| (page.resources, page.next_page_token);
        self.all_pages(ask, entries).await
    }

    /// Returns the nodes that a request selects, from all pages.
    pub async fn nodes(
        &self,
        request: proto::ListNodesRequest,
    ) -> Result<Vec<proto::Node>, ClientError> {
        let ask = |mut calls: Calls, page_token| {
            let request = proto::ListNodesRequest {
                page_size: PAGE,
                page_token,
                ..request.clone()
            };
            async move { calls.list_nodes(request).await }
        };
        let entries = |page: proto::ListNodesResponse| (page.nodes, page.next_page_token);
        self.all_pages(ask, entries).await
    }

    /// Returns the page of resources that a request asks for.
    pub async fn resources_page(
        &self,
        request: proto::ListResourcesRequest,
    ) -> Result<proto::ListResourcesResponse, ClientError> {
        self.read(CALL_DEADLINE, |mut calls| {
            let request = request.clone();
            async move { calls.list_resources(request).await }
        })
        .await
    }

    /// Returns the page of nodes that a request asks for.
    pub async fn nodes_page(
        &self,
        request: proto::ListNodesRequest,
    ) -> Result<proto::ListNodesResponse, ClientError> {
        self.read(CALL_DEADLINE, |mut calls| {
            let request = request.clone();
            async move { calls.list_nodes(request).await }
        })
        .await
    }

    /// Returns all versions of the plugins whose names have this prefix.
    pub async fn plugins(&self, name_prefix: &str) -> Result<Vec<proto::Plugin>, ClientError> {
        let ask = |mut calls: Calls, page_token| {
            let request = proto::ListPluginsRequest {
                page_size: PAGE,
                page_token,
                name_prefix: name_prefix.to_owned(),
            };
            async move { calls.list_plugins(request).await }
        };
        let entries = |page: proto::ListPluginsResponse| (page.plugins, page.next_page_token);
        self.all_pages(ask, entries).await
    }

    /// Returns the resources that have a schedule, each with it.
    pub async fn schedules(&self) -> Result<Vec<proto::ScheduledResource>, ClientError> {
        let ask = |mut calls: Calls, page_token| {
            let request = proto::ListSchedulesRequest {
                page_size: PAGE,
                page_token,
                name_prefix: String::new(),
            };
            async move { calls.list_schedules(request).await }
        };
        let entries = |page: proto::ListSchedulesResponse| (page.schedules, page.next_page_token);
        self.all_pages(ask, entries).await
    }

    /// Returns the access tokens of a subject, or of all if it is empty, without their secrets.
    pub async fn tokens(&self, subject: &str) -> Result<Vec<proto::AccessToken>, ClientError> {
        let ask = |mut calls: Calls, page_token| {
            let request = proto::ListTokensRequest {
                page_size: PAGE,
                page_token,
                subject: subject.to_owned(),
            };
            async move { calls.list_tokens(request).await }
        };
        let entries = |page: proto::ListTokensResponse| (page.tokens, page.next_page_token);
        self.all_pages(ask, entries).await
    }

    /// Asks for page after page, each with the token of the page before, until there is none.
    async fn all_pages<Page, Entry, Asked>(
        &self,
        ask: impl Fn(Calls, String) -> Asked,
        entries: impl Fn(Page) -> (Vec<Entry>, String),
    ) -> Result<Vec<Entry>, ClientError>
    where
        Asked: Future<Output = Result<Response<Page>, Status>>,
    {
        let mut all = Vec::new();
        let mut token = String::new();
        loop {
            let page = self.read(CALL_DEADLINE, |calls| ask(calls, token.clone()));
            let (mut page, next) = entries(page.await?);
            all.append(&mut page);
            if next.is_empty() {
                return Ok(all);
            }
            token = next;
        }
    }
}
