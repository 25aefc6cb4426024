//! Currencies: their codes, and the signs that stand for them.

use std::fmt;
use std::str::FromStr;

use crate::{Result, RuleError};

/// Codes of ISO 4217 in which prices are stated: no metals, no codes for tests, and of funds only CLF.
const CODES: &str = "\
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF \
    CLF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL \
    HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL \
    MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON \
    RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH \
    UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG";

/// Signs, each with the codes that it may stand for. A `!` behind the codes means: the first one, unless something
/// else says which.
///
/// Longer signs come before those that they begin with.
pub(super) const SIGNS: &[(&str, &str)] = &[
    ("US$", "USD"),
    ("US $", "USD"),
    ("CA$", "CAD"),
    ("C$", "CAD NIO"),
    ("AU$", "AUD"),
    ("A$", "AUD"),
    ("NZ$", "NZD"),
    ("HK$", "HKD"),
    ("NT$", "TWD"),
    ("MX$", "MXN"),
    ("S$", "SGD"),
    ("R$", "BRL"),
    (
        "$",
        "USD CAD AUD NZD HKD SGD TWD MXN ARS BBD BMD BND BSD BZD CLP COP CUP DOP FJD GYD JMD KYD LRD NAD SBD SRD SVC TTD UYU XCD",
    ),
    ("€", "EUR"),
    ("£", "GBP EGP FKP GIP LBP SDG SHP SSP SYP!"),
    ("¥", "JPY CNY"),
    ("￥", "JPY CNY"),
    ("円", "JPY"),
    ("元", "CNY"),
    ("₹", "INR"),
    ("Rs.", "INR PKR LKR NPR MUR SCR"),
    ("Rs", "INR PKR LKR NPR MUR SCR"),
    ("₨", "PKR INR LKR NPR MUR SCR"),
    ("₩", "KRW KPW"),
    ("₽", "RUB"),
    ("руб.", "RUB BYN"),
    ("₺", "TRY"),
    ("₴", "UAH"),
    ("₪", "ILS"),
    ("₫", "VND"),
    ("₱", "PHP CUP!"),
    ("฿", "THB"),
    ("₸", "KZT"),
    ("₦", "NGN"),
    ("₡", "CRC SVC!"),
    ("₾", "GEL"),
    ("₼", "AZN"),
    ("֏", "AMD"),
    ("zł", "PLN"),
    ("Kč", "CZK"),
    ("Ft", "HUF"),
    ("лв.", "BGN KGS!"),
    ("lei", "RON MDL"),
    ("kr.", "SEK NOK DKK ISK"),
    ("kr", "SEK NOK DKK ISK"),
    ("Kr.", "SEK NOK DKK ISK"),
    ("Kr", "SEK NOK DKK ISK"),
    ("Fr.", "CHF"),
];

/// A currency, by its code of ISO 4217.
///
/// ```
/// use crawler_plugin_sdk::Currency;
///
/// const EURO: Currency = Currency::of("EUR"); // what is no code does not compile
/// assert_eq!(EURO, "EUR".parse()?);
/// assert!("EURO".parse::<Currency>().is_err());
/// # Ok::<(), crawler_plugin_sdk::RuleError>(())
/// ```
///
/// The signs known where [`Money`](crate::Money) is read are `€`, `£` (of the United Kingdom, unless key
/// `currency` names another pound), `US$`, `CA$`, `AU$`, `A$`, `NZ$`, `HK$`, `NT$`, `MX$`, `S$`, `R$`, `円`, `元`,
/// `₹`, `₽`, `₺`, `₴`, `₪`, `₫`, `₱`, `฿`, `₸`, `₦`, `₡`, `₾`, `₼`, `֏`, `zł`, `Kč`, `Ft`, `лв.`, `Fr.`; and signs
/// of several currencies: `$`, `C$`, `¥`, `￥`, `₩`, `kr`, `kr.`, `Kr`, `Kr.`, `Rs`, `Rs.`, `₨`, `lei`, `руб.`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// Returns the currency of this code.
    ///
    /// # Panics
    ///
    /// Panics if there is no such code; in a constant that is a compile error.
    #[track_caller]
    pub const fn of(code: &str) -> Self {
        match Self::find(code) {
            Some(currency) => currency,
            None => panic!("this is no code of a currency, like EUR or USD"),
        }
    }

    /// Code of the currency: `EUR`.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("codes are letters of ASCII")
    }

    const fn find(code: &str) -> Option<Self> {
        let (codes, code) = (CODES.as_bytes(), code.as_bytes());
        let &[a, b, c] = code else {
            return None;
        };
        let mut n = 0;
        while n < codes.len() {
            if codes[n] == a && codes[n + 1] == b && codes[n + 2] == c {
                return Some(Self([a, b, c]));
            }
            n += 4;
        }
        None
    }
}

