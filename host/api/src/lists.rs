//! The calls that list resources, schedules, nodes and plugins: filters, and pages of lists that are at hand as a whole.
//!
//! A page token is the place of the last entry of a page, in the order of the list. The next page begins behind that place,
//! whether or not the entry is still there. Callers take it as it is.

use crawler_proto as proto;

use super::problem::Problem;
use super::{Api, CALL_DEADLINE, answer, page_max, spec};
use crawler_master::ControlError;
use crawler_master::control::ResourceQuery;
use crawler_model::id::{PluginName, PluginVersion, ResourceName};
use crawler_model::label::{built_in, check_labels};
use crawler_model::plugin::PluginRecord;
use crawler_model::resource::Phase;
use crawler_model::suggest;

/// Roles of nodes, in the order of lists. A record that does not decode has none and comes last.
const ROLES: [&str; 2] = ["master", "worker"];

impl Api {
    pub(crate) async fn resources(
        &self,
        request: proto::ListResourcesRequest,
    ) -> Result<proto::ListResourcesResponse, Problem> {
        let call = async {
            let query = resource_query(request)?;
            let grants = self.caller.grants();
            Ok::<_, Problem>(self.control.resources(&query, grants).await?)
        };
        let page = self.within(CALL_DEADLINE, Box::pin(call)).await?;
        Ok(answer::resources(page))
    }

    pub(crate) async fn schedules(
        &self,
        request: proto::ListSchedulesRequest,
    ) -> Result<proto::ListSchedulesResponse, Problem> {
        let proto::ListSchedulesRequest {
            page_size,
            page_token,
            name_prefix,
        } = request;
        let call = async {
            let (after, max) = (name_place(&page_token)?, page_max(page_size));
            let grants = self.caller.grants();
            let page = self
                .control
                .scheduled_resources(after.as_ref(), max, &name_prefix, grants);
            Ok::<_, Problem>(page.await?)
        };
        let page = self.within(CALL_DEADLINE, Box::pin(call)).await?;
        Ok(answer::schedules(page))
    }

    pub(crate) async fn nodes(
        &self,
        request: proto::ListNodesRequest,
    ) -> Result<proto::ListNodesResponse, Problem> {
        let proto::ListNodesRequest {
            page_size,
            page_token,
            role,
            labels,
        } = request;
        if !role.is_empty() {
            word("role", &role, &ROLES)?;
        }
        check_labels(&labels).map_err(|e| spec::invalid("labels", e))?;
        let after = match page_token.as_str() {
            "" => None,
            token => Some(node_place(token).ok_or_else(bad_token)?),
        };
        let view = self.within(CALL_DEADLINE, self.control.nodes()).await?;
        let mut nodes = answer::nodes(view);
        nodes.retain(|node| {
            let is_of_role = role.is_empty() || node.role.eq_ignore_ascii_case(&role);
            let has = |(key, value): (&String, &String)| {
                let built_in = built_in(key, &node.id, &node.address);
                built_in.or(node.labels.get(key).map(String::as_str)) == Some(value)
            };
            is_of_role && labels.iter().all(has)
        });
        let place = |node: &proto::Node| (rank(&node.role), node.id.clone());
        nodes.sort_by_key(place);
        let (nodes, last) = page(nodes, after.as_ref(), page_size, place);
        let token = last.map(|(rank, id)| format!("{rank}/{id}"));
        Ok(proto::ListNodesResponse {
            nodes,
            next_page_token: token.unwrap_or_default(),
        })
    }

    pub(crate) async fn plugins(
        &self,
        request: proto::ListPluginsRequest,
    ) -> Result<proto::ListPluginsResponse, Problem> {
        let proto::ListPluginsRequest {
            page_size,
            page_token,
            name_prefix,
        } = request;
        let after = match page_token.as_str() {
            "" => None,
            token => Some(plugin_place(token).ok_or_else(bad_token)?),
        };
        let mut plugins = self.within(CALL_DEADLINE, self.control.plugins()).await?;
        plugins.retain(|plugin| {
            let name = plugin.name.as_str();
            name.starts_with(&name_prefix) && self.caller.grants().covers(name)
        });
        let place = |plugin: &PluginRecord| (plugin.name.clone(), plugin.version.clone());
        let (plugins, last) = page(plugins, after.as_ref(), page_size, place);
        let token = last.map(|(name, version)| format!("{name}@{version}"));
        Ok(answer::plugins(plugins, token.unwrap_or_default()))
    }
}

