//! The CA of a cluster: made once, opened with its key only, and what it issues.

use std::sync::Arc;

use super::testing::{NOW, Still, cluster, master};
use super::*;
use crawler_model::node::Role;
use crawler_store::Txn;
use crawler_store::catalog::{Catalog, encode};

fn node(id: &str) -> NodeName {
    NodeName {
        cluster: "0f0f".to_owned(),
        role: Role::Worker,
        id: id.parse().unwrap(),
    }
}

fn hosts() -> Vec<Host> {
    vec!["10.0.0.1".parse().unwrap()]
}

fn request() -> NodeRequest {
    let key = NodeKey::generate().unwrap();
    let pem = key.request(&"worker-1".parse().unwrap(), &hosts()[0]);
    NodeRequest::parse(&pem.unwrap()).unwrap()
}

fn from_files(catalog: &Catalog, certificate: String, key: String) -> Authority {
    let source = CaSource::Files { certificate, key };
    Authority::new(Some(source), catalog.clone(), Arc::new(Still))
}

#[tokio::test]
async fn masters_that_start_together_have_one_ca() {
    let catalog = cluster().await;
    let (one, two) = (master(&catalog, 1), master(&catalog, 1));
    let (first, second) = tokio::join!(one.ca(), two.ca());
    assert_eq!(first.unwrap().digest(), second.unwrap().digest());
    let later = master(&catalog, 1);
    assert_eq!(
        later.ca().await.unwrap().digest(),
        one.ca().await.unwrap().digest()
    );
}

#[tokio::test]
async fn a_wrong_sealing_key_is_an_error_and_no_new_ca() {
    let catalog = cluster().await;
    let right = master(&catalog, 1);
    let digest = right.ca().await.unwrap().digest();
    let error = master(&catalog, 2).ca().await.unwrap_err();
    assert!(matches!(error, CaError::Sealed), "{error}");
    assert!(error.hint().contains("sealing-key"));
    let again = master(&catalog, 1);
    assert_eq!(again.ca().await.unwrap().digest(), digest);
}

#[tokio::test]
async fn a_changed_record_does_not_open() {
    let catalog = cluster().await;
    master(&catalog, 1).ca().await.unwrap();
    let key = catalog.keys().cluster_ca();
    let record = catalog.read::<CaRecord>(&key).await.unwrap().unwrap().value;
    let sealing = SealingKey::of_bytes(&[1; SEALING_KEY_MIN]).unwrap();
    let other = CaRecord::make("0f0f", &sealing, NOW).unwrap();
    let mut flipped = record.sealed_key.clone();
    flipped[20] ^= 1;
    for changed in [
        // The certificate of another CA, which would get the key of this one.
        CaRecord {
            certificate: other.certificate,
            ..record.clone()
        },
        CaRecord {
            sealed_key: flipped,
            ..record
        },
    ] {
        let put = Txn::new().put(key.clone(), encode(&changed));
        catalog.store().commit(put).await.unwrap();
        let error = master(&catalog, 1).ca().await.unwrap_err();
        assert!(matches!(error, CaError::Sealed), "{error}");
    }
}

#[tokio::test]
async fn the_record_has_no_private_key_to_read() {
    let catalog = cluster().await;
    master(&catalog, 1).ca().await.unwrap();
    let key = catalog.keys().cluster_ca();
    let entry = catalog.store().get(&key).await.unwrap().unwrap();
    let text = String::from_utf8(entry.value.to_vec()).unwrap();
    assert!(text.contains("BEGIN CERTIFICATE"), "{text}");
    assert!(!text.contains("PRIVATE KEY"), "{text}");
}

