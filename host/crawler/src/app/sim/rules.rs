//! The plugin of all resources: its rules read the pages of a site.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::fault::Fault;
use super::site::{Site, parse};
use super::world::SimWorld;
use crawler_model::crawl::{Item, Page, PageContext, Request};
use crawler_model::id::Digest;
use crawler_model::plugin::Description;
use crawler_plugin::{
    CallConfig, CallFailure, CallOutput, CallReport, LoadRules, PluginError, Rules, Usage,
};

/// Rules that read the pages of a site.
pub(super) struct SiteRules {
    description: Description,
}

/// Loads the one plugin, whatever digest is asked for.
pub(super) struct OnePlugin {
    pub(super) world: Arc<SimWorld>,
}

#[async_trait]
impl LoadRules for OnePlugin {
    async fn load(&self, _digest: Digest) -> Result<Arc<dyn Rules>, PluginError> {
        tokio::time::sleep(self.world.way()).await;
        if self.world.fault(Fault::NoPlugin, 5) {
            return Err(PluginError::Host {
                doing: "fetch the plugin from a master",
                why: "none answers".to_owned(),
            });
        }
        let description = description();
        Ok(Arc::new(SiteRules { description }))
    }
}

pub(super) fn description() -> Description {
    Description {
        name: "site".parse().expect("a name"),
        version: "1.0.0".parse().expect("a version"),
        rules: vec!["page".into()],
        schemas: Vec::new(),
        plans: Vec::new(),
        hosts: Vec::new(),
        params: None,
        limits: BTreeMap::new(),
    }
}

#[async_trait]
impl Rules for SiteRules {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn root(&self, config: CallConfig, _now: u64) -> CallReport {
        let site = Site::of_params(&config.params).expect("params of a site");
        report(CallOutput {
            requests: requests(&site, &site.roots()),
            ..CallOutput::default()
        })
    }

    async fn parse(
        &self,
        config: CallConfig,
        _rule: &str,
        page: Arc<Page>,
        _context: PageContext,
    ) -> CallReport {
        let site = Site::of_params(&config.params).expect("params of a site");
        let (_, _, page) = parse(&page.url).expect("a URL of the site");
        let item = |json| Item {
            schema: "page".into(),
            json,
        };
        report(CallOutput {
            items: site.items(page).into_iter().map(item).collect(),
            requests: requests(&site, &site.links(page)),
            n_bad_urls: 0,
        })
    }
}

fn requests(site: &Site, pages: &[u64]) -> Vec<Request> {
    let request = |page: &u64| Request::get(site.url(*page), "page");
    pages.iter().map(request).collect()
}

fn report(output: CallOutput) -> CallReport {
    let result: Result<CallOutput, CallFailure> = Ok(output);
    CallReport {
        result,
        logs: Vec::new(),
        n_logs_dropped: 0,
        usage: Usage::default(),
        place: None,
        reads: Vec::new(),
    }
}
