//! Prices: an exact amount and the code of its currency.
//!
//! ```text
//! amount     a decimal number, and the rules by which a text is one
//! currency   codes of ISO 4217, and the signs that stand for them
//! ```

mod amount;
mod currency;

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Capture, Value};
use crate::{Result, RuleError};

pub use amount::Amount;
pub use currency::Currency;

use currency::Marks;

/// An amount of a currency. It is never a float: `0.1` is exactly a tenth.
///
/// ```
/// use crawler_plugin_sdk::testing::Trial;
/// use crawler_plugin_sdk::prelude::*;
///
/// #[derive(Extract, Item, serde::Serialize)]
/// struct Offer {
///     #[css("p.price")]
///     price: Money, // the page says which currency
///     #[css("p.shipping", currency = "USD", decimal = ".")]
///     shipping: Option<Money>, // it says `$`, of which there are many
/// }
///
/// pub struct Shop;
///
/// #[plugin(items(Offer), reads(Offer))]
/// impl Shop {
///     fn root(_: &mut Crawl) -> Result {
///         Ok(())
///     }
///
///     #[rule]
///     fn offer(page: &Page, crawl: &mut Crawl) -> Result {
///         crawl.emit(&page.extract::<Offer>()?)
///     }
/// }
///
/// let html = "<p class=price>1 234,50 €</p><p class=shipping>$1,200</p>";
/// let outcome = Trial::new().parse(Shop::offer, &Page::from_html("http://shop.test/7", html))?;
/// let offer = &outcome.items[0].value;
/// assert_eq!(offer["price"], serde_json::json!({"amount": "1234.50", "currency": "EUR"}));
/// assert_eq!(offer["shipping"]["amount"], "1200");
/// # Ok::<(), RuleError>(())
/// ```
///
/// # Which currency
///
/// The currency stands before the number, behind it, or both: as a code of [ISO 4217][iso], `EUR 5`, or as a sign,
/// `5 €`. The signs known are those of [`Currency`]. A sign that stands for several currencies (`$`, `¥`, `kr`,
/// `Rs`, `lei`) is settled by the page (`US$5`, `$5 CAD`), or by key `currency`, which also gives the currency of
/// a bare number. Without the key both are refused. A currency that the page itself states counts, whatever the
/// key says. A sign that leaves open which currency it means is refused if it cannot mean that of the key.
///
/// # Which number
///
/// Digits are those of ASCII, with a minus or plus before them or before the sign. White space and apostrophes
/// only separate thousands, so that `99 149 kr` is one price. If a page writes two numbers next to each other, or
/// the cents in an element of their own (`12<sup>99</sup>` has the text `1299`), choose a narrower selector.
/// Points and commas mean:
///
/// | in the text | is |
/// |---|---|
/// | both: `1.234,50`, `1,234.50` | the last one is the decimal separator, the other separates thousands |
/// | one kind, several times: `1,234,567` | separates thousands |
/// | one, behind thousands that are separated by others: `1 234,500`, `1'234.5` | the decimal separator |
/// | one, and not three digits behind it: `12.5`, `12,50` | the decimal separator |
/// | one, three digits behind it, and before it none, more than three, or a zero first: `1234.500`, `0.125` | the decimal separator |
/// | one, three digits behind it, and before it one to three that do not begin with a zero: `1.234` | 1234 here and 1.234 there: refused, unless key `decimal = ","` or `decimal = "."` says which is the decimal separator |
///
/// Key `decimal` holds for all texts of the field, and a text that does not fit it is refused: `12.50` by a
/// decimal comma. Thousands are separated by one kind of separator, every three digits, or as in India:
/// `12,34,567`. A dash may stand for an empty fraction: `5,–`. The amount has as many digits behind the point as
/// the page gives it.
///
/// Anything else in the text is refused: ranges, `from £5`, two prices. Choose the part that is one by key `regex`.
///
/// [iso]: https://www.iso.org/iso-4217-currency-codes.html
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "An exact amount, and the ISO 4217 code of its currency.")]
pub struct Money {
    amount: Amount,
    currency: Currency,
}

