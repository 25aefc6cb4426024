//! A crawler whose crawl rules are WebAssembly components.
//!
//! Masters hand named *resources* (crawls) to workers and distribute their rules by name; workers
//! load a rule into a sandbox when a resource is assigned to them, and crawl. This text is the
//! architecture: what is written here holds, and what does not hold is not written here.
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | plugin | one WebAssembly component: the compiled rules of one crawl. A name and version never change their bytes |
//! | rule | a function inside a plugin: `root` gives the first requests, the others turn one page into items and further requests |
//! | resource | a named crawl to be run: plugin, params, limits. The unit that users add and delete |
//! | generation | grows with each change of a resource's spec |
//! | run | one pass over the site, from 1 |
//! | shard | one part of a resource; the unit that is assigned. Every resource has one, number 0 |
//! | node | a master or worker process: id, address, incarnation (random, new at each start) |
//! | epoch | grows with each assignment of a shard |
//! | frontier | all URLs of one shard with their state, its seen-set, host clocks and outbox |
//! | item | one JSON record that a rule emits, with a key that makes writing it twice harmless |
//! | sink | where items go |
//! | store | small, strongly consistent records; never pages, URLs or plugin bytes |
//! | data root | the folder that holds everything large: plugin bytes and items |
//!
//! # Layers
//!
//! Arrows point down only; a test keeps it so.
//!
//! ```text
//! L5  main, app                   composition root: the only place that names backends together
//! L4  api, cli, config, demo      doors: gRPC, HTTP, command line, files
//! L3  master | worker             never each other
//! L2  store | plugin | fetch | frontier | sink | data      siblings never import each other
//! L1  clock, task, retry, telemetry
//! L0  model                       nouns; no IO
//! ```
//!
//! What a layer needs from above it is a trait of its own that is implemented there:
//! [`master::WorkerCalls`] over gRPC in `api`, [`plugin::LoadRules`] over data root and engine in `app`.
//!
//! # The way of one crawl
//!
//! ```text
//! plugin push ──▶ master: admission in a child process, bytes to the data root by digest,
//!                 then the record name@version -> digest
//! resource add ─▶ master: one transaction: resource, shard and, if a worker fits, its assignment;
//!                 otherwise it is Pending with the reason
//! worker ───────▶ sees its assignment, loads the plugin by digest (compiled code is cached),
//!                 marks the shard as begun, calls root()
//!                 loop: ready URL -> guard, host gate, fetch -> fresh instance, parse -> one commit
//!                       (page done, new URLs, items into the outbox, host clock)
//!                 beside it: outbox -> line file, synced, then its committed length
//!                 nothing left: the shard is idle
//! master ───────▶ an idle shard is finished, its assignment removed
//! ```
//!
//! Desired state is written first and placed later. The write is the message; a watch only wakes a
//! loop that looks at the whole state again.
//!
//! # The store
//!
//! Keys below `/crawler`, spelled in [`store::keys`]; values are JSON that a person can read.
//!
//! ```text
//! cluster                        id of this cluster; the data root holds the same
//! nodes/<role>/<id>              registration under the node's lease
//! plugins/<name>/<version>       digest, size, interface, what the plugin says of itself
//! resources/<name>               id, assigned node, generation, run, plugin, params, limits, settings
//! shards/<id>/<n>                owner, epoch, state free|assigned|idle|finished|failed, counts
//! assignments/<worker>/<id>/<n>  written with the shard; a worker watches only its own prefix
//! deleting/<id>                  a deleted resource whose items are to go
//! ids                            the mark below which no resource id is issued again
//! ```
//!
//! # What survives what
//!
//! The store and the data root survive a kill at any instruction. The frontier lives in memory: a
//! crawl that is cut off by the end of its process begins again, as the next run, when a worker takes
//! it. Items of a run are durable once their line file's length is; a run's items are read together,
//! so that none is seen twice.
//!
//! # The boundary to plugins
//!
//! `plugin-sdk/wit/rules.wit` is the contract. Every call gets a fresh instance in a fresh store:
//! fuel, processor time, wall time and memory are limited; what a call hands over is kept only if the
//! call succeeds; nothing of WASI answers with anything but constants. A killed call costs one page.

pub mod api;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod data;
pub mod demo;
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
