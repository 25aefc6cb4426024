//! Sum over a list, by which two looks at many objects are compared without keeping either.

use object_store::ObjectMeta;

use crawler_model::id::RunningDigest;

/// Sum over the objects of a listing, whatever their order. Two listings with the same sum have the same objects: a
/// coincidence is as likely as one of two digests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Seen {
    n: u64,
    sum: [u64; 4],
}

impl Seen {
    /// Adds an object with its size, and with all that tells whether it was written again.
    pub(super) fn add(&mut self, object: &ObjectMeta) {
        let mut running = RunningDigest::default();
        let modified = object.last_modified.timestamp_micros();
        let tag = object.e_tag.as_deref().unwrap_or_default();
        let path = object.location.as_ref();
        for field in [path, tag, &object.size.to_string(), &modified.to_string()] {
            running.add(&(field.len() as u64).to_be_bytes());
            running.add(field.as_bytes());
        }
        let digest = running.digest();
        let words = digest.as_bytes().chunks_exact(8);
        for (sum, word) in self.sum.iter_mut().zip(words) {
            let word = word.try_into().expect("a chunk has eight bytes");
            *sum = sum.wrapping_add(u64::from_be_bytes(word));
        }
        self.n += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::path::Path as ObjectPath;

    fn object(path: &str, size: u64, tag: &str) -> ObjectMeta {
        ObjectMeta {
            location: ObjectPath::from(path),
            last_modified: "2026-01-01T00:00:00Z".parse().unwrap(),
            size,
            e_tag: Some(tag.to_owned()),
            version: None,
        }
    }

    fn seen(objects: &[ObjectMeta]) -> Seen {
        let mut seen = Seen::default();
        objects.iter().for_each(|object| seen.add(object));
        seen
    }

    #[test]
    fn the_order_does_not_count_and_every_change_does() {
        let (a, b) = (object("a", 1, "x"), object("b", 2, "y"));
        let both = seen(&[a.clone(), b.clone()]);
        assert_eq!(both, seen(&[b.clone(), a.clone()]));
        for other in [
            seen(std::slice::from_ref(&a)),
            seen(&[a.clone(), object("b", 3, "y")]),
            seen(&[a.clone(), object("b", 2, "z")]),
            seen(&[a.clone(), object("c", 2, "y")]),
            seen(&[a.clone(), b.clone(), b]),
        ] {
            assert_ne!(both, other);
        }
    }
}
