//! Crawls in turns, each compared with the first one.

use crawler_tests::peers::{Found, order};

use crate::Part;
use crate::crawler::Crawler;
use crate::measure::{self, Cost};
use crate::task::Task;

/// Number of differences that are shown of a part that is void.
const N_SHOWN: usize = 10;

/// Crawls of one part.
pub(crate) struct Runs {
    /// Pages and items that all of them have found.
    pub(crate) found: Found,
    /// Costs of the crawls that count, in the order of the crawlers.
    pub(crate) costs: Vec<Vec<Cost>>,
}

/// Lets all crawlers crawl a part, round by round. Returns why the part is void: a crawl has failed or found nothing, has
/// an item twice, or does not agree with the first one.
pub(crate) fn take(crawlers: &[Crawler], task: &Task<'_>, part: &Part) -> Result<Runs, String> {
    let mut costs: Vec<Vec<Cost>> = crawlers.iter().map(|_| Vec::new()).collect();
    let mut first: Option<(&Crawler, Found)> = None;
    for round in 0..=part.n_rounds {
        let is_warm_up = round == 0;
        for nth in order(crawlers.len(), usize::try_from(round).unwrap_or_default()) {
            let crawler = &crawlers[nth];
            if crawler.crawls_once && !(is_warm_up && part.with_single) {
                continue;
            }
            let (cost, found) = crawl(crawler, task)?;
            let (name, n_pages) = (crawler.name, found.pages.len());
            println!(
                "round {round}: {name}: {n_pages} pages in {:.1?}",
                cost.wall
            );
            match &first {
                None => first = Some((crawler, found)),
                Some((another, expected)) => agree(another, expected, crawler, &found)?,
            }
            if crawler.crawls_once || !is_warm_up {
                costs[nth].push(cost);
            }
        }
    }
    let (_, found) = first.expect("there are crawlers");
    Ok(Runs { found, costs })
}

fn crawl(crawler: &Crawler, task: &Task<'_>) -> Result<(Cost, Found), String> {
    let name = crawler.name;
    let mut begun = crawler.begin(task);
    let cost = measure::run(&mut begun.command).map_err(|why| format!("{name}: {why}"))?;
    let found = begun.found().map_err(|why| format!("{name}: {why}"))?;
    if found.pages.is_empty() {
        return Err(format!("{name} has found nothing"));
    }
    if let Some(url) = found.twice.first() {
        return Err(format!("{name} has an item of {url} twice"));
    }
    Ok((cost, found))
}

fn agree(one: &Crawler, expected: &Found, other: &Crawler, found: &Found) -> Result<(), String> {
    let mut differences = expected.differences(found);
    let n_differences = differences.len();
    if n_differences == 0 {
        return Ok(());
    }
    differences.truncate(N_SHOWN);
    Err(format!(
        "{} and {} do not agree on {n_differences} pages: {} and {} items. The first ones, as {} has them:\n{}",
        one.name,
        other.name,
        expected.n_items(),
        found.n_items(),
        other.name,
        differences.join("\n")
    ))
}
