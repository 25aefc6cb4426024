use crawler_plugin_sdk::prelude::*;

#[derive(serde::Serialize)]
pub struct Author {
    name: String,
}

#[derive(Item, serde::Serialize)]
pub struct Book {
    title: String,
    by: Author,
}

#[derive(serde::Serialize)]
pub struct Review;

pub struct Books;

#[plugin(items(Book, Review))]
impl Books {
    fn root(_crawl: &mut Crawl) -> Result {
        Ok(())
    }

    #[rule]
    fn list(_page: &Page, _crawl: &mut Crawl) -> Result {
        Ok(())
    }
}

fn main() {}
