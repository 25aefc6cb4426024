//! Suggestions for a name that does not exist.

/// Returns the nearest of the known names, if one is near enough to be meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |known: &'a str| (strsim::damerau_levenshtein(name, known), known);
    let (n_edits, known) = known.into_iter().map(distance).min()?;
    let near = n_edits <= 1 + name.chars().count() / 4;
    near.then_some(known)
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
        assert_eq!(hint("nam", &known), "did you mean \"name\"?");
        assert_eq!(hint("colour", &known), "there are name, plugin, max-pages");
        assert_eq!(hint("colour", &[]), "leave it out");
    }
}
