//! Duties of a leader besides answering calls: it places shards, starts the runs of schedules, removes deleted resources,
//! looks after the data root and the history of the store, tells and bounds events, and sends webhooks.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::control::Control;
use super::events::{self, EventBounds, Teller};
use super::housekeeping::{self, Compaction};
use super::reconcile::{ReconcileParts, Reconciler};
use super::schedules;
use super::webhooks::{self, Webhook};
use crawler_store::election::{ElectionStatus, Leadership};

/// Logs the leader whenever it is another master than before.
pub async fn log_changes(
    mut election_status: watch::Receiver<ElectionStatus>,
    stop: CancellationToken,
) {
    let mut told = None;
    loop {
        let present = election_status.borrow_and_update().clone();
        // The leader itself logs that it leads.
        if let Some(leader) = present.leader.as_ref().filter(|_| present.own.is_none())
            && told.as_ref() != Some(&leader.id)
        {
            tracing::info!(leader = %leader.id, address = leader.address, "another master leads");
        }
        // While no leader is known, the last one remains the last that was logged.
        told = present.leader.map(|leader| leader.id).or(told);
        match stop.run_until_cancelled(election_status.changed()).await {
            Some(Ok(())) => {}
            Some(Err(_)) | None => return,
        }
    }
}

/// Parts that a leader works with.
pub struct Leader {
    /// Parts of the reconciler.
    pub reconcile: ReconcileParts,
    /// Compaction of the store's history. If `None`, something else looks after it.
    pub compaction: Option<Compaction>,
    /// Bounds of the events of each resource, and of each node.
    pub event_bounds: EventBounds,
    /// Receivers of events.
    pub webhooks: Vec<Webhook>,
    /// Calls of this master; they know the state of the election.
    pub control: Arc<Control>,
}

impl Leader {
    /// Does the duties in each term of this master, until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut election_status = self.control.election_status().clone();
        while let Some(Ok(leadership)) = stop
            .run_until_cancelled(async {
                let leads = election_status.wait_for(|s| s.leadership().is_some()).await;
                leads.map(|election_status| election_status.leadership().cloned())
            })
            .await
        {
            // The leadership is already lost again.
            let Some(leadership) = leadership else {
                continue;
            };
            tracing::info!("this master leads");
            self.reconcile.counts.terms.add(1);
            let webhooks_term = self.webhooks_term(&leadership);
            let sending = webhooks::start(&self.webhooks, &webhooks_term, &stop);
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = leadership.lost().cancelled() => {
                    tracing::warn!("this master leads no longer");
                }
                () = self.term(&leadership, &webhooks_term, &stop) => {}
            }
            // In the next term, or in that of another master, nobody else sends events.
            sending.stop(webhooks::STOP_GRACE).await;
        }
    }

    fn webhooks_term(&self, leadership: &Leadership) -> webhooks::Term {
        let ReconcileParts {
            catalog,
            clock,
            replica,
            ..
        } = &self.reconcile;
        webhooks::Term {
            catalog: catalog.clone(),
            replica: replica.clone(),
            leadership: leadership.clone(),
            clock: clock.clone(),
        }
    }

    /// Does the other duties of one term. Ends only if it is cancelled or `stop` comes.
    async fn term(
        &self,
        leadership: &Leadership,
        webhooks_term: &webhooks::Term,
        stop: &CancellationToken,
    ) {
        let ReconcileParts {
            catalog,
            cleanup,
            clock,
            replica,
            ..
        } = &self.reconcile;
        let reconciler = Reconciler {
            parts: self.reconcile.clone(),
            leadership: leadership.clone(),
        };
        let tell = async {
            let status = self.control.election_status().borrow().clone();
            // Without a leader this term is over.
            let Some(leader) = status.leader.map(|leader| leader.id) else {
                return;
            };
            let teller = Teller {
                catalog,
                replica,
                leadership,
                clock: &**clock,
                leader: &leader,
            };
            events::tell(teller).await;
        };
        tokio::join!(
            reconciler.run(stop.clone()),
            Box::pin(schedules::run(&self.control, leadership)),
            housekeeping::sweep(&**cleanup, &**clock, &self.control),
            housekeeping::compact(catalog, replica, self.compaction),
            webhooks::look_after_positions(&self.webhooks, webhooks_term),
            Box::pin(events::keep(
                catalog,
                replica,
                leadership,
                self.event_bounds
            )),
            Box::pin(tell),
        );
    }
}
