use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Tag {
    #[css("")]
    text: String,
}

struct Author;

pub struct Books;

#[plugin(reads(Tag, Author))]
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
