//! Counters and timings of a node, in Prometheus' terms.

/// The node's metrics.
#[derive(Debug, Default)]
pub struct Metrics {
    _private: (),
}

impl Metrics {
    /// The Prometheus text form (OpenMetrics).
    pub fn encode(&self) -> String {
        unimplemented!()
    }
}
