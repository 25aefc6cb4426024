//! The part of a resource's spec that a caller gives, before defaults: the one form that gRPC, HTTP and the
//! command line share.

use std::collections::{BTreeMap, BTreeSet};

use crawler_master::ControlError;
use crawler_master::control::Precondition;
use crawler_model::id::{NodeId, PluginRef, ResourceName};
use crawler_model::placement::{AffinityTarget, PlacementChange};
use crawler_model::plugin::LimitOverrides;
use crawler_model::resource::{CrawlSettings, Resource, ResourceSpec, SettingError};
use crawler_model::settings::{Setting, Value};

/// Request to add a resource, or to change one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecRequest {
    /// Name of the resource.
    pub name: ResourceName,
    /// Plugin of the resource. If `None`, it is the plugin of the resource's name; in a change, the present
    /// one.
    pub plugin: Option<PluginRef>,
    /// Params. In a change, those that are not named stay.
    pub params: BTreeMap<String, String>,
    /// Names of params to take away, in a change.
    pub no_params: BTreeSet<String>,
    /// Limits to set. A change keeps those that it does not name.
    pub limits: LimitOverrides,
    /// Settings of the crawl. In a change, those that are absent stay.
    pub crawl: CrawlSettings,
    /// Placement. In a change, settings that are absent stay, and empty ones are reset.
    pub placement: PlacementChange,
    /// Labels to set. In a change, others stay, and a label without a value is removed.
    pub labels: BTreeMap<String, String>,
    /// True for a change that takes the place of the present spec, so that what is absent has its default.
    pub replace: bool,
    /// Condition of a change.
    pub precondition: Precondition,
}

impl SpecRequest {
    /// Returns a request that says nothing but the name.
    pub fn named(name: ResourceName) -> Self {
        Self {
            name,
            plugin: None,
            params: BTreeMap::new(),
            no_params: BTreeSet::new(),
            limits: LimitOverrides::default(),
            crawl: CrawlSettings::default(),
            placement: PlacementChange::default(),
            labels: BTreeMap::new(),
            replace: false,
            precondition: Precondition::default(),
        }
    }

    /// Returns a request for this spec as a whole: to add it, or to put it in the place of the present one.
    pub fn whole(spec: ResourceSpec) -> Self {
        Self {
            plugin: Some(spec.plugin),
            params: spec.params,
            limits: spec.limits,
            crawl: spec.crawl,
            placement: spec.placement.into(),
            labels: spec.labels,
            replace: true,
            ..Self::named(spec.name)
        }
    }

    /// Returns the whole spec of a resource to be added.
    pub fn into_spec(self) -> Result<ResourceSpec, ControlError> {
        self.crawl.check().map_err(invalid_setting)?;
        let plugin = match self.plugin {
            Some(plugin) => plugin,
            None => plugin_ref("name", self.name.as_str())?,
        };
        let placement = self.placement.into_spec();
        placement.check(&self.name).map_err(invalid_setting)?;
        let spec = ResourceSpec {
            name: self.name,
            plugin,
            params: self.params,
            limits: self.limits,
            crawl: self.crawl,
            placement,
            labels: self.labels,
        };
        spec.check_labels().map_err(invalid_setting)?;
        Ok(spec)
    }

    /// Returns the spec of the present resource after this change.
    pub(crate) fn changed(&self, present: &Resource) -> Result<ResourceSpec, ControlError> {
        self.precondition.check(present)?;
        match self.replace {
            true => self.clone().into_spec(),
            false => self.clone().over(present.spec.clone()),
        }
    }

