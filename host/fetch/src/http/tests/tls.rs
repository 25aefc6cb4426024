//! Tests of TLS certificates and streams. Authority, keys and certificates are made by each test.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use reqwest::Certificate;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::*;
use crate::resolve::tests::silent;

/// Certificate that a server presents.
#[derive(Clone, Copy)]
enum Shown {
    /// A certificate for this name, valid between these years, from the authority that the client trusts.
    Vouched(&'static str, i32, i32),
    /// A self-signed certificate.
    OwnWord,
}

/// Returns the authority that the client trusts, the certificate that the server presents, and its key.
fn certificates(shown: Shown) -> (Certificate, CertificateDer<'static>, PrivateKeyDer<'static>) {
    let mut authority = CertificateParams::default();
    // Otherwise a self-signed certificate would seem to name the authority.
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

/// A TLS server, and the authority of its certificate.
pub(super) struct Secure {
    pub(super) address: SocketAddr,
    pub(super) authority: Certificate,
    _tasks: TaskScope,
}

impl Secure {
    /// Starts a server that is trusted for this name and runs `talk` on each connection.
    pub(super) async fn trusted<T: Future<Output = ()> + Send + 'static>(
        name: &'static str,
        talk: impl Fn(TlsStream<TcpStream>) -> T + Send + 'static,
    ) -> Self {
        Self::new(Shown::Vouched(name, 2000, 4000), &[], talk).await
    }

    /// Starts a server that negotiates one of these protocols; if there are none, ALPN is not used.
    async fn new<T: Future<Output = ()> + Send + 'static>(
        shown: Shown,
        protocols: &[&str],
        talk: impl Fn(TlsStream<TcpStream>) -> T + Send + 'static,
    ) -> Self {
        let (authority, certificate, key) = certificates(shown);
        let config = rustls::ServerConfig::builder().with_no_client_auth();
        let mut config = config.with_single_cert(vec![certificate], key).unwrap();
        let protocols = protocols.iter().map(|name| name.as_bytes().to_vec());
        config.alpn_protocols = protocols.collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, tasks) = (listener.local_addr().unwrap(), TaskScope::new());
        tasks.spawn("web", async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that does not trust the certificate leaves.
                if let Ok(stream) = acceptor.accept(stream).await {
                    talk(stream).await;
                }
            }
        });
        Self {
            address,
            authority,
            _tasks: tasks,
        }
    }

    /// Returns the outcome of fetching a page at `good.test` with these settings.
    async fn page(&self, settings: FetchSettings) -> Result<Page, FetchError> {
        let settings = FetchSettings {
            hosts: [("good.test".to_owned(), vec![self.address.ip()])].into(),
            ..settings
        };
        let fetcher = fetcher_with(&["127.0.0.0/8"], &[], settings);
        let url = format!("https://good.test:{}/", self.address.port());
        let fetched = fetcher.fetch(get(url.parse().unwrap())).await;
        match fetched.map_err(|failure| failure.error)?.answer {
            Answer::Page(page) => Ok(*page),
            Answer::Redirect { to } => panic!("led to {to}"),
        }
    }

    async fn page_for_who_trusts(&self) -> Result<Page, FetchError> {
        let settings = FetchSettings {
            ca: vec![self.authority.clone()],
            ..FetchSettings::default()
        };
        self.page(settings).await
    }
}

/// Reads a request, sends this text and closes, with or without a TLS closure alert.
pub(super) async fn say(mut stream: TlsStream<TcpStream>, sent: &'static str, closes: bool) {
    let mut request = [0; 4_096];
    let _read = stream.read(&mut request).await;
    stream.write_all(sent.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    if closes {
        stream.shutdown().await.unwrap();
    }
}

/// Returns the outcome of a page from a server with this certificate, for a client that trusts the authority.
async fn outcome(shown: Shown, sent: &'static str, closes: bool) -> Result<Page, FetchError> {
    let server = Secure::new(shown, &[], move |stream| say(stream, sent, closes)).await;
    server.page_for_who_trusts().await
}

pub(super) const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhere";
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

#[tokio::test]
async fn who_vouches_for_a_server_is_a_setting_and_whether_anybody_has_to() {
    for shown in [
        GOOD,
        Shown::OwnWord,
        Shown::Vouched("other.test", 2000, 2001),
    ] {
        let server = Secure::new(shown, &[], |stream| say(stream, WHOLE, true)).await;
        let error = server.page(FetchSettings::default()).await.unwrap_err();
        assert_eq!(error.reason(), "connection", "{error}");
        let trusting = FetchSettings {
            check_certificates: false,
            ..FetchSettings::default()
        };
        let page = server.page(trusting).await.unwrap();
        assert_eq!(&page.body[..], b"here");
    }
}

#[tokio::test]
async fn what_both_speak_is_spoken() {
    for (protocols, version) in [
        (&["h2", "http/1.1"][..], "2"),
        (&["http/1.1"], "1.1"),
        (&[], "1.1"),
    ] {
        let server = Secure::new(GOOD, protocols, move |stream| async move {
            match version {
                "2" => http2::serve(stream, http2::whole(b"here"), None).await,
                _ => say(stream, WHOLE, true).await,
            }
        });
        let page = server.await.page_for_who_trusts().await.unwrap();
        let spoken = (page.record.version, &page.body[..]);
        assert_eq!(spoken, (Some(version), &b"here"[..]));
    }
}

/// An attacker who cuts the connection cannot make a part of a page look complete.
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
    // The server waits for the end of a request, which never comes.
    let web = Web::saying("").await;
    let url = web.url("/").as_str().replace("http:", "https:");
    let failure = fetcher.fetch(get(url.parse().unwrap())).await.unwrap_err();
    let why = "it took longer than 200ms, as set by connect-timeout of [fetch] in the config file";
    assert_eq!(failure.error.to_string(), why);
}

#[tokio::test]
async fn a_resolver_that_does_not_answer_is_given_up() {
    let settings = FetchSettings {
        connect_timeout: Duration::from_millis(200),
        ..FetchSettings::default()
    };
    let address_policy = Arc::<AddressPolicy>::default();
    let fetcher = HttpFetcher::resolving(
        silent(Arc::clone(&address_policy)),
        settings,
        address_policy,
        Arc::default(),
        Arc::new(StoppedClock),
    );
    let fetcher = fetcher.unwrap();
    // The port of the first URL is checked before; that of the second is not.
    for url in ["http://a.test:25/", "http://a.test/"] {
        let failure = fetcher.fetch(get(url.parse().unwrap())).await.unwrap_err();
        let why =
            "it took longer than 200ms, as set by connect-timeout of [fetch] in the config file";
        assert_eq!(failure.error.to_string(), why, "{url}");
    }
}
