//! A crawler whose crawl rules are WebAssembly components.
//!
//! Masters hand named *resources* (crawls) to workers and distribute their rules by name. Workers load a rule
//! into a sandbox when a resource is assigned to them, and crawl. This text is the architecture: it says only
//! what holds.
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
//! | shard | one part of a resource, by host; the unit that is assigned, fenced and moved |
//! | node | a master or worker process: id, address, incarnation (random, new at each start) |
//! | epoch | grows with each assignment of a shard |
//! | frontier | all URLs of one shard with their state, its seen-set, host clocks and outbox |
//! | item | one JSON record that a rule emits, with a key that makes writing it twice harmless |
//! | sink | where items go |
//! | store | small, strongly consistent records; never pages, URLs or plugin bytes |
//! | data root | the folder that holds everything large: plugin bytes, frontiers and items |
//!
//! # Layers
//!
//! Arrows point down only; a test checks that.
//!
//! ```text
//! L5  main, app                   composition root: the only place that names backends together
//! L4  api, cli, config, demo      doors: gRPC, HTTP, command line, files
//! L3  master | worker | author    never each other
//! L2  store | plugin | fetch | frontier | sink | data      siblings never import each other
//! L1  clock, confine, task, retry, limiter, memory, telemetry
//! L0  model                       nouns; no IO
//! ```
//!
//! A layer that needs something from above it declares a trait that is implemented there:
//! [`master::WorkerCalls`] and [`plugin::FetchBytes`] over gRPC in `api`, [`plugin::LoadRules`] over masters,
//! data root and engine in `app`.
//!
//! # The way of one crawl
//!
//! ```text
//! plugin push ──▶ master: admission in a child process, bytes to the data root by digest,
//!                 then the record name@version -> digest
//! resource add ─▶ master: one transaction: resource, shard and, if a worker fits, its assignment;
//!                 otherwise it is Pending with the reason
//! worker ───────▶ sees its assignment, loads the plugin by digest (compiled code is cached),
//!                 opens the frontier, which ends the writing of whoever had it before,
//!                 calls root() once per run
//!                 loop: new host  -> its name looked up, its robots.txt read -> ready
//!                       ready URL -> guard, host gate, fetch -> fresh instance, parse -> one commit
//!                       (page done, new URLs, items into the outbox, host clock)
//!                 beside it: what is durable in the outbox -> line file, synced, then in one batch:
//!                       outbox emptied, length of the file
//!                 and links to other shards -> their owners
//!                 nothing left: the frontier is closed, the shard is idle
//! master ───────▶ an idle shard is finished, its assignment removed
//! ```
//!
//! Desired state is written first and placed later. The write is the message; a watch only wakes a loop that
//! looks at the whole state again.
//!
//! # Placement
//!
//! A shard goes to the least loaded worker among those that may have it ([`master::placement`]): workers that
//! have room and the labels of its selector, run an interface as new as its plugin, and have no resource that
//! it is kept apart from. `near` another resource is a wish, not a condition: if that resource is not placed,
//! or its worker is full, the shard goes anywhere. Loads are summed up from the assignments each time. A
//! resource that no worker may have is Pending, with a count of each reason.
//!
//! The shards of a missing worker are placed anew at once, unless all workers, or at least three and more
//! than a third, vanished within one lease time, or the leader is in its first lease time. Then they wait for
//! one lease time more. A worker that starts anew gets its shards back.
//!
//! A running shard stays where it is, with these exceptions: its worker drains, does not fit it any more, or
//! has more than its share for a while ([`master::balance`]); its resource is paused, or another part of it
//! has failed. Then it is handed over. The leader writes that the shard is to be given back, and to whom it
//! goes. The owner ends the crawl, delivers the outbox, closes the frontier, and writes that nobody has the
//! shard, all under its epoch. Only then another worker gets it, under the next epoch. An owner that does not
//! get that far within `--handover-timeout` loses the shard all the same: the next one fences it by opening.
//! A new leader continues from the record.
//!
//! A worker that is told to end registers as draining first, and ends when nothing is assigned to it
//! any more, or `--drain-timeout` has passed.
//!
//! # What an update changes
//!
//! | field | holds |
//! |---|---|
//! | limits, delay, concurrency, budgets, weight, selector, near, apart | at once; a shard that is idle at its part of a budget goes on only when a link comes |
//! | scope, version of the plugin | for pages taken from then on; a page whose rule a version lacks is given up as `no-rule`, and tried again when another version comes |
//! | params, shards, another plugin | from the next run: `crawler resource restart` takes them |
//!
//! # Shards
//!
//! A resource may be split by host into up to 32 shards, each of which is placed and crawled by itself. Every
//! URL of a host is in one of them ([`model::links`]), so spacing per host within a resource concerns no
//! other shard. `root` runs in each, with the time at which the run began, and each keeps the root requests
//! of its hosts. `max-pages`, `max-bytes`, `max-disk` and `max-undelivered` are shared out evenly;
//! concurrency is that of each shard. A run with another number of shards uses nothing that earlier ones knew
//! of URLs, because a host may then be in another shard.
//!
//! A link to another shard's host is judged where it is found (scope, depth), and then belongs to the
//! frontier there until the other shard has it: the owner of the one gives it to the owner of the other
//! ([`worker::links`], `worker::others`), which answers once it is durable. Numbers identify links that come
//! a second time, so each is stored once, whichever process is killed on the way. Links to a shard without an
//! owner wait, and above 100 000 of them no page is taken.
//! A worker takes links from callers that show the token of its registration, which only the store tells, and
//! judges them again by its own root hosts, depth and shard.
//!
//! A shard with nothing left says that it is idle, and how many links it has sent to each other shard and
//! stored from it; before it stores another link it says that it is not idle ([`worker::receive`]). If all
//! shards are idle and the numbers agree, nothing is on its way, and the master finishes all at once.
//!
//! # Hosts
//!
//! A page holds a place among the `--concurrency` pages in flight only while it is fetched, parsed and
//! committed. The work before the first page of a host has places of its own: the host's name is looked up
//! and its robots.txt read ([`fetch::Fetch::prepare`]), for four hosts at once for each page that may be in
//! flight, 64 at least. While 4 096 hosts are ready and wait for their turn, only an eighth of these places
//! is used, because the results would be forgotten before they are used.
//!
//! The frontier knows a host's turn by its clocks, and the gate by those of all crawls of the process. A page
//! that comes early is put back with the time to come again, and holds nothing. If several crawls want one
//! host, the gate keeps a turn for each that it has sent away ([`fetch::gate`]). Redirects within a host,
//! which cannot be put back, give up their place while they wait.
//!
//! Workers of a cluster share the turns of hosts with a delay ([`fetch::turns`]). One of the registered
//! workers owns each host, and lends it to one worker at a time ([`worker::peers`] tells which workers there
//! are). Without the owner's answer, a worker fetches alone, at twice the delay. A page whose turn is another
//! worker's is put back like one that comes early.
//!
//! A host that cannot be reached (no address, no connection, no robots.txt) is put off with all its URLs, and
//! that is counted once and written at once. After as many failures in a row as a page has attempts, or twice
//! as many if the host has answered in this run, it is given up: its URLs come one by one and are given up
//! for the host's reason, until a longer time is over; then one of them tries again. An answer ends all that.
//!
//! # A cluster
//!
//! `crawler up` is a master and a worker in one process, on a store and a data root in one folder.
//! `crawler master` and `crawler worker` are the same parts as processes of their own, on etcd and a data
//! root that all of them see; any number of each.
//!
//! - One master leads ([`store::election`]): the one whose key in the store is oldest. Only it writes, and
//!   each of its writes is guarded by that key, so that late writes of a deposed leader are refused. It stops
//!   at two thirds of its lease without an answer, and gives the lead away when it ends.
//! - Every master takes every call. A call that changes something goes to the leader in one hop
//!   ([`api::forward`](api)), and again to the next leader if the lead changes hands: its request id is in
//!   the record that it makes, so that it is carried out once. Reads are answered by the master that is
//!   asked, from the newest state. A pushed plugin is admitted and stored by the master that got it; the
//!   leader checks the stored bytes itself and records them.
//! - A process belongs to the cluster once the store is connected, the data root was found to be this
//!   cluster's, and its id is registered under a lease ([`app`]). Before that, it answers calls with what it
//!   waits for. An id belongs to one process at a time.
//! - A worker fetches for as long as its lease is certain. If the store is away for longer, it keeps its
//!   frontiers open. Once it is registered again and a fresh look has shown that the shards are still its
//!   own, it continues without opening them anew. A new leader gives missing workers a lease time. So nothing
//!   moves because the store was away.
//! - Plugins come from any master by digest, and from the data root if none answers.
//! - Loops look at the whole again after each change, and now and then without one ([`store::changes`]): a
//!   watch only wakes them. A leader decides by a replica that a watch keeps up to date
//!   ([`master::replica`]): it may be a moment behind, and the guards of each write tell whether that
//!   mattered.
//!
//! The log of every master tells which nodes joined, left or changed, and so does `crawler node watch`
//! ([`master::roster`]).
//!
//! # The store
//!
//! Keys below `/crawler`, spelled in [`store::keys`]; values are JSON that a person can read. Two
//! stores keep one contract and pass one suite: a folder of this machine ([`store::embedded`]) and
//! etcd ([`store::etcd`]). Each record carries a `write_id`, so that a write whose answer was lost can
//! be told from a rival's.
//!
//! ```text
//! cluster                        id of this cluster; the data root holds the same
//! election/<lease>               a master that leads or would lead, under its lease: id, address
//! nodes/<role>/<id>              registration under the node's lease
//! plugins/<name>/<version>       digest, size, interface, what the plugin says of itself
//! resources/<name>               id, assigned node, generation, run, paused or not, plugin, params, limits, settings,
//!                                the last 16 calls that changed it
//! shards/<id>/<n>                owner and those before it, whom it goes to next, epoch, storage epoch,
//!                                state free|assigned|idle|revoking|finished|failed, why it waits, counts, links
//! reserved/<role>/<id>           a number that is one process's; goes an hour after the process
//! draining/<worker>              somebody has told it to give away what it has
//! assignments/<worker>/<id>/<n>  written with the shard, with its weight; a worker watches only its own prefix
//! deleting/<id>                  a deleted resource until its frontier is gone, and its items if they are to go
//! ended/<name>/<request>         a call that has added, changed or deleted what is in deleting; goes with it
//! status/<worker>                totals of a worker, under its lease
//! ids                            the mark below which no resource id is issued again
//! ```
//!
//! # What survives what
//!
//! The store and the data root survive a kill at any instruction, and so does a crawl: its frontier is a
//! database in the data root ([`frontier::durable`]), and the next owner of the shard continues the same run.
//! A crash costs fetching again the pages that were in flight, from being taken until their batch was
//! durable: 512 at most.
//!
//! - A page is taken in memory only; its ready record goes with the batch that ends it.
//! - A page has one batch, which is written whole: its end, the new URLs, the items, the host's clock, the
//!   totals. Pages that end at the same time share a batch. Batches are numbered, and an opening looks for
//!   gaps among the last 16 384.
//! - Items are delivered only once they are durable. A line file is synced first; the batch that empties the
//!   outbox then records how much of the file counts, and readers stop there. So no item is missing and none
//!   is there twice.
//! - Opening fences: [`worker`] reads the database's writer epoch, writes it into the shard's record
//!   under guard, and opens the database expecting it. Files of items are named by that epoch, so no
//!   two lives write to one file.
//! - A frontier that was created and is gone, is damaged, of another format or of another cluster is never
//!   begun anew: the crawl waits, with that as its named reason, and tries again.
//! - A worker whose lease is uncertain sends no request from the deadline on, whatever the store answers
//!   ([`worker::leave`]). Its frontiers stay open, and pages that are answered already are committed. When it
//!   is registered again, it looks at its assignments first: shards that are still its own continue
//!   unchanged, and the others end silently.
//! - An id belongs to one process: a second one waits two lease times and refuses, and one that finds
//!   another in its place ends.
//! - A clock that is set back holds up nothing: a frontier and its database have a time that only advances.
//! - A page that ends the process is found by trying those in flight one at a time, and is given up after
//!   three such ends ([`frontier::durable`], suspects).
//!
//! `crawler run` keeps its URLs in memory ([`frontier::memory`]), because it ends with its terminal.
//!
//! # What grows
//!
//! Each row has a bound, a part that removes what is beyond it, and a test of that name.
//!
//! | what | bound | removed by | setting | test |
//! |---|---|---|---|---|
//! | frontier of a deleted resource | its age since nobody writes to it | the master's loop, with its record | `--frontier-min-age` | `a_frontier_goes_at_its_age_and_the_items_stay_as_they_were_read` |
//! | URL states, seen URLs, hosts, patterns and totals over runs | the present run; states of the one before it too, and hosts that may not be asked yet | a sweep when a run begins | none | `a_new_run_begins_anew_and_what_the_last_left_goes`, `states_hosts_and_patterns_of_earlier_runs_go_once_nothing_needs_them` |
//! | dead letters | the URLs of the present run | the same sweep; `crawler frontier redrive` | `--max-pages` | `dead_letters_are_tried_again_by_reason` |
//! | a frontier on disk | 32 GiB over all shards, as of a look every 10 s; links beyond are refused | the sweep of a new run, the collector | `--max-disk` | `links_are_refused_and_counted_while_the_frontier_fills_its_disk`, `a_frontier_knows_how_many_bytes_it_has_on_disk` |
//! | items that wait for their sink | 100 000 a shard, and 256 MiB over all shards | the sink; no page is taken meanwhile | `--max-undelivered` | `no_page_is_taken_while_the_outbox_is_full_before_and_after_an_opening`, `no_page_is_taken_until_the_sink_has_caught_up` |
//! | links for other shards | those of the present run; 100 000 of a shard may wait | the shard they are for; the same sweep; no page is taken meanwhile | none | `links_of_earlier_runs_go_when_a_run_begins_and_numbers_begin_anew`, `no_page_is_taken_while_too_many_links_wait_before_and_after_an_opening` |
//! | items | none: they are what is crawled for | `crawler resource delete --purge` | none | `a_purge_waits_for_those_who_may_still_write_and_the_frontier_for_its_age` |
//! | line files | 256 MiB each, and one for each opening of a frontier that brings items | with the items; what does not count, with the frontier | none | `a_file_is_followed_by_the_next_at_its_bound_and_none_is_written_over`, `files_that_were_cut_to_their_marks_are_read_without_them` |
//! | replaced files of a frontier | logs 10 min and tables 1 h, but no sooner than 15 min after a compaction has replaced them; compactions 1 h, manifests 24 h; none longer than the setting and the time until the next look | the owner's collector | `--frontier-min-age` | `what_a_compaction_has_replaced_goes_at_its_age`, `a_short_age_holds_for_all_files` |
//! | URLs of a frontier in memory | 65 536, and 1 024 of one host and priority; within a minute 262 144 over all that a process has open: an even share, down to 1 024, and what the others leave; hosts whose turn comes later keep their clock and a cursor, half a kilobyte | the next host that has its turn sooner | none | `where_there_is_no_room_those_whose_turn_comes_last_sleep`, `urls_are_shared_evenly_and_who_has_many_gets_what_others_leave` |
//! | what waits to be written to a frontier, in memory | 64 MiB; 256 MiB over all that a process has open, down to 4 MiB each | the next write to the object store; no page is committed meanwhile | none | `many_frontiers_share_what_may_wait_to_be_written`, `a_page_larger_than_what_may_wait_to_be_written_is_committed_whole` |
//! | memory of a process with crawls, altogether | at 7/8 of the setting no page is taken and caches shrink, at all of it crawls are put back ([`memory`]) | the crawl that uses most closes its frontier | `--memory` | `a_hungry_crawl_is_put_back_and_ten_others_finish` |
//! | memory of all calls that run at once | half of the setting, each call with its limit `memory`; further ones wait | the end of a call | `--memory` | `calls_share_a_budget_of_bytes_and_wait_for_their_turn` |
//! | memories of calls that are over, kept for the next ones | 4 MiB each, a sixteenth of the setting altogether, one for each slot at the most | the next call | `--memory` | `warm_memories_are_a_part_of_what_calls_may_use` |
//! | URLs of `crawler run` in memory | 2 000 000; links beyond are refused | the end of the run | `--frontier-urls` | `links_beyond_the_bound_are_refused_and_counted` |
//! | fences of a frontier | one empty file for each opening | with the frontier | none | `fences_stay_and_a_dead_compaction_is_taken_over_soon` |
//! | marks of line files, and digests of plugins, in a frontier | one small record for each file; 32 bytes for each version of the plugin that has crawled | with the frontier | none | `a_frontier_goes_at_its_age_and_the_items_stay_as_they_were_read` |
//! | files that were never complete | an hour | a sweep every hour | none | `writes_that_were_cut_off_are_swept_after_an_hour_and_nothing_else_is` |
//! | compiled code | 2 GiB, the least used goes | the next one that is kept | `--compiled-size` | `the_least_used_code_goes_when_there_is_too_much` |
//! | plugin bytes | those of plugins that are there, and an hour longer | the leader's sweep every hour | `--plugin-size` each | `bytes_go_with_the_last_version_that_has_them`, `bytes_of_plugins_that_are_not_kept_go_and_other_files_stay` |
//! | the log of a crawl | 1 000 lines and 1 MiB, in memory; a line of more than 8 KiB is cut | the next line | none | `only_the_last_lines_are_kept`, `r05_the_log_of_a_crawl_is_bounded_in_bytes` |
//! | calls that a resource remembers | 16, each of 128 bytes | the next one; the deletion's record keeps them for as long as it is there | none | `a_call_that_is_sent_again_is_carried_out_once` |
//! | bodies of requests in hand, in memory | 256 MiB, the last eighth for small ones | the answer to a request; further ones are refused | `--request-memory` | `r03_bodies_beyond_the_budget_are_refused_until_it_is_free` |
//! | connections of clients | 4 096 of each listener | their end; one that sends nothing ends after 10 s | `--connections`, `--stall-timeout` | `r03_connections_beyond_the_cap_are_refused_others_go_on` |
//! | frontiers that are read for clients | 32 | the end of a read; further ones wait | `--frontier-readers` | `r03_reads_of_frontiers_wait_for_one_of_few_readers` |
//! | robots.txt of sites, in a worker | 65 536 origins and 64 MiB of rules, each of 500 KiB of file | those used least lately, for new ones | none | `those_used_least_lately_go_when_there_are_too_many_or_they_are_too_large` |
//! | addresses of names, in a worker | 50 000 names, each for as long as DNS says, from 30 s to 1 h; 10 000 answers that a name does not exist, each for 5 min at most | the next one that is asked for; time | `dns-min-ttl`, `dns-ttl` of `[fetch]` | `the_addresses_of_many_names_are_not_remembered_all` |
//! | hosts whose turns workers share, in a worker | 100 000 that it owns, and 100 000 that it asks for; further ones get no turn | the end of their delay | none | `hosts_beyond_the_bound_get_no_turn_until_there_is_room`, `hosts_that_are_not_asked_any_more_are_forgotten_and_others_bounded` |
//! | addresses of own nodes, in a worker | those that were registered in the last hour | a look every 30 seconds | none | `an_address_is_given_up_an_hour_after_its_node_left` |
//! | workers that were told to drain | one small record each | `crawler node drain --undo` | none | `a_worker_that_was_told_to_drain_gets_nothing_more_and_the_last_one_may_drain_too` |
//! | numbers of processes | one small record and lease each | an hour after the process was last there | none | `a_number_is_kept_while_its_process_runs_and_an_hour_longer` |
//! | the history of etcd | twice 100 000 revisions | the leader, where it is that long, and every 10 minutes | `--keep-revisions`, `--compact-interval` | `the_history_is_short_however_much_is_written_between_two_looks` |
//! | the store's log | 16 MiB beyond its records | a snapshot | none | `the_log_is_replaced_by_a_snapshot_when_it_has_grown` |
//!
//! # The boundary to plugins
//!
//! `plugin-sdk/wit/rules.wit` is the contract, and frozen: a component that was built for
//! `crawler:rules@0.1.0` runs on every later crawler. It grows by functions and interfaces that plugins may
//! import, and by keys of hints, each of which raises the version to 0.1.1 and so on; nothing that is there
//! changes (`tests/golden`). A component that was built for a version that a crawler does not have is refused
//! at push, with both versions ([`plugin::INTERFACE_VERSIONS`]). In a cluster of several versions, a plugin
//! goes to workers that are new enough.
//!
//! Every call gets a fresh instance in a fresh store. Fuel, processor time, wall time and memory are limited;
//! the output of a call is kept only if the call succeeds; WASI answers with nothing but constants. A killed
//! call costs one page.
//!
//! Behind the sandbox is the operating system, on Linux ([`confine`]): the process that compiles a plugin and
//! calls its `describe` has no files, no sockets and no other processes, and `worker`, `up` and `run` reach
//! only their own files. A process gives these rights up before it has read a byte of a plugin, and while it
//! has one thread: plugins that are folders are built before that, in `app`. `--confinement off` turns this
//! off; if the kernel lacks a part, the log tells which.
//!
//! A rule reads HTML by plans ([`crawler_extract`]). Its `describe` says which elements are rows and which
//! values are read from them, admission compiles that, and `page.extract` reads the page in one pass of the
//! host, without a document tree. One text and numbers that point into it cross to the guest; links that are
//! only followed stay with the host. The host's work is bounded by the limits of the call, and its fuel is
//! charged by formula, so that a page costs the same everywhere.

pub mod api;
pub mod app;
pub mod author;
pub mod cli;
pub mod clock;
pub mod config;
pub mod confine;
pub mod data;
pub mod demo;
pub mod fetch;
pub mod frontier;
pub mod limiter;
pub mod master;
pub mod memory;
pub mod model;
pub mod plugin;
pub mod retry;
pub mod sink;
pub mod store;
pub mod task;
pub mod telemetry;
pub mod worker;
