//! A value that is made of certificates in files, and made again when they have changed.
//!
//! Files count by their content. If the changed files cannot be used, the value stays as it was, and one look
//! reports the reason.

use std::sync::{Mutex, PoisonError, RwLock};

use super::TlsError;
use super::certificates::{Certificates, Files};
use crawler_model::id::Digest;

/// Result of a look at the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    /// The files are as at the last look.
    Unchanged,
    /// The files have changed, and new connections use them.
    Changed,
    /// The files have changed and cannot be used. Connections go on with the ones before.
    Broken(TlsError),
}

impl Reload {
    /// Logs a change of the files.
    pub(super) fn log(&self) {
        match self {
            Reload::Unchanged => {}
            Reload::Changed => tracing::info!("certificates have changed and were read again"),
            Reload::Broken(error) => tracing::warn!(
                %error,
                "certificates have changed and cannot be used; those before stay in use"
            ),
        }
    }
}

/// Makes a value of certificates.
type Make<T> = fn(Certificates) -> Result<T, TlsError>;

/// Value that is made of certificates.
pub(super) struct Current<T> {
    files: Files,
    make: Make<T>,
    /// Content of the files at the last look, or the reason why they could not be read.
    seen: Mutex<Result<Digest, TlsError>>,
    value: RwLock<T>,
}

impl<T: Clone> Current<T> {
    /// Makes the first value. Without one, there is nothing to go on with.
    pub(super) fn load(files: Files, make: Make<T>) -> Result<Self, TlsError> {
        let contents = files.read()?;
        let value = make(files.parse(&contents)?)?;
        Ok(Self {
            files,
            make,
            seen: Mutex::new(Ok(contents.digest())),
            value: RwLock::new(value),
        })
    }

    /// Returns the present value.
    pub(super) fn value(&self) -> T {
        let value = self.value.read();
        value.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at the files, and makes a new value if they have changed. This reads files, and waits for another
    /// look that is under way.
    pub(super) fn reload(&self) -> Reload {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let contents = self.files.read();
        let found = match &contents {
            Ok(contents) => Ok(contents.digest()),
            Err(error) => Err(error.clone()),
        };
        if *seen == found {
            return Reload::Unchanged;
        }
        *seen = found;
        let parsed = contents.and_then(|contents| self.files.parse(&contents));
        match parsed.and_then(self.make) {
            Ok(value) => {
                *self.value.write().unwrap_or_else(PoisonError::into_inner) = value;
                Reload::Changed
            }
            Err(error) => Reload::Broken(error),
        }
    }
}
