//! A bucket that cannot be used, or no more: the message, and what becomes of crawls.

use super::*;

#[test]
fn credentials_that_expire_in_the_middle_of_a_crawl_cost_time_only() {
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
    std::thread::sleep(Duration::from_secs(1));
    set(false);
    assert_eq!(machines.pages("site"), all_pages(&web));
}

#[test]
fn a_store_that_is_away_for_a_while_costs_time_only() {
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
        machines.cluster.bucket().set_faults(fault);
        std::thread::sleep(Duration::from_secs(3));
        machines.cluster.bucket().set_faults(FaultPlan::default());
    }
    assert_eq!(machines.pages("site"), all_pages(&web));
}
