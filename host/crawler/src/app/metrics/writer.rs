//! Writes metrics in the text format of OpenMetrics.
//!
//! The crate `prometheus-client` knows the format: endings, the order of lines, and which bytes of labels are escaped.

use std::fmt;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;

use super::families::{Family, Kind};
use crawler_process::metrics::DurationsRead;

/// Writer of the metrics of one scrape.
pub(super) struct Writer<'a> {
    encoder: DescriptorEncoder<'a>,
}

/// Values of the labels of a sample, in the order of the labels of its family.
type Values<'v> = Vec<&'v str>;

impl<'a> Writer<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self { encoder }
    }

    /// Writes a metric without labels.
    pub(super) fn number<V: EncodeCounterValue + EncodeGaugeValue>(
        &mut self,
        family: &Family,
        value: V,
    ) -> fmt::Result {
        self.numbers(family, [(Vec::new(), value)])
    }

    /// Writes a metric with all of its samples. One without samples is left out.
    pub(super) fn numbers<'v, V: EncodeCounterValue + EncodeGaugeValue>(
        &mut self,
        family: &Family,
        samples: impl IntoIterator<Item = (Values<'v>, V)>,
    ) -> fmt::Result {
        self.write(family, samples, |sample, value| match family.kind {
            Kind::Counter => sample.encode_counter::<NoLabelSet, _, u64>(value, None),
            Kind::Gauge => sample.encode_gauge(value),
            Kind::Histogram => Err(fmt::Error),
        })
    }

    /// Writes durations with all of their samples.
    pub(super) fn durations<'v>(
        &mut self,
        family: &Family,
        samples: impl IntoIterator<Item = (Values<'v>, DurationsRead)>,
    ) -> fmt::Result {
        self.write(family, samples, |sample, read| {
            sample.encode_histogram::<NoLabelSet>(read.seconds, read.n(), &read.buckets, None)
        })
    }

    fn write<'v, V>(
        &mut self,
        family: &Family,
        samples: impl IntoIterator<Item = (Values<'v>, V)>,
        one: impl Fn(&mut MetricEncoder<'_>, &V) -> fmt::Result,
    ) -> fmt::Result {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return Ok(());
        }
        let kind = match family.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        };
        let mut metric = self
            .encoder
            .encode_descriptor(family.name, family.help, None, kind)?;
        for (values, value) in samples {
            debug_assert_eq!(values.len(), family.labels.len(), "{}", family.name);
            let labels: Vec<(&str, &str)> = family.labels.iter().copied().zip(values).collect();
            one(&mut metric.encode_family(&labels)?, &value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::app::metrics::families::{PAGES, PHASES, RETRIES};
    use crawler_process::metrics::Durations;

    #[derive(Debug)]
    struct Sample;

    impl Collector for Sample {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
            let mut writer = Writer::new(encoder);
            let injected = "a\"} 1\ncrawler_pages_total{resource=\"b\\";
            writer.numbers(&PAGES, [(vec![injected, "parsed"], 3u64)])?;
            writer.numbers::<u64>(&RETRIES, [])?;
            let durations = Durations::default();
            durations.add(Duration::from_millis(3));
            writer.durations(&PHASES, [(vec!["body"], durations.read())])
        }
    }

    #[test]
    fn labels_are_escaped_and_histograms_are_cumulative() {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Sample));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let page = r#"crawler_pages_total{resource="a\"} 1\ncrawler_pages_total{resource=\"b\\",outcome="parsed"} 3"#;
        assert!(lines.contains(&page), "{text}");
        assert!(!text.contains("retries"), "it has no samples");
        let bucket = |end: &str, n: u64| {
            let name = "crawler_fetch_phase_duration_seconds_bucket";
            let line = format!("{name}{{le=\"{end}\",phase=\"body\"}} {n}");
            assert!(lines.contains(&line.as_str()), "{line} in {text}");
        };
        bucket("0.0025", 0);
        bucket("0.005", 1);
        bucket("+Inf", 1);
        assert_eq!(lines.last(), Some(&"# EOF"));
    }
}
