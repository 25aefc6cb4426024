//! Opens buckets of object stores.
//!
//! The caller passes the variables of the environment that the provider's own tools read. A setting of
//! [`RemoteSettings`] takes precedence over a variable. Without credentials in either, they come from the machine: web
//! identity, container and instance metadata for S3, application default credentials for Google, a managed identity for
//! Azure.
//!
//! A request that fails is repeated with growing pauses, by the client of [`object_store`]. It is repeated only if it
//! was not carried out, or if repeating it is harmless.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{ClientConfigKey, ClientOptions};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};

use super::DataError;
use super::place::{Bucket, Provider};

/// Time that the opening of a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings of the connection to a bucket. What is absent is taken from the environment.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteSettings {
    /// URL of the object store, for one that is not the provider's own.
    pub endpoint: Option<String>,
    /// Region of the bucket, for S3.
    pub region: Option<String>,
    /// Access key, for S3.
    pub access_key: Option<AccessKey>,
    /// File with the key of a service account, for Google.
    pub service_account_file: Option<PathBuf>,
    /// Storage account, and its key if it is not in the environment, for Azure.
    pub account: Option<(String, Option<Secret>)>,
    /// Variables of the environment that the provider's own tools read.
    pub environment: BTreeMap<String, String>,
    /// Time that one request may take.
    pub request_timeout: Duration,
    /// Time for which a failing request is repeated.
    pub retry_timeout: Duration,
    /// Largest difference between the clocks of this machine and of the object store.
    pub max_clock_skew: Duration,
}

/// An access key of S3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessKey {
    /// Id of the key, which is not secret.
    pub id: String,
    /// The key itself.
    pub secret: Secret,
    /// Token of a temporary key.
    pub token: Option<Secret>,
}

/// Setting that is wrong or missing, so that a bucket cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RemoteError(String);

/// Secret that no message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Default for RemoteSettings {
    fn default() -> Self {
        Self {
            endpoint: None,
            region: None,
            access_key: None,
            service_account_file: None,
            account: None,
            environment: BTreeMap::new(),
            request_timeout: Duration::from_secs(30),
            retry_timeout: Duration::from_secs(20),
            max_clock_skew: Duration::from_secs(60),
        }
    }
}

impl Secret {
    /// Wraps a secret.
    pub fn new(secret: String) -> Self {
        Self(secret)
    }
}

impl fmt::Debug for RemoteSettings {
    /// Leaves out the environment, which may have secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteSettings")
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .field("request_timeout", &self.request_timeout)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl RemoteSettings {
    /// Opens a bucket as a data root. Nothing is sent yet.
    pub(super) fn open(&self, bucket: &Bucket) -> Result<Arc<dyn ObjectStore>, DataError> {
        self.objects(bucket)
            .map_err(|RemoteError(why)| DataError::Settings {
                root: bucket.to_string(),
                why,
            })
    }

    /// Opens a bucket for objects below its prefix, such as those of a sink. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// A setting is wrong or missing.
    pub fn objects(&self, bucket: &Bucket) -> Result<Arc<dyn ObjectStore>, RemoteError> {
        // An error means that another provider is installed already, and any will do.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let wrong = RemoteError;
        let store: Arc<dyn ObjectStore> = match bucket.provider {
            Provider::S3 => Arc::new(self.s3(bucket).map_err(wrong)?),
            Provider::Google => Arc::new(self.google(bucket).map_err(wrong)?),
            Provider::Azure => Arc::new(self.azure(bucket).map_err(wrong)?),
        };
        Ok(Arc::new(PrefixStore::new(store, bucket.prefix.clone())))
    }

    fn s3(&self, bucket: &Bucket) -> Result<impl ObjectStore, String> {
        let mut builder = AmazonS3Builder::new();
        for (key, value) in self.variables("aws_") {
            let Ok(key) = key.parse::<AmazonS3ConfigKey>() else {
                continue;
            };
            let is_credential = matches!(
                key,
                AmazonS3ConfigKey::AccessKeyId
                    | AmazonS3ConfigKey::SecretAccessKey
                    | AmazonS3ConfigKey::Token
            );
            // A token belongs to its key.
            if !(is_credential && self.access_key.is_some()) {
                builder = builder.with_config(key, value);
            }
        }
        builder = builder
            .with_bucket_name(&bucket.name)
            .with_retry(self.retries())
            .with_client_options(self.client("aws_allow_http"));
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
        }
        if let Some(region) = &self.region {
            builder = builder.with_region(region);
        }
        if let Some(key) = &self.access_key {
            builder = builder
                .with_access_key_id(&key.id)
                .with_secret_access_key(&key.secret.0);
            if let Some(token) = &key.token {
                builder = builder.with_token(&token.0);
            }
        }
        builder.build().map_err(|e| e.to_string())
    }

