//! What users see of the whole system: real processes of the program on free ports and in temporary
//! folders, called by command line, HTTP and gRPC, crawling the fake web.
//!
//! One program for all of it, so that the tests run beside each other. Most crawl with the guest
//! `puppet`, which does what pages tell it, so that a test says in one place what is crawled.

mod access;
mod alone;
mod authors;
mod frontier;
mod grpc;
mod guests;
mod languages;
mod life;
mod masters;
mod nodes;
mod placement;
mod profile;
mod recrawl;
mod resources;
mod restart;
mod rules;
mod seeding;
mod server;
mod shards;
mod shell;
mod sites;
mod tutorial;
mod workbench;
