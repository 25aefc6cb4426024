//! Opens buckets of object stores.
//!
//! Settings come from three places; the first that has one wins: the table `[data]` of the config file, the environment
//! with the variables that the provider's own tools read, and for S3 a profile in the files of those tools
//! ([`profile`]). Without credentials in any of them, the machine is asked: web identity, container and instance
//! metadata for S3, application default credentials for Google, a managed identity for Azure.
//!
//! A request that fails is repeated with growing pauses, by the client of [`object_store`]. It is repeated only if it
//! was not carried out, or if repeating it is harmless.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{ClientConfigKey, ClientOptions};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};

use super::DataError;
use super::place::{Bucket, Provider};
use super::profile::{self, Profile};

/// Settings of the connection to a bucket. What is absent is taken from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteSettings {
    /// URL of the object store, for one that is not the provider's own.
    pub endpoint: Option<String>,
    /// Region of the bucket, for S3.
    pub region: Option<String>,
    /// Name of the profile in the files of the provider's tools, for S3.
    pub profile: Option<String>,
    /// Access key, for S3.
    pub access_key: Option<AccessKey>,
    /// File with the key of a service account, for Google.
    pub service_account_file: Option<PathBuf>,
    /// Storage account, and its key if it is not in the environment, for Azure.
    pub account: Option<(String, Option<Secret>)>,
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
    /// Id of the key; it is no secret.
    pub id: String,
    /// The key itself.
    pub secret: Secret,
}

/// Secret that no message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Default for RemoteSettings {
    fn default() -> Self {
        Self {
            endpoint: None,
            region: None,
            profile: None,
            access_key: None,
            service_account_file: None,
            account: None,
            request_timeout: Duration::from_secs(10),
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

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl RemoteSettings {
    /// Returns the files and folders from which credentials are read, now or when they are renewed.
    pub fn files(&self) -> Vec<PathBuf> {
        /// Variables with the path of a file.
        const FILES: [&str; 2] = ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"];
        /// Variables with the path of a token that is renewed: another file takes its place.
        const TOKENS: [&str; 3] = [
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
            "AZURE_FEDERATED_TOKEN_FILE",
        ];
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let tokens = TOKENS.into_iter().filter_map(variable);
        let tokens = tokens.filter_map(|token| token.parent().map(Path::to_owned));
        let files = FILES.into_iter().filter_map(variable);
        let google = profile::home().map(|home| home.join(".config/gcloud"));
        let files = files.chain(tokens).chain(profile::files()).chain(google);
        let files = files.chain(self.service_account_file.clone());
        files.filter(|path| path.exists()).collect()
    }

    /// Opens a bucket. Nothing is sent yet.
    pub(super) fn open(&self, bucket: &Bucket) -> Result<Arc<dyn ObjectStore>, DataError> {
        // An error says that another one is installed, which does as well.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let wrong = |why: String| DataError::Settings {
            root: bucket.to_string(),
            why,
        };
        let store: Arc<dyn ObjectStore> = match bucket.provider {
            Provider::S3 => Arc::new(self.s3(bucket).map_err(wrong)?),
            Provider::Google => Arc::new(self.google(bucket).map_err(wrong)?),
            Provider::Azure => Arc::new(self.azure(bucket).map_err(wrong)?),
        };
        Ok(Arc::new(PrefixStore::new(store, bucket.prefix.clone())))
    }

    fn s3(&self, bucket: &Bucket) -> Result<impl ObjectStore, String> {
        let from_environment = std::env::var_os("AWS_ACCESS_KEY_ID").is_some();
        let profile = match (&self.access_key, from_environment, &self.profile) {
            (None, false, _) | (None, true, Some(_)) => Profile::read(self.profile.as_deref())?,
            (Some(_), _, _) | (None, true, None) => Profile::default(),
        };
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&bucket.name)
            .with_retry(self.retries())
            .with_client_options(self.client("AWS_ALLOW_HTTP"));
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
        }
        let region_is_set = ["AWS_REGION", "AWS_DEFAULT_REGION"]
            .into_iter()
            .any(|name| std::env::var_os(name).is_some());
        let of_profile = profile.region.filter(|_| !region_is_set);
        if let Some(region) = self.region.clone().or(of_profile) {
            builder = builder.with_region(region);
        }
        if let Some(key) = self.access_key.as_ref().or(profile.access_key.as_ref()) {
            builder = builder
                .with_access_key_id(&key.id)
                .with_secret_access_key(&key.secret.0);
        }
        if let Some(token) = profile.session_token {
            builder = builder.with_token(token.0);
        }
        builder.build().map_err(|e| e.to_string())
    }

    fn google(&self, bucket: &Bucket) -> Result<impl ObjectStore, String> {
        let mut builder = GoogleCloudStorageBuilder::from_env()
            .with_bucket_name(&bucket.name)
            .with_retry(self.retries())
            .with_client_options(self.client("GOOGLE_ALLOW_HTTP"));
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
        let mut builder = MicrosoftAzureBuilder::from_env()
            .with_container_name(&bucket.name)
            .with_retry(self.retries())
            .with_client_options(self.client("AZURE_ALLOW_HTTP"));
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint.clone());
        }
        if let Some((account, key)) = &self.account {
            builder = builder.with_account(account);
            if let Some(key) = key {
                builder = builder.with_access_key(&key.0);
            }
        }
        builder.build().map_err(|e| e.to_string())
    }

    fn retries(&self) -> RetryConfig {
        RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(50),
                max_backoff: Duration::from_secs(5),
                base: 2.0,
            },
            // The time ends them.
            max_retries: usize::MAX,
            retry_timeout: self.retry_timeout,
        }
    }

    /// Returns the options of the HTTP client. Without encryption it goes only to an endpoint that is named so, or if
    /// the variable allows it.
    fn client(&self, allow_http: &str) -> ClientOptions {
        let is_http = |url: &String| url.starts_with("http://");
        let allowed = std::env::var(allow_http).is_ok_and(|value| value == "true");
        let allowed = allowed || self.endpoint.as_ref().is_some_and(is_http);
        ClientOptions::new()
            .with_config(ClientConfigKey::AllowHttp, allowed.to_string())
            .with_timeout(self.request_timeout)
            .with_connect_timeout(self.request_timeout)
    }
}

#[cfg(test)]
mod tests;
