//! A sink that is opened when the first items come, so that a sink that cannot be opened is handled as one that
//! cannot be written to.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Delivery, Gathering, OpenSinks, Sink, SinkError, Written};
use crawler_model::crawl::ItemRecord;

/// Sink that each write opens, until that has succeeded once.
pub struct LazySink {
    sinks: Arc<dyn OpenSinks>,
    delivery: Delivery,
    opened: Option<Box<dyn Sink>>,
}

impl LazySink {
    /// Creates a sink for this delivery. Nothing is opened yet.
    pub fn new(sinks: Arc<dyn OpenSinks>, delivery: Delivery) -> Self {
        Self {
            sinks,
            delivery,
            opened: None,
        }
    }
}

#[async_trait]
impl Sink for LazySink {
    async fn write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let sink = match &mut self.opened {
            Some(sink) => sink,
            opened => opened.insert(self.sinks.open(&self.delivery).await?),
        };
        sink.write(first, items).await
    }

    /// Returns what the opened sink says. The first write, which opens it, may be given up if the sink is a declared one:
    /// its destination may hang as early as that.
    fn is_cancel_safe(&self) -> bool {
        let opened = self.opened.as_ref();
        let is_declared = !self.delivery.sink.is_lines();
        opened.map_or(is_declared, |sink| sink.is_cancel_safe())
    }

    /// Returns the bounds of the opened sink. Items do not gather for the first write, which opens it.
    fn gathering(&self) -> Gathering {
        let opened = self.opened.as_ref();
        opened.map_or_else(Gathering::default, |sink| sink.gathering())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::lines::tests::record;
    use crate::stream::StreamSink;
    use crawler_model::id::{ResourceId, Run};
    use crawler_model::resource::ShardId;
    use crawler_model::settings::SinkName;

    fn delivery() -> Delivery {
        let spec = r#"{"name":"books","plugin":"books"}"#;
        Delivery {
            sink: SinkName::lines(),
            shard: ShardId::only(ResourceId(7)),
            cluster: "c1".to_owned(),
            run: Run(1),
            storage_epoch: 1,
            spec: serde_json::from_str(spec).unwrap(),
            schemas: Vec::new(),
            other_kinds: None,
            marks: Vec::new(),
        }
    }

    /// Sinks that can be opened at the third try.
    #[derive(Default)]
    struct ThirdTry {
        n_tries: AtomicU32,
    }

    #[async_trait]
    impl OpenSinks for ThirdTry {
        async fn open(&self, _delivery: &Delivery) -> Result<Box<dyn Sink>, SinkError> {
            match self.n_tries.fetch_add(1, Ordering::Relaxed) {
                0 | 1 => Err(SinkError::Retry {
                    message: "there are no credentials".to_owned(),
                    source: None,
                }),
                _ => Ok(Box::new(StreamSink::new(Vec::new(), "memory"))),
            }
        }
    }

    #[tokio::test]
    async fn the_opening_of_a_declared_sink_may_be_given_up() {
        let declared = Delivery {
            sink: "out".parse().unwrap(),
            ..delivery()
        };
        for (delivery, is_safe) in [(declared, true), (delivery(), false)] {
            let mut sink = LazySink::new(Arc::new(ThirdTry::default()), delivery);
            assert_eq!(sink.is_cancel_safe(), is_safe);
            for n in 1..=3 {
                let written = sink.write(0, &[record(n, "{}")]).await;
                assert_eq!(written.is_ok(), n == 3);
            }
            assert!(!sink.is_cancel_safe(), "the sink itself knows");
        }
    }

    #[tokio::test]
    async fn each_write_tries_to_open_the_sink_until_it_is_open() {
        let sinks = Arc::new(ThirdTry::default());
        let mut sink = LazySink::new(sinks.clone(), delivery());
        for _ in 0..2 {
            let error = sink.write(0, &[record(1, "{}")]).await.unwrap_err();
            assert_eq!(error.to_string(), "there are no credentials");
        }
        for n in 1..=2 {
            sink.write(0, &[record(n, "{}")]).await.unwrap();
        }
        assert_eq!(sinks.n_tries.load(Ordering::Relaxed), 3);
    }
}
