//! The whole system as users see it: real processes of the program on free ports and in temporary folders, called
//! by command line, HTTP and gRPC, crawling the fake web.
//!
//! One program contains all tests, so that they run in parallel. Most crawl with the guest `puppet`, which does
//! what pages tell it, so that a test says in one place what is crawled.

mod access;
mod alone;
mod archive;
mod backup;
mod bench;
mod cache;
mod changes;
mod declared;
mod devtools;
mod doctor;
mod drift;
mod events;
mod file_sinks;
mod files;
mod first_week;
mod frontier;
mod gallery;
mod grpc;
mod guests;
mod installed;
mod languages;
mod life;
mod load;
mod masters;
mod metrics;
mod names;
mod nodes;
mod openapi;
mod outcomes;
mod output;
mod page;
mod pages;
mod placement;
mod profile;
mod recrawl;
mod resources;
mod restart;
mod rules;
mod schedules;
mod schemathesis;
mod sdk;
mod seeding;
mod server;
mod shards;
mod shell;
mod sinks;
mod sites;
mod statistics;
mod statuses;
mod tokens;
mod top;
mod traces;
mod tutorial;
mod webhooks;
mod workbench;
