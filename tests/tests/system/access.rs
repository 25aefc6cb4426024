//! Through what and as whom a crawl fetches: what its worker's config file says, by name.

use crawler_tests::guests;
use crawler_tests::process::Home;

use crate::server::Server;
use crate::sites;

#[test]
fn s25_a_crawl_goes_through_the_proxies_that_it_names_and_shows_hosts_what_is_for_them() {
    // It does not mind being asked like a proxy: for whole URLs, of a host that is not there.
    let proxy = sites::chain(2).open();
    let home = Home::new();
    home.write("token", "t0k\n");
    let config = format!(
        "[hosts]\n\"shop.test\" = \"127.0.0.1\"\n\
         [proxies]\nabroad = [\"http://{}\"]\n\
         [credentials.shop]\nhosts = [\"shop.test\"]\ntoken-file = \"token\"\nplain-http = true\n\
         [[plugin]]\npath = {:?}\n\
         [[resource]]\nname = \"ready\"\nplugin = \"puppet\"\nproxy = \"abroad\"\ncredentials = \"shop\"\n\
         params = {{ start = \"http://shop.test/0\" }}\n",
        proxy.address(),
        guests::guest("puppet")
    );
    home.write("crawler.toml", &config);
    let server = Server::start_in(home, &[]);
    let ended = server.finished("ready");
    assert_eq!(ended["counts"]["parsed"], proxy.log().len());
    let header = |hit: &crawler_tests::web::Hit, name: &str| {
        let value = hit.headers.get(name).expect("it is sent");
        value.to_str().expect("it is ASCII").to_owned()
    };
    for hit in proxy.log() {
        assert_eq!(header(&hit, "host"), "shop.test");
        assert_eq!(header(&hit, "authorization"), "Bearer t0k");
    }
    // Its robots.txt is everybody's.
    let robots = &proxy.robots_log()[0];
    assert_eq!(header(robots, "host"), "shop.test");
    assert_eq!(robots.headers.get("authorization"), None);
}
