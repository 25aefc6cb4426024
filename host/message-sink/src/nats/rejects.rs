//! Items that are too large for a message: in pieces, under the subject of rejected items, with the reason.
//!
//! The bodies of the pieces of an item, one after the other, are the message that was too large. So nothing is lost, and
//! whoever reads the subject can tell what to do: raise `max_payload` of the server, or choose fewer fields.

use async_nats::HeaderMap;

use super::connection::{Message, Outcome, Published};
use super::trouble::{Cause, Trouble};
use super::{ID, digest};
use crawler_model::crawl::ItemRecord;

/// Largest size of a piece in bytes. It is far below the default limits of servers and streams.
const PIECE_BYTES: usize = 64 << 10;

/// Returns the pieces of a message that is larger than what the server or its stream takes.
pub(super) fn pieces(
    subject: String,
    message: &Message,
    record: &ItemRecord,
    reason: &str,
    max_payload: usize,
) -> Vec<Message> {
    // There is room for headers, too.
    let n_bytes = PIECE_BYTES.min(max_payload / 2).max(1);
    let n_pieces = message.body.len().div_ceil(n_bytes);
    let pieces = (0..n_pieces).map(|n| {
        let (start, end) = (n * n_bytes, (n + 1) * n_bytes);
        let place = format!("{} of {n_pieces}", n + 1);
        let id = digest([message.subject.as_str(), &record.key.0, &place]);
        let mut headers = HeaderMap::new();
        headers.insert(ID, id);
        headers.insert("Crawler-Reason", reason);
        headers.insert("Crawler-Subject", message.subject.as_str());
        headers.insert("Crawler-Key", record.key.0.replace(char::is_control, " "));
        headers.insert("Crawler-Piece", place);
        Message {
            subject: subject.clone(),
            headers,
            body: message.body.slice(start..end.min(message.body.len())),
        }
    });
    pieces.collect()
}

/// Returns the reason why pieces are not in their stream.
pub(super) fn trouble(kept: Published) -> Option<Trouble> {
    let mut outcomes = kept.outcomes.into_iter();
    let too_large = outcomes.find_map(|outcome| match outcome {
        Outcome::Stored => None,
        Outcome::TooLarge(reason) => Some(reason),
    });
    kept.trouble.or_else(|| {
        too_large.map(|reason| {
            let said = format!("of a piece of a rejected item, {reason}");
            Trouble::told(Cause::Refused, said)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::record;

    fn message(n_bytes: usize) -> Message {
        let bytes = (0..n_bytes).map(|n| n as u8);
        Message {
            subject: "crawler.books.book".to_owned(),
            headers: HeaderMap::new(),
            body: bytes.collect::<Vec<u8>>().into(),
        }
    }

    #[test]
    fn the_pieces_of_an_item_are_all_of_it() {
        for (n_bytes, max_payload, n_expected) in [
            (4 << 20, 1 << 20, 64),
            ((4 << 20) + 1, 1 << 20, 65),
            (10_000, 4_096, 5),
            (1, 4_096, 1),
        ] {
            let message = message(n_bytes);
            let subject = "rejects".to_owned();
            let pieces = pieces(subject, &message, &record(1, "{}"), "why", max_payload);
            assert_eq!(pieces.len(), n_expected);
            let bodies: Vec<&[u8]> = pieces.iter().map(|piece| &piece.body[..]).collect();
            assert_eq!(bodies.concat(), message.body);
            assert!(bodies.iter().all(|body| body.len() <= max_payload / 2));
            let last = &pieces[n_expected - 1].headers;
            let header = |name: &str| last.get(name).map(|value| value.as_str().to_owned());
            let piece = format!("{n_expected} of {n_expected}");
            assert_eq!(header("Crawler-Piece"), Some(piece));
            assert_eq!(header("Crawler-Reason").as_deref(), Some("why"));
            assert_eq!(header("Crawler-Key").as_deref(), Some("key-1"));
            let subject = header("Crawler-Subject");
            assert_eq!(subject.as_deref(), Some("crawler.books.book"));
        }
    }

    #[test]
    fn a_piece_that_is_too_large_keeps_its_item() {
        let published = |outcomes: Vec<Outcome>| Published {
            outcomes,
            trouble: None,
        };
        assert!(trouble(published(vec![Outcome::Stored; 2])).is_none());
        let large = Outcome::TooLarge("the message is larger".to_owned());
        let found = trouble(published(vec![Outcome::Stored, large])).unwrap();
        let expected =
            "the stream refuses items (of a piece of a rejected item, the message is larger)";
        assert_eq!(found.to_string(), expected);
    }
}
