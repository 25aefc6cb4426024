//! Connections of the server: each request is counted, meets its fault or is answered, in this order.

use std::error::Error as _;
use std::future::poll_fn;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, DATE, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use s3s::dto::{Timestamp, TimestampFormat};
use s3s::service::S3Service;
use s3s::{Body, StdError};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;

use super::bucket;
use super::faults::{Fault, Faults, RequestKind};

/// Answers requests of all connections.
pub(super) struct Requests {
    service: S3Service,
    faults: Arc<Faults>,
}

/// Reason why a connection ends without an answer.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error("the connection is reset")]
    Reset,
    #[error("the answer is lost")]
    Lost,
    #[error("the request could not be answered")]
    Failed(#[source] StdError),
}

/// Serves all connections, each in a task of its own. The tasks end with the runtime of the server.
pub(super) async fn accept(listener: TcpListener, requests: Arc<Requests>) {
    let runtime = Handle::current();
    loop {
        // A client that went away before it was accepted is no reason to stop.
        if let Ok((stream, _)) = listener.accept().await {
            runtime.spawn(serve(stream, Arc::clone(&requests)));
        }
    }
}

async fn serve(stream: TcpStream, requests: Arc<Requests>) {
    // Without it, small answers wait for the client's delayed acknowledgement.
    let _else_answers_are_late = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let requests = Arc::clone(&requests);
        Box::pin(async move { requests.answer(request).await })
    });
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let result = poll_fn(|cx| connection.poll_without_shutdown(cx)).await;
    let no_answer = result
        .as_ref()
        .err()
        .and_then(|e| e.source()?.downcast_ref());
    if let Some(NoAnswer::Reset) = no_answer {
        // A socket that does not linger sends a reset when it is closed.
        let stream = connection.into_parts().io.into_inner();
        let _else_it_is_closed = stream.set_zero_linger();
    }
}

impl Requests {
    pub(super) fn new(service: S3Service, faults: Arc<Faults>) -> Self {
        Self { service, faults }
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, NoAnswer> {
        let (head, body) = request.into_parts();
        let treatment = self.faults.treat(kind(&head));
        // The body is read even if the request is refused: a client that is still sending could miss the answer.
        let body = read(Body::from(body)).await.map_err(NoAnswer::Failed)?;
        tokio::time::sleep(treatment.before).await;
        let mut response = match treatment.fault {
            Some(Fault::Expired) => refusal(
                StatusCode::FORBIDDEN,
                "ExpiredToken",
                "The provided token has expired.",
            ),
            Some(Fault::ReadOnly) => {
                refusal(StatusCode::FORBIDDEN, "AccessDenied", "Access Denied")
            }
            Some(Fault::Unavailable) => refusal(
                StatusCode::SERVICE_UNAVAILABLE,
                "SlowDown",
                "Please reduce your request rate.",
            ),
            Some(Fault::Reset) => return Err(NoAnswer::Reset),
            Some(Fault::LostAnswer) => {
                self.run(head, body).await?;
                return Err(NoAnswer::Lost);
            }
            None => self.run(head, body).await?,
        };
        tokio::time::sleep(treatment.after).await;
        response.headers_mut().insert(DATE, self.date());
        Ok(response)
    }

    async fn run(&self, head: Parts, body: Bytes) -> Result<Response<Body>, NoAnswer> {
        let request = Request::from_parts(head, Body::from(body));
        let response = self.service.call(request).await;
        response.map_err(|e| NoAnswer::Failed(e.into()))
    }

    fn date(&self) -> HeaderValue {
        let now = Timestamp::from(self.faults.shift(bucket::now()));
        let mut date = Vec::new();
        now.format(TimestampFormat::HttpDate, &mut date)
            .expect("a date fits into memory");
        HeaderValue::from_bytes(&date).expect("a date is ASCII")
    }
}

fn kind(head: &Parts) -> RequestKind {
    match head.method {
        Method::PUT => RequestKind::Put,
        Method::DELETE => RequestKind::Delete,
        Method::HEAD => RequestKind::Head,
        Method::POST => RequestKind::Post,
        // A page of a listing is asked of the bucket, whose path has no second slash.
        _ if head.uri.path().trim_matches('/').contains('/') => RequestKind::Get,
        _ => RequestKind::List,
    }
}

/// Reads a whole body.
pub(super) async fn read(
    body: impl futures::Stream<Item = Result<Bytes, StdError>>,
) -> Result<Bytes, StdError> {
    let whole = body.try_fold(BytesMut::new(), async |mut whole, chunk| {
        whole.extend_from_slice(&chunk);
        Ok(whole)
    });
    Ok(whole.await?.freeze())
}

fn refusal(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    );
    let mut response = Response::new(Body::from(xml));
    *response.status_mut() = status;
    let xml = HeaderValue::from_static("application/xml");
    response.headers_mut().insert(CONTENT_TYPE, xml);
    response
}
