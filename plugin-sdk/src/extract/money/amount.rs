//! Decimal numbers: exact, and read by rules that refuse what could be two numbers.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::{Result, RuleError};

/// Largest number of digits: every amount fits into an `i64`, and two amounts that are scaled to the same digits
/// behind the point fit into an `i128`.
const DIGITS_MAX: usize = 18;

/// A decimal number of up to 18 digits, exact. It is written with the digits that the page gave it: `12.50`.
///
/// ```
/// use crawler_plugin_sdk::Amount;
///
/// let amount: Amount = "12.50".parse()?;
/// assert_eq!(amount, "12.5".parse()?);
/// assert_eq!(amount.to_string(), "12.50");
/// assert!(amount < "12.51".parse()?);
/// # Ok::<(), crawler_plugin_sdk::RuleError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    /// Digits before and behind the point.
    digits: i64,
    /// Number of digits behind the point.
    places: u8,
}

impl Amount {
    /// Returns the amount in minor units, where `places` digits behind the point make one unit: 2 for pence and
    /// cents. `None` if the amount is finer, or too large.
    ///
    /// ```
    /// use crawler_plugin_sdk::Amount;
    ///
    /// let amount: Amount = "12.50".parse()?;
    /// assert_eq!((amount.minor(2), amount.minor(1)), (Some(1250), Some(125)));
    /// assert_eq!(amount.minor(0), None);
    /// # Ok::<(), crawler_plugin_sdk::RuleError>(())
    /// ```
    pub fn minor(self, places: u8) -> Option<i64> {
        let power = |places: u8| 10_i64.checked_pow(u32::from(places));
        match places.checked_sub(self.places) {
            Some(more) => self.digits.checked_mul(power(more)?),
            None => {
                let part = power(self.places - places)?;
                (self.digits % part == 0).then_some(self.digits / part)
            }
        }
    }

    pub(super) fn negated(self) -> Self {
        Self {
            digits: -self.digits,
            ..self
        }
    }

    /// Reads the number that a text of digits and separators means. `decimal` is the decimal separator, if it is
    /// known. `dash` is the separator behind the text, if a dash for the fraction follows it.
    pub(super) fn read(
        text: &str,
        decimal: Option<char>,
        dash: Option<char>,
    ) -> Result<Self, String> {
        let known = match (decimal, dash) {
            (Some(decimal), Some(dash)) if decimal != dash => {
                return Err(format!("`{dash}` is not the decimal separator"));
            }
            (decimal, dash) => decimal.or(dash),
        };
        let (parts, separators) = split(text)?;
        let fraction = match known {
            Some(known) => separators.contains(&known),
            None => has_fraction(text, &parts, &separators)?,
        };
        if fraction && dash.is_some() {
            return Err("it has two fractions".into());
        }
        let n_groups = parts.len() - usize::from(fraction);
        let (whole, part) = (&parts[..n_groups], &parts[n_groups..]);
        let between = &separators[..n_groups.saturating_sub(1)];
        let point = separators
            .get(n_groups.saturating_sub(1))
            .filter(|_| fraction);
        let is_mixed = between.iter().any(|c| Some(c) == point || c != &between[0]);
        if is_mixed || known.is_some_and(|known| fraction && point != Some(&known)) {
            return Err("its separators make no number".into());
        }
        if !are_groups(whole) || part.iter().any(|part| part.is_empty()) {
            return Err("its separators do not stand where thousands end".into());
        }
        Self::of(&whole.concat(), part.first().copied().unwrap_or_default())
    }

    fn of(whole: &str, part: &str) -> Result<Self, String> {
        let digits = format!("{whole}{part}");
        if digits.trim_start_matches('0').len() > DIGITS_MAX || part.len() > DIGITS_MAX {
            return Err(format!("it has more than {DIGITS_MAX} digits"));
        }
        let digits = digits.parse().map_err(|why| format!("{why}"))?;
        // At most DIGITS_MAX.
        let places = part.len() as u8;
        Ok(Self { digits, places })
    }

    /// Returns the digits of both amounts, scaled to the same number of digits behind the point.
    fn aligned(self, other: Self) -> (i128, i128) {
        let places = self.places.max(other.places);
        let scaled = |amount: Self| {
            i128::from(amount.digits) * 10_i128.pow(u32::from(places - amount.places))
        };
        (scaled(self), scaled(other))
    }
}

/// Splits a text into digits and the separators between them: `.`, `,`, `'`, or a space for all white space.
fn split(text: &str) -> Result<(Vec<&str>, Vec<char>), String> {
    let mut separators = Vec::new();
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        let separator = match c {
            '0'..='9' => continue,
            '.' | ',' => c,
            '\'' | '’' => '\'',
            c if c.is_whitespace() => ' ',
            c => return Err(format!("`{c}` is no part of a number")),
        };
        separators.push(separator);
        parts.push(&text[start..at]);
        start = at + c.len_utf8();
    }
    parts.push(&text[start..]);
    Ok((parts, separators))
}

/// Returns true if the last separator is the decimal one, and an error if the text leaves that open.
fn has_fraction(text: &str, parts: &[&str], separators: &[char]) -> Result<bool, String> {
    let Some((&last, earlier)) = separators.split_last() else {
        return Ok(false);
    };
    if !matches!(last, '.' | ',') {
        return Ok(false);
    }
    if !earlier.is_empty() {
        return Ok(!earlier.contains(&last));
    }
    let (before, behind) = (parts[0], parts[1]);
    let may_be_thousands =
        behind.len() == 3 && matches!(before.len(), 1..=3) && !before.starts_with('0');
    match may_be_thousands {
        true => Err(format!(
            "`{text}` may be {before}{behind} or {before}.{behind}; say which of them separates decimals: decimal = \".\" or decimal = \",\""
        )),
        false => Ok(true),
    }
}

/// Returns true if separators stand every three digits, or as in India every two before the last three.
fn are_groups(parts: &[&str]) -> bool {
    let [first, middle @ .., last] = parts else {
        // Nothing before the point, or digits without separators.
        return true;
    };
    let all = |n: usize| middle.iter().all(|part| part.len() == n);
    let first_max = match all(3) {
        true => 3,
        false => 2,
    };
    last.len() == 3
        && (1..=first_max).contains(&first.len())
        && !first.starts_with('0')
        && (all(3) || all(2))
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Amount {}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        let (amount, other) = self.aligned(*other);
        amount.cmp(&other)
    }
}

/// Writes the number with a point and no other separator: `1234.50`.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = usize::from(self.places);
        let digits = format!(
            "{:0>width$}",
            self.digits.unsigned_abs(),
            width = places + 1
        );
        let (whole, part) = digits.split_at(digits.len() - places);
        let point = if places > 0 { "." } else { "" };
        f.pad_integral(self.digits >= 0, "", &format!("{whole}{point}{part}"))
    }
}

/// Reads a number as `Display` writes it: `-1234.50`.
impl FromStr for Amount {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (whole, part) = match digits.split_once('.') {
            Some((whole, part)) => (whole, Some(part)),
            None => (digits, None),
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let amount = match is_number(whole) && part.is_none_or(is_number) {
            true => Amount::of(whole, part.unwrap_or_default()),
            false => Err("it is not as `-1234.50`".to_owned()),
        };
        let amount =
            amount.map_err(|why| RuleError::unexpected(format!("{text:?} is no amount: {why}")))?;
        Ok(match digits.len() < text.len() {
            true => amount.negated(),
            false => amount,
        })
    }
}

as_text!(Amount, {"type": "string", "pattern": "^-?[0-9]+(\\.[0-9]+)?$"});
