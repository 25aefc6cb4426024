//! Bounds of the calls: how long they may take, how many there may be, and how large they are.

use std::time::Duration;

/// Time that a call may take, unless it is a stream.
pub const CALL_DEADLINE: Duration = Duration::from_secs(30);
/// Time that pushing a plugin may take.
pub const UPLOAD_DEADLINE: Duration = Duration::from_secs(300);
/// Calls and streams at once, over all clients; further ones are turned away.
pub const CALLS_MAX: usize = 512;
/// Streams among them. They may last, so some calls are left for those that do not.
pub const STREAMS_MAX: usize = 448;
/// Bytes of one request that is not an upload.
pub const REQUEST_MAX: usize = 4 << 20;
/// Bytes of one piece of a plugin on its way.
pub const PIECE_MAX: usize = 1 << 20;
/// Resources, or URLs, in one answer.
pub const PAGE_MAX: usize = 1_000;
