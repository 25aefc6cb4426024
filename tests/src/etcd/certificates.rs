//! Authority made for one test, and the certificates that it signs.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

use super::{is_installed, read};
use crate::process::Process;
use crate::{PATIENCE, skipped};

/// An authority with a certificate for 127.0.0.1 and one for a client.
#[derive(Debug, Clone)]
pub struct Certificates {
    folder: Arc<TempDir>,
}

impl Certificates {
    /// Makes new certificates. If openssl is not installed, it says so and returns `None`.
    pub fn new() -> Option<Self> {
        if !is_installed("openssl") {
            skipped("openssl", "openssl is not installed here");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("crawler-ca-").tempdir();
        let folder = Arc::new(folder.unwrap_or_else(|e| panic!("no temporary folder: {e}")));
        let path = folder.path();
        let ca = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
            -subj /CN=authority -keyout ca.key -out ca.pem";
        openssl(path, ca);
        for (name, extensions) in [
            (
                "server",
                "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n",
            ),
            ("client", "extendedKeyUsage=clientAuth\n"),
        ] {
            std::fs::write(path.join(format!("{name}.ext")), extensions)
                .unwrap_or_else(|e| panic!("no extensions of {name}: {e}"));
            let request = format!(
                "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name} \
                -keyout {name}.key -out {name}.csr"
            );
            openssl(path, &request);
            let signed = format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
                -extfile {name}.ext -out {name}.pem"
            );
            openssl(path, &signed);
        }
        Some(Self { folder })
    }

    /// Certificate of the authority.
    pub fn ca(&self) -> Vec<u8> {
        read(self.folder.path().join("ca.pem"))
    }

    /// Certificate of a client and its key.
    pub fn client(&self) -> (Vec<u8>, Vec<u8>) {
        let file = |name| read(self.folder.path().join(name));
        (file("client.pem"), file("client.key"))
    }

    pub(super) fn of_server(&self) -> Vec<String> {
        vec![
            self.argument("cert-file", "server.pem"),
            self.argument("key-file", "server.key"),
            self.argument("trusted-ca-file", "ca.pem"),
            "--client-cert-auth".to_owned(),
        ]
    }

    pub(super) fn of_client(&self) -> Vec<String> {
        vec![
            self.argument("cacert", "ca.pem"),
            self.argument("cert", "client.pem"),
            self.argument("key", "client.key"),
        ]
    }

    fn argument(&self, name: &str, file: &str) -> String {
        format!("--{name}={}", self.folder.path().join(file).display())
    }
}

fn openssl(folder: &Path, arguments: &str) {
    let mut command = Command::new("openssl");
    command
        .args(arguments.split_whitespace())
        .current_dir(folder);
    let ended = Process::start(&mut command).wait(PATIENCE);
    assert_eq!(ended.code, Some(0), "openssl {arguments}: {}", ended.stderr);
}
