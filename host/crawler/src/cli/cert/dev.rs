//! `crawler cert dev`: a CA and certificates for a cluster under development, in files of one folder.
//!
//! A file that is there is never overwritten. A key is for its owner only. The certificates name no node.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};

use crate::cli::{Failure, table};
use crawler_access::node::Host;
use crawler_process::clock::{Clock as _, SystemClock};

/// Hosts that the certificate of nodes is always for.
const THIS_MACHINE: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Time for which certificates are valid.
const VALID_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Time before now from which certificates are valid: the clocks of two machines may differ.
const VALID_SINCE: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Args)]
pub(in crate::cli) struct DevArgs {
    /// The folder for the files; it is made if it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Names and addresses by which nodes are called, beside localhost, 127.0.0.1 and ::1
    #[arg(long = "host", value_name = "NAME", value_delimiter = ',')]
    hosts: Vec<Host>,
}

/// A file that is written.
struct NewFile {
    name: &'static str,
    text: String,
    /// True if nobody but its owner may read it.
    is_secret: bool,
}

pub(super) fn run(args: &DevArgs) -> anyhow::Result<()> {
    let folder = std::path::absolute(&args.folder).context("DIR cannot be used")?;
    let Some(shown) = folder.to_str() else {
        let what = format!("the path {} is not UTF-8", folder.display());
        return Err(Failure::new(what, "a config file cannot name it; choose another one").into());
    };
    let files = files(&args.hosts, SystemClock.unix_millis())?;
    write_all(&folder, &files)?;
    table::print_text(usage(shown).as_bytes())?;
    Ok(())
}

/// Makes the CA, and what it issues.
fn files(hosts: &[Host], now: u64) -> Result<Vec<NewFile>, rcgen::Error> {
    let key = KeyPair::generate()?;
    let ca_key = key.serialize_pem();
    let mut ca = params(Vec::new(), "crawler development CA", now)?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = CertifiedIssuer::self_signed(ca, key)?;
    let this_machine = THIS_MACHINE.into_iter().map(str::to_owned);
    let hosts = this_machine.chain(hosts.iter().map(Host::to_string));
    let mut node = params(hosts.collect(), "crawler node", now)?;
    // Nodes call each other too.
    node.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let [node, node_key] = issue(node, &authority)?;
    let mut client = params(Vec::new(), "crawler client", now)?;
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let [client, client_key] = issue(client, &authority)?;
    let file = |name, text, is_secret| NewFile {
        name,
        text,
        is_secret,
    };
    Ok(vec![
        file("ca.pem", authority.pem(), false),
        file("ca.key", ca_key, true),
        file("node.pem", node, false),
        file("node.key", node_key, true),
        file("client.pem", client, false),
        file("client.key", client_key, true),
    ])
}

fn params(mut hosts: Vec<String>, name: &str, now: u64) -> Result<CertificateParams, rcgen::Error> {
    hosts.sort_unstable();
    hosts.dedup();
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name.push(DnType::CommonName, name);
    let now = date_time_ymd(1970, 1, 1) + Duration::from_millis(now);
    params.not_before = now - VALID_SINCE;
    params.not_after = now + VALID_FOR;
    Ok(params)
}

/// Returns a certificate and its key.
fn issue(
    mut params: CertificateParams,
    authority: &CertifiedIssuer<'_, KeyPair>,
) -> Result<[String; 2], rcgen::Error> {
    let key = KeyPair::generate()?;
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, authority)?;
    Ok([certificate.pem(), key.serialize_pem()])
}

/// Writes the files, unless one of them is there.
fn write_all(folder: &Path, files: &[NewFile]) -> anyhow::Result<()> {
    let is_there = |file: &&NewFile| folder.join(file.name).symlink_metadata().is_ok();
    if let Some(present) = files.iter().find(is_there) {
        let what = format!("{} is there already", folder.join(present.name).display());
        let hint = "name another folder, or remove its certificates and keys yourself";
        return Err(Failure::new(what, hint).into());
    }
    let made = std::fs::create_dir_all(folder);
    made.with_context(|| format!("cannot make the folder {}", folder.display()))?;
    for file in files {
        let path = folder.join(file.name);
        let written = write(&path, file);
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn write(path: &Path, file: &NewFile) -> io::Result<()> {
    let mode = if file.is_secret { 0o600 } else { 0o644 };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    options.open(path)?.write_all(file.text.as_bytes())
}

/// Returns what the config files of nodes and the environment of clients need.
fn usage(folder: &str) -> String {
    let path = |name: &str| format!("{}/{name}", folder.trim_end_matches('/'));
    let value = |name: &str| toml::Value::String(path(name)).to_string();
    let word = |name: &str| shell_word(&path(name));
    format!(
        "The certificates in {folder} are valid for 30 days.\n\n\
         For the config file of each node:\n\n\
         [tls]\ncertificate = {}\nkey = {}\nclient-ca = {}\nca = {}\n\n\
         For clients:\n\n\
         export CRAWLER_CA={}\nexport CRAWLER_CERTIFICATE={}\nexport CRAWLER_KEY={}\n",
        value("node.pem"),
        value("node.key"),
        value("ca.pem"),
        value("ca.pem"),
        word("ca.pem"),
        word("client.pem"),
        word("client.key"),
    )
}

/// Returns text as one word of a shell.
fn shell_word(text: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'-' | b'_');
    match text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests;
