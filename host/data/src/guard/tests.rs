//! Tests of the store's answers while its folder is away.

use object_store::{ObjectStoreExt as _, PutMode};
use tempfile::TempDir;

use super::*;

struct Bench {
    place: TempDir,
    store: GuardedStore,
}

impl Bench {
    async fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("data");
        std::fs::create_dir(&folder).unwrap();
        let store = GuardedStore::open(&folder).unwrap();
        store.put(&path("a/there"), "1".into()).await.unwrap();
        Self { place, store }
    }

    fn folder(&self) -> PathBuf {
        self.place.path().join("data")
    }

    fn aside(&self) -> PathBuf {
        self.place.path().join("aside")
    }

    fn take_away(&self) {
        std::fs::rename(self.folder(), self.aside()).unwrap();
    }

    fn put_back(&self) {
        std::fs::rename(self.aside(), self.folder()).unwrap();
    }

    /// Checks that every call says that the folder is gone, and that none makes it.
    async fn check_gone(&self) {
        let store = &self.store;
        let (there, other) = (path("a/there"), path("a/b/other"));
        let create = PutOptions::from(PutMode::Create);
        check(store.put(&other, "2".into()).await);
        check(store.put_opts(&other, "2".into(), create).await);
        check(store.put_multipart(&other).await);
        check(store.get(&there).await);
        check(store.get_range(&there, 0..1).await);
        check(store.head(&there).await);
        check(store.delete(&there).await);
        check(store.copy(&there, &other).await);
        check(store.rename(&there, &other).await);
        check(store.list_with_delimiter(None).await);
        check(store.list(None).try_collect::<Vec<_>>().await);
        let listed = store.list_with_offset(None, &path("0"));
        check(listed.try_collect::<Vec<_>>().await);
    }
}

fn path(text: &str) -> ObjectPath {
    ObjectPath::from(text)
}

#[track_caller]
fn check<T>(result: Result<T>) {
    let Err(error) = result else {
        panic!("it did as if the folder were there")
    };
    let text = telemetry::chain(&error);
    assert!(text.contains("was removed or replaced"), "{text}");
}

#[tokio::test]
async fn a_folder_that_was_taken_away_is_an_error_until_it_is_back() {
    let bench = Bench::new().await;
    bench.take_away();
    bench.check_gone().await;
    assert!(!bench.folder().exists());
    bench.put_back();
    let there = bench.store.get(&path("a/there")).await.unwrap();
    assert_eq!(there.bytes().await.unwrap(), "1");
    bench.store.put(&path("b"), "2".into()).await.unwrap();
}

#[tokio::test]
async fn a_folder_in_the_place_of_another_stays_as_it_is() {
    let bench = Bench::new().await;
    std::fs::remove_dir_all(bench.folder()).unwrap();
    std::fs::create_dir(bench.folder()).unwrap();
    bench.check_gone().await;
    assert_eq!(std::fs::read_dir(bench.folder()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_write_that_went_with_its_folder_is_not_called_written() {
    let bench = Bench::new().await;
    let write = async {
        bench.take_away();
        Ok(())
    };
    check(bench.store.root.write(write).await);
}

#[tokio::test]
async fn an_upload_that_goes_on_while_the_folder_is_away_is_not_complete() {
    let bench = Bench::new().await;
    let mut upload = bench.store.put_multipart(&path("a/b/large")).await.unwrap();
    upload.put_part("12".into()).await.unwrap();
    bench.take_away();
    check(upload.put_part("34".into()).await);
    check(upload.complete().await);
    bench.put_back();
    let large = bench.store.head(&path("a/b/large")).await;
    assert!(matches!(large, Err(Error::NotFound { .. })), "{large:?}");
    let mut upload = bench.store.put_multipart(&path("a/b/large")).await.unwrap();
    upload.put_part("12".into()).await.unwrap();
    upload.complete().await.unwrap();
    let large = bench.store.get(&path("a/b/large")).await.unwrap();
    assert_eq!(large.bytes().await.unwrap(), "12");
}

#[tokio::test]
async fn what_is_not_there_is_no_error_to_remember() {
    let bench = Bench::new().await;
    let missing = bench.store.get(&path("missing")).await;
    assert!(matches!(missing, Err(Error::NotFound { .. })));
    let create = PutOptions::from(PutMode::Create);
    let there = path("a/there");
    let again = bench.store.put_opts(&there, "2".into(), create).await;
    assert!(matches!(again, Err(Error::AlreadyExists { .. })));
    assert_eq!(bench.store.last_error(), None);
}

#[tokio::test]
async fn the_last_error_is_told_until_the_same_goes_well_or_it_is_old() {
    let bench = Bench::new().await;
    // A file is in the way of a folder: one kind of write fails, and everything else succeeds.
    let in_the_way = path("a/there/below");
    let fail = || bench.store.put(&in_the_way, "2".into());
    fail().await.unwrap_err();
    bench.store.get(&path("a/there")).await.unwrap();
    let told = bench.store.last_error().unwrap();
    assert!(told.contains("a/there"), "{told}");
    bench.store.put(&path("b"), "2".into()).await.unwrap();
    assert_eq!(bench.store.last_error(), None);

    bench.take_away();
    check(bench.store.get(&path("b")).await);
    let told = bench.store.last_error().unwrap();
    assert!(told.contains("was removed or replaced"), "{told}");
    bench.put_back();
    bench.store.get(&path("b")).await.unwrap();
    assert_eq!(bench.store.last_error(), None);

    fail().await.unwrap_err();
    let mut errors = bench.store.root.errors();
    errors.write.as_mut().unwrap().at -= ERROR_AGE;
    drop(errors);
    assert_eq!(bench.store.last_error(), None);
}

#[tokio::test]
async fn what_is_written_is_synced() {
    let bench = Bench::new().await;
    let options = format!("{:?}", bench.store);
    assert!(options.contains("fsync: true"), "{options}");
}
