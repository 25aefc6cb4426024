//! Tests of loading a plugin from bytes: the compiling process, the cache, and what is refused there.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crawler_model::id::Digest;
use crawler_plugin::engine::{Engine, EngineSettings};
use crawler_plugin::{Admit as _, PluginError, Rules as _};

use crate::guests::{config, context, describing, hostile, page, settings};

async fn check_refused(settings: EngineSettings, bytes: Bytes, expected: &str) {
    let engine = Engine::new(settings).expect("the engine starts");
    let error = engine.admit(bytes).await.expect_err("refused");
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_plugin_is_admitted_with_its_own_words() {
    let engine = Engine::new(settings(1)).unwrap();
    let admitted = engine.admit(hostile()).await.unwrap();
    assert_eq!(admitted.digest, Digest::of(&hostile()));
    assert_eq!(admitted.size, hostile().len() as u64);
    assert_eq!(admitted.interface, "0.1.1");
    assert_eq!(admitted.description.name.as_str(), "hostile");
    assert_eq!(admitted.description.version.to_string(), "0.1.0");
    assert_eq!(*admitted.description.rules[0], *"ok");
    assert_eq!(admitted.description.schemas[0].name, "any");
}

#[tokio::test]
async fn f31_a_describe_that_does_more_than_describe_is_refused() {
    let allowed =
        "describe returns at once, and calls neither page nor output; return constants from it";
    for (behaviour, ended) in [
        ("loop", "(out-of-fuel): the rule used up its fuel"),
        (
            "page",
            "(denied): the plugin asked for a page in describe, where there is none",
        ),
        (
            "emit",
            "(denied): the plugin emitted an item in describe, where there is no output",
        ),
    ] {
        let expected = format!("describe was ended {ended}; {allowed}");
        check_refused(settings(1), describing(behaviour), &expected).await;
    }
    let hoarding = Engine::new(settings(1))
        .unwrap()
        .admit(describing("alloc"))
        .await;
    let message = hoarding.unwrap_err().to_string();
    assert!(
        message.starts_with("describe was ended (out-of-memory): the rule wanted 10"),
        "{message}"
    );
    check_refused(
        settings(1),
        describing("twice"),
        "describe lists \"ok\" twice among its rules; names are unique within a plugin; rename one of them",
    )
    .await;
}

#[tokio::test]
async fn f31_a_plugin_that_exhausts_the_compiler_exhausts_a_process_of_its_own() {
    let mut little_memory = settings(1);
    little_memory.compile_memory = 8 << 20;
    check_refused(
        little_memory,
        hostile(),
        "compiling it needs more than 8 MiB of memory; a plugin of usual size needs 50 to 400 MiB; make it smaller: fewer dependencies, release mode, no embedded data; or raise --compile-memory",
    )
    .await;
    let mut little_time = settings(1);
    little_time.compile_time = Duration::from_millis(1);
    check_refused(
        little_time,
        hostile(),
        "compiling it takes longer than 1ms; a plugin of usual size takes 0.3 to 20 seconds; make it smaller: fewer dependencies, release mode, no embedded data; or raise --compile-time",
    )
    .await;
}

#[tokio::test]
async fn a_compiling_program_that_is_not_there_is_named() {
    let mut nowhere = settings(1);
    nowhere.child_program = Some("/nowhere/crawler".into());
    check_refused(
        nowhere,
        hostile(),
        "cannot start the compiling process: /nowhere/crawler: No such file or directory (os error 2)",
    )
    .await;
}

#[tokio::test]
async fn f31_bytes_that_are_not_those_of_the_digest_are_not_loaded() {
    let engine = Engine::new(settings(1)).unwrap();
    let digest = Digest::of(b"another");
    let error = engine.load(digest, hostile()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the bytes have the digest {}; plugin {digest} was to be loaded; transfer them again",
            Digest::of(&hostile())
        )
    );
}

#[tokio::test]
async fn a_plugin_that_somebody_holds_is_loaded_once() {
    let engine = Engine::new(settings(1)).unwrap();
    let digest = Digest::of(&hostile());
    let (one, other) = tokio::join!(
        engine.load(digest, hostile()),
        engine.load(digest, hostile())
    );
    assert!(Arc::ptr_eq(&one.unwrap(), &other.unwrap()));
}

#[tokio::test]
async fn f31_code_from_the_cache_runs_without_being_compiled_and_damaged_code_is_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut keeping = settings(1);
    keeping.cache_folder = Some(folder.path().join("code"));
    let digest = Digest::of(&hostile());
    Engine::new(keeping.clone())
        .unwrap()
        .admit(hostile())
        .await
        .unwrap();

    let mut without_compiler = keeping.clone();
    without_compiler.child_program = Some("/nowhere/crawler".into());
    let engine = Engine::new(without_compiler).unwrap();
    let plugin = engine.load(digest, hostile()).await.unwrap();
    let report = plugin
        .parse(
            config(|_| (), &[]),
            "ok",
            page("http://a.test/", ""),
            context(),
        )
        .await;
    assert!(report.result.is_ok(), "{report:?}");
    drop((plugin, report));

    let image = std::fs::read_dir(folder.path().join("code"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap() != "key")
        .unwrap();
    std::fs::set_permissions(&image, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut content = std::fs::read(&image).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    std::fs::write(&image, &content).unwrap();
    assert!(
        engine.load(digest, hostile()).await.is_err(),
        "loaded damaged code"
    );
    Engine::new(keeping)
        .unwrap()
        .load(digest, hostile())
        .await
        .unwrap();
}

#[tokio::test]
async fn compiled_code_that_is_kept_is_loaded_without_the_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut keeping = settings(1);
    keeping.cache_folder = Some(folder.path().join("code"));
    let digest = Digest::of(&hostile());
    let nowhere = || async {
        Err(PluginError::Host {
            doing: "find the bytes",
            why: "nobody has them".to_owned(),
        })
    };
    let engine = Engine::new(keeping.clone()).unwrap();
    let error = engine.load_with(digest, nowhere()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot find the bytes: nobody has them");
    let wrong = engine.load_with(digest, async { Ok(Bytes::from_static(b"wrong")) });
    let error = wrong.await.unwrap_err().to_string();
    assert!(error.starts_with("the bytes have the digest"), "{error}");
    let first = engine.load_with(digest, async { Ok(hostile()) });
    let first = first.await.unwrap();
    let held = engine.load_with(digest, nowhere()).await.unwrap();
    assert!(Arc::ptr_eq(&first, &held));
    drop((first, held, engine));

    let engine = Engine::new(keeping).unwrap();
    let plugin = engine.load_with(digest, nowhere()).await.unwrap();
    let page = page("http://a.test/", "");
    let report = plugin.parse(config(|_| (), &[]), "ok", page, context());
    assert!(report.await.result.is_ok());
}

#[tokio::test]
async fn without_address_space_for_a_pool_calls_run_all_the_same() {
    let engine = Engine::new(settings(1_000_000)).unwrap();
    let plugin = engine
        .load(Digest::of(&hostile()), hostile())
        .await
        .unwrap();
    let report = plugin
        .parse(
            config(|_| (), &[]),
            "ok",
            page("http://a.test/", ""),
            context(),
        )
        .await;
    assert!(report.result.is_ok(), "{report:?}");
}
