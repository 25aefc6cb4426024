//! The rule that a page is fetched for: one of its plugin, if the page goes into the folder of a plugin.

use std::slice;

use crate::app::parts;
use crate::cli::devtools::FetchOptions;
use crate::cli::{self, Failure};
use crawler_model::suggest;
use crawler_process::telemetry::chain;

/// Refuses a rule that the plugin does not have. A plugin that cannot be built or loaded refuses none, because its
/// author may be in the middle of a change; that is said.
pub(super) async fn check(options: &FetchOptions) -> anyhow::Result<()> {
    let Some(plugin) = &options.plugin else {
        return Ok(());
    };
    let rule = &*options.request.rule;
    let loaded = match parts::rules(plugin, slice::from_ref(plugin), &options.engine).await {
        Ok(loaded) => loaded,
        Err(error) => {
            let why = chain(error.as_ref());
            cli::print_note(&format!("it is not known if there is a rule {rule}: {why}"));
            return Ok(());
        }
    };
    let known = loaded.description().rules.iter();
    let known: Vec<&str> = known.map(|rule| &**rule).collect();
    check_among(rule, &known)?;
    Ok(())
}

fn check_among(rule: &str, known: &[&str]) -> Result<(), Failure> {
    match known.contains(&rule) {
        true => Ok(()),
        false => Err(Failure::new(
            format!("the plugin has no rule {rule}: nothing was fetched"),
            suggest::hint(rule, known),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_is_not_there_is_refused_with_the_nearest_name() {
        let known = ["list", "detail"];
        assert!(check_among("detail", &known).is_ok());
        let refused = check_among("detial", &known).unwrap_err();
        let what = "the plugin has no rule detial: nothing was fetched";
        assert_eq!(refused.what, what);
        assert_eq!(refused.hint, "did you mean \"detail\"?");
        let refused = check_among("nope", &known).unwrap_err();
        assert_eq!(refused.hint, "there are list, detail");
    }
}
