//! Conformance tests of the twin.

use super::*;

crate::store_conformance!(async || Some((Arc::new(StoreTwin::new()) as Arc<dyn Store>, ())));
