//! An S3-compatible server in the process of a test.
//!
//! [`S3Server`] listens on a free port of the loopback interface and keeps one bucket in memory. Requests must be
//! signed with [`ACCESS_KEY`] and [`SECRET_KEY`]; any region is accepted. Every write is atomic, as in Amazon S3: of
//! several conditional writes of one object that expect the same state, exactly one succeeds. An ETag is the MD5 of the
//! content, so that writing the same content again gives the same ETag.
//!
//! A [`FaultPlan`] makes the server slow, unavailable or wrong, and can be changed while the server runs. Faults are
//! drawn from a seeded generator, one draw for each request in the order of arrival; the sequence is the same in every
//! run, but which request meets which fault depends on how the requests interleave.
//!
//! The server speaks HTTP/1.1 without TLS, and knows what `object_store` and common readers ask for: objects with
//! their metadata, ranges and conditions, multipart uploads, copies within the bucket, and listings in pages. Versions,
//! tags and access lists are not kept. Checksum headers are not compared; the signature covers the body already.

mod bucket;
mod conditions;
mod connection;
mod faults;
mod listing;
mod operations;
mod uploads;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tokio::runtime::{Builder, Runtime};

use connection::Requests;
use faults::Faults;
pub use faults::{FaultPlan, RequestCounts};
use operations::Operations;

/// Name of the only bucket.
pub const BUCKET: &str = "crawler";

/// Access key id that requests must be signed with.
pub const ACCESS_KEY: &str = "crawler-access-key";

/// Secret key that requests must be signed with.
pub const SECRET_KEY: &str = "crawler-secret-key";

/// A running server with one empty bucket; it stops, and its objects are gone, when it is dropped.
///
/// It runs on threads of its own. A test may block its own runtime, or pause its clock, and the server still answers.
#[derive(Debug)]
pub struct S3Server {
    address: SocketAddr,
    faults: Arc<Faults>,
    /// `None` only while the server is dropped.
    runtime: Option<Runtime>,
}

impl S3Server {
    /// Starts a server without faults.
    ///
    /// # Panics
    ///
    /// Panics if no port or thread is available.
    pub fn start() -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("s3-server")
            .enable_all()
            .build()
            .expect("a thread for the S3 server");
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port for the S3 server");
        listener
            .set_nonblocking(true)
            .expect("a listener that does not block");
        let address = listener.local_addr().expect("address of the S3 server");

        let faults = Arc::new(Faults::default());
        let mut service = S3ServiceBuilder::new(Operations::new(Arc::clone(&faults)));
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let requests = Arc::new(Requests::new(service.build(), Arc::clone(&faults)));
        runtime.handle().spawn(async move {
            let listener =
                tokio::net::TcpListener::from_std(listener).expect("a listener of this runtime");
            connection::accept(listener, requests).await;
        });
        Self {
            address,
            faults,
            runtime: Some(runtime),
        }
    }

    /// Returns the URL of the server, without the bucket: `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Replaces the faults of all requests that arrive from now on, and seeds the generator anew.
    pub fn set_faults(&self, plan: FaultPlan) {
        self.faults.set(plan);
    }

    /// Returns the numbers of requests since the start.
    pub fn requests(&self) -> RequestCounts {
        self.faults.counts()
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        // A runtime must not be waited for in another one, where most tests end.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests;
