use crawler_plugin_sdk::prelude::*;
use crawler_plugin_sdk::Link;

#[derive(Extract)]
struct Next {
    #[css("li.next a")]
    next: Links,
}

#[derive(Extract)]
struct Author {
    #[css("a.author", raw)]
    author: Option<Link>,
}

fn main() {}
