//! The struct that `crawler shell` prints for `/rust` reads the page as the shell did.

#![allow(clippy::unwrap_used, reason = "a test")]

use crawler_plugin_sdk::prelude::*;
use crawler_plugin_sdk::testing::Trial;

// The tests of the shell compare its output with this file.
include!("shell/rows.txt");

struct Shop;

#[plugin(reads(Found))]
impl Shop {
    fn root(_: &mut Crawl) -> Result {
        Ok(())
    }

    #[rule]
    fn list(page: &Page, _: &mut Crawl) -> Result {
        let rows = page.extract::<Found>()?.rows;
        let read: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.r#type.as_str(),
                    row.link.as_deref(),
                    row.has,
                    row.bold.len(),
                )
            })
            .collect();
        assert_eq!(read, [("1", Some("/7"), true, 1), ("2", None, false, 2)]);
        Ok(())
    }
}

#[test]
fn a_table_becomes_a_struct_of_rows() {
    let html = "<li id=1><a href=/7>Seven</a><b>x</b><li id=2>none<b>y</b><b>z</b>";
    let page = Page::from_html("http://shop.test/", html);
    Trial::new().parse(Shop::list, &page).unwrap();
}
