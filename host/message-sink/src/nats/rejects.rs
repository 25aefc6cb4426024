//! Items that are too large for a message: in pieces, under the subject of rejected items, with the reason.
//!
//! The bodies of the pieces of an item, one after the other, are the message that was too large. So nothing is lost, and
//! whoever reads the subject can tell what to do: raise `max_payload` of the server, or choose fewer fields.

use async_nats::HeaderMap;
use tokio::time::Instant;

use super::connection::{Connection, Message, Outcome};
use super::trouble::{Cause, Trouble};
use super::{ID, digest};

/// Largest size of a piece in bytes. It is far below the default limits of servers and streams.
const PIECE_BYTES: usize = 64 << 10;
/// Size in bytes below which no smaller pieces are tried.
const LEAST_BYTES: usize = 1 << 10;

/// Item that is larger than what the server or its stream takes.
pub(super) struct Rejected<'i> {
    /// Subject of rejected items.
    pub(super) subject: String,
    /// Key of the item.
    pub(super) key: &'i str,
    /// Message that is too large.
    pub(super) message: &'i Message,
    /// Reason, in words.
    pub(super) reason: &'i str,
}

impl Rejected<'_> {
    /// Publishes the item in pieces, which are smaller if the stream does not take larger ones. Returns the reason why the
    /// stream does not have all of them.
    pub(super) async fn publish(&self, connection: &Connection, end: Instant) -> Option<Trouble> {
        let mut n_bytes = PIECE_BYTES
            .min(connection.max_payload() / 2)
            .max(LEAST_BYTES);
        loop {
            let pieces = self.pieces(n_bytes);
            let pieces: Vec<&Message> = pieces.iter().collect();
            // If the first piece is too large, no other of its size gets into the stream.
            let (first, rest) = pieces.split_at(pieces.len().min(1));
            let mut kept = connection.publish(first, end).await;
            if kept.trouble.is_none() && too_large(&kept.outcomes).is_none() {
                kept = connection.publish(rest, end).await;
            }
            if kept.trouble.is_some() {
                return kept.trouble;
            }
            let reason = too_large(&kept.outcomes)?;
            match smaller(n_bytes) {
                Some(smaller) => n_bytes = smaller,
                None => {
                    let said =
                        format!("of a piece of {n_bytes} bytes of a rejected item, {reason}");
                    return Some(Trouble::told(Cause::Refused, said));
                }
            }
        }
    }

    /// Returns the pieces of the message, each of this size at most.
    fn pieces(&self, n_bytes: usize) -> Vec<Message> {
        let message = self.message;
        let item = message.id();
        let n_pieces = message.body.len().div_ceil(n_bytes);
        let pieces = (0..n_pieces).map(|n| {
            let (start, end) = (n * n_bytes, (n + 1) * n_bytes);
            let place = format!("{} of {n_pieces}", n + 1);
            let mut headers = HeaderMap::new();
            headers.insert(ID, digest([item, place.as_str()]));
            headers.insert("Crawler-Reason", self.reason);
            headers.insert("Crawler-Subject", message.subject.as_str());
            headers.insert("Crawler-Key", self.key.replace(char::is_control, " "));
            headers.insert("Crawler-Id", item);
            headers.insert("Crawler-Piece", place);
            Message {
                subject: self.subject.clone(),
                headers,
                body: message.body.slice(start..end.min(message.body.len())),
            }
        });
        pieces.collect()
    }
}

/// Returns the size of pieces to try after this one, which is too large.
fn smaller(n_bytes: usize) -> Option<usize> {
    (n_bytes > LEAST_BYTES).then(|| (n_bytes / 2).max(LEAST_BYTES))
}

/// Returns the reason why a message is too large, if one is.
fn too_large(outcomes: &[Option<Outcome>]) -> Option<&str> {
    outcomes.iter().find_map(|outcome| match outcome {
        Some(Outcome::TooLarge(reason)) => Some(reason.as_str()),
        Some(Outcome::Stored) | None => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(n_bytes: usize, id: &str) -> Message {
        let bytes = (0..n_bytes).map(|n| n as u8);
        let mut headers = HeaderMap::new();
        headers.insert(ID, id);
        Message {
            subject: "crawler.books.book".to_owned(),
            headers,
            body: bytes.collect::<Vec<u8>>().into(),
        }
    }

    fn pieces(message: &Message, n_bytes: usize) -> Vec<Message> {
        let rejected = Rejected {
            subject: "rejects".to_owned(),
            key: "key-1",
            message,
            reason: "why",
        };
        rejected.pieces(n_bytes)
    }

    fn header(message: &Message, name: &str) -> String {
        message.headers.get(name).unwrap().as_str().to_owned()
    }

    #[test]
    fn the_pieces_of_an_item_are_all_of_it() {
        for (n_bytes, n_of_piece, n_expected) in [
            (4 << 20, 64 << 10, 64),
            ((4 << 20) + 1, 64 << 10, 65),
            (10_000, 2_048, 5),
            (1, 2_048, 1),
        ] {
            let message = message(n_bytes, "id-1");
            let pieces = pieces(&message, n_of_piece);
            assert_eq!(pieces.len(), n_expected);
            let bodies: Vec<&[u8]> = pieces.iter().map(|piece| &piece.body[..]).collect();
            assert_eq!(bodies.concat(), message.body);
            assert!(bodies.iter().all(|body| body.len() <= n_of_piece));
            let last = &pieces[n_expected - 1];
            for (name, expected) in [
                (
                    "Crawler-Piece",
                    format!("{n_expected} of {n_expected}").as_str(),
                ),
                ("Crawler-Reason", "why"),
                ("Crawler-Key", "key-1"),
                ("Crawler-Id", "id-1"),
                ("Crawler-Subject", "crawler.books.book"),
            ] {
                assert_eq!(header(last, name), expected);
            }
        }
    }

    #[test]
    fn pieces_of_two_messages_have_different_ids() {
        let ids = |message: &Message| {
            let pieces = pieces(message, 2);
            let ids = pieces.iter().map(|piece| header(piece, ID));
            ids.collect::<Vec<String>>()
        };
        let (one, other) = (message(4, "id-1"), message(4, "id-2"));
        assert_eq!(ids(&one), ids(&one));
        let mut all = [ids(&one), ids(&other)].concat();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn pieces_get_smaller_until_they_have_one_kibibyte() {
        assert_eq!(smaller(PIECE_BYTES), Some(PIECE_BYTES / 2));
        assert_eq!(smaller(1_500), Some(1_024));
        assert_eq!(smaller(1_024), None);
        let large = Some(Outcome::TooLarge("it is larger".to_owned()));
        let stored = Some(Outcome::Stored);
        assert_eq!(too_large(&[stored.clone(), large]), Some("it is larger"));
        assert_eq!(too_large(&[stored, None]), None);
    }
}
