//! Statuses that a request accepts, as saved calls keep them.

use crate::accept_status;

/// Returns the statuses that the hints ask for as the crawler shows them: ranges in order that neither overlap nor
/// touch, and `any` last. A text that the crawler refuses is returned unchanged.
pub(super) fn shown(hints: &[(String, String)]) -> String {
    let value = hints.iter().find(|(key, _)| key == accept_status::KEY);
    let text = value.map_or("", |(_, text)| text);
    let parts = text.split(',').map(str::trim);
    let (any, named): (Vec<_>, Vec<_>) = parts.partition(|part| *part == "any");
    let ranges: Option<Vec<(u16, u16)>> = named.into_iter().map(range).collect();
    let Some(mut ranges) = ranges else {
        return text.to_owned();
    };
    ranges.sort_unstable();
    let mut merged: Vec<(u16, u16)> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            Some(_) | None => merged.push((first, last)),
        }
    }
    let mut parts: Vec<String> = merged.into_iter().map(written).collect();
    parts.extend((!any.is_empty()).then(|| "any".to_owned()));
    parts.join(",")
}

fn range(part: &str) -> Option<(u16, u16)> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    Some((first.parse().ok()?, last.parse().ok()?))
}

fn written((first, last): (u16, u16)) -> String {
    match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_shown_in_order_and_merged() {
        let check = |text: &str, expected: &str| {
            let mut hints = vec![("other".to_owned(), "1".to_owned())];
            accept_status::add(&mut hints, text);
            assert_eq!(shown(&hints), expected);
        };
        check("any,500-599, 404", "404,500-599,any");
        check("405-410,404,406,411", "404-411");
        check("any", "any");
        check("4xx,404", "4xx,404");
        assert_eq!(shown(&[]), "");
    }
}
