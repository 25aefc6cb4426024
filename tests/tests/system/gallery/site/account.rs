//! The orders of an account. A form with a token leads to them, and a session is good for two pages.

use std::sync::{Arc, Mutex, PoisonError};

use axum::response::Html;
use crawler_tests::web::{Asked, IntoResponse as _, Method, Response, Site, StatusCode};
use url::form_urlencoded::parse;

use super::html;

pub(crate) const USER: &str = "ann";
pub(crate) const PASSWORD: &str = "p & q+ü";

const PAGES_PER_SESSION: usize = 2;
const ORDERS: [&[(u32, &str, &str)]; 3] = [
    &[
        (7003, "2026-07-10", "£1,020.50"),
        (7002, "2026-07-02", "£8"),
    ],
    &[
        (6901, "2026-05-30", "EUR 3.30"),
        (6900, "2026-05-29", "£0.99"),
    ],
    &[(12, "2019-01-01", "£12.00")],
];

/// Number of logins so far, and pages that are left of the last session.
#[derive(Default)]
struct Session {
    n_logins: usize,
    n_left: usize,
}

/// Adds the account.
pub(super) fn orders(site: Site) -> Site {
    let session = Arc::new(Mutex::new(Session::default()));
    let of_login = Arc::clone(&session);
    site.handle("/account/login", move |asked| {
        let mut session = of_login.lock().unwrap_or_else(PoisonError::into_inner);
        let response = login(&asked, &mut session);
        async move { response }
    })
    .handle("/account/", |_| async {
        Html(html("Welcome", "<h1>Welcome</h1>"))
    })
    .handle("/account/orders", move |asked| {
        let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
        let response = list(&asked, &mut session);
        async move { response }
    })
}

fn cookie<'a>(asked: &'a Asked, name: &str) -> Option<&'a str> {
    let cookies = asked.headers.get("cookie")?.to_str().ok()?;
    let mut pairs = cookies.split("; ").filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

/// Returns the form, or takes it: a visit has a cookie, and the form has to have the token of the visit.
fn login(asked: &Asked, session: &mut Session) -> Response {
    if asked.method == Method::GET {
        return form(asked.nth, "");
    }
    let fields: Vec<(String, String)> = parse(&asked.body).into_owned().collect();
    let visit = cookie(asked, "visit").unwrap_or_default();
    let expected = [
        ("token", &*format!("t/{visit}=")),
        ("user", USER),
        ("password", PASSWORD),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    if visit.is_empty() || fields != expected {
        return form(
            asked.nth,
            "<p class=\"error\">Name or password is wrong.</p>\n",
        );
    }
    session.n_logins += 1;
    session.n_left = PAGES_PER_SESSION;
    let cookie = format!("session={}; Path=/account; HttpOnly", session.n_logins);
    let headers = [("location", "/account/".to_owned()), ("set-cookie", cookie)];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn form(visit: usize, error: &str) -> Response {
    let form = format!(
        "<form id=\"login\" method=\"post\">\n{error}<input type=\"hidden\" name=\"token\" value=\"t/{visit}=\">\n\
         <label>Name <input name=\"user\"></label>\n\
         <label>Password <input name=\"password\" type=\"password\"></label>\n\
         <label><input type=\"checkbox\" name=\"keep\"> Stay</label>\n<button>Log in</button>\n</form>"
    );
    let headers = [("set-cookie", format!("visit={visit}; Path=/account"))];
    (headers, Html(html("Log in", &form))).into_response()
}

fn list(asked: &Asked, session: &mut Session) -> Response {
    let is_open = cookie(asked, "session") == Some(&*session.n_logins.to_string());
    if !is_open || session.n_left == 0 {
        return (StatusCode::FOUND, [("location", "/account/login")]).into_response();
    }
    session.n_left -= 1;
    let page = asked
        .query
        .strip_prefix("page=")
        .and_then(|page| page.parse().ok());
    let page: usize = page.unwrap_or(1);
    let Some(orders) = ORDERS.get(page - 1) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let order = |(number, day, total): &(u32, &str, &str)| {
        format!(
            "<tr><td class=\"number\">{number}</td><td class=\"date\"><time datetime=\"{day}\">some day</time></td>\
             <td class=\"total\">{total}</td></tr>\n"
        )
    };
    let rows: String = orders.iter().map(order).collect();
    let mut main = format!(
        "<h1>Orders</h1>\n<table class=\"orders\">\n\
         <thead><tr><th>Number</th><th>Date</th><th>Total</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table>"
    );
    if page < ORDERS.len() {
        main += &format!("\n<a rel=\"next\" href=\"?page={}\">Older</a>", page + 1);
    }
    Html(html("Orders", &main)).into_response()
}