#[tokio::test]
async fn a_certificate_is_for_one_node_and_a_day() {
    let catalog = cluster().await;
    let authority = master(&catalog, 1);
    let ca = authority.ca().await.unwrap();
    let issued = ca.issue(&node("worker-1"), &hosts(), &request(), NOW);
    let issued = issued.unwrap();
    let der = facts::der_of(&issued.chain).unwrap();
    let facts = ca.check_issued(&der, NOW).unwrap();
    assert_eq!(facts.not_before, NOW - 5 * 60 * 1_000);
    assert_eq!(facts.not_after, NOW + 24 * 60 * 60 * 1_000);
    assert_eq!(issued.not_after, facts.not_after);
    assert_eq!(facts.hosts, hosts());
    assert_eq!(facts.uris, ["crawler://0f0f/worker/worker-1"]);
    assert!(facts.is_of(Role::Worker, &"worker-1".parse().unwrap()));
    assert!(!facts.is_of(Role::Master, &"worker-1".parse().unwrap()));
    assert!(!facts.is_of(Role::Worker, &"worker-2".parse().unwrap()));
    let parsed = facts::parsed(&der).unwrap();
    assert!(!parsed.is_ca());
    let usage = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && usage.client_auth && !usage.any);
    assert_eq!(parsed.raw_serial().len(), SERIAL_LENGTH);
    let other = ca.issue(&node("worker-1"), &hosts(), &request(), NOW);
    assert_ne!(other.unwrap().serial, issued.serial);
    // The chain ends with the CA, which a node that joins looks for.
    assert!(issued.chain.ends_with(ca.pem()));
}

#[tokio::test]
async fn a_certificate_of_another_ca_or_time_is_refused() {
    let (catalog, elsewhere) = (cluster().await, cluster().await);
    let (authority, other) = (master(&catalog, 1), master(&elsewhere, 1));
    let (ca, other) = (authority.ca().await.unwrap(), other.ca().await.unwrap());
    let issued = other.issue(&node("worker-1"), &hosts(), &request(), NOW);
    let foreign = facts::der_of(&issued.unwrap().chain).unwrap();
    let error = ca.check_issued(&foreign, NOW).unwrap_err();
    assert!(matches!(error, CaError::Foreign), "{error}");
    let issued = ca.issue(&node("worker-1"), &hosts(), &request(), NOW);
    let own = facts::der_of(&issued.unwrap().chain).unwrap();
    let later = NOW + 25 * 60 * 60 * 1_000;
    let error = ca.check_issued(&own, later).unwrap_err();
    assert!(matches!(error, CaError::Expired), "{error}");
}

#[tokio::test]
async fn a_ca_of_files_needs_its_own_key_and_leaves_no_record() {
    let catalog = cluster().await;
    let sealing = SealingKey::of_bytes(&[1; SEALING_KEY_MIN]).unwrap();
    let [one, other] = [(); 2].map(|()| CaRecord::make("0f0f", &sealing, NOW).unwrap());
    let key = one.open(&sealing).unwrap();
    let authority = from_files(&catalog, one.certificate.clone(), key.clone());
    let ca = authority.ca().await.unwrap();
    ca.issue(&node("worker-1"), &hosts(), &request(), NOW)
        .unwrap();
    let place = catalog.keys().cluster_ca();
    assert!(catalog.store().get(&place).await.unwrap().is_none());
    let mixed = from_files(&catalog, other.certificate, key);
    let error = mixed.ca().await.unwrap_err();
    assert!(matches!(error, CaError::OtherKey), "{error}");
    // A certificate of a node issues nothing, though its key fits.
    let node_key = NodeKey::generate().unwrap();
    let pem = node_key.request(&"worker-1".parse().unwrap(), &hosts()[0]);
    let request = NodeRequest::parse(&pem.unwrap()).unwrap();
    let issued = ca.issue(&node("worker-1"), &hosts(), &request, NOW);
    let leaf = from_files(&catalog, issued.unwrap().chain, node_key.to_pem());
    let error = leaf.ca().await.unwrap_err();
    assert!(matches!(error, CaError::NoCa), "{error}");
}

#[tokio::test]
async fn a_master_without_a_key_says_what_to_configure() {
    let catalog = cluster().await;
    let authority = Authority::new(None, catalog, Arc::new(Still));
    assert!(!authority.issues());
    let error = authority.ca().await.unwrap_err();
    assert!(matches!(error, CaError::NotConfigured), "{error}");
    assert!(error.hint().contains("[cluster]"), "{}", error.hint());
}
