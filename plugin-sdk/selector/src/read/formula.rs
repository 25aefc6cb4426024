//! The formula of `:nth-child()`.

use super::text::is_space;

/// Reads `an+b`, in lower case, as step and offset. Numbers that no page reaches become the largest number.
pub(super) fn read(text: &str) -> Option<(i32, i32)> {
    let text = text.trim_matches(is_space_char);
    match text {
        "odd" => return Some((2, 1)),
        "even" => return Some((2, 0)),
        _ => {}
    }
    let Some((step, offset)) = text.split_once('n') else {
        return Some((0, number(text)?));
    };
    let step = match step {
        "" | "+" => 1,
        "-" => -1,
        step => number(step)?,
    };
    let offset = offset.trim_matches(is_space_char);
    if offset.is_empty() {
        return Some((step, 0));
    }
    let sign = offset.strip_prefix(['+', '-'])?;
    let digits = sign.trim_start_matches(is_space_char);
    let is_negative = offset.starts_with('-');
    let offset = digits
        .as_bytes()
        .first()?
        .is_ascii_digit()
        .then(|| number(digits))??;
    Some((step, if is_negative { -offset } else { offset }))
}

/// Reads digits, with or without a sign.
fn number(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse().unwrap_or(i32::MAX);
    Some(if text.starts_with('-') { -size } else { size })
}

fn is_space_char(c: char) -> bool {
    u8::try_from(c).is_ok_and(is_space)
}
