//! Tests of the params of resources against those that their plugins declare.

use super::*;
use crate::ResourceView;

const MISSING: &str = "plugin books@1.0.0 needs the param start";

fn with_params(names: &[&str]) -> ResourceSpec {
    let params = names
        .iter()
        .map(|name| ((*name).to_owned(), "x".to_owned()));
    ResourceSpec {
        params: params.collect(),
        ..spec("a", "books")
    }
}

async fn add(bench: &Bench, names: &[&str]) -> Result<ResourceView, ControlError> {
    let request = RequestId::random();
    let spec = with_params(names);
    bench.control.add_resource(spec, &request).await
}

#[tokio::test]
async fn a_missing_and_an_unknown_param_are_refused() {
    let bench = Bench::new().await;
    bench.push("books@1.0.0 needs start").await.unwrap();
    check_refused(add(&bench, &[]).await, Code::InvalidArgument, MISSING);
    check_refused(
        add(&bench, &["start", "strat"]).await,
        Code::InvalidArgument,
        "plugin books@1.0.0 has no param \"strat\"; it has start",
    );
    add(&bench, &["start"]).await.unwrap();
}

#[tokio::test]
async fn restart_and_update_check_params_of_the_plugin_to_come() {
    let bench = Bench::new().await;
    bench.push("books@1.0.0").await.unwrap();
    add(&bench, &["other"]).await.unwrap();
    bench.push("books@2.0.0 needs start").await.unwrap();
    let change = |plugin: &'static str, names: &'static [&'static str]| {
        move |present: &Resource| {
            Ok(ResourceSpec {
                plugin: plugin.parse().unwrap(),
                params: with_params(names).params,
                ..present.spec.clone()
            })
        }
    };
    let name = "a".parse().unwrap();
    let restart = async |plugin, names| {
        let request = RequestId::random();
        let restarted = bench
            .control
            .restart_resource(&name, change(plugin, names), &request);
        restarted.await
    };
    let unknown = "plugin books@2.0.0 has no param \"other\"; it has start";
    check_refused(
        bench
            .update("a", |spec| spec.plugin = "books@2.0.0".parse().unwrap())
            .await,
        Code::InvalidArgument,
        unknown,
    );
    check_refused(
        restart("books@2.0.0", &["other"]).await,
        Code::InvalidArgument,
        unknown,
    );
    restart("books@2.0.0", &["start"]).await.unwrap();
    // The plugin is the same in this call.
    check_refused(
        restart("books@2.0.0", &[]).await,
        Code::InvalidArgument,
        &MISSING.replace("1.0.0", "2.0.0"),
    );
}
