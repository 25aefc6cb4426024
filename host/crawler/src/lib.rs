//! A crawler whose crawl rules are WebAssembly components.
//!
//! Masters hand named *resources* (crawls) to workers and distribute their rules by name. Workers load a rule
//! into a sandbox when a resource is assigned to them, and crawl. The library is the program without its `main`;
//! it promises nothing to other crates.
//!
//! This text tells a contributor where things are. How the crawler works stands once, in the book: the chapters
//! below are files of `host/docs/src`.
//!
//! | about | chapter | modules |
//! |---|---|---|
//! | words such as shard, epoch and outbox | `design/words.md` | [`crawler_model`] |
//! | parts of the program and their layers | `design/layers.md` | all |
//! | one crawl from `plugin push` to its end | `design/way-of-a-crawl.md` | [`app`], [`crawler_master::control`], [`crawler_worker`], [`crawler_crawl`] |
//! | the leader, placement and hand-over | `design/placement.md` | [`crawler_store::election`], [`crawler_master::placement`], [`crawler_master::balance`], [`crawler_master::replica`] |
//! | shards, and links between them | `design/shards.md` | [`crawler_model::links`], [`crawler_crawl::peers`], [`crawler_worker::links`] |
//! | hosts, their turns and their failures | `reference/fetch.md` | [`crawler_fetch::throttle`], [`crawler_fetch::turns`], [`crawler_worker::peers`] |
//! | what survives what | `design/survival.md` | [`crawler_frontier::durable`], [`crawler_crawl::permit`], [`crawler_worker::lease_permit`] |
//! | TLS of listeners and clients | `operate/tls.md` | [`crawler_api::tls`] |
//! | what happened to a resource or a node | `operate/events.md` | [`crawler_master::events`], [`crawler_model::event`] |
//! | calls to others when a resource changes | `operate/webhooks.md` | [`crawler_master::webhooks`], [`crawler_api::webhooks`], [`crawler_fetch::webhook`] |
//! | runs that begin by themselves | `guide/schedules.md` | [`crawler_model::schedule`], [`crawler_master::control`] |
//! | pages that a run passes over | `guide/revisits.md` | [`crawler_model::visit`], [`crawler_model::parsed_by`], [`crawler_crawl`] |
//! | items compared from run to run | `guide/changes.md` | [`crawler_model::changes`], [`crawler_frontier::ItemComparison`], [`crawler_crawl`] |
//! | sinks of items, and what each gets | `guide/sinks.md`, `guide/file-sinks.md`, `guide/sql.md`, `guide/streams.md` | [`crawler_sink`], [`crawler_file_sink`], [`crawler_sql_sink`], [`crawler_message_sink`], [`crawler_frontier::ItemOutbox`], [`crawler_crawl::backlog`] |
//! | the page that browsers show | `guide/page.md` | [`crawler_api::http`] |
//! | records of the store | `operate/etcd.md` | [`crawler_store::keys`], [`crawler_store::changes`], [`crawler_store::embedded`], [`crawler_store::etcd`] |
//! | the cluster in a terminal | `operate/top.md` | [`cli`] |
//! | traces of pages and calls | `operate/traces.md` | [`crawler_process::traces`], [`crawler_api::client::traces`] |
//! | metrics, alerts and dashboards | `operate/metrics.md` | [`app`], [`crawler_process::metrics`] |
//! | backups of store and data root | `operate/backup.md` | [`crawler_backup`] |
//! | files of the data root, kept bodies | `operate/data-root.md`, `guide/files.md` | [`crawler_data`], [`crawler_sink`] |
//! | archives of crawls, and crawls of archives | `guide/archives.md` | [`crawler_archive`], [`crawler_fetch::tape`] |
//! | settings, and what an update changes | `reference/settings.md` | [`crawler_model::settings`], [`config`] |
//! | calls | `reference/http.md`, `reference/grpc.md`, `reference/cli.md` | [`crawler_api`], [`cli`] |
//! | the sandbox, and what is behind it | `design/way-of-a-crawl.md`, `reference/limits.md` | [`crawler_plugin`], [`crawler_extract`], [`crawler_process::confine`] |
//! | speed of a crawl, and where time goes | `reference/bench.md` | [`mod@bench`], [`crawler_process::stage`] |
//! | files that a change touches | `contribute/where-does-a-line-go.md` | |
//!
//! # Layers
//!
//! Each line is a crate below `host`, except `app`, `bench`, `cli`, `config` and `demo`: these are the modules of
//! this one. Crates depend on those of lower lines only; a test of the manifests checks that.
//!
//! ```text
//! L6  crawler                     composition root: the only place that names backends together
//! L5  api                         gRPC and HTTP, and the client
//! L4  master | worker | devtools  never each other
//! L3  crawl                       one run of one shard; without a store
//! L3  access | backup             over store and data root; never each other
//! L3  file-sink | sql-sink | message-sink   sinks beside those of L2, whose traits they implement; these never depend on each other
//! L2  store | plugin | fetch | frontier | sink | data | archive      siblings never depend on each other
//! L1  process                     clock, confine, task, retry, limiter, memory, metrics, stage, telemetry
//! L0  model                       nouns; no IO
//! ```
//!
//! A crate that needs something from above declares a trait that is implemented there:
//! [`crawler_master::WorkerCalls`] and [`crawler_plugin::FetchBytes`] over gRPC in `api`,
//! [`crawler_master::webhooks::SendWebhook`] over HTTP in `api`,
//! [`crawler_plugin::LoadRules`] over masters, data root and engine in [`app`],
//! [`crawler_crawl::permit::FetchPermit`] by the lease of a worker in `worker`.
//!
//! # Rules that hold everywhere
//!
//! - The desired state is written first and placed later. The write is the message; a watch only wakes a loop
//!   that looks at the whole state again ([`crawler_store::changes`]).
//! - Whoever writes a record of the store guards the write by what it has read. Values are JSON that a person
//!   can read, and carry a `write_id`, so that a write whose answer was lost can be told from a rival's.
//! - A page has one batch, which is written whole; an item is delivered only once it is durable
//!   ([`crawler_frontier::durable`]).
//! - The boundary to plugins, `plugin-sdk/wit/rules.wit`, only grows ([`crawler_plugin::INTERFACE_VERSIONS`]).
//! - Whatever grows has a bound, and a row in the table below.
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
//! | items that wait for the slowest sink | 100 000 a shard, and 256 MiB over all shards | the sink; no page is taken meanwhile | `--max-undelivered` | `removed_items_wait_for_room_in_the_outbox`, `no_page_is_taken_while_the_outbox_is_full_before_and_after_an_opening`, `no_page_is_taken_until_the_sink_has_caught_up`, `f33_a_slow_sink_pauses_the_crawl_at_its_bound` |
//! | items that wait for a verdict, in a frontier and in memory | those of windows of 40 pages, for 5 minutes; above 8 MiB, windows are judged although they are not full | the verdict | `--drift` | `pages_do_not_wait_longer_than_some_minutes`, `items_that_wait_reach_no_sink_until_they_pass` |
//! | held items, in a frontier | 100 000 items and 256 holds a shard, and 256 MiB over all shards; no page is taken meanwhile | `crawler quarantine` | `--max-undelivered` | `no_page_is_taken_while_too_many_items_are_held` |
//! | profiles of items, in a frontier | two, each of 1 MiB, 16 kinds, 16 hosts of a kind, 64 fields; further hosts are one group, and what has no room is not judged | the next run | none | `a_profile_has_so_many_hosts_kinds_and_bytes_at_most`, `a_shape_has_so_many_fields_at_most` |
//! | positions of sinks in a frontier | 8, one small record each | an opening after the resource has lost the sink | `--sink` | `a_sink_that_is_gone_holds_nothing_back` |
//! | items in the folder of a declared sink | none; files of 256 MiB each | whoever uses them | `max-file` of `[sink.NAME]` | `a_batch_larger_than_a_file_is_written_into_the_next` |
//! | files of a sink in partitions | none; up to 64 for each write, which has 8 MiB of items | whoever uses them | `max-file` and `max-wait` of `[sink.NAME]` | `a_plan_ends_at_its_bounds` |
//! | log of the compactions of a sink in partitions | none; two small objects for each file that was made, whose plan has 4 000 names at most | whoever removes the folder that it is about | none | `no_batch_has_more_files_than_a_plan` |
//! | plan of a write to files in partitions, in a frontier | one record for each such sink, with 64 paths at most | with the frontier | none | `a_plan_ends_at_its_bounds` |
//! | messages in the stream of a declared sink | none of the crawler: one for each item, and one for each 64 KiB of one that is too large, or fewer if the stream takes no more | the stream | none | `the_pieces_of_an_item_are_all_of_it` |
//! | items on their way to a stream or a webhook | four batches of a process for each stream, one post of a shard for each webhook, of 8 MiB and 1 MiB | the acknowledgement, or the end of `timeout` | `batch-items` and `batch-bytes` of `[sink.NAME]` | `a_batch_ends_at_its_bounds_and_has_one_item_at_least` |
//! | ids of messages that a stream has behind one that failed, in memory | one batch of a shard | the message that failed, once it is stored | `batch-items` of `[sink.NAME]` | `a_denied_subject_holds_back_its_own_messages_alone` |
//! | denials that a connection to a stream remembers | 1 000; the oldest goes | the next connection | none | `however_many_subjects_are_denied_others_go_on` |
//! | plan of a post to a webhook, in a frontier | one small record for each such sink | with the frontier | none | `a_plan_is_encoded_as_earlier_versions_did` |
//! | rows in the tables of a declared database | none: one for each item, or for each value of its `keys` | whoever uses them | `keys` of `[sink.NAME]` | `the_newest_version_wins_in_any_order` |
//! | versions in the tables of a declared database | none: one for each item that is added or changed | whoever uses them | `history` of `[sink.NAME]` | `each_version_of_an_item_has_a_row` |
//! | known items and their changes in a frontier | one item of each key, and the changes of as many runs as the setting says; both count for `--max-disk` | a complete run that has not seen the item; the sweep of a new run | `--changes` | `each_run_tells_what_differs_from_the_one_before`, `changes_of_the_latest_runs_are_kept`, `a_run_that_is_not_compared_ends_what_is_known` |
//! | links for other shards | those of the present run; 100 000 of a shard may wait | the shard they are for; the same sweep; no page is taken meanwhile | none | `links_of_earlier_runs_go_when_a_run_begins_and_numbers_begin_anew`, `no_page_is_taken_while_too_many_links_wait_before_and_after_an_opening` |
//! | record of who did what | its setting, and half a megabyte more for each master | the master whose part is full | `--audit-size` | `the_record_stays_within_its_bound` |
//! | join tokens | 1 000, and 500 nodes each | the next token, if they have expired; whoever revokes them | none | `no_more_join_tokens_are_made_than_are_kept`, `a_record_keeps_no_secret_and_fits_into_the_store` |
//! | revoked certificates of nodes | 10 000 nodes | the next revocation beyond, those that are a month old | none | `no_more_revocations_are_kept_than_are_of_use` |
//! | access tokens | 10 000 | whoever revokes them | none | `no_more_tokens_are_made_than_are_kept` |
//! | changes of resources, for those who watch them and for webhooks | as many as resources are there, and 10 000 at least; readers that are further behind begin anew | the next change | none | `the_log_of_changes_has_a_bound_and_tells_how_far_it_reaches`, `the_log_has_room_for_all_resources_that_are_there` |
//! | events that wait for a webhook | 4 MiB and 1 000; no more are read meanwhile, and a resource that changes again is told once | the receiver; an event is given up after 10 calls | `max-queued`, `max-attempts` of `[webhook.NAME]` | `events_wait_within_their_bound_and_the_rest_is_told_later`, `a_failed_call_is_made_again_and_given_up_at_its_bound` |
//! | positions of webhooks | 30 days after a leader last had the webhook | the leader, every hour | none | `a_position_goes_when_no_leader_has_had_its_webhook_for_long` |
//! | items | none: they are what is crawled for | `crawler resource delete --purge` | none | `a_purge_waits_for_those_who_may_still_write_and_the_frontier_for_its_age` |
//! | kept files | 10 GiB in a run over all shards, each of 64 MiB; pages with further ones are given up | `crawler resource delete --purge` | `--max-kept`, `--max-file` | `files_beyond_the_quota_are_given_up_and_told_once`, `a_purge_waits_for_those_who_may_still_write_and_the_frontier_for_its_age` |
//! | archives | none: they are what is asked for; files of 1 GiB, and one for each opening of a frontier that brings pages | `crawler resource delete --purge` | `--archive`, `--archive-size` | `a_file_is_followed_by_the_next_at_its_size`, `an_archive_survives_a_kill_and_goes_with_a_purge` |
//! | pages that wait for an archive | those in flight, and as many that are being written; counted in the memory of the crawl | the next write | `--concurrency`, `--memory` | `pages_that_stop_waiting_give_their_memory_back` |
//! | payloads that an archive remembers | places of 1 MiB; then it begins anew | the close of the frontier | none | `payloads_are_remembered_within_their_bound` |
//! | index of archives, in `crawler run --from-archive` | 2 000 000 answers; more are refused | the end of the run | `--frontier-urls` | `more_answers_than_are_allowed_are_refused_by_the_option` |
//! | line files | 256 MiB each, and one for each opening of a frontier that brings items | with the items; what does not count, with the frontier | none | `a_file_is_followed_by_the_next_at_its_bound_and_none_is_written_over`, `files_that_were_cut_to_their_marks_are_read_without_them` |
//! | replaced files of a frontier | logs 10 min and tables 1 h, but no sooner than 15 min after a compaction has replaced them; compactions 1 h, manifests 24 h; none longer than the setting and the time until the next look | the owner's collector | `--frontier-min-age` | `what_a_compaction_has_replaced_goes_at_its_age`, `a_short_age_holds_for_all_files` |
//! | pages of a shard in flight, and those that are not durable yet | 512 together; 2 048 if the data root is in a bucket | the next write to the data root; no further page is taken meanwhile | none | `no_more_pages_are_taken_than_may_be_lost` |
//! | URLs of a frontier in memory | 65 536, and 1 024 of one host and priority; within a minute 262 144 over all that a process has open: an even share, down to 1 024, and what the others leave; hosts whose turn comes later keep their clock and a cursor, about a hundred bytes, and are bounded by `--max-hosts` | the next host that has its turn sooner | none | `where_there_is_no_room_those_whose_turn_comes_last_sleep`, `urls_are_shared_evenly_and_who_has_many_gets_what_others_leave` |
//! | what waits to be written to a frontier, in memory | 64 MiB; 256 MiB over all that a process has open, down to 4 MiB each | the next write to the object store; no page is committed meanwhile | none | `many_frontiers_share_what_may_wait_to_be_written`, `a_page_larger_than_what_may_wait_to_be_written_is_committed_whole` |
//! | items of a frontier, in memory | 12 MiB; a sink that lags further behind reads them from the data root | the sinks, once all have them; newer items | none | `items_that_come_during_a_write_of_files_stay_in_memory`, `a_sink_that_lags_gets_no_fewer_items_than_before` |
//! | memory of a process with crawls, altogether | at 7/8 of the setting no page is taken and caches shrink, at 100 % crawls are put back ([`crawler_process::memory`]) | the crawl that uses most closes its frontier | `--memory` | `a_hungry_crawl_is_put_back_and_ten_others_finish` |
//! | memory of all calls that run at once | half of the setting, each call with its limit `memory`; further ones wait | the end of a call | `--memory` | `calls_share_a_budget_of_bytes_and_wait_for_their_turn` |
//! | memories of calls that are over, kept for the next ones | 4 MiB each, a sixteenth of the setting altogether, one for each slot at the most | the next call | `--memory` | `warm_memories_are_a_part_of_what_calls_may_use` |
//! | URLs of `crawler run` in memory | 2 000 000; links beyond are refused | the end of the run | `--frontier-urls` | `links_beyond_the_bound_are_refused_and_counted` |
//! | fences of a frontier | one empty file for each opening | with the frontier | none | `fences_stay_and_a_dead_compaction_is_taken_over_soon` |
//! | marks of line files, and digests of plugins, in a frontier | one small record for each file; 32 bytes for each version of the plugin that has crawled | with the frontier | none | `a_frontier_goes_at_its_age_and_the_items_stay_as_they_were_read` |
//! | files that were never complete | an hour | a sweep every hour | none | `writes_that_were_cut_off_are_swept_after_an_hour_and_nothing_else_is` |
//! | compiled code | 2 GiB, the least used goes | the next one that is kept | `--compiled-size` | `the_least_used_code_goes_when_there_is_too_much` |
//! | blocks of frontiers in a bucket, on the disk of a worker | 1 GiB over all frontiers of the process; those that were not read lately go | the next one that is kept; the end of the process | `cache-size` of `[data]` | `blocks_on_disk_stay_within_their_bound`, `pieces_that_are_read_again_stay_whatever_a_scan_reads` |
//! | answers of sites, for authors | 1 GiB, those used least recently go; each process may exceed it by a sixteenth and the answers that it is storing | the next one that is kept | `--cache-size` | `the_answers_used_least_recently_go_for_new_ones`, `two_processes_keep_one_bound` |
//! | SDKs of plugins, for authors | none: half a megabyte for each version of the SDK | whoever removes the cache folder; it is made again | none | `another_sdk_has_another_folder` |
//! | plugin bytes | those of plugins that are there, and an hour longer | the leader's sweep every hour | `--plugin-size` each | `bytes_go_with_the_last_version_that_has_them`, `bytes_of_plugins_that_are_not_kept_go_and_other_files_stay` |
//! | statistics of a run | 64 KiB a shard, in memory and in its frontier | the sweep of a new run | none | `whatever_sites_and_rules_do_statistics_stay_small` |
//! | the log of a crawl | 1 000 lines and 1 MiB of each shard, in memory and in its frontier; a line of more than 8 KiB is cut; what went wrong with many pages is one line | the next line | `--max-log`, `--max-log-size` | `only_the_last_lines_are_kept_and_the_setting_is_named`, `r05_the_log_of_a_crawl_is_bounded_in_bytes`, `r05_the_log_in_a_frontier_is_bounded_too` |
//! | logs of crawls that are over, in a worker's memory | 64 MiB, and 256 logs with those of crawls that run | the end of the next crawl; frontiers have the lines | none | `logs_of_crawls_that_are_over_are_bounded_in_bytes`, `logs_of_crawls_that_run_stay_and_of_those_that_are_over_the_latest` |
//! | calls that a resource remembers | 16, each of 128 bytes | the next one; the deletion's record keeps them for as long as it is there | none | `a_call_that_is_sent_again_is_carried_out_once` |
//! | bodies of requests in hand, in memory | 256 MiB, the last eighth for small ones | the answer to a request; further ones are refused | `--request-memory` | `r03_bodies_beyond_the_budget_are_refused_until_it_is_free` |
//! | connections of clients | 4 096 of each listener | their end; one that sends nothing ends after 10 s | `--connections`, `--stall-timeout` | `r03_connections_beyond_the_cap_are_refused_others_go_on` |
//! | refused callers of a worker that its log tells apart, in memory | 256 callers, calls and reasons; those beyond share a line a minute | the next one, if the last line about them is a minute old | none | `many_refused_callers_do_not_grow_the_table` |
//! | callers of a master that are told apart, in memory | 10 000; those beyond share one rate | a look at most every 100 ms, once they have made no call for two seconds | none | `many_addresses_do_not_grow_the_table` |
//! | rows of resources in the metrics of a worker, in memory | 1 000, each with at most 64 words for each kind of count | the next resource that needs the place; all others share one row | `--metrics-resources` | `rows_never_shrink_and_their_sum_is_that_of_the_process`, `words_beyond_the_bound_are_counted_as_others` |
//! | files of the log of a process | 8 files of 64 MiB | the next one | `--log-files`, `--log-file-size` | `the_oldest_file_goes_when_there_are_too_many` |
//! | spans of traces that wait for their receiver, in memory | 4 MiB; further ones are counted | the receiver; a batch is given up after 5 calls | `max-queued` of `[traces]` | `spans_wait_within_their_bound_and_the_rest_is_counted`, `a_receiver_that_is_away_or_silent_delays_no_stop` |
//! | recorded pages whose items wait for a sink, in memory | 1 024 of a crawl; the oldest goes | delivery | none | `the_oldest_page_goes_when_too_many_wait_for_sinks` |
//! | lines of the log that wait for their file, in memory | 8 MiB; further ones are counted | the thread that writes them | none | `lines_without_room_are_counted_and_the_count_is_a_line` |
//! | earlier pages to which a list of `crawler top` finds back, in memory | 10 000, a token each; one key leads to the beginning | the next page | none | `the_way_back_has_a_bound` |
//! | frontiers that are read for clients | 32 | the end of a read; further ones wait | `--frontier-readers` | `r03_reads_of_frontiers_wait_for_one_of_few_readers` |
//! | robots.txt of sites, in a worker | 65 536 origins and 64 MiB of rules, each of 500 KiB of file | those used least lately, for new ones | none | `those_used_least_lately_go_when_there_are_too_many_or_they_are_too_large` |
//! | addresses of names, in a worker | 50 000 names, each for as long as DNS says, from 30 s to 1 h; 10 000 answers that a name does not exist, each for 5 min at most | the next one that is asked for; time | `dns-min-ttl`, `dns-ttl` of `[fetch]` | `the_addresses_of_many_names_are_not_remembered_all` |
//! | hosts whose turns workers share, in a worker | 100 000 that it owns, and 100 000 that it asks for; further ones get no turn | the end of their delay | none | `hosts_beyond_the_bound_get_no_turn_until_there_is_room`, `hosts_that_are_not_asked_any_more_are_forgotten_and_others_bounded` |
//! | owners of shards that bring links, with each assignment of a worker | one for each shard of the resource | the end of the assignment | none | `owners_are_remembered_by_shard_and_not_by_caller` |
//! | addresses of own nodes, in a worker | those that were registered in the last hour | a look every 30 seconds | none | `an_address_is_given_up_an_hour_after_its_node_left` |
//! | workers that were told to drain | one small record each | `crawler node drain --undo` | none | `a_worker_that_was_told_to_drain_gets_nothing_more_and_the_last_one_may_drain_too` |
//! | events of a resource, in the store | those of 50 writes and 16 KiB, and a quarter more | the leader, in one write for many; a sweep every minute when the resource is gone | `--keep-events` | `the_oldest_events_go_and_those_of_a_resource_that_is_gone` |
//! | events of a node, and what was told of it, in the store | the same bounds; one small record | the leader; a day after the node is gone | `--keep-events` | `events_of_a_node_go_a_day_after_it` |
//! | events that only a worker knows, in its totals | 4 KiB, for 2 minutes; further ones go on being folded | the next record of totals | none | `events_fit_in_the_record_and_none_is_lost`, `events_are_numbered_and_shown_for_two_minutes` |
//! | events that a worker folds, in memory | 4 096 kinds and runs of resources, a kilobyte each, and 256 hosts of each crawl; further incidents are counted, and a further host takes the place of the oldest | the end of a span | none | `incidents_are_bounded_whatever_happens`, `the_oldest_host_makes_room_for_the_next` |
//! | runs that a resource remembers | 100, a kilobyte each as a rule, and 192 KiB together | the next run beyond; the deletion of the resource | none | `the_oldest_run_is_forgotten_when_there_are_too_many`, `runs_of_many_settings_and_reasons_have_a_bound` |
//! | schedules | one record of a kilobyte for each resource | the deletion of the resource; a look at one whose resource is gone | none | `a_schedule_ends_with_its_resource` |
//! | numbers of processes | one small record and lease each | an hour after the process was last there | none | `a_number_is_kept_while_its_process_runs_and_an_hour_longer` |
//! | the history of etcd | twice 100 000 revisions | the leader, where it is that long, and every 10 minutes | `--keep-revisions`, `--compact-interval` | `the_history_is_short_however_much_is_written_between_two_looks` |
//! | the store's log | 16 MiB beyond its records | a snapshot | none | `the_log_is_replaced_by_a_snapshot_when_it_has_grown` |

pub mod app;
pub mod bench;
pub mod cli;
pub mod config;
pub mod demo;
mod random;
