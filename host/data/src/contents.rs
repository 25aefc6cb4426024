//! Objects that make up a data root, for a backup of all of them.

use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path as ObjectPath;
use object_store::{
    Error as ObjectError, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode,
};

use super::probe::PROBES;
use super::removal::is_temporary;
use super::{DataError, DataRoot, STORE};

/// Object that marks a data root whose restore has not finished. It has the name of what is restored.
const RESTORE: &str = "restore.json";
/// Folder that some file systems have at their top. Only the administrator may read it.
const LOST_AND_FOUND: &str = "lost+found";

/// Returns true if an object is of the cluster: not one of the records that `crawler up` keeps in the same folder, no probe,
/// not the [mark of a restore](DataRoot::mark_restore), and nothing that others leave at the top of a folder.
pub fn is_content(path: &ObjectPath) -> bool {
    let mut parts = path.parts();
    let first = parts.next();
    let first = first.as_ref().map_or("", |part| part.as_ref());
    let is_at_top = parts.next().is_none();
    let is_other = [STORE, PROBES, RESTORE, LOST_AND_FOUND].contains(&first);
    let is_left_over = is_at_top && is_temporary(first);
    !is_other && !is_left_over
}

impl DataRoot {
    /// Lists the objects of the cluster. Left out are the records that `crawler up` keeps in the same folder, probes,
    /// the [mark of a restore](Self::mark_restore), the `lost+found` of a file system, and temporary files.
    pub fn contents(&self) -> BoxStream<'static, Result<ObjectMeta, DataError>> {
        let root = self.clone();
        // Folders that are left out are not entered: this process may not be allowed to.
        let all = async move {
            let top = root.objects.list_with_delimiter(None).await;
            let top = top.map_err(|e| root.failed("list", &ObjectPath::from("."), e))?;
            let folders = top.common_prefixes.into_iter().filter(is_content);
            let below = folders.map(move |folder| {
                let root = root.clone();
                let listed = root.objects.list(Some(&folder));
                listed.map_err(move |source| root.failed("list", &folder, source))
            });
            let objects = top.objects.into_iter();
            let objects = objects.filter(|object| is_content(&object.location));
            let objects = stream::iter(objects.map(Ok));
            Ok::<_, DataError>(objects.chain(stream::iter(below).flatten()))
        };
        stream::once(all).try_flatten().boxed()
    }

    /// Marks the root as one into which something with this name is restored. Returns false if it has a mark already.
    pub async fn mark_restore(&self, name: &str) -> Result<bool, DataError> {
        let path = ObjectPath::from(RESTORE);
        let options = PutMode::Create.into();
        let put = self
            .objects
            .put_opts(&path, name.to_owned().into(), options);
        match put.await {
            Ok(_) => Ok(true),
            Err(ObjectError::AlreadyExists { .. }) => Ok(false),
            Err(source) => Err(self.failed("write", &path, source)),
        }
    }

    /// Returns the name of what is being restored into this root; `None` if nothing is.
    pub async fn marked_restore(&self) -> Result<Option<String>, DataError> {
        let path = ObjectPath::from(RESTORE);
        match self.read(&path).await {
            Ok(name) => Ok(Some(String::from_utf8_lossy(&name).into_owned())),
            Err(ObjectError::NotFound { .. }) => Ok(None),
            Err(source) => Err(self.failed("read", &path, source)),
        }
    }

    /// Removes the mark of a restore; succeeds if there is none.
    pub async fn unmark_restore(&self) -> Result<(), DataError> {
        let path = ObjectPath::from(RESTORE);
        match self.objects.delete(&path).await {
            Ok(()) | Err(ObjectError::NotFound { .. }) => Ok(()),
            Err(source) => Err(self.failed("delete", &path, source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn contents_are_the_objects_of_the_cluster_alone() {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path().to_str().unwrap()).unwrap();
        for path in [
            "store/log",
            "probe/1",
            "lost+found/1",
            ".tmpA1b2C3",
            "cluster.json",
            "frontiers/7/0/a",
        ] {
            let path = ObjectPath::from(path);
            root.objects.put(&path, "x".into()).await.unwrap();
        }
        root.mark_restore("a").await.unwrap();
        // Whoever enters the folder fails: this is a circle.
        let circle = folder.path().join("lost+found/circle");
        std::os::unix::fs::symlink("..", circle).unwrap();
        let contents: Vec<ObjectMeta> = root.contents().try_collect().await.unwrap();
        let mut paths: Vec<String> = contents.iter().map(|o| o.location.to_string()).collect();
        paths.sort();
        assert_eq!(paths, ["cluster.json", "frontiers/7/0/a"]);
    }

    #[tokio::test]
    async fn a_restore_is_marked_until_it_has_finished() {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path().to_str().unwrap()).unwrap();
        assert_eq!(root.marked_restore().await.unwrap(), None);
        assert!(root.mark_restore("a").await.unwrap());
        // Two restores at once do not mix.
        assert!(!root.mark_restore("b").await.unwrap());
        assert_eq!(root.marked_restore().await.unwrap().as_deref(), Some("a"));
        for _ in 0..2 {
            root.unmark_restore().await.unwrap();
        }
        assert_eq!(root.marked_restore().await.unwrap(), None);
    }
}
