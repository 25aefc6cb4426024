//! The chapter about the SDK for Python has the signatures and docstrings of its source.

use std::path::Path;
use std::process::Command;

#[test]
fn the_book_has_every_name_of_the_python_sdk() {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin-sdk/python");
    let reference = Command::new("python3")
        .arg("../tests/scripts/reference.py")
        .current_dir(sdk)
        .output();
    let Ok(reference) = reference else {
        println!("skipped: python3: there is none to read the SDK with");
        return;
    };
    let said = String::from_utf8_lossy(&reference.stderr);
    assert!(reference.status.success(), "{said}");
    let text = String::from_utf8(reference.stdout).expect("the reference is text");
    crawler_testing::book::check("reference/python.md", "names", &text);
}
