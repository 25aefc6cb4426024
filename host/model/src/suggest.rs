//! Suggestions for a name that does not exist.

/// Returns the nearest of the known names, if one is near enough to be meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let n_chars = name.chars().count();
    let max_edits = 1 + n_chars / 4;
    // An edit changes the length by one at most. A comparison takes time that grows with the product of both lengths, and
    // the name is of any length.
    let is_as_long = |known: &&str| known.chars().count().abs_diff(n_chars) <= max_edits;
    let distance = |known: &'a str| (strsim::damerau_levenshtein(name, known), known);
    let known = known.into_iter().filter(is_as_long);
    let (n_edits, known) = known.map(distance).min()?;
    (n_edits <= max_edits).then_some(known)
}

/// Returns `did you mean "x"?`, or the list of all names if none is near.
pub fn hint(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(known) => format!("did you mean {known:?}?"),
        None if known.is_empty() => "leave it out".to_owned(),
        None => format!("there are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_another_word_is_not() {
        let known = ["name", "plugin", "max-pages"];
        assert_eq!(nearest("nmae", known), Some("name"));
        assert_eq!(nearest("max_pages", known), Some("max-pages"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"name".repeat(1 << 20), known), None);
        assert_eq!(hint("nam", &known), "did you mean \"name\"?");
        assert_eq!(hint("colour", &known), "there are name, plugin, max-pages");
        assert_eq!(hint("colour", &[]), "leave it out");
    }
}
