//! The calls that list: each asks for page after page, and returns all entries.

use crawler_proto as proto;

use super::{Client, ClientError};
use crate::CALL_DEADLINE;

/// Number of entries that one call asks for.
const PAGE: u32 = 200;

impl Client {
    /// Returns the resources that a request selects. Its page is of no account.
    pub async fn resources(
        &self,
        mut request: proto::ListResourcesRequest,
    ) -> Result<Vec<proto::Resource>, ClientError> {
        let mut all = Vec::new();
        request.page_size = PAGE;
        request.page_token.clear();
        loop {
            let page = self.read(CALL_DEADLINE, |mut calls| {
                let request = request.clone();
                async move { calls.list_resources(request).await }
            });
            let page = page.await?;
            all.extend(page.resources);
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                return Ok(all);
            }
        }
    }

    /// Returns the nodes that a request selects. Its page is of no account.
    pub async fn nodes(
        &self,
        mut request: proto::ListNodesRequest,
    ) -> Result<Vec<proto::Node>, ClientError> {
        let mut all = Vec::new();
        request.page_size = PAGE;
        request.page_token.clear();
        loop {
            let page = self.read(CALL_DEADLINE, |mut calls| {
                let request = request.clone();
                async move { calls.list_nodes(request).await }
            });
            let page = page.await?;
            all.extend(page.nodes);
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                return Ok(all);
            }
        }
    }

    /// Returns the versions of all plugins whose names begin so.
    pub async fn plugins(&self, name_prefix: &str) -> Result<Vec<proto::Plugin>, ClientError> {
        let mut all = Vec::new();
        let mut request = proto::ListPluginsRequest {
            page_size: PAGE,
            page_token: String::new(),
            name_prefix: name_prefix.to_owned(),
        };
        loop {
            let page = self.read(CALL_DEADLINE, |mut calls| {
                let request = request.clone();
                async move { calls.list_plugins(request).await }
            });
            let page = page.await?;
            all.extend(page.plugins);
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                return Ok(all);
            }
        }
    }

    /// Returns the access tokens of a subject, or of all if it is empty, without their secrets.
    pub async fn tokens(&self, subject: &str) -> Result<Vec<proto::AccessToken>, ClientError> {
        let mut all = Vec::new();
        let mut request = proto::ListTokensRequest {
            page_size: PAGE,
            page_token: String::new(),
            subject: subject.to_owned(),
        };
        loop {
            let page = self.read(CALL_DEADLINE, |mut calls| {
                let request = request.clone();
                async move { calls.list_tokens(request).await }
            });
            let page = page.await?;
            all.extend(page.tokens);
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                return Ok(all);
            }
        }
    }
}
