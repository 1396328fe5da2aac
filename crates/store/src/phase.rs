//! The phase of an unfinished task: what it waits for, as one number.

use pointsman_core::TaskStatus;

/// The phases of an unfinished task. State `new` of the lifecycle has four phases here, because a claim must find
/// runnable tasks without passing over others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskPhase {
    /// `new`: waits for another task of its lane or concurrency group.
    BlockedByTask = 0,
    /// `new`: waits for a synchronous task of its event.
    SyncGated = 1,
    /// `new`: waits for its due time.
    Delayed = 2,
    /// `new`: can run.
    Ready = 3,
    Scheduled = 4,
    Locked = 5,
    /// `error`, and blocks its lane.
    Halted = 6,
    Missing = 7,
}

impl TaskPhase {
    pub fn status(self) -> TaskStatus {
        match self {
            Self::BlockedByTask | Self::SyncGated | Self::Delayed | Self::Ready => TaskStatus::New,
            Self::Scheduled => TaskStatus::Scheduled,
            Self::Locked => TaskStatus::Locked,
            Self::Halted => TaskStatus::Error,
            Self::Missing => TaskStatus::Missing,
        }
    }

    /// Returns whether the task counts against the limit of its concurrency group.
    pub(crate) fn counts_in_concurrency_group(self) -> bool {
        matches!(self, Self::Ready | Self::Scheduled | Self::Locked)
    }

    /// Returns whether the task is waiting, scheduled or locked.
    pub fn is_waiting_or_running(self) -> bool {
        !matches!(self, Self::Halted | Self::Missing)
    }

    pub const fn code(self) -> i16 {
        self as i16
    }

    pub fn from_code(code: i16) -> Option<Self> {
        const ALL: [TaskPhase; 8] = [
            TaskPhase::BlockedByTask,
            TaskPhase::SyncGated,
            TaskPhase::Delayed,
            TaskPhase::Ready,
            TaskPhase::Scheduled,
            TaskPhase::Locked,
            TaskPhase::Halted,
            TaskPhase::Missing,
        ];
        usize::try_from(code).ok().and_then(|index| ALL.get(index).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phase_codes_round_trip() {
        for code in 0..8 {
            assert_eq!(TaskPhase::from_code(code).map(TaskPhase::code), Some(code));
        }
        assert_eq!(TaskPhase::from_code(8), None);
        assert_eq!(TaskPhase::from_code(-1), None);
    }
}
