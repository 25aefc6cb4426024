//! Tests of faults in the parts of a process.

use super::*;
use crate::app::up;
use crate::cli::UpOptions;

#[tokio::test]
async fn f27_a_panic_in_any_part_of_up_is_noticed() {
    let parts: [fn(&Scopes) -> &TaskScope; 4] = [
        |scopes| &scopes.work,
        |scopes| &scopes.membership,
        |scopes| &scopes.election,
        |scopes| &scopes.listeners,
    ];
    for part in parts {
        let folder = tempfile::tempdir().unwrap();
        let options = UpOptions::in_folder(folder.path());
        let (mut up, _control) = up::start(&options).await.unwrap();
        let early = futures::FutureExt::now_or_never(up.fault());
        assert!(early.is_none(), "no fault yet");
        part(&up.scopes).spawn("faulty", async { panic!("on purpose") });
        tokio::time::timeout(Duration::from_secs(60), up.fault())
            .await
            .expect("noticed");
        up.stop().await;
    }
}
