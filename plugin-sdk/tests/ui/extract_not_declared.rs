use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Book {
    #[css("h1")]
    title: String,
}

pub struct Books;

#[plugin]
impl Books {
    fn root(_crawl: &mut Crawl) -> Result {
        Ok(())
    }

    #[rule]
    fn list(page: &Page, _crawl: &mut Crawl) -> Result {
        page.extract::<Book>()?;
        Ok(())
    }
}

fn main() {}
