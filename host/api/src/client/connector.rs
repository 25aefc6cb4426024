//! Encrypted connections of clients.
//!
//! The certificates are read again for each connection if their files have changed, so a client that runs for long
//! goes on with those of today.

use std::future::Future;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use hyper::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::AsyncBufReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::ConnectError;
use tower::Service;

use super::tls_fault::TlsFault;
use super::transport::CONNECT_DEADLINE;
use crate::tls::{ClientTls, HTTP2};

/// Time for which the first bytes of a server are waited for after the handshake. They come at once, unless the
/// server waits for this client to speak first.
const FIRST_BYTES: Duration = Duration::from_secs(2);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Encrypted = TokioIo<TlsStream<TcpStream>>;

/// Opens encrypted connections with the certificates of a client.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    tls: ClientTls,
}

impl Connector {
    pub(super) fn new(tls: ClientTls) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        Self { tcp, tls }
    }
}

impl Service<Uri> for Connector {
    type Response = Encrypted;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Encrypted, ConnectError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        let ready = Service::<Uri>::poll_ready(&mut self.tcp, context);
        ready.map_err(|error| ConnectError(error.into()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.tcp.call(uri.clone());
        let opened = open(connecting, uri, self.tls.clone());
        let in_time = async {
            match tokio::time::timeout(CONNECT_DEADLINE, opened).await {
                Ok(opened) => opened.map_err(ConnectError),
                Err(_elapsed) => {
                    let seconds = CONNECT_DEADLINE.as_secs();
                    let late = format!("no connection within {seconds} s");
                    Err(ConnectError(late.into()))
                }
            }
        };
        in_time.boxed()
    }
}

async fn open<E: Into<BoxError>>(
    connecting: impl Future<Output = Result<TokioIo<TcpStream>, E>>,
    uri: Uri,
    tls: ClientTls,
) -> Result<Encrypted, BoxError> {
    let stream = match connecting.await {
        Ok(stream) => stream.into_inner(),
        Err(error) => return Err(error.into()),
    };
    let config = crawler_process::task::blocking(move || tls.config()).await?;
    let config = config.map_err(TlsFault::Own)?;
    let name = server_name(&uri)?;
    let handshake = TlsConnector::from(config).connect(name, stream);
    let mut stream = handshake.await.map_err(|error| TlsFault::of(&error))?;
    if stream.get_ref().1.alpn_protocol() != Some(HTTP2) {
        return Err(TlsFault::NoHttp2.into());
    }
    // A server judges the certificate of its client only after the handshake of the client is done.
    let first = tokio::time::timeout(FIRST_BYTES, stream.fill_buf()).await;
    let is_end = first.map(|first| first.map(<[u8]>::is_empty));
    match is_end {
        Ok(Ok(true)) => Err(TlsFault::Closed.into()),
        Ok(Err(error)) => Err(TlsFault::of(&error).into()),
        Ok(Ok(false)) | Err(_) => Ok(TokioIo::new(stream)),
    }
}

/// Returns the name that the certificate of the server must have.
fn server_name(uri: &Uri) -> Result<ServerName<'static>, BoxError> {
    let host = uri.host().unwrap_or_default();
    let literal = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    Ok(ServerName::try_from(literal.unwrap_or(host).to_owned())?)
}
