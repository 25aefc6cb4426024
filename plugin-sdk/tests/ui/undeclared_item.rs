use crawler_plugin_sdk::prelude::*;

pub struct Book;

pub struct Books;

#[plugin]
impl Books {
    fn root(_crawl: &mut Crawl) -> Result {
        Ok(())
    }

    #[rule]
    fn list(_page: &Page, crawl: &mut Crawl) -> Result {
        crawl.emit(&Book)
    }
}

fn main() {}
