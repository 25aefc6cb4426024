//! Certificates of masters that can use the CA, over restarts, and of nodes that cannot.

use std::path::Path;

use super::*;
use crate::app::cluster::tests::options;
use crate::app::node_tls::NodeTls;
use crawler_process::clock::SystemClock;
use crawler_process::telemetry::testing::Log;
use crawler_store::keys::Keys;
use crawler_store::twin::StoreTwin;

/// The machine's clock, some time ahead.
struct Ahead(Duration);

impl Clock for Ahead {
    fn unix_nanos(&self) -> u64 {
        let ahead = u64::try_from(self.0.as_nanos()).expect("it is some days");
        SystemClock.unix_nanos() + ahead
    }
}

fn cluster() -> Catalog {
    Catalog::new(Arc::new(StoreTwin::new()), Keys::default())
}

/// Starts a node after this time, and returns its certificate. A master can use the CA.
async fn start(
    options: &NodeOptions,
    catalog: &Catalog,
    role: Role,
    ahead: Duration,
) -> anyhow::Result<Option<Certified>> {
    let clock: Arc<dyn Clock> = Arc::new(Ahead(ahead));
    let key = SealingKey::of_bytes(&[7; SEALING_KEY_MIN]).expect("it is long enough");
    let source = Some(CaSource::Sealed(Box::new(key))).filter(|_| role == Role::Master);
    let authority = Arc::new(Authority::new(source, catalog.clone(), clock.clone()));
    let labels = BTreeMap::new();
    obtain((role, options), &labels, catalog, Some(&authority), &clock).await
}

fn certificate(certified: &Certified) -> String {
    std::fs::read_to_string(certified.files.certificate()).expect("it is there")
}

#[tokio::test]
async fn a_master_with_the_ca_issues_its_own_certificate_and_keeps_it() {
    let (folder, catalog) = (tempfile::tempdir().unwrap(), cluster());
    let options = options(folder.path(), "master-1");
    let start = async |options: &NodeOptions, hours: u64| {
        let ahead = Duration::from_secs(hours * 60 * 60);
        let certified = start(options, &catalog, Role::Master, ahead).await;
        certified.unwrap().expect("it gets one")
    };
    let first = start(&options, 0).await;
    assert!(first.renewal.is_new);
    NodeTls::load(&options.config.tls, Some(&first.files)).unwrap();
    let again = start(&options, 1).await;
    assert!(!again.renewal.is_new);
    assert_eq!(certificate(&first), certificate(&again));
    // One that has expired, or that is for another host, is of no use.
    let late = start(&options, 25).await;
    assert!(late.renewal.is_new);
    let moved = NodeOptions {
        advertise: Some("node-1.example:9091".to_owned()),
        ..options
    };
    let moved = start(&moved, 25).await;
    let facts = moved.files.facts().unwrap().expect("it is there");
    assert_eq!(facts.hosts, ["node-1.example".parse::<Host>().unwrap()]);
}

#[tokio::test]
async fn a_certificate_of_tls_should_name_a_master_with_the_ca() {
    let (folder, catalog) = (tempfile::tempdir().unwrap(), cluster());
    let mut options = options(folder.path(), "master-1");
    let issued = start(&options, &catalog, Role::Master, Duration::ZERO).await;
    let files = issued.unwrap().expect("it gets one").files;
    let (log, _guard) = Log::of_this_thread("warn");
    // The certificate of a CA names no node.
    for (file, n_warnings) in [(files.certificate(), 0), (files.ca(), 1)] {
        options.config.tls.certificate = Some(file);
        let started = start(&options, &catalog, Role::Master, Duration::ZERO).await;
        assert!(started.unwrap().is_none());
        let lines = log.lines();
        let warnings = lines.iter().filter(|line| line.contains("names no master"));
        assert_eq!(warnings.count(), n_warnings);
    }
}

