//! The call that reads a kept file of a resource.

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};

use super::Control;
use crate::ControlError;
use crawler_model::id::{Digest, ResourceId};

impl Control {
    /// Returns the pieces of a kept file of a resource; if an id is given, of a resource that may be deleted. The last
    /// piece of a damaged file is an error.
    pub async fn file(
        &self,
        name: &str,
        digest: Digest,
    ) -> Result<BoxStream<'static, Result<Bytes, ControlError>>, ControlError> {
        let id = match self.present_by_text(name).await? {
            Some(resource) => resource.id,
            None => ResourceId(name.parse().map_err(|_| ControlError::NoResource {
                name: name.to_owned(),
            })?),
        };
        let pieces = self.parts.data.files(id).read(digest).await?;
        Ok(pieces.map_err(ControlError::from).boxed())
    }
}
