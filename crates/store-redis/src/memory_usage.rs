//! Memory usage of the server.

use pointsman_store::finding::format_bytes;

use crate::connect::info_value;

/// Emits are refused from this percentage of `maxmemory` on, so that stored work can still be processed.
pub(crate) const EMIT_REFUSAL_PERCENT: u64 = 80;

/// Used memory of the server and its limit, which is 0 without a `maxmemory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryUsage {
    used_bytes: u64,
    limit_bytes: u64,
}

impl MemoryUsage {
    /// Parses the output of `INFO memory`.
    pub(crate) fn parse(info: &str) -> Self {
        let number = |name| info_value(info, name).and_then(|value| value.parse().ok()).unwrap_or_default();
        Self { used_bytes: number("used_memory"), limit_bytes: number("maxmemory") }
    }

    pub(crate) fn format_used(self) -> String {
        format_bytes(self.used_bytes)
    }

    pub(crate) fn format_limit(self) -> String {
        format_bytes(self.limit_bytes)
    }

    /// Returns the used percentage; `None` without a limit.
    pub(crate) fn used_percent(self) -> Option<u64> {
        self.used_bytes.saturating_mul(100).checked_div(self.limit_bytes)
    }

    /// Explains why emits are refused and what to do, if memory is nearly full.
    pub(crate) fn describe_if_nearly_full(self) -> Option<String> {
        let percent = self.used_percent().filter(|percent| *percent >= EMIT_REFUSAL_PERCENT)?;
        let (used, limit) = (self.format_used(), self.format_limit());
        Some(format!(
            "Redis uses {used} of its {limit} ({percent} %); from {EMIT_REFUSAL_PERCENT} % on only stored work \
             is processed; raise maxmemory, or shorten the retention (journal.retain_events, history.retain_tasks)"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_nearly_full_from_eighty_percent_on() {
        let memory = |used: u64, limit: u64| {
            MemoryUsage::parse(&format!("used_memory:{used}\r\nmaxmemory:{limit}\r\n"))
        };
        assert_eq!(memory(5_000_000, 0).describe_if_nearly_full(), None, "there is no limit");
        assert_eq!(memory(79_999, 100_000).describe_if_nearly_full(), None);
        let message = memory(85 << 20, 100 << 20).describe_if_nearly_full();
        assert!(
            message.as_ref().is_some_and(|message| message.contains("85 MiB of its 100 MiB (85 %)")),
            "{message:?}"
        );
        assert!(
            memory(80_000, 100_000).describe_if_nearly_full().is_some()
                && memory(2, 1).describe_if_nearly_full().is_some()
        );
    }
}
