//! Record of actions that lose their guards again and again: pure, over the observations of one leader.
//!
//! An action that loses once was overtaken, and the change that stood in its way is about to be seen. If the
//! same action is planned and lost for longer than any watch lags behind, the change was missed.

use std::time::Duration;

use tokio::time::Instant;

use super::plan::Action;

/// Largest delay of a watch that works.
const LATE: Duration = Duration::from_secs(2);

/// Actions lost in the turns before, each with the time of its first loss.
#[derive(Debug, Default)]
pub(super) struct Losses(Vec<(Action, Instant)>);

/// Assessment of the lost actions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lost {
    Nothing,
    /// The change that stood in the way may be about to arrive.
    Lately,
    /// The change should have arrived by now.
    ForLong,
}

impl Losses {
    /// Takes note of the actions that a turn has lost.
    pub(super) fn again(&mut self, lost: Vec<Action>, now: Instant) -> Lost {
        let before = std::mem::take(&mut self.0);
        let since = |action: &Action| {
            let known = before.iter().find(|(known, _)| known == action);
            known.map_or(now, |(_, since)| *since)
        };
        let lost = lost.into_iter().map(|action| {
            let since = since(&action);
            (action, since)
        });
        self.0 = lost.collect();
        match self.0.iter().map(|(_, since)| *since).min() {
            None => Lost::Nothing,
            Some(first) if now < first + LATE => Lost::Lately,
            Some(_) => Lost::ForLong,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::ResourceId;

    #[test]
    fn what_is_lost_again_and_again_is_told_from_what_was_overtaken() {
        let mut losses = Losses::default();
        let now = Instant::now();
        let action = |id| Action::Finish(ResourceId(id));
        assert_eq!(losses.again(Vec::new(), now), Lost::Nothing);
        assert_eq!(losses.again(vec![action(1)], now), Lost::Lately);
        // Other actions lose, each once.
        let later = now + LATE;
        assert_eq!(losses.again(vec![action(2)], later), Lost::Lately);
        assert_eq!(
            losses.again(vec![action(3), action(2)], later + LATE / 2),
            Lost::Lately
        );
        assert_eq!(
            losses.again(vec![action(2), action(4)], later + LATE),
            Lost::ForLong
        );
        assert_eq!(losses.again(Vec::new(), later + LATE), Lost::Nothing);
    }
}
