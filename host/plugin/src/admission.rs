//! Decides if bytes are a plugin: when they are pushed, and again when they are loaded.
//!
//! ```text
//! checks    what can be seen without running or compiling anything
//! child     compile, then call `describe`, in a process with limits on memory and time
//! describe  what a plugin may say of itself
//! ```
//!
//! Every refusal tells what was found, what is allowed and what to do.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::PluginError;
use crawler_model::guest_text::GuestText;
use crawler_model::plugin::Description;

pub(crate) mod checks;
pub(crate) mod child;
mod describe;

pub use child::{child_main, own_program};
pub(crate) use describe::compiled_plans;

/// Result of the compiling process.
pub(crate) struct Compiled {
    pub(crate) description: Description,
    /// Machine code, in wasmtime's format.
    pub(crate) image: Bytes,
}

/// Head of a frame; the image follows it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Compiled(Description),
    Refused(Refusal),
}

/// Form of [`PluginError::Refused`] on its way between processes.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) found: GuestText,
    pub(crate) allowed: GuestText,
    pub(crate) remedy: String,
}

impl From<Refusal> for PluginError {
    fn from(refusal: Refusal) -> Self {
        PluginError::Refused {
            found: refusal.found,
            allowed: refusal.allowed,
            remedy: refusal.remedy,
        }
    }
}

/// Encodes a frame: eight bytes that hold the length of the head, the head as JSON, the image.
fn frame(outcome: &Outcome, image: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let head = serde_json::to_vec(outcome)?;
    let mut frame = Vec::with_capacity(8 + head.len() + image.len());
    frame.extend_from_slice(&(head.len() as u64).to_be_bytes());
    frame.extend_from_slice(&head);
    frame.extend_from_slice(image);
    Ok(frame)
}

impl Compiled {
    pub(crate) fn from_frame(mut frame: Bytes) -> Result<Self, PluginError> {
        let broken = |why: &str| PluginError::Host {
            doing: "read what the compiling process wrote",
            why: why.to_owned(),
        };
        let (length, _) = frame
            .split_first_chunk::<8>()
            .ok_or_else(|| broken("it is too short"))?;
        let length = usize::try_from(u64::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if length > frame.len() - 8 {
            return Err(broken("its head is cut"));
        }
        let head = frame.split_to(8 + length);
        match serde_json::from_slice(&head[8..]) {
            Ok(Outcome::Compiled(description)) => Ok(Self {
                description,
                image: frame,
            }),
            Ok(Outcome::Refused(refusal)) => Err(refusal.into()),
            Err(e) => Err(broken(&e.to_string())),
        }
    }
}
