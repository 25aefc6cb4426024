//! The orders of an account. The site shows a login form in place of each page behind it, as long as nobody has logged
//! in, and again when the session has ended.
//!
//! Every page behind the login goes to one rule. If the page is the form, the rule fills it in. The form brings its
//! hidden token along, and the crawler keeps the cookies of the site, also over restarts. The address that was asked
//! for travels with the request as its state, so that the rule of the answer can ask for it again.
//!
//! A run takes a page once, also if several addresses redirect to it. A second redirect to the form would be a
//! duplicate, which comes to no rule. Requests that ask for `reload` are exempt, as all of these are.
//!
//! A login that is refused is fatal. The crawl fails with the reason that the site gives, and does not try the password
//! again until the account is locked. If a site takes the login and still shows the form, `--max-depth` ends the
//! circle.
//!
//! Whoever may read the resource can read its params, the password too.

use crawler_plugin_sdk::prelude::*;

/// A page behind the login, or the form in its place.
#[derive(Extract)]
struct Orders {
    #[css("form#login", present)]
    is_login: bool,
    #[rows("table.orders tbody tr")]
    orders: Vec<Order>,
    #[css("a[rel=next]", attr = "href")]
    next: Links,
}

#[derive(Extract, Item, serde::Serialize)]
struct Order {
    #[css("td.number")]
    number: u64,
    #[css("td.date time", attr = "datetime")]
    date: Date,
    #[css("td.total")]
    total: Money,
}

/// Answer to the form.
#[derive(Extract)]
struct Answer<'p> {
    #[css("form#login", present)]
    is_refusal: bool,
    #[css("form#login p.error")]
    why: Option<&'p str>,
}

/// The plugin.
pub struct Login;

#[plugin(
    items(Order),
    reads(Orders, Answer<'_>),
    params(
        start(about = "Address of the first page of orders"),
        user(about = "Account name"),
        password(about = "Password of the account")
    )
)]
impl Login {
    /// The first page of orders, or the form if there is no session.
    pub fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.follow(start, Self::ORDERS)
    }

    /// Orders, and the next page of them.
    #[rule]
    pub fn orders(page: &Page, crawl: &mut Crawl) -> Result {
        let Orders {
            is_login,
            orders,
            next,
        } = page.extract()?;
        if is_login {
            let form = page.dom().form_at("form#login")?;
            let form = form.set("user", crawl.config().require("user")?);
            let form = form.set("password", crawl.config().require("password")?);
            let request = form.request(Self::ANSWER).state(page.requested_url());
            return crawl.request(request.reload());
        }
        crawl.emit_all(&orders)?;
        crawl.follow_links(&next, Follow::by(Self::ORDERS).reload())
    }

    /// The site may answer with any page but the form.
    #[rule]
    pub fn answer(page: &Page, crawl: &mut Crawl) -> Result {
        let Answer { is_refusal, why } = page.extract()?;
        if is_refusal {
            let why = why.unwrap_or("it shows the form again");
            return Err(RuleError::fatal(format!("the login is refused: {why}")));
        }
        let asked = String::from_utf8(page.state().to_vec())?;
        crawl.request(Request::get(asked, Self::ORDERS).reload())
    }
}