    /// Returns the present spec with this change applied.
    fn over(self, present: ResourceSpec) -> Result<ResourceSpec, ControlError> {
        let mut spec = present;
        spec.plugin = self.plugin.unwrap_or(spec.plugin);
        spec.params.retain(|name, _| !self.no_params.contains(name));
        spec.params.extend(self.params);
        for (limit, value) in self.limits.iter() {
            let set = spec.limits.set_value(limit, value);
            set.map_err(|e| invalid("limits", e))?;
        }
        let crawl = self.crawl.over(spec.crawl);
        crawl.check().map_err(invalid_setting)?;
        spec.crawl = crawl;
        let placement = self.placement.over(spec.placement);
        placement.check(&spec.name).map_err(invalid_setting)?;
        spec.placement = placement;
        spec.labels.extend(self.labels);
        spec.labels.retain(|_, value| !value.is_empty());
        spec.check_labels().map_err(invalid_setting)?;
        Ok(spec)
    }
}

/// Parses the name of a resource from the field `name`.
pub(crate) fn resource_name(text: &str) -> Result<ResourceName, ControlError> {
    text.parse().map_err(|e| invalid("name", e))
}

/// Parses the id of a node from the field `id`.
pub(crate) fn node_id(text: &str) -> Result<NodeId, ControlError> {
    text.parse().map_err(|e| invalid("id", e))
}

/// Parses a plugin from this field.
pub(crate) fn plugin_ref(field: &'static str, text: &str) -> Result<PluginRef, ControlError> {
    text.parse().map_err(|e| invalid(field, e))
}

/// Parses a setting of a crawl and puts it there.
pub(crate) fn set(
    crawl: &mut CrawlSettings,
    setting: &Setting,
    value: Value,
) -> Result<(), ControlError> {
    setting.set(crawl, value).map_err(invalid_setting)
}

/// Parses the fields `near` and `apart`.
pub(crate) fn affinity_target(
    field: &'static str,
    text: &str,
) -> Result<AffinityTarget, ControlError> {
    text.parse().map_err(|e| invalid(field, e))
}

/// Returns the error of a field that does not parse.
pub(crate) fn invalid(field: &'static str, why: impl std::fmt::Display) -> ControlError {
    ControlError::Invalid {
        field,
        why: why.to_string(),
    }
}

