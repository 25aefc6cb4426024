use crawler_plugin_sdk::prelude::*;

pub struct Books;

#[plugin]
impl Books {
    fn root(crawl: &mut Crawl) -> Result {
        crawl.follow("http://shop.test/", Self::LSIT)
    }

    #[rule]
    fn list(_page: &Page, _crawl: &mut Crawl) -> Result {
        Ok(())
    }
}

fn main() {}
