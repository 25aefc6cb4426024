//! Texts that are money, texts that are none, and the reasons.

use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    check_keys(text, None, None, expected);
}

#[track_caller]
fn check_keys(text: &str, currency: Option<&str>, decimal: Option<char>, expected: &str) {
    let money = read(text, currency.map(Currency::of), decimal);
    let found = money.map_or_else(
        |why| why,
        |money| format!("{} {}", money.currency, money.amount),
    );
    assert_eq!(found, expected, "{text}");
}

#[test]
fn the_page_says_which_currency() {
    check("£51.77", "GBP 51.77");
    check("EUR 1.234,50", "EUR 1234.50");
    check("1 234,50 €", "EUR 1234.50");
    check("12.50 USD", "USD 12.50");
    check("USD12.50", "USD 12.50");
    check("US$ 1,234.50", "USD 1234.50");
    check("$12.50 CAD", "CAD 12.50");
    check("CAD $12.50", "CAD 12.50");
    check("US $5", "USD 5");
    check("€ 5 EUR", "EUR 5");
    check("12,50 zł", "PLN 12.50");
    check("12,50zł", "PLN 12.50");
    check("Fr. 12.50", "CHF 12.50");
    check(" \u{a0}R$ 9,90\n", "BRL 9.90");
}

#[test]
fn the_key_says_what_the_page_leaves_open() {
    check_keys("$1,234.50", Some("USD"), None, "USD 1234.50");
    check_keys("$5", Some("AUD"), None, "AUD 5");
    check_keys("¥1200", Some("JPY"), None, "JPY 1200");
    check_keys("12,50", Some("EUR"), None, "EUR 12.50");
    check_keys("12,50 kr", Some("NOK"), None, "NOK 12.50");
    check_keys("Rs.500", Some("INR"), None, "INR 500");
    for text in ["kr. 500", "Kr. 500", "Kr.500", "Kr 500", "500 kr."] {
        check_keys(text, Some("NOK"), None, "NOK 500");
    }
    check_keys("£5", Some("EGP"), None, "EGP 5");
    // A currency that the page itself states counts.
    check_keys("£5", Some("EUR"), None, "GBP 5");
    check_keys("€5", Some("USD"), None, "EUR 5");
    check_keys("5 GBP", Some("USD"), None, "GBP 5");
    check_keys("$5", Some("EUR"), None, "`$` is not EUR");
    check_keys("$5 CAD", Some("USD"), None, "CAD 5");
}

#[test]
fn a_currency_that_nobody_can_know_is_refused() {
    let several = |sign: &str, like: &str| {
        format!("`{sign}` stands for several currencies; say which: currency = \"{like}\"")
    };
    check("$1,234.50", &several("$", "USD"));
    check("¥1200", &several("¥", "JPY"));
    check("199 kr", &several("kr", "SEK"));
    check(
        "12.50",
        "it tells no currency; say which: currency = \"EUR\"",
    );
    check("€5 USD", "it tells two currencies");
    check("£5 €", "it tells two currencies");
    let no_currency =
        |text: &str| format!("`{text}` is no currency; choose the price itself: regex = \"…\"");
    check("5 EURO", &no_currency("EURO"));
    check("5 eur", &no_currency("eur"));
    check("5 krona", &no_currency("krona"));
    check("MAX 5", &no_currency("MAX"));
    check("from £5", &no_currency("from £"));
    check("£5 each", &no_currency("each"));
    check("£5*", &no_currency("*"));
    // A point behind a letter belongs to it; it does not make hundredths of the number.
    check("CHF. 50", &no_currency("."));
    check("EUR.50", &no_currency("."));
    check("Ft. 500", &no_currency("."));
    check("€ . 50", &no_currency("."));
}

/// Checks the amount that a text means, read in euros.
#[track_caller]
fn amount(text: &str, decimal: Option<char>, expected: &str) {
    let money = read(text, Some(Currency::of("EUR")), decimal);
    let found = money.map_or_else(|why| why, |money| money.amount.to_string());
    assert_eq!(found, expected, "{text}");
}

#[test]
fn the_last_of_two_separators_is_the_decimal_one() {
    amount("1.234,50", None, "1234.50");
    amount("1,234.50", None, "1234.50");
    amount("1,234,567.8", None, "1234567.8");
    amount("1.234,567", None, "1234.567");
    amount("1 234,500", None, "1234.500");
    amount("1\u{202f}234\u{202f}567,8", None, "1234567.8");
    amount("1'234.50", None, "1234.50");
    amount("1’234’567", None, "1234567");
    amount("12,34,567.50", None, "1234567.50");
    amount("12,34,567", None, "1234567");
}