impl Money {
    /// Returns this amount of this currency.
    ///
    /// ```
    /// use crawler_plugin_sdk::{Currency, Money};
    ///
    /// let money = Money::new("12.50".parse()?, Currency::of("CHF"));
    /// assert_eq!(money, "CHF 12.5".parse()?);
    /// # Ok::<(), crawler_plugin_sdk::RuleError>(())
    /// ```
    pub const fn new(amount: Amount, currency: Currency) -> Self {
        Self { amount, currency }
    }

    /// Amount, without its currency.
    ///
    /// ```
    /// let money: crawler_plugin_sdk::Money = "£51.77".parse()?;
    /// assert_eq!(money.amount().to_string(), "51.77");
    /// assert_eq!(money.amount().minor(2), Some(5177));
    /// assert_eq!(money.currency().as_str(), "GBP");
    /// # Ok::<(), crawler_plugin_sdk::RuleError>(())
    /// ```
    pub fn amount(self) -> Amount {
        self.amount
    }

    /// Currency of the amount.
    pub fn currency(self) -> Currency {
        self.currency
    }
}

/// Returns a function that reads money by the keys of a field.
pub fn money<'r>(
    currency: Option<Currency>,
    decimal: Option<char>,
) -> impl Fn(&Capture<'r>) -> Result<Money, String> {
    move |capture| read(capture.text(), currency, decimal)
}

impl Value for Money {
    fn read(capture: &Capture<'_>) -> Result<Self, String> {
        read(capture.text(), None, None)
    }
}

/// Reads money by the rules of [`Money`], without keys.
impl FromStr for Money {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self> {
        read(text, None, None)
            .map_err(|why| RuleError::unexpected(format!("{text:?} is no price: {why}")))
    }
}

fn read(text: &str, currency: Option<Currency>, decimal: Option<char>) -> Result<Money, String> {
    let digit = |c: char| c.is_ascii_digit();
    let (Some(start), Some(end)) = (text.find(digit), text.rfind(digit)) else {
        return Err("there is no number".into());
    };
    let (is_negative, before, separator) = before_number(&text[..start])?;
    let number = &text[start - separator..=end];
    let (behind, dash) = without_dash(&text[end + 1..]);
    let mut marks = Marks::default();
    marks.read(before)?;
    marks.read(behind)?;
    let mut amount = Amount::read(number, decimal, dash)?;
    if is_negative {
        amount = amount.negated();
    }
    let currency = marks.currency(currency)?;
    Ok(Money { amount, currency })
}

/// Returns three parts: true if the number is negative; the text without its sign; and the length in bytes of a
/// separator that begins the number, as in `$.99`.
fn before_number(text: &str) -> Result<(bool, &str, usize), String> {
    let is_sign = |c: char| matches!(c, '-' | '−' | '+');
    let (mut text, mut separator) = (text, 0);
    // The separator touches the first digit; behind a letter it is the end of an abbreviation, as in `Kr.`.
    if let Some(rest) = text.strip_suffix(['.', ','])
        && !rest.ends_with(char::is_alphabetic)
    {
        (text, separator) = (rest, 1);
    }
    text = text.trim();
    let mut signs = text.chars().filter(|&c| is_sign(c));
    let sign = signs.next();
    if signs.next().is_some() {
        return Err("it has two signs".into());
    }
    let text = text.trim_matches(is_sign).trim();
    Ok((matches!(sign, Some('-' | '−')), text, separator))
}

/// Removes `,–` behind a number, which says that there is no fraction and which separator is the decimal one.
fn without_dash(text: &str) -> (&str, Option<char>) {
    let separator = text.chars().next().filter(|c| matches!(c, '.' | ','));
    let Some(separator) = separator else {
        return (text, None);
    };
    let rest = text[1..].trim_start_matches(['-', '–', '—']);
    match rest.len() < text.len() - 1 {
        true => (rest, Some(separator)),
        false => (text, None),
    }
}

#[cfg(test)]
mod tests;
