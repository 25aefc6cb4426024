//! Items in streams of a real NATS server, whatever happens to it and to those who publish.

mod crawl;
mod rights;
mod server;
mod suite;
mod trouble;
