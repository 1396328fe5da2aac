//! Metrics of the HTTP server: connections, refusals, streams, responses and failed authentications.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The counters and gauges of the HTTP server. `/metrics` has them before those of the engine.
#[derive(Debug)]
pub(crate) struct HttpMetrics {
    registry: Registry,
    open_connections: Family<ConnectionLabels, Gauge>,
    evicted_connections: Counter,
    refused_requests: Family<RefusalLabels, Counter>,
    open_streams: Gauge,
    unread_response_bytes: Gauge,
    failed_authentications: Counter,
}

/// Numbers of open connections: ordinary ones with and without a valid token, and those of the reserve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenConnectionCounts {
    pub(crate) authenticated: usize,
    pub(crate) unauthenticated: usize,
    pub(crate) in_reserve: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConnectionLabels {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    limit: &'static str,
}

impl Default for HttpMetrics {
    fn default() -> Self {
        let mut new = Self {
            registry: Registry::with_prefix("pointsman"),
            open_connections: Family::default(),
            evicted_connections: Counter::default(),
            refused_requests: Family::default(),
            open_streams: Gauge::default(),
            unread_response_bytes: Gauge::default(),
            failed_authentications: Counter::default(),
        };
        new.register_metrics();
        new
    }
}

impl HttpMetrics {
    fn register_metrics(&mut self) {
        let registry = &mut self.registry;
        registry.register("http_connections", "Open connections, by kind", self.open_connections.clone());
        let evicted = "Connections without a valid token that were closed so that others could connect";
        registry.register("http_connections_evicted", evicted, self.evicted_connections.clone());
        registry.register(
            "http_refused",
            "Requests refused with 429 or 503, by limit",
            self.refused_requests.clone(),
        );
        registry.register("http_streams", "Open streams and long polls", self.open_streams.clone());
        let bytes = "Bytes of large responses that clients have not read yet";
        registry.register("http_response_bytes", bytes, self.unread_response_bytes.clone());
        let failed = "Requests with an unknown token";
        registry.register("http_failed_authentications", failed, self.failed_authentications.clone());
        for limit in ["connections", "streams", "responses", "failed_authentications"] {
            // Creates the counter, so that it is exported as 0 from the start.
            drop(self.refused_requests.get_or_create(&RefusalLabels { limit }));
        }
    }

    pub(crate) fn count_evicted_connection(&self) {
        self.evicted_connections.inc();
    }

    pub(crate) fn count_refused_connection(&self) {
        self.count_refusal("connections");
    }

    pub(crate) fn count_refused_stream(&self) {
        self.count_refusal("streams");
    }

    pub(crate) fn count_refused_response(&self) {
        self.count_refusal("responses");
    }

    pub(crate) fn count_throttled_authentication(&self) {
        self.count_refusal("failed_authentications");
    }

    pub(crate) fn count_failed_authentication(&self) {
        self.failed_authentications.inc();
    }

    fn count_refusal(&self, limit: &'static str) {
        self.refused_requests.get_or_create(&RefusalLabels { limit }).inc();
    }

    /// Encodes the metrics as OpenMetrics text, without the final `# EOF`, because the engine's metrics follow.
    pub(crate) fn encode_openmetrics(
        &self,
        open: OpenConnectionCounts,
        streams: usize,
        response_bytes: u64,
    ) -> String {
        let OpenConnectionCounts { authenticated, unauthenticated, in_reserve: reserve } = open;
        for (kind, count) in
            [("authenticated", authenticated), ("unauthenticated", unauthenticated), ("reserve", reserve)]
        {
            self.open_connections.get_or_create(&ConnectionLabels { kind }).set(to_gauge_value(count as u64));
        }
        self.open_streams.set(to_gauge_value(streams as u64));
        self.unread_response_bytes.set(to_gauge_value(response_bytes));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode_registry(&mut text, &self.registry);
        text
    }
}

fn to_gauge_value(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_encoded_under_stable_names() {
        let metrics = HttpMetrics::default();
        metrics.count_evicted_connection();
        metrics.count_refused_stream();
        metrics.count_failed_authentication();
        let open = OpenConnectionCounts { authenticated: 3, unauthenticated: 2, in_reserve: 1 };
        let text = metrics.encode_openmetrics(open, 4, 5);
        for line in [
            "pointsman_http_connections{kind=\"authenticated\"} 3",
            "pointsman_http_connections{kind=\"unauthenticated\"} 2",
            "pointsman_http_connections{kind=\"reserve\"} 1",
            "pointsman_http_connections_evicted_total 1",
            "pointsman_http_refused_total{limit=\"connections\"} 0",
            "pointsman_http_refused_total{limit=\"streams\"} 1",
            "pointsman_http_refused_total{limit=\"responses\"} 0",
            "pointsman_http_refused_total{limit=\"failed_authentications\"} 0",
            "pointsman_http_streams 4",
            "pointsman_http_response_bytes 5",
            "pointsman_http_failed_authentications_total 1",
        ] {
            assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
        }
        assert!(!text.contains("# EOF"));
    }
}
