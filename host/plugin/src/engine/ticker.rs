//! The thread that advances the epoch, by which running calls give their thread back.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::PluginError;
use crate::host_error::host_error;
use crate::instance::TICK;

/// Advances the epoch, on a thread that ends when this is dropped.
pub(crate) struct Ticker {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(crate) fn start(engine: &wasmtime::Engine) -> Result<Self, PluginError> {
        let (stop, stopped) = sync_channel::<()>(0);
        let engine = engine.weak();
        let thread = std::thread::Builder::new()
            .name("epoch-ticker".to_owned())
            .spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(TICK) {
                    let Some(engine) = engine.upgrade() else {
                        return;
                    };
                    engine.increment_epoch();
                }
            })
            .map_err(host_error("start the epoch ticker"))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the epoch ticker panicked");
        }
    }
}
