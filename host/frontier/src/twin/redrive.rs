//! Dead letters, tried again.

use super::plain::{Plain, Stage};
use crawler_model::resource::Redrive;

impl Plain {
    /// Makes dead letters due again and returns their number.
    pub(super) fn redrive(&mut self, order: &Redrive) -> u64 {
        let (mut n, now) = (0, self.time.latest());
        for known in self.urls.values_mut() {
            let Stage::Dead(reason) = &known.stage else {
                continue;
            };
            if !order.wants(reason) {
                continue;
            }
            self.counts.forget_death(reason);
            self.statistics.forget_example(reason);
            (known.stage, known.attempt, known.due) = (Stage::Due, 1, now);
            if let Some(health) = self.health_by_host.get_mut(&known.request.host()) {
                health.clear_failures();
            }
            n += 1;
        }
        n
    }
}
