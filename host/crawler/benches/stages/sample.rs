//! The page that all stages work on: one of usual size, of the web of `crawler bench`.

use crawler::bench::web::{Web, WebSettings};
use crawler::bench::{Share, host_name};
use tokio::runtime::{Builder, Runtime};
use url::Url;

const N_HOSTS: u32 = 16;
const PORT: u16 = 80;

/// A page, and its links as they are written in it.
pub(crate) struct Sample {
    pub(crate) url: Url,
    pub(crate) html: String,
    pub(crate) hrefs: Vec<String>,
}

impl Sample {
    /// Returns the addresses that the page links to.
    pub(crate) fn links(&self) -> Vec<Url> {
        let links = self.hrefs.iter().map(|href| self.url.join(href));
        links.map(|link| link.expect("it is an address")).collect()
    }
}

/// Returns the first page that is about as long as the median, 15 kB, and has about as many links as most.
pub(crate) fn sample() -> Sample {
    let web = Web::new(WebSettings {
        seed: 1,
        n_hosts: N_HOSTS,
        n_pages: 10_000,
        errors: Share::default(),
        redirects: Share::default(),
    });
    let usual = (N_HOSTS..web.n_pages())
        .map(|n| (n, web.links(n, PORT)))
        .filter(|(_, hrefs)| (30..40).contains(&hrefs.len()));
    let (n, hrefs, html) = usual
        .map(|(n, hrefs)| (n, hrefs, web.html(n, PORT)))
        .find(|(_, _, html)| (14_000..16_000).contains(&html.len()))
        .expect("one page in a hundred is like that");
    let url = format!("http://{}/article/{n}.html", host_name(n % N_HOSTS));
    Sample {
        url: url.parse().expect("it is an address"),
        html,
        hrefs,
    }
}

/// Returns an executor on this thread.
pub(crate) fn runtime() -> Runtime {
    let mut runtime = Builder::new_current_thread();
    runtime.enable_all().build().expect("a runtime starts")
}
