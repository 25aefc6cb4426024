//! `crawler file …`: a file that a rule wanted kept.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use crawler_proto as proto;
use futures::stream::StreamExt as _;

use super::{Failure, table, whole_file};
use crawler_api::client::Client;
use crawler_model::id::Digest;

#[derive(Debug, Args)]
#[command(
    after_help = "Items name the digests of files. The bytes are compared with the digest.\n\nExamples:\n  crawler file album 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 -o 7.png"
)]
pub(super) struct FileArgs {
    /// The resource, or the id of one that is deleted already
    name: String,
    /// The digest of the file: 64 hexadecimal digits
    digest: Digest,
    /// Write the file here, and replace what is there [default: print it, unless that is to a terminal]
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn run(args: FileArgs, client: Client) -> anyhow::Result<()> {
    if args.output.is_none() && io::stdout().is_terminal() {
        let what = "a terminal would act on what a site has put into the file";
        return Err(Failure::new(what, "name a file with -o, or pipe it elsewhere").into());
    }
    let request = proto::ReadFileRequest {
        name: args.name,
        digest: args.digest.to_string(),
    };
    let mut chunks = client.file(request).await?;
    let Some(output) = args.output else {
        while let Some(chunk) = chunks.next().await {
            table::print_text(&chunk?.chunk)?;
        }
        return Ok(());
    };
    let cannot_write = || format!("cannot write {}", output.display());
    let mut file = whole_file::create(&output).with_context(cannot_write)?;
    while let Some(chunk) = chunks.next().await {
        file.write_all(&chunk?.chunk).with_context(cannot_write)?;
    }
    file.persist(&output).with_context(cannot_write)?;
    Ok(())
}
