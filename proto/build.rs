//! Generates the code. `.cargo/protoc` finds the compiler of `.proto` files, so that nobody installs one.

use tonic_prost_build::Builder;

use shown::{FIELDS, Form, SHOWN};

#[path = "src/shown.rs"]
pub mod shown;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells build scripts through the environment"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/crawler.proto");
    let descriptors = std::path::PathBuf::from(std::env::var("OUT_DIR")?).join("crawler.bin");
    // Maps are sorted, so that their JSON has a stable order.
    let builder = tonic_prost_build::configure()
        .file_descriptor_set_path(descriptors)
        .btree_map(".");
    let builder = SHOWN.iter().fold(builder, |builder, message| {
        builder.message_attribute(message, "#[derive(serde::Serialize)]")
    });
    let with_serde = |builder: Builder, (field, form): &(&str, Form)| {
        builder.field_attribute(field, format!("#[serde({})]", form.attribute()))
    };
    let builder = FIELDS.iter().fold(builder, with_serde);
    builder.compile_protos(&["proto/crawler.proto"], &["proto"])?;
    Ok(())
}
