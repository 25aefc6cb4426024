//! Requests that forms send.

#![cfg(feature = "dom")]
#![allow(clippy::unwrap_used, reason = "a test")]

use crawler_plugin_sdk::prelude::*;
use crawler_plugin_sdk::testing::Trial;

const PAGE: &str = r##"
<form id="login" action="/login?next=1#top" method="POST" enctype="multipart/form-data">
  <input type="hidden" name="token" value="a&amp;b"> <input name="user"> <input name="user" value="twice">
  <input type="checkbox" name="stay" checked> <input type="checkbox" name="news" value="1">
  <input type="radio" name="kind" value="a"><input type="radio" name="kind" value="b" checked>
  <select name="lang"><option disabled>none<option value="en">English<option> German
    Swiss </select>
  <select name="tags" multiple><option selected>x<option>y<option selected>z</select>
  <textarea name="note">
two
lines</textarea>
  <input name="off" value="1" disabled><fieldset disabled><input name="off2" value="1"></fieldset>
  <input type="submit" name="go" value="Log in"><input type="file" name="photo"><input value="nameless">
</form>
<form id="search" action="find.html?old=1"><input type="search" name="q" value="a b"><button name="b">x</button></form>
<form id="bare"></form>"##;

struct Forms;

#[plugin(name = "forms", version = "1.0.0")]
impl Forms {
    fn root(_: &mut Crawl) -> Result {
        Ok(())
    }

    #[rule]
    fn page(page: &Page, crawl: &mut Crawl) -> Result {
        let dom = page.dom();
        let login = dom.form_at("#login")?;
        assert_eq!((login.get("token"), login.get("gone")), (Some("a&b"), None));
        let login = login
            .set("user", "ann")
            .set("password", "q & a")
            .without("note");
        crawl.request(login.request(Self::PAGE))?;
        crawl.request(dom.form_at("#search")?.set("q", "ü").request(Self::PAGE))?;
        crawl.request(dom.form_at("#bare")?.request(Self::PAGE))?;
        let missing = dom.form_at("#gone").unwrap_err();
        assert_eq!(
            missing.to_string(),
            "error: the page lacks an element `#gone`"
        );
        Ok(())
    }
}

#[test]
fn a_form_is_sent_as_a_browser_sends_it_without_a_button() {
    let page = Page::from_html("http://a.test/x/page.html?p=1", PAGE);
    let outcome = Trial::new().parse(Forms::page, &page).unwrap();
    let urls = [
        "http://a.test/login?next=1#top",
        "http://a.test/x/find.html?q=%C3%BC",
        "http://a.test/x/page.html?",
    ];
    assert_eq!(outcome.urls(), urls);
    let login = &outcome.requests[0];
    let body = String::from_utf8(login.body.clone().unwrap()).unwrap();
    assert_eq!(
        body,
        "token=a%26b&user=ann&stay=on&kind=b&lang=en&tags=x&tags=z&password=q+%26+a"
    );
    let content_type = ("content-type", "application/x-www-form-urlencoded");
    let content_type = (content_type.0.to_owned(), content_type.1.to_owned());
    assert_eq!(
        (login.method.as_str(), &login.headers),
        ("POST", &vec![content_type])
    );
    assert_eq!(
        (
            outcome.requests[1].method.as_str(),
            &outcome.requests[1].body
        ),
        ("GET", &None)
    );
}

#[test]
fn a_text_of_several_lines_is_sent_as_it_stands() {
    let page = Page::from_html("http://a.test/", PAGE);
    let form = page.dom().form_at("#login").unwrap();
    assert_eq!(form.get("note"), Some("two\nlines"));
    assert_eq!(form.get("lang"), Some("en"));
    let request = form.request(Forms::PAGE);
    let body = String::from_utf8(request.body.unwrap()).unwrap();
    assert!(body.ends_with("&note=two%0D%0Alines"), "{body}");
}
