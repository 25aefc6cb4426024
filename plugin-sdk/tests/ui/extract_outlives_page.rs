use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Book<'a> {
    #[css("h1")]
    title: &'a str,
}

pub struct Books;

#[plugin(reads(Book<'_>))]
impl Books {
    fn root(_crawl: &mut Crawl) -> Result {
        Ok(())
    }

    #[rule]
    fn list(_page: &Page, _crawl: &mut Crawl) -> Result {
        Ok(())
    }
}

fn title(page: Page) -> Result<&'static str> {
    Ok(page.extract::<Book<'static>>()?.title)
}

fn main() {
    let _ = title;
}
