//! The orders of an account. The site shows a login form in place of each page behind it, as long as nobody has logged
//! in, and again when the session has ended.
//!
//! Every page behind the login goes to one rule. If the page is the form, the rule fills it in. The form is sent with
//! all fields that its page fills in, so a hidden token comes along. The crawler keeps the cookies of the site, also over
//! restarts. The address that was asked for travels with the request as its state, so that the rule of the answer can
//! ask for it again.
//!
//! `user` and `password` are the names of the fields in the page. A form without one of them is an error, and so is a
//! page that has neither the form nor orders: the site has changed, or the selectors here do not fit it.
//!
//! A run takes a page once, also if several addresses redirect to it. A second redirect to the form would be a
//! duplicate, which comes to no rule. Requests that ask for `reload` are exempt, and all but the first one do.
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
    /// An account without orders has an empty table.
    #[css("table.orders", present)]
    has_orders: bool,
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
            has_orders,
            orders,
            next,
        } = page.extract()?;
        if is_login {
            let mut form = page.dom().form_at("form#login")?;
            for field in ["user", "password"] {
                form.get(field)
                    .require(&format!("a field {field:?} in form#login"))?;
                form = form.set(field, crawl.config().require(field)?);
            }
            let request = form.request(Self::ANSWER).state(page.requested_url());
            return crawl.request(request.reload());
        }
        if !has_orders {
            let why = "the page has neither form#login nor table.orders";
            return Err(RuleError::unexpected(why));
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