    fn google(&self, bucket: &Bucket) -> Result<impl ObjectStore, String> {
        let mut builder = GoogleCloudStorageBuilder::new();
        for (key, value) in self.variables("google_") {
            let Ok(key) = key.parse::<GoogleConfigKey>() else {
                continue;
            };
            let is_credential = matches!(
                key,
                GoogleConfigKey::ServiceAccount
                    | GoogleConfigKey::ServiceAccountKey
                    | GoogleConfigKey::ApplicationCredentials
            );
            if !(is_credential && self.service_account_file.is_some()) {
                builder = builder.with_config(key, value);
            }
        }
        builder = builder
            .with_bucket_name(&bucket.name)
            .with_retry(self.retries())
            .with_client_options(self.client("google_allow_http"));
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_base_url(endpoint);
        }
        if let Some(file) = &self.service_account_file {
            let path = file.to_str().ok_or("service-account-file is not UTF-8")?;
            builder = builder.with_service_account_path(path);
        }
        builder.build().map_err(|e| e.to_string())
    }

    fn azure(&self, bucket: &Bucket) -> Result<impl ObjectStore, String> {
        let mut builder = MicrosoftAzureBuilder::new();
        let key = self.account.as_ref().and_then(|(_, key)| key.as_ref());
        // With a key, all variables of the environment are ignored: they may hold other credentials.
        let variables = self.variables("azure_").filter(|_| key.is_none());
        for (key, value) in variables {
            if let Ok(key) = key.parse::<AzureConfigKey>() {
                builder = builder.with_config(key, value);
            }
        }
        builder = builder
            .with_container_name(&bucket.name)
            .with_retry(self.retries())
            .with_client_options(self.client("azure_allow_http"));
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint.clone());
        }
        if let Some((account, _)) = &self.account {
            builder = builder.with_account(account);
        }
        if let Some(key) = key {
            builder = builder.with_access_key(&key.0);
        }
        builder.build().map_err(|e| e.to_string())
    }

    /// Returns the variables whose names in lower case begin with `start`, with their values.
    fn variables(&self, start: &str) -> impl Iterator<Item = (String, &String)> {
        let names = self.environment.iter();
        let names = names.map(|(name, value)| (name.to_ascii_lowercase(), value));
        names.filter(move |(name, _)| name.starts_with(start))
    }

    fn retries(&self) -> RetryConfig {
        RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(50),
                max_backoff: Duration::from_secs(5),
                base: 2.0,
            },
            // `retry_timeout` ends the retries.
            max_retries: usize::MAX,
            retry_timeout: self.retry_timeout,
        }
    }

    /// Returns the options of the HTTP client. It sends requests without encryption only if the endpoint of the
    /// settings is an `http://` URL, or the variable `allow_http` is `true`.
    fn client(&self, allow_http: &str) -> ClientOptions {
        let is_http = |url: &String| url.starts_with("http://");
        let allowed = self.variables(allow_http).any(|(_, value)| value == "true");
        let allowed = allowed || self.endpoint.as_ref().is_some_and(is_http);
        ClientOptions::new()
            .with_config(ClientConfigKey::AllowHttp, allowed.to_string())
            .with_timeout(self.request_timeout)
            .with_connect_timeout(CONNECT_TIMEOUT.min(self.request_timeout))
    }
}

#[cfg(test)]
mod tests;
