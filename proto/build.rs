//! Generates the code with a compiler of `.proto` files written in Rust, so that nobody installs one.

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells build scripts through the environment"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/crawler.proto");
    let descriptors = protox::compile(["crawler.proto"], ["proto"])?;
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(
        out.join("crawler.bin"),
        prost::Message::encode_to_vec(&descriptors),
    )?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
