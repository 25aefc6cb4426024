//! The build stamp: the digest of what a component was made of, in a custom section of it.
//!
//! Tools that put an interpreter into a component give other bytes each time. The stamp tells that two such
//! components are the same plugin, and that one need not be built again. It is a claim of whoever built the
//! component, so it decides nothing but this: whether a cluster that has a build of a version goes on with it, and
//! tells so, or refuses the other build.

use wasmparser::{Parser, Payload};

use crawler_model::id::Digest;

/// Name of the custom section. Its content is the digest, as 64 hexadecimal digits.
const SECTION: &str = "crawler:sources";
/// Length of a digest in digits.
const DIGITS: usize = 64;

/// Returns the stamp: bytes that are appended to a component. It counts only at the very end.
pub fn stamp(sources: Digest) -> Vec<u8> {
    let digest = sources.to_string();
    let n_name = u8::try_from(SECTION.len()).expect("the name is short");
    let n_content = u8::try_from(1 + SECTION.len() + digest.len()).expect("all of it is short");
    // Numbers below 128 are one byte in LEB128.
    assert!(n_content < 128, "the length of the section is one byte");
    let mut section = vec![0, n_content, n_name];
    section.extend_from_slice(SECTION.as_bytes());
    section.extend_from_slice(digest.as_bytes());
    section
}

/// Returns the digest of the stamp. A component that was cut, or changed at its end, has none.
pub fn sources(component: &[u8]) -> Option<Digest> {
    let digest = component.get(component.len().checked_sub(DIGITS)?..)?;
    let sources = std::str::from_utf8(digest).ok()?.parse().ok()?;
    let is_stamped = component.ends_with(&stamp(sources)) && ends_with_section(component);
    is_stamped.then_some(sources)
}

/// Returns true if the last bytes are a section of this name in the outermost component. The content of another
/// section could look like a stamp.
fn ends_with_section(component: &[u8]) -> bool {
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        match payload {
            Ok(Payload::Version { .. }) => depth += 1,
            Ok(Payload::End(_)) => depth = depth.saturating_sub(1),
            Ok(Payload::CustomSection(found)) if depth == 1 && found.name() == SECTION => {
                if found.range().end == component.len() {
                    return true;
                }
            }
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use wasmparser::Validator;

    use super::*;

    fn component() -> Vec<u8> {
        wat::parse_str("(component (core module (memory 1)))").unwrap()
    }

    fn stamped(text: &[u8]) -> Vec<u8> {
        [component(), stamp(Digest::of(text))].concat()
    }

    #[test]
    fn a_stamped_component_is_valid_and_tells_its_sources() {
        let stamped = stamped(b"sources");
        assert_eq!(sources(&stamped), Some(Digest::of(b"sources")));
        Validator::new().validate_all(&stamped).unwrap();
        assert_eq!(sources(&component()), None);
    }

    #[test]
    fn the_last_stamp_counts() {
        let twice = [stamped(b"one"), stamp(Digest::of(b"two"))].concat();
        assert_eq!(sources(&twice), Some(Digest::of(b"two")));
    }

    #[test]
    fn a_component_that_was_cut_or_goes_on_has_no_stamp() {
        let mut bytes = stamped(b"sources");
        bytes.pop();
        assert_eq!(sources(&bytes), None);
        bytes = stamped(b"sources");
        bytes.extend([0, 2, 1, b'n']);
        assert_eq!(sources(&bytes), None);
        assert_eq!(sources(b""), None);
    }

    #[test]
    fn bytes_that_only_look_like_a_stamp_are_none() {
        let stamp = stamp(Digest::of(b"sources"));
        // A custom section of another name that ends in the bytes of a stamp.
        let mut bytes = component();
        bytes.extend([0, u8::try_from(stamp.len() + 2).unwrap(), 1, b'n']);
        bytes.extend(stamp);
        Validator::new().validate_all(&bytes).unwrap();
        assert_eq!(sources(&bytes), None);
    }
}
