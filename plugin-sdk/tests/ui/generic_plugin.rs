use crawler_plugin_sdk::prelude::*;

pub struct Books<T>(T);

#[plugin]
impl<T> Books<T> {
    fn root(_crawl: &mut Crawl) -> Result {
        Ok(())
    }

    #[rule]
    fn list(_page: &Page, _crawl: &mut Crawl) -> Result {
        Ok(())
    }
}

fn main() {}
