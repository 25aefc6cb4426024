//! Recipes between a page and its items.
//!
//! # Data in scripts
//!
//! Data that a page has for machines is often better than the text it shows: `inner` takes JSON-LD as it is
//! written.
//!
//! ```
//! # use crawler_plugin_sdk::prelude::*;
//! # use crawler_plugin_sdk::testing::Trial;
//! use crawler_plugin_sdk::serde_json;
//!
//! #[derive(Extract)]
//! struct Product {
//!     #[css("script[type='application/ld+json']", inner, with = serde_json::from_str)]
//!     about: About,
//! }
//!
//! #[derive(Item, serde::Deserialize, serde::Serialize)]
//! struct About {
//!     name: String,
//! }
//! # pub struct Shop;
//! # #[plugin(items(About), reads(Product))]
//! # impl Shop {
//! #     fn root(_: &mut Crawl) -> Result { Ok(()) }
//!
//! #[rule]
//! fn product(page: &Page, crawl: &mut Crawl) -> Result {
//!     crawl.emit(&page.extract::<Product>()?.about)
//! }
//! # }
//! # let html = r#"<script type="application/ld+json">{"name": "Tea & more"}</script>"#;
//! # let outcome = Trial::new().parse(Shop::product, &Page::from_html("http://shop.test/7", html))?;
//! # assert_eq!(outcome.items[0].value["name"], "Tea & more");
//! # Ok::<(), RuleError>(())
//! ```
//!
//! # Dates and prices
//!
//! [`Date`](crate::Date), [`DateTime`](crate::DateTime) and [`Money`](crate::Money) are read from text for people
//! and written for machines: as ISO 8601, and as an exact amount and the code of its currency. A text that could
//! mean two things is an error, and a key of the field says which is meant.
//!
//! ```
//! # use crawler_plugin_sdk::prelude::*;
//! # use crawler_plugin_sdk::testing::Trial;
//! #[derive(Extract, Item, serde::Serialize)]
//! struct Offer {
//!     #[css("p.until", regex = "until (.+)", format = "%B %d, %Y")]
//!     until: Date,
//!     #[css("p.price", regex = "now (.+)", currency = "USD")]
//!     price: Money,
//! }
//! # pub struct Shop;
//! # #[plugin(items(Offer), reads(Offer))]
//! # impl Shop {
//! #     fn root(_: &mut Crawl) -> Result { Ok(()) }
//!
//! #[rule]
//! fn offer(page: &Page, crawl: &mut Crawl) -> Result {
//!     crawl.emit(&page.extract::<Offer>()?)
//! }
//! # }
//! # let html = "<p class=until>only until March 1, 2027<p class=price>was $1,499.00, now $1,234.50";
//! # let outcome = Trial::new().parse(Shop::offer, &Page::from_html("http://shop.test/7", html))?;
//! # let expected = r#"{"price":{"amount":"1234.50","currency":"USD"},"until":"2027-03-01"}"#;
//! # assert_eq!(outcome.items[0].value.to_string(), expected);
//! # Ok::<(), RuleError>(())
//! ```
//!
//! # Items checked and enriched
//!
//! Functions of your own stand between reading and [`emit`](crate::Crawl::emit). An error reports that the page is
//! not as expected; `None` drops the item and nothing else.
//!
//! ```
//! # use crawler_plugin_sdk::prelude::*;
//! # use crawler_plugin_sdk::testing::Trial;
//! #[derive(Extract, Item, serde::Serialize)]
//! struct Offer {
//!     #[css("b")]
//!     title: String,
//!     #[css("i", with = cents)]
//!     cents: u32,
//!     #[css("em.vat", present)]
//!     with_vat: bool,
//! }
//!
//! fn cents(price: &str) -> Result<u32> {
//!     let digits = price.strip_prefix('$').require("a price in dollars")?;
//!     Ok(digits.replace(['.', ','], "").parse()?)
//! }
//!
//! fn checked(offer: Offer) -> Result<Offer> {
//!     if offer.title.is_empty() {
//!         return Err(RuleError::unexpected("an offer of nothing"));
//!     }
//!     Ok(offer)
//! }
//!
//! fn sold(offer: Offer) -> Option<Offer> {
//!     (offer.cents > 0).then_some(offer)
//! }
//!
//! fn with_vat(mut offer: Offer) -> Offer {
//!     if !offer.with_vat {
//!         offer.cents = offer.cents * 119 / 100;
//!         offer.with_vat = true;
//!     }
//!     offer
//! }
//! # #[derive(Extract)]
//! # struct List { #[rows("li")] offers: Vec<Offer> }
//! # pub struct Shop;
//! # #[plugin(items(Offer), reads(List))]
//! # impl Shop {
//! #     fn root(_: &mut Crawl) -> Result { Ok(()) }
//!
//! #[rule]
//! fn list(page: &Page, crawl: &mut Crawl) -> Result {
//!     let offers = page.extract::<List>()?.offers.into_iter();
//!     for offer in offers.filter_map(sold) {
//!         crawl.emit(&with_vat(checked(offer)?))?;
//!     }
//!     Ok(())
//! }
//! # }
//! # let html = "<li><b>Tea</b><i>$1.00</i><li><b>Air</b><i>$0.00</i>";
//! # let outcome = Trial::new().parse(Shop::list, &Page::from_html("http://shop.test/", html))?;
//! # assert_eq!(outcome.items.len(), 1);
//! # assert_eq!(outcome.items[0].value["cents"], 119);
//! # let page = Page::from_html("http://shop.test/", "<li><b>Tea</b><i>$1.00</i><li><b></b><i>$2.00</i>");
//! # let error = Trial::new().parse(Shop::list, &page).unwrap_err();
//! # assert_eq!(error, RuleError::unexpected("an offer of nothing"));
//! # Ok::<(), RuleError>(())
//! ```
