//! A crawler whose crawl rules are WebAssembly components.

pub mod api;
pub mod cli;
pub mod clock;
pub mod config;
pub mod data;
pub mod fetch;
pub mod frontier;
pub mod master;
pub mod model;
pub mod plugin;
pub mod retry;
pub mod sink;
pub mod store;
pub mod task;
pub mod telemetry;
pub mod worker;
