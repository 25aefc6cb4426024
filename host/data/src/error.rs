//! Errors of the data root.

use object_store::Error as ObjectError;
use object_store::path::Path as ObjectPath;

use crawler_model::id::Digest;
use crawler_process::telemetry;

/// Error of the data root.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The folder cannot be used at all.
    #[error("cannot keep data in {folder}; name a folder that this user can write to with --data")]
    Folder {
        /// Folder as given.
        folder: String,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The URL names no place for data.
    #[error(
        "cannot keep data in {url}: {why}; name a folder, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX with --data"
    )]
    Url {
        /// URL as given.
        url: String,
        /// Reason why it is refused.
        why: String,
    },
    /// A setting that is needed to reach the object store is wrong or missing.
    #[error("cannot reach the data root {root}: {why}; see [data] in the config file")]
    Settings {
        /// Path or URL of the data root.
        root: String,
        /// Setting that is wrong or missing.
        why: String,
    },
    /// There is no such bucket.
    #[error(
        "there is no bucket for the data root {root}; create it, or name another one with --data"
    )]
    NoBucket {
        /// Path or URL of the data root.
        root: String,
    },
    /// The object store refuses the credentials, or they do not permit the operation.
    #[error(
        "the object store does not let this process {doing} {path} in the data root {root}; check its credentials and what they are allowed to do"
    )]
    Refused {
        /// Operation, such as "write".
        doing: &'static str,
        /// Path below the root.
        path: String,
        /// Path or URL of the data root.
        root: String,
        /// Answer of the object store.
        #[source]
        source: Box<ObjectError>,
    },
    /// The file system or object store does not keep the guarantees that a data root needs.
    #[error("the data root {root} cannot keep data: {why}; name another one with --data")]
    Unsafe {
        /// Path or URL of the data root.
        root: String,
        /// Behaviour that the probe found.
        why: String,
    },
    /// The clocks of this machine and of the object store differ too much: ages of files would be wrong.
    #[error(
        "the clock of this machine is {seconds} s {direction} that of the data root {root}, and max-clock-skew of [data] allows {allowed} s; set it right"
    )]
    Clock {
        /// Path or URL of the data root.
        root: String,
        /// Difference in seconds.
        seconds: u64,
        /// "ahead of" or "behind".
        direction: &'static str,
        /// Largest difference allowed, in seconds.
        allowed: u64,
    },
    /// An object cannot be read or written.
    #[error("cannot {doing} {path} in the data root {root}")]
    Object {
        /// Operation, such as "write".
        doing: &'static str,
        /// Path below the root.
        path: String,
        /// Path or URL of the data root.
        root: String,
        /// Error of the object store.
        #[source]
        source: Box<ObjectError>,
    },
    /// The bytes are not those that were stored.
    #[error(
        "{path} in the data root {root} is damaged: its digest is {found}; push the plugin again"
    )]
    Damaged {
        /// Path below the root.
        path: String,
        /// Path or URL of the data root.
        root: String,
        /// Digest of the bytes that are there.
        found: Digest,
    },
    /// There is no such kept file.
    #[error("no kept file {path} in the data root {root}")]
    NoFile {
        /// Path below the root.
        path: String,
        /// Path or URL of the data root.
        root: String,
    },
    /// The bytes of a kept file are not those that were stored.
    #[error(
        "{path} in the data root {root} is damaged: its digest is {found}; delete it, and crawl its page again"
    )]
    DamagedFile {
        /// Path below the root.
        path: String,
        /// Path or URL of the data root.
        root: String,
        /// Digest of the bytes that are there.
        found: Digest,
    },
    /// A folder for kept files cannot be used.
    #[error(
        "cannot keep files in {folder}; name a folder that this user can write to with --files"
    )]
    FilesFolder {
        /// Folder as given.
        folder: String,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The bytes to be stored do not have the digest that was announced.
    #[error("the bytes of plugin {announced} have digest {found}; send them again")]
    WrongDigest {
        /// Digest that was announced.
        announced: Digest,
        /// Digest of the bytes.
        found: Digest,
    },
    /// The plugin is not in the data root.
    #[error("no plugin {digest} in the data root {root}; push it again")]
    Missing {
        /// Digest of the plugin's bytes.
        digest: Digest,
        /// Path or URL of the data root.
        root: String,
    },
    /// The data root belongs to another cluster.
    #[error(
        "the data root {root} belongs to cluster {found}, and this is cluster {expected}; name another one with --data"
    )]
    OtherCluster {
        /// Path or URL of the data root.
        root: String,
        /// Cluster that the data root belongs to.
        found: String,
        /// Cluster of this process.
        expected: String,
    },
    /// The file `cluster.json` does not decode.
    #[error(
        "cluster.json in the data root {root} does not decode: {why}; restore it, or name another data root with --data"
    )]
    ClusterFile {
        /// Path or URL of the data root.
        root: String,
        /// Error of the decoder.
        why: String,
    },
}

impl DataError {
    /// Returns true if the same call may succeed later, although this process changes nothing: the store answers again,
    /// or somebody has renewed the credentials or created the bucket.
    pub fn is_transient(&self) -> bool {
        match self {
            DataError::Object { source, .. } => {
                matches!(
                    **source,
                    ObjectError::Generic { .. } | ObjectError::JoinError { .. }
                )
            }
            DataError::NoBucket { .. } | DataError::Refused { .. } => true,
            DataError::Folder { .. }
            | DataError::Url { .. }
            | DataError::Settings { .. }
            | DataError::Clock { .. }
            | DataError::Unsafe { .. }
            | DataError::Damaged { .. }
            | DataError::NoFile { .. }
            | DataError::DamagedFile { .. }
            | DataError::FilesFolder { .. }
            | DataError::WrongDigest { .. }
            | DataError::Missing { .. }
            | DataError::OtherCluster { .. }
            | DataError::ClusterFile { .. } => false,
        }
    }
}

/// Returns the error of an operation on an object.
pub(crate) fn failed(
    doing: &'static str,
    path: &ObjectPath,
    root: &str,
    source: ObjectError,
) -> DataError {
    let (path, root, source) = (path.to_string(), root.to_owned(), Box::new(source));
    match *source {
        _ if is_refused(&source) => DataError::Refused {
            doing,
            path,
            root,
            source,
        },
        _ if is_missing_bucket(&source) => DataError::NoBucket { root },
        _ => DataError::Object {
            doing,
            path,
            root,
            source,
        },
    }
}

/// Returns true if the object store does not know the caller, or does not permit the request. The error of a refused
/// list is `Generic`: only its text tells the status.
fn is_refused(error: &ObjectError) -> bool {
    match error {
        ObjectError::PermissionDenied { .. } | ObjectError::Unauthenticated { .. } => true,
        ObjectError::Generic { .. } => {
            let answer = telemetry::chain(error);
            ["403 Forbidden", "401 Unauthorized", "<Code>ExpiredToken<"]
                .iter()
                .any(|status| answer.contains(status))
        }
        _ => false,
    }
}

/// Returns true if the object store says that the bucket does not exist. An object that does not exist has the same
/// status; only the code in the answer tells the two apart.
pub(crate) fn is_missing_bucket(error: &ObjectError) -> bool {
    const CODES: [&str; 3] = [
        "<Code>NoSuchBucket<",
        "<Code>ContainerNotFound<",
        "The specified bucket does not exist",
    ];
    let is_of_answer = matches!(
        error,
        ObjectError::NotFound { .. } | ObjectError::Generic { .. }
    );
    if !is_of_answer {
        return false;
    }
    let answer = telemetry::chain(error);
    CODES.iter().any(|code| answer.contains(code))
}
