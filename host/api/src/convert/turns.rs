//! Turns of hosts, as workers ask each other for them.
//!
//! Times are rounded to the unit of the message in the direction that makes a request later, never sooner.

use std::sync::Arc;
use std::time::Duration;

use crawler_proto as proto;

use crawler_fetch::turns::call::{Answer, Ended, Grant, TurnRequest, TurnRequests, WorkerProcess};
use crawler_model::id::Incarnation;

/// Returns a time after which something may begin, in milliseconds.
fn rounded_up(time: Duration) -> u64 {
    let whole = u64::try_from(time.as_nanos().div_ceil(1_000_000));
    whole.unwrap_or(u64::MAX)
}

/// Returns a time within which something may begin, in milliseconds.
fn rounded_down(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn asks_message(asks: TurnRequests) -> proto::TakeTurnsRequest {
    proto::TakeTurnsRequest {
        worker: asks.from.worker.to_string(),
        incarnation: asks.from.incarnation.0,
        asks: asks.asks.into_iter().map(ask_message).collect(),
    }
}

fn ask_message(ask: TurnRequest) -> proto::TurnAsk {
    proto::TurnAsk {
        host: ask.host.to_string(),
        delay_ms: rounded_up(ask.delay),
        wanted: ask.is_wanted,
        in_flight: ask.is_in_flight,
        ended: ask.ended.map(|ended| proto::TurnEnd {
            ago_ms: rounded_down(ended.ago),
            pause_ms: rounded_up(ended.pause),
        }),
    }
}

/// Parses what a worker asks; the error is a sentence.
pub(crate) fn asks(request: proto::TakeTurnsRequest) -> Result<TurnRequests, String> {
    let worker = request.worker.parse();
    Ok(TurnRequests {
        from: WorkerProcess {
            worker: worker.map_err(|why| format!("the worker that asks: {why}"))?,
            incarnation: Incarnation(request.incarnation),
        },
        asks: request.asks.into_iter().map(ask).collect(),
    })
}

fn ask(ask: proto::TurnAsk) -> TurnRequest {
    TurnRequest {
        host: Arc::from(ask.host),
        delay: Duration::from_millis(ask.delay_ms),
        is_wanted: ask.wanted,
        is_in_flight: ask.in_flight,
        ended: ask.ended.map(|ended| Ended {
            ago: Duration::from_millis(ended.ago_ms),
            pause: Duration::from_millis(ended.pause_ms),
        }),
    }
}

pub(crate) fn answer_message(answer: Answer) -> proto::TurnAnswer {
    match answer {
        Answer::Noted => proto::TurnAnswer::default(),
        Answer::Granted(grant) => proto::TurnAnswer {
            turns: grant.turns,
            lasts_ms: rounded_down(grant.lasts),
            delay_ms: rounded_up(grant.delay),
            after_ms: 0,
        },
        Answer::Later { after } => proto::TurnAnswer {
            // Zero would mean that nothing was wanted.
            after_ms: rounded_up(after).max(1),
            ..proto::TurnAnswer::default()
        },
    }
}

pub(crate) fn answer(answer: proto::TurnAnswer) -> Answer {
    match (answer.turns, answer.after_ms) {
        (0, 0) => Answer::Noted,
        (0, after) => Answer::Later {
            after: Duration::from_millis(after),
        },
        (turns, _) => Answer::Granted(Grant {
            turns,
            lasts: Duration::from_millis(answer.lasts_ms),
            delay: Duration::from_millis(answer.delay_ms),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> TurnRequests {
        let ask = |host: &str, ended| TurnRequest {
            host: host.into(),
            delay: Duration::from_millis(1_500),
            is_wanted: true,
            is_in_flight: false,
            ended,
        };
        let ended = Ended {
            ago: Duration::from_millis(20),
            pause: Duration::from_secs(300),
        };
        let returned = TurnRequest {
            is_wanted: false,
            is_in_flight: true,
            ..ask("b.test:8080", None)
        };
        TurnRequests {
            from: WorkerProcess {
                worker: "worker-1".parse().unwrap(),
                incarnation: Incarnation(7),
            },
            asks: vec![ask("a.test", Some(ended)), returned],
        }
    }

    #[test]
    fn asks_and_answers_arrive_as_they_were_sent() {
        assert_eq!(asks(asks_message(asked())), Ok(asked()));
        let grant = Grant {
            turns: 4,
            lasts: Duration::from_secs(5),
            delay: Duration::from_millis(1_500),
        };
        let after = Duration::from_millis(250);
        for given in [
            Answer::Noted,
            Answer::Granted(grant),
            Answer::Later { after },
        ] {
            assert_eq!(answer(answer_message(given)), given);
        }
    }

    #[test]
    fn what_is_cut_off_makes_it_later() {
        let mut asked = asked();
        asked.asks.truncate(1);
        let part = Duration::from_nanos(1_500_001);
        asked.asks[0].delay = part;
        asked.asks[0].ended = Some(Ended {
            ago: part,
            pause: part,
        });
        let message = asks_message(asked);
        let [ask] = &message.asks[..] else {
            panic!("{message:?}");
        };
        let ended = ask.ended.unwrap();
        assert_eq!((ask.delay_ms, ended.ago_ms, ended.pause_ms), (2, 1, 2));
        let granted = answer_message(Answer::Granted(Grant {
            turns: 1,
            lasts: part,
            delay: part,
        }));
        assert_eq!((granted.lasts_ms, granted.delay_ms), (1, 2));
        let now = Answer::Later {
            after: Duration::ZERO,
        };
        assert_eq!(answer_message(now).after_ms, 1);
    }

    #[test]
    fn a_worker_without_a_name_is_refused() {
        let mut message = asks_message(asked());
        message.worker = String::new();
        let refused = asks(message).unwrap_err();
        assert_eq!(refused, "the worker that asks: node id is empty");
    }
}
