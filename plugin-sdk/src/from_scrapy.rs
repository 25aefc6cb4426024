//! Coming from Scrapy: the words side by side.
//!
//! | Scrapy 2.13 | here |
//! |---|---|
//! | a project of spiders | a cargo package for each plugin; a plugin is what a spider is |
//! | `start_urls`, `start()` | `fn root`, called once for a run |
//! | a callback, `parse` | `#[rule] fn list(page: &Page, crawl: &mut Crawl) -> Result`; a request names it as `Self::LIST` |
//! | spider arguments, `-a tag=humor` | params, `--param tag=humor`, declared with their defaults in `#[plugin(params(…))]` ([`Param`](crate::Param)); [`Crawl::config`](crate::Crawl::config) |
//! | `response.css("h1::text").get()` | a field `#[css("h1")] title: String` of a struct that derives [`Extract`](crate::Extract) |
//! | `.get(default="")`, `.getall()` | `Option<T>` or key `default`; `Vec<T>` |
//! | `::attr(href)` | key `attr = "href"` |
//! | `.re_first(r"…")`, `.re()` | key `regex = "…"` |
//! | `for row in response.css(…)` | `#[rows("…")] rows: Vec<Row>` |
//! | `response.xpath(…)` | no XPath; [`Page::dom`](crate::Page::dom) takes all of CSS |
//! | `response.follow_all(css=…)` | a field of [`Links`](crate::Links), and [`Crawl::follow_links`](crate::Crawl::follow_links) |
//! | `LinkExtractor(allow=…, deny=…, allow_domains=…)` | [`page.links()`](crate::Page::links) with [`matching`](crate::PageLinks::matching), [`not_matching`](crate::PageLinks::not_matching), [`within_host`](crate::PageLinks::within_host) |
//! | `CrawlSpider`, `Rule(LinkExtractor(…), callback)` | `crawl.follow_links(&page.links().matching("…"), Self::DETAIL)?`, see the [recipe](crate::cookbook#all-links-of-a-site) |
//! | `MapCompose(dateparser.parse)`, `price_parser` | fields of type [`Date`](crate::Date), [`DateTime`](crate::DateTime) and [`Money`](crate::Money) |
//! | `response.follow(href, self.parse)` | [`Crawl::follow`](crate::Crawl::follow); relative addresses are resolved against the URL of the page, where Scrapy heeds `<base href>`: here [`Links`](crate::Links) do |
//! | `yield Request(url, callback, meta=…, cb_kwargs=…)` | [`Crawl::request`](crate::Crawl::request); up to 4 KiB of [`state`](crate::Request::state) |
//! | `FormRequest`, `FormRequest.from_response` | [`Request::form`](crate::Request::form), [`Form`](crate::Form) |
//! | `JsonRequest`, `response.json()` | [`Request::post`](crate::Request::post), [`Page::json`](crate::Page::json) |
//! | `dont_filter=True`, `priority=…` | [`reload`](crate::Request::reload), [`priority`](crate::Request::priority) |
//! | `yield Item(…)`, `ItemLoader` | [`Crawl::emit`](crate::Crawl::emit) of a struct that derives `Serialize` and [`Item`](derive@crate::Item), named in `items(…)` |
//! | an item pipeline, `DropItem` | functions between reading and emitting; see the [recipe](crate::cookbook::items#items-checked-and-enriched) |
//! | `raise CloseSpider` | [`RuleError::fatal`](crate::RuleError::fatal) |
//! | `get_retry_request` | [`RuleError::retry`](crate::RuleError::retry), [`retry_after`](crate::RuleError::retry_after), [`blocked`](crate::RuleError::blocked) |
//! | `handle_httpstatus_list`, `handle_httpstatus_all` | [`accept_status`](crate::Request::accept_status), [`accept_statuses`](crate::Request::accept_statuses) and [`accept_any_status`](crate::Request::accept_any_status) of a request; without them rules get pages with status 200 to 299; a page with 404 or 410 is done, and others are tried again or given up by the crawler |
//! | `response.request.headers["Referer"]` | [`Page::referrer`](crate::Page::referrer); it is kept with the request, and no header `referer` is sent unless the rule sets one |
//! | `allowed_domains`, `OffsiteMiddleware` | the hosts of the root requests, and setting `scope`: `--scope example.org` |
//! | `SitemapSpider`, `XMLFeedSpider` | see the [recipe](crate::cookbook::sitemaps) |
//! | `FilesPipeline`, `ImagesPipeline` | [`keep_body`](crate::Request::keep_body) of a request, see the [recipe](crate::cookbook#files) |
//! | `scrapy crawl`, `scrapy runspider -O items.jsonl` | `crawler run plugins/quotes -o items.jsonl`, which replaces the file; `.json` and `.csv` work too |
//! | `FEEDS` | the ending of `crawler run -o`: `.jsonl`, `.json` or `.csv`; the items of a resource are kept by the crawler: `crawler items NAME` |
//! | `JOBDIR` | every crawl of a cluster or of `crawler up` goes on where it was |
//! | `scrapy shell URL` | `crawler shell URL` |
//! | `scrapy check`, contracts | `cargo test`: rules are functions, see [`testing`](crate::testing) |
//! | `scrapyd`, `scrapyd-deploy` | `crawler plugin push`, `crawler resource add` |
//! | `DOWNLOAD_DELAY`, `CONCURRENT_REQUESTS`, `DEPTH_LIMIT`, `ROBOTSTXT_OBEY` … | settings of a resource; `host/docs/src/reference/settings.md` shows them beside Scrapy's, with the defaults of both |
//! | `AUTOTHROTTLE_ENABLED` | on: the delay of a host grows with the time that its answers take |
//! | downloader middlewares, extensions, signals | none: what they are mostly written for (agents, proxies, retries, cookies, throttling) are settings |
//! | `print`, `self.logger` | [`info!`](crate::info) and the like: `crawler resource logs NAME`, or the terminal of `crawler run` |
//!
//! Three things are not as in Scrapy:
//!
//! - A rule keeps nothing. There is no `self` that lives from page to page, because the next page may be on
//!   another machine; state for it travels with its request.
//! - A call counts as a whole. If a rule fails, none of its items and requests are kept; if it is tried again,
//!   none are made twice.
//! - Sites are treated politely unless somebody says otherwise: robots.txt counts, and a host is asked once a second.
