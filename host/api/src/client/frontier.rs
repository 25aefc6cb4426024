//! The calls that look into a frontier.

use crawler_proto as proto;

use super::{CALL_DEADLINE, Client, ClientError};
use crawler_master::control::frontier::UrlQuery;
use crawler_model::id::ResourceName;

impl Client {
    /// Returns the totals of a resource's frontier.
    pub async fn frontier_stats(
        &self,
        name: &ResourceName,
    ) -> Result<proto::FrontierStats, ClientError> {
        let name = name.to_string();
        let message = proto::ResourceRequest { name };
        self.read(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.get_frontier_stats(message).await }
        })
        .await
    }

    /// Returns the statistics of a resource's present run.
    pub async fn statistics(
        &self,
        name: &ResourceName,
    ) -> Result<proto::RunStatistics, ClientError> {
        let name = name.to_string();
        let message = proto::ResourceRequest { name };
        self.read(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.get_statistics(message).await }
        })
        .await
    }

    /// Returns part of the list of URLs. An empty state means all states, and an empty token is the beginning
    /// of the list.
    pub async fn urls(
        &self,
        name: &ResourceName,
        state: &str,
        page_size: u32,
        page_token: String,
    ) -> Result<proto::ListUrlsResponse, ClientError> {
        let message = proto::ListUrlsRequest {
            name: name.to_string(),
            state: state.to_owned(),
            page_size,
            page_token,
        };
        self.read(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.list_urls(message).await }
        })
        .await
    }

    /// Returns part of the list of hosts. An empty state means all states, and an empty token is the
    /// beginning of the list.
    pub async fn hosts(
        &self,
        name: &ResourceName,
        state: &str,
        page_size: u32,
        page_token: String,
    ) -> Result<proto::ListHostsResponse, ClientError> {
        let message = proto::ListHostsRequest {
            name: name.to_string(),
            state: state.to_owned(),
            page_size,
            page_token,
        };
        self.read(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.list_hosts(message).await }
        })
        .await
    }

    /// Returns part of the list of changes of a run. Run 0 is the present one, and an empty token is the beginning of
    /// the list.
    pub async fn changes(
        &self,
        name: &ResourceName,
        run: u64,
        page_token: String,
    ) -> Result<proto::ListChangesResponse, ClientError> {
        let message = proto::ListChangesRequest {
            name: name.to_string(),
            run,
            page_size: 0,
            page_token,
        };
        self.read(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.list_changes(message).await }
        })
        .await
    }

    /// Explains why a URL was or was not fetched.
    pub async fn explain_url(
        &self,
        name: &ResourceName,
        query: UrlQuery,
    ) -> Result<proto::UrlExplanation, ClientError> {
        let message = proto::ExplainUrlRequest {
            name: name.to_string(),
            url: query.url,
            method: query.method,
            body: query.body.into(),
        };
        self.read(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.explain_url(message).await }
        })
        .await
    }

    /// Redrives the dead letters of one reason, or all; returns how many there are.
    pub async fn redrive_frontier(
        &self,
        name: &ResourceName,
        reason: Option<String>,
    ) -> Result<u64, ClientError> {
        let message = proto::RedriveRequest {
            name: name.to_string(),
            reason: reason.unwrap_or_default(),
        };
        let answer = self
            .change(CALL_DEADLINE, |mut calls| {
                let message = message.clone();
                async move { calls.redrive_frontier(message).await }
            })
            .await?;
        Ok(answer.dead_letters)
    }
}
