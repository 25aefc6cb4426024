use crawler_plugin_sdk::prelude::*;

pub struct Books;

#[plugin]
impl Books {
    fn root(_crawl: &mut Crawl) -> Result {
        Ok(())
    }

    #[rule]
    fn list(_crawl: &mut Crawl) -> Result {
        Ok(())
    }
}

fn main() {}
