//! The uptime of the machine: a clock that cannot be set, and that a restart of the process does not reset.

use std::fs::read_to_string;
use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_core::store::TimeAtUptime;

/// A boot of a machine, and for how long the machine has been running since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineBoot {
    /// Identifies one boot of one machine.
    pub boot_id: u64,
    /// How long the machine has been running.
    pub uptime: Duration,
}

impl MachineBoot {
    /// Reads the boot id and the uptime from `/proc`; `None` where they cannot be read.
    pub(super) fn read() -> Option<Self> {
        let id = read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let uptime = read_to_string("/proc/uptime").ok()?;
        Self::parse(&id, &uptime)
    }

    fn parse(id: &str, uptime: &str) -> Option<Self> {
        let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(16).collect();
        let id = u64::from_str_radix(&digits, 16).ok()?;
        let seconds: f64 = uptime.split_whitespace().next()?.parse().ok()?;
        Some(Self { boot_id: id, uptime: Duration::try_from_secs_f64(seconds).ok()? })
    }

    pub(super) fn to_time_at_uptime(self, at: Timestamp) -> TimeAtUptime {
        TimeAtUptime {
            boot_id: self.boot_id,
            uptime_ms: saturating_millis(self.uptime),
            at,
            unconfirmed_time: None,
        }
    }

    /// The current time if the time of the reference was right; `None` if the reference is of another boot.
    pub(super) fn compute_current_time(self, reference: TimeAtUptime) -> Option<Timestamp> {
        let passed = self.uptime.checked_sub(Duration::from_millis(reference.uptime_ms));
        passed.filter(|_| reference.boot_id == self.boot_id).map(|passed| reference.at.plus(passed))
    }
}

pub(super) fn saturating_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_id_and_uptime_are_parsed() {
        let boot =
            MachineBoot::parse("0123abcd-4567-89ef-0123-456789abcdef\n", "350735.47 234388.90\n").unwrap();
        assert_eq!((boot.boot_id, boot.uptime), (0x0123_abcd_4567_89ef, Duration::from_millis(350_735_470)));
        for (id, uptime) in [("", "1 1"), ("12", ""), ("12", "-1 0"), ("12", "x"), ("12", "inf")] {
            assert_eq!(MachineBoot::parse(id, uptime), None);
        }
    }

    #[test]
    fn time_is_derived_only_from_a_reference_of_the_same_boot() {
        let reference = MachineBoot { boot_id: 1, uptime: Duration::from_secs(10) }
            .to_time_at_uptime(Timestamp::from_millis(5_000));
        let later = |id, seconds| {
            MachineBoot { boot_id: id, uptime: Duration::from_secs(seconds) }.compute_current_time(reference)
        };
        assert_eq!(later(1, 70), Some(Timestamp::from_millis(65_000)));
        assert_eq!((later(2, 70), later(1, 9)), (None, None));
    }
}
