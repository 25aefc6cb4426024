//! What a master does while it leads, beside answering calls: it places, takes apart what was deleted,
//! and looks after the data root and the history of the store.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::control::Control;
use super::housekeeping::{self, Compaction};
use super::reconcile::{ReconcileParts, Reconciler};
use crate::store::election::{Leadership, Standing};

/// Says who leads, whenever that is another master than before.
pub async fn tell(mut standing: watch::Receiver<Standing>, stop: CancellationToken) {
    let mut told = None;
    loop {
        let present = standing.borrow_and_update().clone();
        // This one says itself when it leads.
        if let Some(leader) = present.leader.as_ref().filter(|_| present.own.is_none())
            && told.as_ref() != Some(&leader.id)
        {
            tracing::info!(leader = %leader.id, address = leader.address, "another master leads");
        }
        // While nobody is known to lead, the last one is still the last that was told of.
        told = present.leader.map(|leader| leader.id).or(told);
        match stop.run_until_cancelled(standing.changed()).await {
            Some(Ok(())) => {}
            Some(Err(_)) | None => return,
        }
    }
}

/// What a leader works with.
pub struct Leader {
    /// What placing and taking apart works with.
    pub reconcile: ReconcileParts,
    /// Of the store's history; none: somebody else looks after it.
    pub compaction: Option<Compaction>,
    /// The calls of this master; tells how the election stands.
    pub control: Arc<Control>,
}

impl Leader {
    /// Does so in each term of this master, until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut standing = self.control.standing().clone();
        while let Some(Ok(leadership)) = stop
            .run_until_cancelled(async {
                let leads = standing.wait_for(|s| s.leadership().is_some()).await;
                leads.map(|standing| standing.leadership().cloned())
            })
            .await
        {
            // Lost again already.
            let Some(leadership) = leadership else {
                continue;
            };
            tracing::info!("this master leads");
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = leadership.lost().cancelled() => {
                    tracing::warn!("this master leads no longer");
                }
                () = self.term(&leadership, &stop) => {}
            }
        }
    }

    /// Goes on for as long as it is let.
    async fn term(&self, leadership: &Leadership, stop: &CancellationToken) {
        let ReconcileParts {
            catalog,
            remains,
            clock,
            replica,
            ..
        } = &self.reconcile;
        let reconciler = Reconciler {
            parts: self.reconcile.clone(),
            leadership: leadership.clone(),
        };
        tokio::join!(
            reconciler.run(stop.clone()),
            housekeeping::sweep(&**remains, &**clock, &self.control),
            housekeeping::compact(catalog, replica, self.compaction),
        );
    }
}