/// Codes and signs of currencies in one text.
#[derive(Debug, Default)]
pub(super) struct Marks<'t> {
    found: Vec<Mark<'t>>,
}

/// A code or a sign.
#[derive(Debug, Clone, Copy)]
struct Mark<'t> {
    text: &'t str,
    /// Codes that it may stand for, separated by spaces.
    codes: &'t str,
    /// True if the first of the codes is taken when nothing else says which.
    has_usual: bool,
}

impl<'t> Marks<'t> {
    /// Reads a text that consists of codes and signs, and of nothing else.
    pub(super) fn read(&mut self, text: &'t str) -> Result<(), String> {
        let mut text = text.trim();
        while !text.is_empty() {
            let Some((mark, rest)) = Mark::at_start(text) else {
                return Err(format!(
                    "`{text}` is no currency; choose the price itself: regex = \"…\""
                ));
            };
            self.found.push(mark);
            text = rest.trim_start();
        }
        Ok(())
    }

    /// Returns the one currency that all marks may stand for; `wanted` decides where they leave it open.
    pub(super) fn currency(self, wanted: Option<Currency>) -> Result<Currency, String> {
        let Some(first) = self.found.first() else {
            return wanted
                .ok_or_else(|| "it tells no currency; say which: currency = \"EUR\"".to_owned());
        };
        let fits = |code: &Currency| self.found.iter().all(|mark| mark.may_be(*code));
        let codes: Vec<Currency> = first.currencies().filter(fits).collect();
        match (&codes[..], wanted) {
            ([], _) => Err("it tells two currencies".to_owned()),
            ([one], _) => Ok(*one),
            (several, Some(wanted)) if several.contains(&wanted) => Ok(wanted),
            ([usual, ..], _) if self.found.iter().all(|mark| mark.has_usual) => Ok(*usual),
            (_, Some(wanted)) => Err(format!("`{}` is not {wanted}", first.text)),
            (_, None) => Err(format!(
                "`{}` stands for several currencies; say which: currency = \"{}\"",
                first.text, codes[0]
            )),
        }
    }
}

impl<'t> Mark<'t> {
    /// Returns the mark that a text begins with, and the rest of the text.
    fn at_start(text: &'t str) -> Option<(Self, &'t str)> {
        let of_code = || {
            let (code, rest) = text.split_at_checked(3)?;
            Currency::find(code)?;
            Some((code, code, rest))
        };
        let of_sign = || {
            let (sign, codes) = SIGNS.iter().find(|(sign, _)| text.starts_with(sign))?;
            let (sign, rest) = text.split_at(sign.len());
            Some((sign, *codes, rest))
        };
        let (text, codes, rest) = of_code().or_else(of_sign)?;
        // `krona` and `EURO` are words, not marks; `€EUR` is two marks.
        let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
        if is_letter(text.chars().last()) && is_letter(rest.chars().next()) {
            return None;
        }
        let usual = codes.strip_suffix('!');
        let mark = Self {
            text,
            codes: usual.unwrap_or(codes),
            has_usual: usual.is_some(),
        };
        Some((mark, rest))
    }

    fn currencies(self) -> impl Iterator<Item = Currency> + use<'t> {
        self.codes.split(' ').map(Currency::of)
    }

    fn may_be(self, code: Currency) -> bool {
        self.codes.split(' ').any(|one| one == code.as_str())
    }
}

/// Writes the code: `EUR`.
impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads a code: `EUR`.
impl FromStr for Currency {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::find(text);
        found.ok_or_else(|| RuleError::unexpected(format!("{text:?} is no code of a currency")))
    }
}

as_text!(Currency, {"type": "string", "pattern": "^[A-Z]{3}$"});