fn resource_query(request: proto::ListResourcesRequest) -> Result<ResourceQuery, Problem> {
    let proto::ListResourcesRequest {
        page_size,
        page_token,
        phase,
        labels,
        name_prefix,
        plugin,
    } = request;
    check_labels(&labels).map_err(|e| spec::invalid("labels", e))?;
    Ok(ResourceQuery {
        after: name_place(&page_token)?,
        max: page_max(page_size),
        name_prefix,
        labels,
        plugin: match plugin.as_str() {
            "" => None,
            text => Some(spec::plugin_ref("plugin", text)?),
        },
        phase: match phase.as_str() {
            "" => None,
            text => Some(word("phase", text, &Phase::WORDS)?),
        },
    })
}

/// Returns the word that a text stands for, whatever its case.
fn word(
    field: &'static str,
    text: &str,
    words: &[&'static str],
) -> Result<&'static str, ControlError> {
    let mut found = words.iter().filter(|word| word.eq_ignore_ascii_case(text));
    found.next().copied().ok_or_else(|| {
        let hint = suggest::hint(text, words);
        spec::invalid(field, format!("there is no {field} {text:?}; {hint}"))
    })
}

fn rank(role: &str) -> usize {
    let place = ROLES.iter().position(|known| *known == role);
    place.unwrap_or(ROLES.len())
}

/// Returns the name that the token of a page stands for; an empty one stands for the first page.
fn name_place(token: &str) -> Result<Option<ResourceName>, ControlError> {
    match token {
        "" => Ok(None),
        token => {
            let name = token.parse::<ResourceName>();
            name.map(Some).map_err(|e| spec::invalid("page_token", e))
        }
    }
}

fn node_place(token: &str) -> Option<(usize, String)> {
    let (rank, id) = token.split_once('/')?;
    Some((rank.parse().ok()?, id.to_owned()))
}

fn plugin_place(token: &str) -> Option<(PluginName, PluginVersion)> {
    // In a query that a caller has not encoded, the plus of a version's build is a blank.
    let token = token.replace(' ', "+");
    let (name, version) = token.split_once('@')?;
    Some((name.parse().ok()?, version.parse().ok()?))
}

/// Returns the fault of a page token that no answer gave.
pub(super) fn bad_token() -> ControlError {
    spec::invalid(
        "page_token",
        "page_token is not one that an answer to the same question gave",
    )
}

/// Returns one page of a list, whose entries are ordered by their places, and the place of its last entry if others
/// follow. A size of 0 means all.
pub(super) fn page<T, P: Ord>(
    mut entries: Vec<T>,
    after: Option<&P>,
    size: u32,
    place: impl Fn(&T) -> P,
) -> (Vec<T>, Option<P>) {
    if let Some(after) = after {
        entries.retain(|entry| place(entry) > *after);
    }
    let max = usize::try_from(size).unwrap_or(usize::MAX);
    if max == 0 || entries.len() <= max {
        return (entries, None);
    }
    entries.truncate(max);
    let last = entries.last().map(place);
    (entries, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_every_entry_once_and_survive_a_deletion() {
        let all = || (0..7).collect::<Vec<u32>>();
        for size in 1..9 {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                // The entry that a token names is gone by the time of the next call.
                let mut entries = all();
                entries.retain(|n| Some(*n) != after);
                let (entries, last) = page(entries, after.as_ref(), size, |n| *n);
                assert!(entries.len() <= size as usize);
                found.extend(entries);
                match last {
                    Some(last) => after = Some(last),
                    None => break,
                }
            }
            assert_eq!(found, all(), "in pages of {size}");
        }
        assert_eq!(page(all(), None, 0, |n| *n), (all(), None));
    }

    #[test]
    fn words_are_taken_in_any_case_and_others_refused() {
        assert_eq!(word("phase", "failed", &Phase::WORDS).unwrap(), "Failed");
        let refused = Problem::from(word("phase", "Faild", &Phase::WORDS).unwrap_err());
        assert!(refused.detail.contains("Failed"), "{refused:?}");
    }

    #[test]
    fn places_are_read_from_their_tokens() {
        assert_eq!(node_place("1/worker-1"), Some((1, "worker-1".to_owned())));
        assert_eq!(node_place("worker-1"), None);
        assert!(plugin_place("team/books@1.0.0").is_some());
        let plus = plugin_place("books@1.0.0+b");
        assert!(plus.is_some() && plus == plugin_place("books@1.0.0 b"));
        assert_eq!(plugin_place("team/books"), None);
    }
}
