//! An order of tasks that follows from a seed.
//!
//! An event that wakes many tasks at once wakes them in an order of its own: `tokio::sync::watch` chooses it
//! at random. A task that is woken therefore only reports that it is ready. A conductor runs once all woken
//! tasks have reported, and gives one of them its turn.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

thread_local! {
    static PRESENT: RefCell<Option<Schedule>> = const { RefCell::new(None) };
}

/// Order of the tasks of one thread.
#[derive(Clone)]
pub struct Schedule(Arc<Mutex<State>>);

struct State {
    dice: StdRng,
    n_tasks: u64,
    /// Wakers of the tasks that are ready, by number.
    ready: BTreeMap<u64, Waker>,
    /// Number of the task that has its turn.
    turn: Option<u64>,
    conductor: Option<Waker>,
}

/// Guard that ends the order when it is dropped, on the same thread.
pub struct Scheduled(PhantomData<*const ()>);

impl Schedule {
    /// Orders all tasks that are started on this thread from now on. It must be called within a runtime of
    /// one thread.
    #[expect(clippy::disallowed_methods, reason = "it is what tasks are ordered by")]
    pub fn begin(seed: u64) -> Scheduled {
        let schedule = Self(Arc::new(Mutex::new(State {
            dice: StdRng::seed_from_u64(seed),
            n_tasks: 0,
            ready: BTreeMap::new(),
            turn: None,
            conductor: None,
        })));
        PRESENT.set(Some(schedule.clone()));
        tokio::spawn(poll_fn(move |context| schedule.conduct(context)));
        Scheduled(PhantomData)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn conduct(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        state.conductor = Some(context.waker().clone());
        if state.turn.is_some() || state.ready.is_empty() {
            return Poll::Pending;
        }
        let n = state.ready.len();
        let nth = state.dice.random_range(0..n);
        let id = state.ready.keys().nth(nth).copied();
        state.turn = id;
        let next = id.and_then(|id| state.ready.remove(&id));
        drop(state);
        if let Some(next) = next {
            next.wake();
        }
        Poll::Pending
    }

    fn wake_conductor(&self) {
        let conductor = self.lock().conductor.clone();
        if let Some(conductor) = conductor {
            conductor.wake();
        }
    }
}

impl Drop for Scheduled {
    fn drop(&mut self) {
        PRESENT.set(None);
    }
}

/// Puts the task under the order of this thread, if there is one.
pub fn ordered<F: Future>(task: F) -> impl Future<Output = F::Output> {
    let schedule = PRESENT.with_borrow(Clone::clone);
    let id = schedule.as_ref().map_or(0, |schedule| {
        let mut state = schedule.lock();
        state.n_tasks += 1;
        state.n_tasks
    });
    Ordered {
        task: Box::pin(task),
        schedule,
        id,
    }
}

struct Ordered<F> {
    task: Pin<Box<F>>,
    schedule: Option<Schedule>,
    id: u64,
}

impl<F: Future> Future for Ordered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(schedule) = self.schedule.clone() else {
            return self.task.as_mut().poll(context);
        };
        let id = self.id;
        {
            let mut state = schedule.lock();
            if state.turn != Some(id) {
                state.ready.insert(id, context.waker().clone());
                drop(state);
                schedule.wake_conductor();
                return Poll::Pending;
            }
        }
        let polled = self.task.as_mut().poll(context);
        schedule.lock().turn = None;
        schedule.wake_conductor();
        polled
    }
}

impl<F> Drop for Ordered<F> {
    fn drop(&mut self) {
        if let Some(schedule) = &self.schedule {
            let mut state = schedule.lock();
            state.ready.remove(&self.id);
            if state.turn == Some(self.id) {
                state.turn = None;
                drop(state);
                schedule.wake_conductor();
            }
        }
    }
}
