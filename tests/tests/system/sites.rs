//! Fake sites for the guest `puppet`.

use std::sync::Arc;

use crawler_tests::web::{Asked, Site};
use tokio::sync::Semaphore;

/// Holds pages back until it is opened.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    pub(crate) fn closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Opens the gate for good, for all that wait.
    pub(crate) fn open(&self) {
        self.0.close();
    }

    pub(crate) async fn pass(&self) {
        // A closed semaphore is an open gate.
        let _open = self.0.acquire().await;
    }
}

/// Returns a site of pages `/0`, `/1` and so on, each leading to the next.
pub(crate) fn chain(n_pages: usize) -> Site {
    let gate = Gate::closed();
    gate.open();
    gated_chain(n_pages, n_pages, &gate)
}

/// Returns a chain whose page `held` is held back by the gate.
pub(crate) fn gated_chain(n_pages: usize, held: usize, gate: &Gate) -> Site {
    chain_of_gates(n_pages, [(held, gate)])
}

/// Returns a chain of which some pages are held back, each by its gate.
pub(crate) fn chain_of_gates<const N: usize>(n_pages: usize, held: [(usize, &Gate); N]) -> Site {
    let held = held.map(|(n, gate)| (n, gate.clone()));
    Site::new().handle("/*", move |asked: Asked| {
        let held = held.clone();
        async move {
            let n: usize = asked.path[1..].parse().expect("pages are numbers");
            for (_, gate) in held.iter().filter(|(held, _)| *held == n) {
                gate.pass().await;
            }
            match n + 1 {
                next if next < n_pages => format!(r#"[{{"url": "/{next}"}}]"#),
                _ => "[]".to_owned(),
            }
        }
    })
}
