//! Record of actions that lose their guards again and again: pure, over the observations of one leader.
//!
//! An action that loses once was overtaken, and the change that stood in its way is about to be seen. If the
//! same action is planned and lost for longer than any watch lags behind, the change was missed.

use std::time::Duration;

use tokio::time::Instant;

use super::plan::Action;

/// Largest delay of a watch that works.
const LATE: Duration = Duration::from_secs(2);

/// Actions lost in the passes before, each with the time of its first loss.
#[derive(Debug, Default)]
pub(super) struct StuckActions(Vec<(Action, Instant)>);

/// Assessment of the lost actions: for how long others have been in the way.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Contention {
    None,
    /// The change that stood in the way may be about to arrive.
    Recent,
    /// The change should have arrived by now.
    Persistent,
}

impl StuckActions {
    /// Takes note of the actions that a pass has lost.
    pub(super) fn record(&mut self, lost: Vec<Action>, now: Instant) -> Contention {
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
            None => Contention::None,
            Some(first) if now < first + LATE => Contention::Recent,
            Some(_) => Contention::Persistent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::ResourceId;

    #[test]
    fn what_is_lost_again_and_again_is_told_from_what_was_overtaken() {
        let mut stuck_actions = StuckActions::default();
        let now = Instant::now();
        let action = |id| Action::Finish(ResourceId(id));
        assert_eq!(stuck_actions.record(Vec::new(), now), Contention::None);
        assert_eq!(
            stuck_actions.record(vec![action(1)], now),
            Contention::Recent
        );
        // Other actions lose, each once.
        let later = now + LATE;
        assert_eq!(
            stuck_actions.record(vec![action(2)], later),
            Contention::Recent
        );
        assert_eq!(
            stuck_actions.record(vec![action(3), action(2)], later + LATE / 2),
            Contention::Recent
        );
        assert_eq!(
            stuck_actions.record(vec![action(2), action(4)], later + LATE),
            Contention::Persistent
        );
        assert_eq!(
            stuck_actions.record(Vec::new(), later + LATE),
            Contention::None
        );
    }
}
