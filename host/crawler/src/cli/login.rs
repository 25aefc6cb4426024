//! `crawler login` and `crawler logout`: the access tokens of this user.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use crawler_proto as proto;

use super::called_masters::CalledMasters;
use super::{Failure, table};
use crate::config::Environment;

/// Largest number of bytes that are read as a token.
const TOKEN_MAX: u64 = 4_096;

#[derive(Debug, Args)]
#[command(
    after_help = "The token is read from --token-file, or from stdin; at a terminal it is not shown. Every command shows it to this\nmaster from then on. CRAWLER_TOKEN comes before it.\n\nExamples:\n  crawler login https://master.example:9091\n  crawler login https://master.example:9091 --token-file admin-token"
)]
pub(super) struct LoginArgs {
    /// The master, as --master names it
    #[arg(value_name = "URL")]
    url: String,
    /// File with the token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "It is forgotten on this machine only, and stays valid: `crawler access token revoke` takes it back.\n\nExample:\n  crawler logout https://master.example:9091"
)]
pub(super) struct LogoutArgs {
    /// The master
    #[arg(value_name = "URL")]
    url: String,
}

pub(super) async fn login(args: LoginArgs, masters: &CalledMasters) -> anyhow::Result<()> {
    let mut credentials = Environment::read().credentials()?;
    let token = match &args.token_file {
        Some(file) => {
            let text = std::fs::read_to_string(file);
            text.with_context(|| format!("cannot read {}", file.display()))?
        }
        None if io::stdin().is_terminal() => rpassword::prompt_password("Token: ")?,
        None => {
            let mut text = String::new();
            io::stdin().take(TOKEN_MAX).read_to_string(&mut text)?;
            text
        }
    };
    let token = token.trim();
    if token.is_empty() {
        let hint = "give it at the prompt, on stdin, or with --token-file FILE";
        return Err(Failure::new("there is no token", hint).into());
    }
    let client = masters.only(&args.url).connect().await?.with_token(token);
    let caller = client.caller().await?;
    if caller.token_id.is_empty() {
        let what = format!("{} asks for no token", args.url);
        return Err(Failure::new(what, "call it without a login").into());
    }
    credentials.keep(&args.url, token.to_owned())?;
    table::print_line(&format!("logged in to {} as {}", args.url, said(&caller)))?;
    Ok(())
}

pub(super) fn logout(args: &LogoutArgs) -> anyhow::Result<()> {
    let mut credentials = Environment::read().credentials()?;
    match credentials.forget(&args.url)? {
        true => Ok(table::print_line(&format!("logged out of {}", args.url))?),
        false => {
            let what = format!("there is no login to {}", args.url);
            let hint = format!("{} has the logins", credentials.path().display());
            Err(Failure::new(what, hint).into())
        }
    }
}

/// Describes a caller in one line.
pub(super) fn said(caller: &proto::Caller) -> String {
    let proto::Caller {
        subject,
        token_id: _,
        roles,
        namespaces,
        expires_at,
    } = caller;
    let mut line = match subject.as_str() {
        "" => "anybody".to_owned(),
        subject => subject.to_owned(),
    };
    line.push_str(": ");
    line.push_str(&roles.join(", "));
    if !namespaces.is_empty() {
        line.push_str(" of ");
        line.push_str(&namespaces.join(", "));
    }
    if *expires_at > 0 {
        line.push_str(", until ");
        line.push_str(&table::time(*expires_at));
    }
    line
}
