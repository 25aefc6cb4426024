//! Condition on the resource that a call changes: what the caller has seen of it.

use crate::ControlError;
use crawler_model::id::{Generation, ResourceId};
use crawler_model::resource::Resource;

/// Condition that a resource has to meet if a call is to change it. Every resource meets the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Precondition {
    /// Id, which no other resource ever has. A resource that is deleted and added again has another one.
    pub id: Option<ResourceId>,
    /// Generation, which changes with the spec.
    pub generation: Option<Generation>,
}

impl Precondition {
    /// Returns the condition that a resource is the same and unchanged.
    pub fn unchanged(id: ResourceId, generation: Generation) -> Self {
        Self {
            id: Some(id),
            generation: Some(generation),
        }
    }

    /// Checks a resource.
    ///
    /// # Errors
    ///
    /// It is another one, or has changed.
    pub fn check(&self, present: &Resource) -> Result<(), ControlError> {
        let name = || present.spec.name.clone();
        if let Some(wanted) = self.id
            && wanted != present.id
        {
            return Err(ControlError::OtherResource {
                name: name(),
                present: present.id,
                wanted,
            });
        }
        if let Some(wanted) = self.generation
            && wanted != present.generation
        {
            return Err(ControlError::OtherGeneration {
                name: name(),
                present: present.generation,
                wanted,
            });
        }
        Ok(())
    }
}