#[test]
fn one_separator_is_told_by_what_stands_around_it() {
    amount("12.5", None, "12.5");
    amount("12,50", None, "12.50");
    amount("1.2345", None, "1.2345");
    amount("1234.500", None, "1234.500");
    amount("1234,500", None, "1234.500");
    amount("0.125", None, "0.125");
    amount("0,125", None, "0.125");
    amount("$.99", Some('.'), "`$` is not EUR");
    amount("€.99", None, "0.99");
    amount("€,125", None, "0.125");
    amount("1.234.567", None, "1234567");
    amount("1 234", None, "1234");
    amount("1234567", None, "1234567");
    amount("007", None, "7");
}

#[test]
fn what_may_be_two_numbers_is_refused_unless_a_key_says() {
    let ambiguous = |text: &str, whole: &str, part: &str| {
        format!(
            "`{text}` may be {whole} or {part}; say which of them separates decimals: decimal = \".\" or decimal = \",\""
        )
    };
    amount("1.234", None, &ambiguous("1.234", "1234", "1.234"));
    amount("-12,345 €", None, &ambiguous("12,345", "12345", "12.345"));
    amount("999.000", None, &ambiguous("999.000", "999000", "999.000"));
    amount("1.234", Some(','), "1234");
    amount("1.234", Some('.'), "1.234");
    amount("1,234", Some('.'), "1234");
    amount("1,234", Some(','), "1.234");
    amount("1 234", Some(','), "1234");
    amount("1.234,5", Some(','), "1234.5");
}

#[test]
fn separators_that_make_no_number_are_refused() {
    let mixed = "its separators make no number";
    let place = "its separators do not stand where thousands end";
    amount("1.234,5", Some('.'), mixed);
    amount("12.50", Some(','), place);
    amount("1.2.3", None, place);
    amount("1.23.456,7,8", None, mixed);
    amount("1,234 567", None, mixed);
    amount("1,234.567'890", None, mixed);
    amount("12 50", None, place);
    amount("1234 567", None, place);
    amount("0.123.456", None, place);
    amount("123,45,678", None, place);
    amount("1,,234", None, place);
    amount("1..5", None, place);
    amount("1,234,56", None, place);
    amount("12,345,67.8", None, place);
    amount("5-7", None, "`-` is no part of a number");
    amount("£5–£7", None, "`–` is no part of a number");
    amount("5 or 7", None, "`o` is no part of a number");
    amount("sold out", None, "there is no number");
    amount("", None, "there is no number");
    amount("1234567890123456789", None, "it has more than 18 digits");
    amount("٥", None, "there is no number");
}

#[test]
fn signs_and_dashes_have_their_places() {
    amount("-5,00 €", None, "-5.00");
    amount("€-5", None, "-5");
    amount("−€5", None, "-5");
    amount("- 5", None, "-5");
    amount("+5", None, "5");
    amount("-0.00", None, "0.00");
    amount("--5", None, "it has two signs");
    amount("5,-", None, "5");
    amount("5,– €", None, "5");
    amount("CHF 12.—", None, "12");
    amount("1.234,-", None, "1234");
    amount("1 234.--", None, "1234");
    amount(
        "5.50,-",
        None,
        "its separators do not stand where thousands end",
    );
    amount("5,50,-", None, "it has two fractions");
    amount("5,-", Some('.'), "`,` is not the decimal separator");
}

#[test]
fn amounts_are_equal_by_value_and_written_as_they_were() {
    let parsed = |text: &str| text.parse::<Amount>().unwrap();
    assert_eq!(parsed("12.50"), parsed("12.5"));
    assert!(parsed("-0.1") < parsed("0") && parsed("0.09") < parsed("0.1"));
    for text in [
        "0",
        "0.05",
        "-0.50",
        "1234.500",
        "999999999999999999",
        "-0.000000000000000001",
    ] {
        assert_eq!(parsed(text).to_string(), text);
    }
    let largest = parsed("999999999999999999");
    assert!(largest > parsed("0.000000000000000001"));
    for text in [
        "", "-", ".", "1.", ".5", "+1", "1,5", "1e3", " 1", "--1", "1.-5",
    ] {
        assert!(text.parse::<Amount>().is_err(), "{text}");
    }
    assert_eq!(largest.minor(2), None);
    assert_eq!(parsed("-1.5").minor(3), Some(-1500));
    assert_eq!(parsed("1.500").minor(1), Some(15));
    assert_eq!(parsed("1.505").minor(2), None);
    assert_eq!(parsed("1").minor(255), None);
}

#[test]
fn every_sign_stands_for_codes_that_there_are() {
    for &(sign, codes) in currency::SIGNS {
        let mut marks = Marks::default();
        marks.read(sign).unwrap();
        let wanted = Currency::of(&codes[..3]);
        assert_eq!(marks.currency(Some(wanted)), Ok(wanted), "{sign}");
    }
}
