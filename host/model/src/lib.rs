//! Nouns of the crawler: plain values that every layer shares.
//!
//! This crate does no IO, never waits, and knows neither WebAssembly nor gRPC. A value that can be wrong is
//! parsed once, here, into a type that cannot be; the layers above never check it again.

pub mod accept_status;
pub mod access;
pub mod canonical;
pub mod changes;
mod counts;
pub mod crawl;
pub mod drift;
pub mod event;
pub mod exchange;
pub mod frontier;
pub mod guest_text;
pub mod headers;
pub mod id;
mod item;
pub mod label;
pub mod links;
mod named_settings;
pub mod node;
mod number;
pub mod page;
pub mod parsed_by;
pub mod pattern;
pub mod placement;
pub mod plugin;
pub mod resource;
pub mod robots;
pub mod runs;
pub mod schedule;
pub mod scope;
pub mod settings;
mod shard;
pub mod statistics;
pub mod status;
pub mod suffix;
pub mod suggest;
mod text;
mod time;
pub mod visit;

pub use number::number;
