use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct Forever {
    #[css("h1")]
    title: &'static str,
}

#[derive(Extract)]
struct Two<'a, 'b> {
    #[css("h1")]
    title: &'a str,
    #[css("h2")]
    subtitle: &'b str,
}

#[derive(Extract)]
struct Bytes<'a> {
    #[css("h1")]
    title: &'a [u8],
}

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

fn main() {}
