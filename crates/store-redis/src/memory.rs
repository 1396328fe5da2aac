//! How much of its memory a server uses, and whether that leaves room for more.

use pointsman_store::finding::size;

use crate::connect::line;

/// From here on nothing is taken in, in percent of `maxmemory`, so that there is room to work off what is there.
pub(crate) const FULL: u64 = 80;

/// How much is used, and how much may be. Without a `maxmemory` there is no limit but the machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    used: u64,
    most: u64,
}

impl Memory {
    /// By what `INFO memory` tells.
    pub(crate) fn of(figures: &str) -> Self {
        let figure = |name| line(figures, name).and_then(|value| value.parse().ok()).unwrap_or_default();
        Self { used: figure("used_memory"), most: figure("maxmemory") }
    }

    pub(crate) fn used(self) -> String {
        size(self.used)
    }

    pub(crate) fn most(self) -> String {
        size(self.most)
    }

    /// How much of what may be used is; nothing if there is no limit.
    pub(crate) fn percent(self) -> Option<u64> {
        self.used.saturating_mul(100).checked_div(self.most)
    }

    /// Why nothing is taken in, if so, and what to do.
    pub(crate) fn full(self) -> Option<String> {
        let percent = self.percent().filter(|percent| *percent >= FULL)?;
        let (used, most) = (self.used(), self.most());
        Some(format!(
            "Redis uses {used} of its {most} ({percent} %), and from {FULL} % on there is only room to work off what waits; \
             raise maxmemory, or let history be forgotten sooner (journal.retain_events, history.retain_tasks)"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_free_is_for_what_waits() {
        let memory =
            |used: u64, most: u64| Memory::of(&format!("used_memory:{used}\r\nmaxmemory:{most}\r\n"));
        assert_eq!(memory(5_000_000, 0).full(), None, "there is no limit");
        assert_eq!(memory(79_999, 100_000).full(), None);
        let told = memory(85 << 20, 100 << 20).full();
        assert!(told.as_ref().is_some_and(|told| told.contains("85 MB of its 100 MB (85 %)")), "{told:?}");
        assert!(memory(80_000, 100_000).full().is_some() && memory(2, 1).full().is_some());
    }
}
