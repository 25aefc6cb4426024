//! Calls over HTTP, as curl would make them.

use std::future::Future;

use reqwest::Method;
use serde_json::Value;

use crate::PATIENCE;

/// An answer over HTTP.
#[derive(Debug)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Content type.
    pub kind: String,
    /// Header `retry-after`; empty if there is none.
    pub retry_after: String,
    /// The whole body.
    pub text: String,
}

impl Answer {
    /// Parses the body, which must be JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{self:?} is no JSON: {e}"))
    }

    /// Formats a problem document as `STATUS CODE: DETAIL`, and checks that it has a hint.
    #[track_caller]
    pub fn problem(&self) -> String {
        assert_eq!(self.kind, "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        for field in ["title", "hint"] {
            assert!(!text(&problem[field]).is_empty(), "no {field}: {problem}");
        }
        let (code, detail) = (text(&problem["code"]), text(&problem["detail"]));
        format!("{} {code}: {detail}", self.status)
    }
}

/// Makes a request; a body is JSON. It is an error if no whole answer came.
pub fn try_ask(
    method: Method,
    url: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> Result<Answer, String> {
    block_on(async {
        let mut request = client().request(method, url).timeout(PATIENCE);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_owned());
        }
        let answer = request.send().await.map_err(|e| format!("{url}: {e}"))?;
        let header = |name: &str| {
            let value = answer.headers().get(name);
            let value = value.and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        Ok(Answer {
            status: answer.status().as_u16(),
            kind: header("content-type"),
            retry_after: header("retry-after"),
            text: answer.text().await.map_err(|e| format!("{url}: {e}"))?,
        })
    })
}

/// Makes a request that must be answered.
#[track_caller]
pub fn ask(method: Method, url: &str, body: Option<&str>) -> Answer {
    try_ask(method, url, &[], body).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the body of an answer, byte for byte. Its status must be a success.
#[track_caller]
pub fn bytes(url: &str) -> Vec<u8> {
    let body = block_on(async {
        let request = client().get(url).timeout(PATIENCE);
        let answer = request.send().await?.error_for_status()?;
        answer.bytes().await
    });
    body.unwrap_or_else(|e| panic!("{url}: {e}")).to_vec()
}

/// Returns a value that must be a text.
#[track_caller]
pub fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
}

/// Waits for a future on this thread.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .expect("a runtime of one thread needs nothing that could be missing")
        .block_on(work)
}

/// Installs the cryptography for clients of this process; each client needs it, even without encryption.
pub fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread was faster, and then there is one.
        let _installed = rustls::crypto::ring::default_provider().install_default();
    }
}

/// Returns a client without proxies and certificates.
pub fn client() -> reqwest::Client {
    install_crypto();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]);
    client
        .build()
        .expect("a client without certificates can be built")
}
