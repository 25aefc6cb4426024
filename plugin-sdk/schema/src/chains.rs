//! Chains of schemas that are about the same value: their length, and the kinds that they leave open.

use super::read::wrong;
use super::*;

/// Largest number of schemas about the same value that may follow each other.
const CHAIN_MAX: usize = 16;

impl JsonSchema {
    /// Finds the kinds that each schema leaves open. Refuses schemas that lead back to themselves without a step
    /// into the value.
    pub(super) fn follow_chains(&mut self, places: &[String]) -> Result<(), SchemaError> {
        let mut lengths = vec![Length::Unknown; self.nodes.len()];
        for id in (0..self.nodes.len()).map(NodeId) {
            if self.follow_chain(id, 0, &mut lengths).is_none() {
                let why = format!(
                    "it refers to itself without a step into the value, or more than {CHAIN_MAX} schemas are about one value"
                );
                return Err(wrong(&places[id.0], why));
            }
        }
        Ok(())
    }

    fn follow_chain(&mut self, id: NodeId, depth: usize, lengths: &mut [Length]) -> Option<usize> {
        if depth > CHAIN_MAX {
            return None;
        }
        match lengths[id.0] {
            Length::Known(length) => return Some(length),
            Length::Followed => return None,
            Length::Unknown => lengths[id.0] = Length::Followed,
        }
        let mut length = 0;
        let beside: Vec<NodeId> = self.node(id).beside().collect();
        for next in beside {
            length = length.max(self.follow_chain(next, depth + 1, lengths)? + 1);
        }
        if length > CHAIN_MAX {
            return None;
        }
        lengths[id.0] = Length::Known(length);
        self.kinds[id.0] = self.kinds_of(self.node(id));
        Some(length)
    }

    fn kinds_of(&self, node: &Node) -> Kinds {
        let all = node.all_of.iter().map(|id| self.kinds(*id));
        let mut kinds = all.fold(node.kinds, |all, kinds| all & kinds);
        for choice in [&node.any_of, &node.one_of] {
            if !choice.is_empty() {
                let each = choice.iter().map(|id| self.kinds(*id));
                kinds = kinds & each.fold(Kinds::NONE, |any, kinds| any | kinds);
            }
        }
        if let Some(values) = &node.values {
            let each = values.list.iter().map(kind_of);
            kinds = kinds & each.fold(Kinds::NONE, |any, kind| any | kind);
        }
        kinds
    }
}

fn kind_of(value: &Value) -> Kinds {
    match value {
        Value::Null => Kinds::NULL,
        Value::Bool(_) => Kinds::BOOLEAN,
        Value::Number(number) => match number.as_f64() {
            Some(number) if number.fract() != 0.0 => Kinds::FRACTION,
            _ => Kinds::INTEGER,
        },
        Value::String(_) => Kinds::STRING,
        Value::Array(_) => Kinds::ARRAY,
        Value::Object(_) => Kinds::OBJECT,
    }
}

/// Length of the longest chain of schemas that are about the same value.
#[derive(Clone, Copy)]
enum Length {
    Unknown,
    Followed,
    Known(usize),
}
