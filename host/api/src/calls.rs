//! Bound on the calls that are carried out at once. Calls beyond it are refused and told to come again.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::Problem;
use super::{CALLS_MAX, STREAMS_MAX};
use crawler_master::Code;

/// Calls in hand of a master or a worker, over all clients.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    /// Name of the part that carries the calls out, for messages.
    whose: &'static str,
    all: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

/// Permit of a call, which counts until this is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    _call: OwnedSemaphorePermit,
    _stream: Option<OwnedSemaphorePermit>,
}

impl Calls {
    /// Creates a counter with no call in hand.
    pub(super) fn new(whose: &'static str) -> Self {
        Self {
            whose,
            all: Arc::new(Semaphore::new(CALLS_MAX)),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        }
    }

    /// Begins a call that ends by its deadline.
    pub(super) fn call(&self) -> Result<Permit, Problem> {
        Ok(Permit {
            _call: self.one_of(&self.all, CALLS_MAX, "calls")?,
            _stream: None,
        })
    }

    /// Begins a stream, which may last. Some calls stay free for those that end.
    pub(super) fn stream(&self) -> Result<Permit, Problem> {
        let stream = self.one_of(&self.streams, STREAMS_MAX, "streams")?;
        Ok(Permit {
            _stream: Some(stream),
            ..self.call()?
        })
    }

    fn one_of(
        &self,
        permits: &Arc<Semaphore>,
        max: usize,
        what: &str,
    ) -> Result<OwnedSemaphorePermit, Problem> {
        let permit = Arc::clone(permits).try_acquire_owned();
        permit.map_err(|_| {
            let detail = format!(
                "the {} has {max} {what} in hand and takes no more",
                self.whose
            );
            Problem::new(Code::Unavailable, detail, "try again").passes()
        })
    }
}

/// Bound on the plugins that are pushed at once.
#[derive(Debug, Clone)]
pub(super) struct Uploads {
    max: usize,
    permits: Arc<Semaphore>,
}

impl Uploads {
    /// Allows at most `max` uploads at once: setting `uploads`.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            permits: Arc::new(Semaphore::new(max)),
        }
    }

    /// Begins an upload, which counts until the permit is dropped.
    pub(super) fn begin(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        permit.map_err(|_| {
            let pushed = match self.max {
                1 => "1 plugin is".to_owned(),
                n => format!("{n} plugins are"),
            };
            let detail = format!("{pushed} being pushed, as many as --uploads allows");
            Problem::passing(detail, "push it again in a moment, or raise --uploads")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r03_streams_leave_room_for_calls_that_end() {
        let calls = Calls::new("master");
        let mut streams = Vec::new();
        let refused = loop {
            match calls.stream() {
                Ok(permit) => streams.push(permit),
                Err(problem) => break problem,
            }
        };
        assert_eq!(streams.len(), STREAMS_MAX);
        assert_eq!(
            refused.detail,
            "the master has 448 streams in hand and takes no more"
        );
        let mut rest = Vec::new();
        let refused = loop {
            match calls.call() {
                Ok(permit) => rest.push(permit),
                Err(problem) => break problem,
            }
        };
        assert_eq!(rest.len(), CALLS_MAX - STREAMS_MAX);
        assert_eq!(
            refused.detail,
            "the master has 512 calls in hand and takes no more"
        );
        streams.pop();
        assert!(calls.stream().is_ok());
    }

    #[test]
    fn r03_uploads_beyond_the_few_are_told_to_come_again() {
        let uploads = Uploads::new(2);
        let (first, _second) = (uploads.begin().unwrap(), uploads.begin().unwrap());
        let refused = uploads.begin().unwrap_err();
        assert_eq!(
            refused.detail,
            "2 plugins are being pushed, as many as --uploads allows"
        );
        assert!(refused.is_passing);
        drop(first);
        assert!(uploads.begin().is_ok());
        let uploads = Uploads::new(1);
        let _only = uploads.begin().unwrap();
        assert_eq!(
            uploads.begin().unwrap_err().detail,
            "1 plugin is being pushed, as many as --uploads allows"
        );
    }
}
