//! Lines that a rule logs, through `log.write` or its standard output: bounded and harmless.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use super::fuel::Meter;
use crate::{LogLevel, RuleLog};
use crawler_model::guest_text::GuestText;

/// Bytes of one line that are gathered; a [`GuestText`] keeps no more of it.
const LINE_MAX: usize = GuestText::MAX;
/// Bytes that a stream takes at once.
const WRITE_MAX: usize = 64 << 10;

/// Lines of one call. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Logs(Arc<Mutex<Lines>>);

#[derive(Debug)]
struct Lines {
    max: u64,
    kept: Vec<RuleLog>,
    n_dropped: u64,
}

impl Logs {
    pub(crate) fn new(max: u64) -> Self {
        Self(Arc::new(Mutex::new(Lines {
            max,
            kept: Vec::new(),
            n_dropped: 0,
        })))
    }

    pub(crate) fn push(&self, level: LogLevel, text: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.kept.len() as u64 >= lines.max {
            lines.n_dropped += 1;
            return;
        }
        lines.kept.push(RuleLog {
            level,
            message: text.into(),
        });
    }

    /// Returns the lines so far and the number of dropped ones.
    pub(crate) fn take(&self) -> (Vec<RuleLog>, u64) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut lines.kept), lines.n_dropped)
    }
}

/// Standard output or standard error of a rule, line by line.
#[derive(Clone)]
pub(crate) struct LogStream {
    pub(crate) logs: Logs,
    pub(crate) level: LogLevel,
    pub(crate) meter: Meter,
}

impl IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogStream {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(LineWriter {
            stream: self.clone(),
            line: Vec::new(),
        })
    }
}

/// Collects bytes until a line is complete; an open line becomes a line too when the stream ends.
struct LineWriter {
    stream: LogStream,
    line: Vec<u8>,
}

impl LineWriter {
    fn end_line(&mut self) {
        let text = String::from_utf8_lossy(&self.line);
        self.stream.logs.push(self.stream.level, &text);
        self.line.clear();
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
    }
}

impl OutputStream for LineWriter {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.stream.meter.charge_call(bytes.len());
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            let (text, complete) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            let room = (LINE_MAX + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if complete {
                self.end_line();
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_MAX)
    }
}

#[async_trait::async_trait]
impl Pollable for LineWriter {
    async fn ready(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f31_lines_beyond_the_limit_are_counted_and_dropped() {
        let logs = Logs::new(2);
        for text in ["a", "b", "c", "d"] {
            logs.push(LogLevel::Info, text);
        }
        let (lines, n_dropped) = logs.take();
        assert_eq!((lines.len(), n_dropped), (2, 2));
    }

    #[test]
    fn what_is_written_becomes_lines() {
        let logs = Logs::new(10);
        let stream = LogStream {
            logs: logs.clone(),
            level: LogLevel::Warn,
            meter: Meter::default(),
        };
        let mut writer = LineWriter {
            stream,
            line: Vec::new(),
        };
        writer.write(Bytes::from_static(b"one\ntw")).unwrap();
        writer.write(Bytes::from_static(b"o\nopen")).unwrap();
        drop(writer);
        let messages: Vec<String> = logs
            .take()
            .0
            .into_iter()
            .map(|l| l.message.into())
            .collect();
        assert_eq!(messages, ["one", "two", "open"]);
    }
}
