use crawler_plugin_sdk::prelude::*;

pub struct Books;

#[plugin(params(login(about = "Account name"), "start-url"))]
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