#[tokio::test]
async fn a_certificate_of_another_ca_or_for_another_key_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), "master-1");
    let start = async |catalog: &Catalog| {
        let certified = start(&options, catalog, Role::Master, Duration::ZERO).await;
        certified.unwrap().expect("it gets one")
    };
    let (catalog, anew) = (cluster(), cluster());
    let first = start(&catalog).await;
    let present = first.files.ca_digest().unwrap();
    // The CA was lost, and the masters have made another one.
    let second = start(&anew).await;
    assert!(second.renewal.is_new);
    assert_ne!(second.files.ca_digest().unwrap(), present);
    assert!(!start(&anew).await.renewal.is_new);
    let key = crawler_access::ca::NodeKey::generate().unwrap();
    std::fs::write(second.files.identity().key, key.to_pem()).unwrap();
    let third = start(&anew).await;
    assert!(third.renewal.is_new);
    NodeTls::load(&options.config.tls, Some(&third.files)).unwrap();
}

#[tokio::test]
async fn a_node_whose_certificate_was_revoked_makes_another_key() {
    let (folder, catalog) = (tempfile::tempdir().unwrap(), cluster());
    let options = options(folder.path(), "master-1");
    let start = async || {
        let certified = start(&options, &catalog, Role::Master, Duration::ZERO).await;
        certified.unwrap().expect("it gets one")
    };
    let key = |certified: &Certified| {
        let key = certified.files.present_key().unwrap();
        key.expect("it is there").digest()
    };
    let first = start().await;
    let before = key(&first);
    let id = "master-1".parse().unwrap();
    let now = SystemClock.unix_millis();
    let void_before = revoked_nodes::revoke(&catalog, &id, now).await.unwrap();
    let second = start().await;
    assert!(second.renewal.is_new);
    assert_ne!(key(&second), before);
    let facts = second.files.facts().unwrap().expect("it is there");
    assert!(facts.issued_at() >= void_before);
    NodeTls::load(&options.config.tls, Some(&second.files)).unwrap();
    assert!(!start().await.renewal.is_new);
}

#[tokio::test]
async fn a_master_whose_key_does_not_open_the_ca_does_not_start_with_a_valid_certificate() {
    let (folder, catalog) = (tempfile::tempdir().unwrap(), cluster());
    let options = options(folder.path(), "master-1");
    let started = start(&options, &catalog, Role::Master, Duration::ZERO).await;
    started.unwrap().expect("it gets one");
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let key = SealingKey::of_bytes(&[8; SEALING_KEY_MIN]).unwrap();
    let source = Some(CaSource::Sealed(Box::new(key)));
    let other = Arc::new(Authority::new(source, catalog.clone(), clock.clone()));
    let node = (Role::Master, &options);
    let started = obtain(node, &BTreeMap::new(), &catalog, Some(&other), &clock).await;
    let error = format!("{:#}", started.err().expect("it cannot use the CA"));
    assert!(error.contains("does not open"), "{error}");
}

#[tokio::test]
async fn what_a_master_answers_is_checked_before_it_is_kept() {
    let (folder, catalog) = (tempfile::tempdir().unwrap(), cluster());
    parts::cluster_id(&catalog).await.unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let key = SealingKey::of_bytes(&[7; SEALING_KEY_MIN]).unwrap();
    let source = Some(CaSource::Sealed(Box::new(key)));
    let authority = Authority::new(source, catalog, clock.clone());
    let files = NodeFiles::in_folder(folder.path().join("node"));
    let [id, other] = ["worker-1", "worker-2"].map(|id| id.parse::<NodeId>().unwrap());
    let [host, elsewhere] = ["10.0.0.1", "10.0.0.2"].map(|host| host.parse::<Host>().unwrap());
    let now = clock.unix_millis();
    let issued = issue(&authority, (Role::Worker, &id), &host, &files, now).await;
    let (issued, ca) = issued.unwrap();
    let wanted = ca_digest(&ca).unwrap();
    let got = NodeCertificate {
        chain: issued.chain,
        ca,
    };
    let own = (Role::Worker, &id);
    check_answer(&got, own, &host, wanted, now).unwrap();
    let day = 25 * 60 * 60 * 1_000;
    for (node, host, ca, now, why) in [
        ((Role::Master, &id), &host, wanted, now, "another node"),
        ((Role::Worker, &other), &host, wanted, now, "another node"),
        (own, &elsewhere, wanted, now, "another node"),
        (own, &host, CaDigest::of(b"other"), now, "another CA"),
        (own, &host, wanted, now + day, "not valid now"),
        (own, &host, wanted, now - day, "not valid now"),
    ] {
        let refused = check_answer(&got, node, host, ca, now).unwrap_err();
        assert!(refused.contains(why), "{why}: {refused}");
    }
}

