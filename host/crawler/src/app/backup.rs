//! `crawler backup …` and `crawler restore`, on the store and the data root that the options name.

use std::path::Path;
use std::sync::Arc;

use super::{data_root, parts};
use crate::cli::backup::{self, BackupOptions};
use crate::cli::place::ClusterPlace;
use crate::cli::{Failure, progress};
use crawler_backup::Archive;
use crawler_data::{DataPlace, DataRoot, STORE};
use crawler_process::clock::{Clock as _, SystemClock};
use crawler_store::Store;
use crawler_store::catalog::Catalog;
use crawler_store::embedded::{EmbeddedStore, Settings};
use crawler_store::etcd::EtcdStore;
use crawler_store::keys::Keys;

/// Carries a command out, and prints what the backup has.
pub(super) async fn run(options: BackupOptions) -> anyhow::Result<()> {
    let spinner = progress::spinner();
    let show = |n_objects, n_bytes| {
        spinner.set_message(backup::progress(n_objects, n_bytes));
        spinner.tick();
    };
    let (done, manifest) = match options {
        BackupOptions::Create(folder, place) => {
            check_there(&place)?;
            let data = data_root::open(&place.data, &place.config.data)?;
            let catalog = open_store(&place, &data).await?;
            let made_by = (env!("CARGO_PKG_VERSION"), SystemClock.unix_millis());
            let made = crawler_backup::create(&catalog, &data, &folder, made_by, &show);
            ("backed up", made.await?)
        }
        BackupOptions::Verify(folder) => (
            "whole and undamaged",
            Archive::at(&folder).verify(&show).await?,
        ),
        BackupOptions::Restore(folder, place) => {
            // A mistake in its name is told before a folder for the data root is made.
            let archive = Archive::at(&folder);
            archive.manifest().await?;
            let data = data_root::open(&place.data, &place.config.data)?;
            data_root::probe(&data).await?;
            let catalog = open_store(&place, &data).await?;
            let restored = crawler_backup::restore(&archive, &catalog, &data, &show);
            ("restored", restored.await?)
        }
    };
    spinner.finish_and_clear();
    backup::print_done(done, &manifest)
}

/// Refuses to take a backup of a folder that is not there: opening it would make it.
fn check_there(place: &ClusterPlace) -> anyhow::Result<()> {
    let DataPlace::Folder(folder) = place.data.parse::<DataPlace>()? else {
        return Ok(());
    };
    let (missing, what) = match &place.etcd {
        Some(_) => (!folder.is_dir(), "data root"),
        None => (!folder.join(STORE).is_dir(), "store of crawler up"),
    };
    if missing {
        let what = format!("there is no {what} in {}", folder.display());
        let hint = "name the data root with --data, and etcd with --etcd if there are masters";
        return Err(Failure::new(what, hint).into());
    }
    Ok(())
}

/// Opens the store of this place. Nobody else has it open if it is in the data root.
async fn open_store(place: &ClusterPlace, data: &DataRoot) -> anyhow::Result<Catalog> {
    let store: Arc<dyn Store> = match &place.etcd {
        Some(etcd) => Arc::new(EtcdStore::connect(parts::etcd_settings(etcd)?).await?),
        None => {
            let folder: &Path = data_root::folder(data)?;
            Arc::new(EmbeddedStore::open(
                &folder.join(STORE),
                Settings::default(),
            )?)
        }
    };
    Ok(Catalog::new(store, Keys::default()))
}
