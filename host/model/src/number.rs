//! Numbers of things in messages to people.

/// Returns a number of things in words, such as `1 page` and `2 pages`.
pub fn number(n: u64, thing: &str) -> String {
    match n {
        1 => format!("1 {thing}"),
        n => format!("{n} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn one_thing_has_no_ending() {
        let told = [0, 1, 2].map(|n| number(n, "page"));
        assert_eq!(told, ["0 pages", "1 page", "2 pages"]);
    }
}
