//! Places of a data root: a folder, or a prefix in a bucket.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use object_store::path::Path as ObjectPath;

use super::DataError;

/// Place of a data root, as `--data` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataPlace {
    /// A local folder, or one that several machines have mounted.
    Folder(PathBuf),
    /// A prefix in a bucket.
    Bucket(Bucket),
}

/// A prefix in a bucket of an object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Protocol of the store.
    pub provider: Provider,
    /// Name of the bucket; Azure calls it a container.
    pub name: String,
    /// Prefix of all objects. If it is empty, the data root is the whole bucket.
    pub prefix: ObjectPath,
}

/// Protocol of an object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Amazon S3, and everything that speaks its protocol.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
}

impl Provider {
    const ALL: [Self; 3] = [Self::S3, Self::Google, Self::Azure];

    /// Returns the scheme of this provider's URLs.
    pub fn scheme(self) -> &'static str {
        match self {
            Provider::S3 => "s3",
            Provider::Google => "gs",
            Provider::Azure => "az",
        }
    }
}

impl FromStr for DataPlace {
    type Err = DataError;

    fn from_str(text: &str) -> Result<Self, DataError> {
        let refused = |why: String| DataError::Url {
            url: text.to_owned(),
            why,
        };
        let Some((scheme, rest)) = text.split_once("://") else {
            let named = Provider::ALL.into_iter().map(Provider::scheme);
            let meant = named.filter_map(|scheme| text.strip_prefix(scheme));
            return match meant.into_iter().any(|rest| rest.starts_with(':')) {
                true => Err(refused(
                    "two slashes are missing behind the colon".to_owned(),
                )),
                false => Ok(Self::Folder(PathBuf::from(text))),
            };
        };
        if scheme == "file" {
            return match rest.starts_with('/') {
                true => Ok(Self::Folder(PathBuf::from(rest))),
                false => Err(refused("its path is not absolute".to_owned())),
            };
        }
        let known = Provider::ALL.into_iter().find(|p| p.scheme() == scheme);
        let provider = known.ok_or_else(|| {
            refused("URLs of data roots begin with file://, s3://, gs:// or az://".to_owned())
        })?;
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(refused(format!("{name:?} is no name of a bucket")));
        }
        let prefix = ObjectPath::parse(prefix).map_err(|e| refused(e.to_string()))?;
        Ok(Self::Bucket(Bucket {
            provider,
            name: name.to_owned(),
            prefix,
        }))
    }
}

impl fmt::Display for DataPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataPlace::Folder(folder) => folder.display().fmt(f),
            DataPlace::Bucket(bucket) => bucket.fmt(f),
        }
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.provider.scheme(), self.name)?;
        match self.prefix.as_ref() {
            "" => Ok(()),
            prefix => write!(f, "/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_recognized_by_its_scheme() {
        for (text, shown) in [
            ("crawler-data", "crawler-data"),
            ("file:///srv/data", "/srv/data"),
            ("s3://b", "s3://b"),
            ("s3://b/", "s3://b"),
            ("s3://my.bucket-1/a/b/", "s3://my.bucket-1/a/b"),
            ("gs://b/a", "gs://b/a"),
            ("az://c/a", "az://c/a"),
        ] {
            let place: DataPlace = text.parse().unwrap();
            assert_eq!(place.to_string(), shown);
            let is_bucket = matches!(place, DataPlace::Bucket(_));
            assert_eq!(is_bucket, shown.contains("://"), "{text}");
        }
    }

    #[test]
    fn wrong_places_are_refused_with_the_reason() {
        for (text, why) in [
            ("file://srv/data", "its path is not absolute"),
            (
                "ftp://h/p",
                "URLs of data roots begin with file://, s3://, gs:// or az://",
            ),
            ("s3:/b/p", "two slashes are missing behind the colon"),
            ("s3:///p", "\"\" is no name of a bucket"),
            ("s3://user@b/p", "\"user@b\" is no name of a bucket"),
            ("s3://b/a//c", "Path \"a//c\" contained empty path segment"),
        ] {
            let error = text.parse::<DataPlace>().unwrap_err().to_string();
            let expected = format!("cannot keep data in {text}: {why}; ");
            assert!(error.starts_with(&expected), "{error}");
            assert!(error.contains("s3://BUCKET/PREFIX"), "{error}");
        }
    }
}
