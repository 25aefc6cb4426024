//! Prices of pages: keys of the field, and the written form.

#![allow(clippy::unwrap_used, reason = "a test")]

use crawler_plugin_sdk::Currency;
use crawler_plugin_sdk::prelude::*;
use serde_json::{Value, json};

#[derive(Debug, Extract, Item, serde::Serialize, serde::Deserialize)]
struct Offer {
    #[css("b")]
    price: Money,
    #[css("i", currency = "AUD")]
    old: Option<Money>,
    #[css("li", currency = "EUR", decimal = ",")]
    steps: Vec<Money>,
    #[css("p", regex = "from (.+)", decimal = ".")]
    from: Option<Money>,
}

struct Shop;

#[plugin(items(Offer), reads(Offer))]
impl Shop {
    fn root(_: &mut Crawl) -> Result {
        Ok(())
    }

    #[rule]
    fn offer(_: &Page, _: &mut Crawl) -> Result {
        Ok(())
    }
}

fn read(html: &str) -> Result<Offer> {
    Page::from_html("http://shop.test/7", html).extract()
}

#[test]
fn prices_are_written_as_an_exact_amount_and_a_code() {
    let html = "<b>£0.10</b><i>$5</i><li>1.234<li>5,50 €</li><p>from CHF 1,234";
    let offer = serde_json::to_value(read(html).unwrap()).unwrap();
    let money = |amount: &str, currency: &str| json!({"amount": amount, "currency": currency});
    assert_eq!(offer["price"], money("0.10", "GBP"));
    assert_eq!(offer["old"], money("5", "AUD"));
    assert_eq!(
        offer["steps"],
        json!([money("1234", "EUR"), money("5.50", "EUR")])
    );
    assert_eq!(offer["from"], money("1234", "CHF"));
    let again: Offer = serde_json::from_value(offer.clone()).unwrap();
    assert_eq!(again.price, "GBP 0.1".parse().unwrap());
    assert_eq!(serde_json::to_value(again).unwrap(), offer);
}

#[test]
fn the_schema_says_what_stands_in_it() {
    let schema: Value = serde_json::from_str(&Offer::schema()).unwrap();
    let money = json!({
        "type": "object",
        "description": "An exact amount, and the ISO 4217 code of its currency.",
        "properties": {
            "amount": {"type": "string", "pattern": "^-?[0-9]+(\\.[0-9]+)?$"},
            "currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
        },
        "required": ["amount", "currency"],
    });
    assert_eq!(schema["$defs"], json!({ "Money": money }));
}

#[test]
fn what_is_there_but_no_price_is_an_error_with_field_and_text() {
    let check = |html: &str, expected: &str| {
        assert_eq!(
            read(html).unwrap_err().to_string(),
            format!("error: {expected}")
        );
    };
    check(
        "<b>$5.00</b>",
        "\"$5.00\" is no value for `Offer.price`, read from an element `b`: `$` stands for several currencies; say which: currency = \"USD\"",
    );
    check(
        "<b>£1.234</b>",
        "\"£1.234\" is no value for `Offer.price`, read from an element `b`: `1.234` may be 1234 or 1.234; say which of them separates decimals: decimal = \".\" or decimal = \",\"",
    );
    check(
        "<b>£1</b><i>sold</i>",
        "\"sold\" is no value for `Offer.old`, read from an element `i`: there is no number",
    );
    check("", "the page lacks an element `b` for `Offer.price`");
}

#[test]
fn codes_are_those_of_iso_4217() {
    assert_eq!("EUR".parse::<Currency>().unwrap().to_string(), "EUR");
    for text in ["eur", "EURO", "EU", "", "XXX", "ED ", "D A"] {
        assert!(text.parse::<Currency>().is_err(), "{text}");
    }
    let bad = json!({"amount": "1.", "currency": "EUR"});
    assert!(serde_json::from_value::<Money>(bad).is_err());
    let bad = json!({"amount": "1", "currency": "eur"});
    assert!(serde_json::from_value::<Money>(bad).is_err());
}
