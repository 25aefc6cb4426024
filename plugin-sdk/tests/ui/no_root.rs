use crawler_plugin_sdk::prelude::*;

pub struct Books;

#[plugin]
impl Books {
    #[rule]
    fn list(_page: &Page, _crawl: &mut Crawl) -> Result {
        Ok(())
    }
}

fn main() {}
