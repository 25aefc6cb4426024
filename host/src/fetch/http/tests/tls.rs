//! What a certificate and a TLS stream must be. Authority, keys and certificates are made by each test.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use reqwest::Certificate;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::*;

/// What a server shows.
#[derive(Clone, Copy)]
enum Shown {
    /// For this name, between these years, from the authority that the client trusts.
    Vouched(&'static str, i32, i32),
    /// What nobody vouches for.
    OwnWord,
}

/// What the client trusts, what the server shows, and its key.
fn certificates(shown: Shown) -> (Certificate, CertificateDer<'static>, PrivateKeyDer<'static>) {
    let mut authority = CertificateParams::default();
    // Or one that vouches for itself would seem to name it.
    authority
        .distinguished_name
        .push(DnType::CommonName, "authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let of = |name: &str| CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = match shown {
        Shown::Vouched(name, from, to) => {
            let mut params = of(name);
            params.not_before = date_time_ymd(from, 1, 1);
            params.not_after = date_time_ymd(to, 1, 1);
            params.signed_by(&key, &authority).unwrap()
        }
        Shown::OwnWord => of("good.test").self_signed(&key).unwrap(),
    };
    let trusted = Certificate::from_pem(authority.pem().as_bytes()).unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    (trusted, certificate.der().clone(), key)
}

const GOOD: Shown = Shown::Vouched("good.test", 2000, 4000);

/// A server at `good.test` that shows this certificate, sends this and closes; properly, or not at all.
async fn outcome(shown: Shown, sent: &'static str, closes: bool) -> Result<Page, FetchError> {
    let settings = FetchSettings {
        hosts: [("good.test".to_owned(), vec!["127.0.0.1".parse().unwrap()])].into(),
        ..FetchSettings::default()
    };
    let mut fetcher = fetcher_with(&["127.0.0.0/8"], &[], settings.clone());
    let (authority, certificate, key) = certificates(shown);
    let builder = client::builder(&settings, fetcher.resolver.clone());
    fetcher.routes.direct = builder.tls_certs_only([authority]).build().unwrap();
    let config = rustls::ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![certificate], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "https://good.test:{}/",
        listener.local_addr().unwrap().port()
    );
    let tasks = TaskScope::new();
    tasks.spawn("web", async move {
        let (stream, _) = listener.accept().await.unwrap();
        let Ok(mut stream) = acceptor.accept(stream).await else {
            return;
        };
        let mut request = [0; 4_096];
        let _read = stream.read(&mut request).await;
        stream.write_all(sent.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        if closes {
            stream.shutdown().await.unwrap();
        }
    });
    let fetched = fetcher.fetch(get(url.parse().unwrap())).await;
    match fetched.map_err(|failure| failure.error)?.answer {
        Answer::Page(page) => Ok(*page),
        Answer::Elsewhere { to } => panic!("led to {to}"),
    }
}

const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhere";
const UNTIL_THE_END: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhere";

#[tokio::test]
async fn a_certificate_is_valid_now_for_the_name_and_from_an_authority() {
    let page = outcome(GOOD, WHOLE, true).await;
    assert_eq!(&page.unwrap().body[..], b"here");
    for (shown, expected) in [
        (Shown::Vouched("good.test", 2000, 2001), "expired"),
        (Shown::Vouched("good.test", 3999, 4000), "not valid yet"),
        (
            Shown::Vouched("other.test", 2000, 4000),
            "not valid for name",
        ),
        (Shown::OwnWord, "UnknownIssuer"),
    ] {
        let error = outcome(shown, WHOLE, true).await.unwrap_err();
        assert_eq!(error.reason(), "connection", "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// Whoever cuts the connection cannot make a part of a page look whole.
#[tokio::test]
async fn a_stream_that_is_cut_is_no_page() {
    let page = outcome(GOOD, UNTIL_THE_END, true).await.unwrap();
    assert_eq!(&page.body[..], b"here");
    let error = outcome(GOOD, UNTIL_THE_END, false).await.unwrap_err();
    assert_eq!(error.reason(), "connection", "{error}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn what_does_not_speak_tls_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let tasks = TaskScope::new();
    tasks.spawn("web", async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let plain = b"HTTP/1.1 400 this is http\r\n\r\n";
        stream.write_all(plain).await.unwrap();
        let _gone = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    });
    let error = error(get(url.parse().unwrap())).await;
    assert_eq!(error.reason(), "connection", "{error}");
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_given_up() {
    let settings = FetchSettings {
        connect_timeout: Duration::from_millis(200),
        ..FetchSettings::default()
    };
    let fetcher = fetcher_with(&["127.0.0.0/8"], &[], settings);
    // It waits for the end of a request, which never comes.
    let web = Web::saying("").await;
    let url = web.url("/").as_str().replace("http:", "https:");
    let failure = fetcher.fetch(get(url.parse().unwrap())).await.unwrap_err();
    assert_eq!(failure.error.reason(), "timeout", "{failure}");
}