#[tokio::test]
async fn a_node_without_anything_stays_plain_and_waits_for_nobody() {
    let (folder, catalog) = (tempfile::tempdir().unwrap(), cluster());
    let options = options(folder.path(), "worker-1");
    let none = start(&options, &catalog, Role::Worker, Duration::ZERO).await;
    assert!(none.unwrap().is_none());
    assert!(!options.certificate_folder().exists());
}

#[tokio::test]
async fn a_node_whose_certificate_is_of_no_use_says_how_to_get_another() {
    let (folder, catalog) = (tempfile::tempdir().unwrap(), cluster());
    let options = options(folder.path(), "master-1");
    let started = start(&options, &catalog, Role::Master, Duration::ZERO).await;
    started.unwrap().expect("it gets one");
    let day = Duration::from_secs(25 * 60 * 60);
    let fault = async |options: &NodeOptions, role, ahead| {
        let started = start(options, &catalog, role, ahead).await;
        let error = started.err().expect("it has no valid one");
        let failure: &Failure = error.downcast_ref().expect("it has a way out");
        format!("{failure} {failure:?}")
    };
    // A worker cannot use the CA. The state folder is that of the master.
    let other = fault(&options, Role::Worker, Duration::ZERO).await;
    assert!(other.contains("is not that of master-1"), "{other}");
    assert!(other.contains("join-token add"), "{other}");
    let renamed = NodeOptions {
        id: crate::cli::WantedId::Is("master-2".parse().unwrap()),
        ..options
    };
    let other = fault(&renamed, Role::Worker, day).await;
    assert!(other.contains("is not that of master-2"), "{other}");
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_told_with_its_time() {
    let (folder, catalog) = (tempfile::tempdir().unwrap(), cluster());
    let files = NodeFiles::in_folder(folder.path().join("node"));
    let ahead: Arc<dyn Clock> = Arc::new(Ahead(Duration::from_secs(25 * 60 * 60)));
    let now: Arc<dyn Clock> = Arc::new(SystemClock);
    let key = SealingKey::of_bytes(&[7; SEALING_KEY_MIN]).unwrap();
    let source = Some(CaSource::Sealed(Box::new(key)));
    let authority = Authority::new(source, catalog.clone(), now.clone());
    let id: NodeId = "worker-1".parse().unwrap();
    let (labels, host) = (BTreeMap::new(), "127.0.0.1".parse::<Host>().unwrap());
    let applicant = |clock| Applicant {
        role: Role::Worker,
        id: &id,
        labels: &labels,
        host: host.clone(),
        files: &files,
        catalog: &catalog,
        clock,
    };
    let issued = applicant(&now).try_issue_own(&authority).await;
    issued.unwrap();
    assert_eq!(applicant(&now).fault_of_present().unwrap(), None);
    let fault = applicant(&ahead).fault_of_present().unwrap();
    let fault = fault.expect("it is over");
    assert!(fault.contains("certificate.pem expired at 2"), "{fault}");
}

#[test]
fn a_sealing_key_comes_from_a_file_that_is_long_enough() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sealing.key");
    let config = |path: &Path| ClusterConfig {
        sealing_key: Some(path.to_owned()),
        ..ClusterConfig::default()
    };
    std::fs::write(&file, [7; 31]).unwrap();
    let error = format!("{:#}", source(&config(&file)).unwrap_err());
    assert!(error.contains("has 31 bytes"), "{error}");
    std::fs::write(&file, vec![7; SEALING_KEY_MAX + 1]).unwrap();
    source(&config(&file)).unwrap_err();
    std::fs::write(&file, [7; 32]).unwrap();
    assert!(source(&config(&file)).unwrap().is_some());
    let absent = folder.path().join("absent");
    let error = format!("{:#}", source(&config(&absent)).unwrap_err());
    assert!(error.contains("absent"), "{error}");
    assert!(source(&ClusterConfig::default()).unwrap().is_none());
}