fn invalid_setting(error: SettingError) -> ControlError {
    invalid(error.setting, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::{Generation, ResourceId};

    fn request(name: &str) -> SpecRequest {
        SpecRequest::named(name.parse().unwrap())
    }

    fn resource(spec: ResourceSpec, generation: Generation) -> Resource {
        let record = serde_json::json!({
            "id": "1", "assigned_node": "", "creation_time": 0, "generation": generation, "run": 1,
            "name": spec.name, "plugin": spec.plugin,
        });
        let resource: Resource = serde_json::from_value(record).unwrap();
        Resource { spec, ..resource }
    }

    #[test]
    fn a_name_alone_runs_the_plugin_of_that_name() {
        let spec = request("books").into_spec().unwrap();
        assert_eq!(spec.plugin.to_string(), "books");
        let spec = request("team/books").into_spec().unwrap();
        assert_eq!(spec.plugin.to_string(), "team/books");
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let mut first = request("books");
        first.plugin = Some("shop@1.0.0".parse().unwrap());
        first.params = [("a", "1"), ("b", "2"), ("c", "3")]
            .map(|(k, v)| (k.into(), v.into()))
            .into();
        first.limits.set("memory", "8MiB").unwrap();
        first.crawl.max_pages = Some(5);
        first.crawl.scope = vec!["a.test".parse().unwrap()];
        let mut change = request("books");
        change.params = [("b".into(), "3".into())].into();
        change.limits.set("cpu", "1s").unwrap();
        change.crawl.concurrency = Some(2);
        change.no_params = ["c".into(), "b".into()].into();
        let spec = change.over(first.into_spec().unwrap()).unwrap();
        assert!(!spec.params.contains_key("c"));
        assert_eq!(spec.plugin.to_string(), "shop@1.0.0");
        assert_eq!(spec.params["a"], "1");
        assert_eq!(spec.params["b"], "3");
        assert_eq!(spec.limits.iter().count(), 2);
        assert_eq!(
            (spec.crawl.max_pages, spec.crawl.concurrency),
            (Some(5), Some(2))
        );
        assert_eq!(spec.crawl.scope.len(), 1);
    }

    #[test]
    fn s21_placement_is_checked_when_it_is_asked_for_and_when_it_is_changed() {
        let own = |name: &str| PlacementChange {
            apart: Some(name.parse().unwrap()),
            ..PlacementChange::default()
        };
        let mut added = request("books");
        added.placement = own("books");
        let expected = "setting apart names books itself; name another resource";
        assert_eq!(added.clone().into_spec().unwrap_err().to_string(), expected);
        let present = request("books").into_spec().unwrap();
        assert_eq!(added.over(present).unwrap_err().to_string(), expected);
        let mut added = request("books");
        added.placement = own("shop");
        added.placement.selector = [("gpu".into(), "true".into())].into();
        let present = added.into_spec().unwrap();
        let mut change = request("books");
        change.placement = own("");
        let changed = change.over(present).unwrap().placement;
        assert_eq!((changed.apart, changed.selector.len()), (None, 1));
    }

    #[test]
    fn a_change_sets_labels_and_takes_out_those_without_a_value() {
        let labels = |labels: &[(&str, &str)]| {
            let labels = labels.iter().map(|(k, v)| ((*k).into(), (*v).into()));
            labels.collect::<BTreeMap<String, String>>()
        };
        let mut first = request("books");
        first.labels = labels(&[("team", "shop"), ("stage", "test")]);
        let mut change = request("books");
        change.labels = labels(&[("stage", ""), ("owner", "ann")]);
        let spec = change.over(first.into_spec().unwrap()).unwrap();
        assert_eq!(spec.labels, labels(&[("owner", "ann"), ("team", "shop")]));
        let mut added = request("books");
        added.labels = labels(&[("stage", "")]);
        let error = added.into_spec().unwrap_err();
        let expected =
            "setting labels is no list of labels: label stage has no value; write stage=VALUE";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_replacement_keeps_nothing_and_comes_too_late_for_another_generation() {
        let mut first = request("books");
        first.crawl.max_pages = Some(5);
        first.labels = [("team".into(), "shop".into())].into();
        let present = resource(first.into_spec().unwrap(), Generation(4));
        let mut change = request("books");
        change.crawl.max_depth = Some(2);
        change.precondition.generation = Some(Generation(4));
        let kept = change.changed(&present).unwrap();
        assert_eq!(
            (kept.crawl.max_pages, kept.crawl.max_depth),
            (Some(5), Some(2))
        );
        change.replace = true;
        let replaced = change.changed(&present).unwrap();
        assert_eq!(replaced, change.clone().into_spec().unwrap());
        change.precondition.generation = Some(Generation(3));
        let error = change.changed(&present).unwrap_err();
        assert_eq!(
            error.to_string(),
            "resource books has generation 4, not 3: it was changed meanwhile"
        );
        change.precondition.id = Some(ResourceId(present.id.0 + 1));
        let error = change.changed(&present).unwrap_err();
        let told = format!(
            "resource books has id {}, not {}: it was deleted, and added again",
            present.id,
            present.id.0 + 1
        );
        assert_eq!(error.to_string(), told);
    }

    #[test]
    fn a_whole_spec_survives_its_message() {
        let mut spec = request("books");
        spec.plugin = Some("shop@1.0.0".parse().unwrap());
        spec.params = [("a".into(), "1".into())].into();
        spec.limits.set("memory", "8MiB").unwrap();
        spec.crawl = crawler_model::settings::examples();
        spec.placement.shards = Some(3);
        spec.placement.near = Some("shop".parse().unwrap());
        spec.labels = [("team".into(), "shop".into())].into();
        let spec = spec.into_spec().unwrap();
        let message = crate::convert::spec_message(SpecRequest::whole(spec.clone()));
        assert_eq!(crate::convert::resource_spec(message).unwrap(), spec);
    }

    #[test]
    fn a_change_that_cannot_be_meant_is_refused() {
        let mut change = request("books");
        change.crawl.concurrency = Some(0);
        let error = change
            .over(request("books").into_spec().unwrap())
            .unwrap_err();
        assert_eq!(error.to_string(), "setting concurrency must be above zero");
    }
}
