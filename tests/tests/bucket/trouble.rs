//! Tests of a bucket that cannot be used, or no longer: the messages, and the effect on crawls.

use super::*;
use crawler_tests::process::{Home, Process};

#[test]
fn credentials_that_expire_during_a_crawl_cost_only_time() {
    let _turn = one_at_a_time();
    let Some(machines) = Machines::new(1, 2, FaultPlan::default()) else {
        return;
    };
    let web = site();
    machines.add("site", &web, 5);
    web.wait_for("a third of the pages", PATIENCE, |log| {
        log.len() > N_PAGES / 3
    });
    let set = |expired| {
        machines.cluster.bucket().set_faults(FaultPlan {
            expired,
            ..FaultPlan::default()
        });
    };
    set(true);
    let told = until("the reason why it waits", PATIENCE, || {
        let told = machines
            .master(1)
            .ok(&machines.cluster, &["resource", "get", "site"]);
        told.contains("ExpiredToken").then_some(told)
    });
    assert!(!told.contains(crawler_testing::s3::SECRET_KEY), "{told}");
    set(false);
    assert_eq!(machines.pages("site"), all_pages(&web));
}

#[test]
fn a_store_that_fails_for_a_while_costs_only_time() {
    let _turn = one_at_a_time();
    let Some(machines) = Machines::new(1, 2, FaultPlan::default()) else {
        return;
    };
    let web = site();
    machines.add("site", &web, 50);
    for fault in [
        FaultPlan {
            unavailable: 1.0,
            ..FaultPlan::default()
        },
        FaultPlan {
            reset: 1.0,
            ..FaultPlan::default()
        },
        FaultPlan {
            lost_answer: 1.0,
            ..FaultPlan::default()
        },
    ] {
        let before = web.log().len();
        web.wait_for("further pages", PATIENCE, |log| log.len() > before + 20);
        let n_before = machines.cluster.bucket().requests().faults;
        machines.cluster.bucket().set_faults(fault);
        until("many faults", PATIENCE, || {
            (machines.cluster.bucket().requests().faults > n_before + 30).then_some(())
        });
        machines.cluster.bucket().set_faults(FaultPlan::default());
    }
    assert_eq!(machines.pages("site"), all_pages(&web));
}

#[test]
fn up_refuses_a_bucket() {
    let home = Home::new();
    let ended = home.run(["up", "--http=:0", "--grpc=:0", "--data=s3:/b/x"]);
    let why = "two slashes are missing behind the colon";
    assert!(
        ended.code == Some(1) && ended.stderr.contains(why),
        "{}",
        ended.stderr
    );
    let Some(machines) = Machines::new(1, 0, FaultPlan::default()) else {
        return;
    };
    let bucket = machines.cluster.bucket();
    let mut command = home.command(["up", "--http=:0", "--grpc=:0", "--data=s3://crawler/up"]);
    let access = [
        ("AWS_ACCESS_KEY_ID", crawler_testing::s3::ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", crawler_testing::s3::SECRET_KEY),
        ("AWS_ENDPOINT_URL", &bucket.endpoint()),
        ("AWS_ALLOW_HTTP", "true"),
    ];
    let ended = Process::start(command.envs(access)).wait(PATIENCE);
    let why = "crawler up keeps its records in the data root, which a bucket cannot hold";
    assert!(
        ended.code == Some(1) && ended.stderr.contains(why),
        "{}",
        ended.stderr
    );
}
