//! The page is whole and asks for nothing else: every file is served as what it is, and names only files that are served.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use tower::ServiceExt as _;

use super::*;

/// Names of files that are not served: what tells their readers about the folder, code of the master, and tests.
const KEPT_BACK: [&str; 3] = ["vendor/README.md", "settings.rs", "tests.rs"];

async fn ask(path: &str, known: Option<&str>) -> Response {
    let mut request = Request::get(path);
    if let Some(known) = known {
        request = request.header(IF_NONE_MATCH, known);
    }
    let request = request.body(Body::empty()).unwrap();
    let answer = add_to(Router::<()>::new()).oneshot(request).await;
    answer.unwrap()
}

/// Returns the files of a folder and of those in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let of_path = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    };
    paths.flat_map(of_path).collect()
}

/// Returns what stands in quotes behind each `mark`.
fn quoted<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
    let rests = text.split(mark).skip(1);
    rests.filter_map(|rest| rest.split('"').next()).collect()
}

/// Returns the path of a file that another one names.
fn resolved(from: &str, name: &str) -> String {
    let base = url::Url::parse("http://master.test").unwrap();
    let target = base.join(from).unwrap().join(name).unwrap();
    assert_eq!(target.host_str(), base.host_str(), "{from} names {name}");
    target.path().to_owned()
}

#[tokio::test]
async fn every_file_is_served_with_its_type_and_its_bounds() {
    for asset in assets() {
        let answer = ask(asset.path, None).await;
        assert_eq!(answer.status(), StatusCode::OK, "{}", asset.path);
        let headers = answer.headers();
        for (name, value) in [
            (CONTENT_TYPE, asset.kind),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            (OPENER_POLICY, "same-origin"),
            (CACHE_CONTROL, "no-cache"),
        ] {
            assert_eq!(headers[&name], value, "{}: {name}", asset.path);
        }
        let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        assert_eq!(body, asset.text.as_bytes(), "{}", asset.path);
    }
}

#[test]
fn the_policy_allows_no_script_but_those_of_files() {
    assert!(POLICY.starts_with("default-src 'self';"));
    for word in ["unsafe", "http", "*", "data:"] {
        assert!(!POLICY.contains(word), "{word}");
    }
}

#[tokio::test]
async fn a_browser_that_has_a_file_does_not_get_it_again() {
    let first = ask("/", None).await;
    let tag = first.headers()[ETAG].to_str().unwrap().to_owned();
    for known in [&tag, &format!("\"other\", W/{tag}"), "*"] {
        let answer = ask("/", Some(known)).await;
        assert_eq!(answer.status(), StatusCode::NOT_MODIFIED, "{known}");
        assert_eq!(answer.headers()[ETAG], tag.as_str());
        assert_eq!(answer.headers()[CONTENT_SECURITY_POLICY], POLICY);
        assert!(to_bytes(answer.into_body(), 1).await.unwrap().is_empty());
    }
    let other = ask("/page/main.js", Some(&tag)).await;
    assert_eq!(other.status(), StatusCode::OK);
}

#[test]
fn every_file_of_the_folder_is_served() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/page");
    let found = files(&folder).into_iter().map(|path| {
        let name = path.strip_prefix(&folder).unwrap().to_str().unwrap();
        name.to_owned()
    });
    let found: BTreeSet<String> = found.filter(|name| !KEPT_BACK.contains(&&**name)).collect();
    let served = ASSETS.iter().map(|asset| match asset.path {
        "/" => "index.html".to_owned(),
        path => path.trim_start_matches("/page/").to_owned(),
    });
    assert_eq!(served.collect::<BTreeSet<_>>(), found);
}

#[test]
fn every_file_that_a_file_names_is_served() {
    let served: BTreeSet<&str> = ASSETS.iter().map(|asset| asset.path).collect();
    let mut n_named = 0;
    for asset in &ASSETS {
        let marks: &[&str] = match asset.kind {
            HTML => &["src=\"", "href=\""],
            SCRIPT => &["from \"", "from\"", "import \"", "import(\""],
            _ => &[],
        };
        let names = marks.iter().flat_map(|mark| quoted(&asset.text, mark));
        // The same words stand in texts, too, but file names have no white space.
        for name in names.filter(|name| !name.contains(char::is_whitespace)) {
            n_named += 1;
            let path = resolved(asset.path, name);
            assert!(served.contains(&*path), "{} names {name}", asset.path);
        }
    }
    assert!(n_named > 100, "{n_named}: names are not found any more");
}

#[test]
fn own_files_make_no_markup_out_of_text() {
    let own = ASSETS
        .iter()
        .filter(|asset| !asset.path.contains("/vendor/"));
    for asset in own {
        for word in [
            "innerHTML =",
            "outerHTML",
            "dangerouslySetInnerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "https://cdn",
            "url(",
            "@import",
        ] {
            assert!(!asset.text.contains(word), "{} has {word}", asset.path);
        }
    }
    let page = &ASSETS[0].text;
    assert!(!page.contains("<style") && !page.contains("style="));
    assert!(!page.contains("<script>") && !page.contains("onclick"));
}
