//! Canonical form of JSON: two texts have the same form if they say the same.
//!
//! Fields are in order, numbers are written by their value, texts have one spelling, and nothing stands between them.
//! A text that does not parse stands for itself: what is compared here was checked when a rule emitted it.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Largest number of zeros that are written at the end of a number, instead of an exponent.
const ZEROS_MAX: i64 = 20;

/// Returns the canonical form of a JSON value. Items are checked to be nested no deeper than a hundred levels or so,
/// which bounds the work.
pub(super) fn canonical_json(raw: &str) -> String {
    let mut form = String::with_capacity(raw.len());
    push(raw.trim(), &mut form);
    form
}

/// Returns a text as JSON.
pub(super) fn text(text: &str) -> String {
    serde_json::to_string(text).expect("a text is JSON")
}

fn push(raw: &str, to: &mut String) {
    let pushed = match raw.as_bytes().first() {
        Some(b'{') => push_object(raw, to),
        Some(b'[') => push_array(raw, to),
        Some(b'"') => serde_json::from_str(raw).map(|value: String| to.push_str(&text(&value))),
        Some(b'-' | b'0'..=b'9') => {
            to.push_str(&number(raw));
            Ok(())
        }
        _ => {
            to.push_str(raw);
            Ok(())
        }
    };
    if pushed.is_err() {
        to.push_str(raw);
    }
}

fn push_object(raw: &str, to: &mut String) -> Result<(), serde_json::Error> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(raw)?;
    to.push('{');
    for (n, (name, value)) in fields.into_iter().enumerate() {
        if n > 0 {
            to.push(',');
        }
        to.push_str(&text(&name));
        to.push(':');
        push(value.get(), to);
    }
    to.push('}');
    Ok(())
}

fn push_array(raw: &str, to: &mut String) -> Result<(), serde_json::Error> {
    let elements: Vec<&RawValue> = serde_json::from_str(raw)?;
    to.push('[');
    for (n, element) in elements.into_iter().enumerate() {
        if n > 0 {
            to.push(',');
        }
        push(element.get(), to);
    }
    to.push(']');
    Ok(())
}

/// Returns a number by its value, exactly: `1`, `1.0` and `10e-1` are one number, and no digit is rounded away.
fn number(raw: &str) -> String {
    let (sign, digits) = match raw.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", raw),
    };
    let (digits, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let Ok(exponent) = exponent.parse::<i64>() else {
        return raw.to_owned();
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let ending = all.trim_end_matches('0');
    let n_zeros = all.len() - ending.len();
    let significant = ending.trim_start_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    let exponent = exponent
        .saturating_sub(fraction.len() as i64)
        .saturating_add(n_zeros as i64);
    match usize::try_from(exponent) {
        Ok(n) if exponent <= ZEROS_MAX => format!("{sign}{significant}{}", "0".repeat(n)),
        _ => format!("{sign}{significant}e{exponent}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_by_its_value() {
        for (forms, expected) in [
            (&["0", "-0", "0.0", "0e9", "-0.00E-3"][..], "0"),
            (&["1", "1.0", "10e-1", "0.1E+1", "1e0"][..], "1"),
            (&["-12", "-12.000", "-1.2e1"][..], "-12"),
            (&["1.5", "15e-1", "0.15e1", "1.50"][..], "15e-1"),
            (&["100", "1e2", "1E+2", "100.0"][..], "100"),
            (&["1e21", "1000000000000000000000"][..], "1e21"),
            (&["12345678901234567890123"][..], "12345678901234567890123"),
        ] {
            for form in forms {
                assert_eq!(canonical_json(form), expected, "{form}");
            }
        }
        assert_ne!(
            canonical_json("12345678901234567890123"),
            canonical_json("12345678901234567890124"),
            "as numbers of 64 bits they would be one"
        );
        assert_ne!(canonical_json("1e400"), canonical_json("1e401"));
    }

    #[test]
    fn order_spaces_and_spelling_say_nothing() {
        let same = [
            r#"{"b": [1, {"y": "\u00e9", "x": null}], "a/": true}"#,
            r#" {"a\/":true,"b":[1.0,{"x":null,"y":"é"}]} "#,
        ];
        let expected = r#"{"a/":true,"b":[1,{"x":null,"y":"é"}]}"#;
        for text in same {
            assert_eq!(canonical_json(text), expected);
        }
    }

    #[test]
    fn what_does_not_parse_stands_for_itself() {
        for text in ["{", "[1", "\"", "", "nul"] {
            assert_eq!(canonical_json(text), text);
        }
    }

    #[test]
    fn deep_values_are_compared_as_deep_as_items_may_be() {
        let nested = |number: &str| format!("{}{number}{}", "[".repeat(120), "]".repeat(120));
        assert_eq!(canonical_json(&nested("1.0")), canonical_json(&nested("1")));
    }
}
