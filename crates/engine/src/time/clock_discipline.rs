//! Derives a node's time from readings of clocks alone.
//!
//! A node's time always advances with the monotonic clock from an *anchor*: a time, and the reading of the monotonic
//! clock then. Between two anchors a step of the machine's clock does not affect the store.
//!
//! | reference | the anchor is | a machine's clock that disagrees |
//! |---|---|---|
//! | store | the time of the store's server, measured again every few seconds | by more than [`TOLERANCE`]: the node is out of service until it agrees again |
//! | machine | the machine's own clock, because the store is embedded | by up to [`TOLERANCE`]: is followed at once; by more: is followed when it has lasted ([`confirmation_time`]) |

use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_core::store::{ClockReport, ClockStep};

/// By how much a machine's clock may differ from the time that its node uses.
pub(super) const TOLERANCE: Duration = Duration::from_secs(30);
/// A leap ahead by more than this could delete rows, or start tasks, long before they are due.
pub(super) const LARGE_LEAP: Duration = Duration::from_secs(3600);
/// How long a step must last before an embedded store's node follows it.
const SMALL_STEP_CONFIRMATION: Duration = Duration::from_secs(60);
pub(super) const LARGE_STEP_CONFIRMATION: Duration = Duration::from_secs(600);
/// A change of the offset by less is drift, or the time that a measurement took.
const MIN_STEP: Duration = Duration::from_secs(2);
/// A measurement that took longer is too imprecise, unless there is no better one.
const MAX_ROUND_TRIP: Duration = Duration::from_secs(1);

/// The readings of a machine's clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The machine's clock, which may be set at any time.
    pub wall: Timestamp,
    /// The monotonic clock: how long ago some fixed moment is.
    pub monotonic: Duration,
}

/// A change of the clock's state, for the log. Numbers are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockChange {
    /// The machine's clock differs from the store's by this much, and the node leaves service.
    LeftService(i64),
    ReturnedToService,
    /// The machine's clock was set by this much, and is not followed yet.
    StepPending(i64),
    /// The machine's clock was set by this much, and is followed.
    StepFollowed(i64),
    /// The machine's clock was set back to where it was before the step.
    StepUndone,
    /// The store was last written this long ago, so pruning and firing are suspended.
    Suspended(i64),
    Resumed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeReference {
    /// `gained`: by how many microseconds steps ahead were followed.
    MachineClock { gained: i64 },
    /// `bound`: by how much the measured time may be wrong.
    StoreClock { bound: Duration },
}

/// A step that is not followed yet: since when it lasts, and by how many microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PendingStep {
    since: Duration,
    by_micros: i64,
}

/// The time is not confirmed: nothing is pruned and nothing planned fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suspension {
    /// When the suspension ends, by the monotonic clock.
    pub(super) until: Duration,
    /// The last confirmed time at which the store was written.
    pub(super) last_confirmed_write: Timestamp,
}

#[derive(Clone, Debug)]
pub(super) struct ClockDiscipline {
    /// `wall` is the node's time when the monotonic clock was at `monotonic`.
    anchor: ClockReading,
    reference: TimeReference,
    /// By how many microseconds the machine's clock was ahead at the last reading.
    offset_micros: i64,
    pending_step: Option<PendingStep>,
    last_step: Option<ClockStep>,
    is_out_of_service: bool,
    suspension: Option<Suspension>,
    /// The node's time when it was last reset: at the start, or by a step that was followed.
    time_reset_at: Timestamp,
}

impl ClockDiscipline {
    /// Uses the machine's clock until a server's clock is measured.
    pub(super) fn new(reading: ClockReading) -> Self {
        Self {
            anchor: reading,
            reference: TimeReference::MachineClock { gained: 0 },
            offset_micros: 0,
            pending_step: None,
            last_step: None,
            is_out_of_service: false,
            suspension: None,
            time_reset_at: reading.wall,
        }
    }

    /// The current time, and how this reading changed the state of the clock.
    pub(super) fn apply_reading(&mut self, reading: ClockReading) -> (Timestamp, Option<ClockChange>) {
        let offset = difference_micros(reading.wall, self.time_at_monotonic(reading.monotonic));
        let stepped = offset.saturating_sub(self.offset_micros);
        if stepped.unsigned_abs() >= saturating_micros(MIN_STEP).unsigned_abs() {
            self.last_step =
                Some(ClockStep { at: self.time_at_monotonic(reading.monotonic), by_ms: stepped / 1000 });
        }
        self.offset_micros = offset;
        let change = match self.reference {
            TimeReference::StoreClock { bound } => self.compare_with_store_clock(bound),
            TimeReference::MachineClock { gained } => self.follow_machine_clock(reading, gained),
        };
        (self.time_at_monotonic(reading.monotonic), change.or_else(|| self.end_suspension(reading.monotonic)))
    }

    /// Applies a measurement: the server's clock showed `server` at some moment between the two readings. This time is
    /// assigned to the second reading: the real time is at least that late, so nothing starts early.
    pub(super) fn apply_measurement(
        &mut self,
        asked: Duration,
        answered: ClockReading,
        server: Timestamp,
    ) -> Option<ClockChange> {
        let took = answered.monotonic.saturating_sub(asked);
        let (estimate, bound) = (server, took);
        let known_bound = match self.reference {
            TimeReference::MachineClock { .. } => None,
            TimeReference::StoreClock { bound } => Some(bound),
        };
        if let Some(known_bound) = known_bound {
            let apart = difference_micros(estimate, self.time_at_monotonic(answered.monotonic));
            let agrees = apart.unsigned_abs() <= saturating_micros(bound + known_bound).unsigned_abs();
            // However slow, the measurement shows that the machine was paused or the server's clock was set.
            let is_far =
                apart.unsigned_abs() > saturating_micros(bound + known_bound + TOLERANCE).unsigned_abs();
            if (took > MAX_ROUND_TRIP && !is_far) || (agrees && known_bound <= bound) {
                return self.apply_reading(answered).1;
            }
            if apart.unsigned_abs() > saturating_micros(TOLERANCE).unsigned_abs() {
                self.time_reset_at = estimate;
            }
        } else {
            self.time_reset_at = estimate;
        }
        self.anchor = ClockReading { wall: estimate, monotonic: answered.monotonic };
        self.reference = TimeReference::StoreClock { bound };
        self.pending_step = None;
        // The offset changes with the reference here, not because the machine's clock was set.
        self.offset_micros = difference_micros(answered.wall, estimate);
        self.apply_reading(answered).1
    }

    /// Starts on an embedded store, where the uptime of the machine gives `expected` as the current time. A machine's
    /// clock that differs was set while no node ran, and is treated like any other step.
    pub(super) fn start_from_uptime(
        &mut self,
        reading: ClockReading,
        expected: Timestamp,
    ) -> Option<ClockChange> {
        self.anchor = ClockReading { wall: expected, monotonic: reading.monotonic };
        self.time_reset_at = expected;
        self.apply_reading(reading).1
    }

    /// Starts on an embedded store that was last written at `last_seen`, where the elapsed time is not known otherwise.
    /// If `last_seen` is in the future, the machine's clock is used as it is: an earlier time starts nothing early.
    pub(super) fn start_from_last_write(
        &mut self,
        reading: ClockReading,
        last_seen: Timestamp,
    ) -> Option<ClockChange> {
        let leap = difference_micros(reading.wall, last_seen);
        (leap > saturating_micros(LARGE_LEAP)).then(|| {
            self.suspend(Suspension {
                until: reading.monotonic + LARGE_STEP_CONFIRMATION,
                last_confirmed_write: last_seen,
            });
            ClockChange::Suspended(leap)
        })
    }

    /// Prunes and fires nothing until the suspension ends.
    pub(super) fn suspend(&mut self, suspension: Suspension) {
        self.suspension = Some(suspension);
    }

    pub(super) fn is_out_of_service(&self) -> bool {
        self.is_out_of_service
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.suspension.is_some()
    }

    pub(super) fn suspension(&self) -> Option<Suspension> {
        self.suspension
    }

    /// Whether times come from a server's clock.
    pub(super) fn uses_store_clock(&self) -> bool {
        matches!(self.reference, TimeReference::StoreClock { .. })
    }

    pub(super) fn time_reset_at(&self) -> Timestamp {
        self.time_reset_at
    }

    /// By how many microseconds the machine's clock was ahead at the last reading.
    pub(super) fn offset_micros(&self) -> i64 {
        self.offset_micros
    }

    pub(super) fn report(&self) -> ClockReport {
        ClockReport {
            offset_ms: self.offset_micros / 1000,
            out_of_service: self.is_out_of_service,
            last_step: self.last_step,
            boot_reference: None,
        }
    }

    fn time_at_monotonic(&self, mono: Duration) -> Timestamp {
        self.anchor.wall.plus(mono.saturating_sub(self.anchor.monotonic))
    }

    /// Compares the machine's clock with the store's.
    fn compare_with_store_clock(&mut self, bound: Duration) -> Option<ClockChange> {
        let off = self.offset_micros.unsigned_abs() > saturating_micros(TOLERANCE + bound).unsigned_abs();
        match (std::mem::replace(&mut self.is_out_of_service, off), off) {
            (false, true) => Some(ClockChange::LeftService(self.offset_micros)),
            (true, false) => Some(ClockChange::ReturnedToService),
            (true, true) | (false, false) => None,
        }
    }

    /// Follows the machine's clock, a large step only when it has lasted.
    fn follow_machine_clock(&mut self, reading: ClockReading, gained: i64) -> Option<ClockChange> {
        if self.offset_micros.unsigned_abs() <= saturating_micros(TOLERANCE).unsigned_abs() {
            (self.anchor, self.offset_micros) = (reading, 0);
            return self.pending_step.take().map(|_| ClockChange::StepUndone);
        }
        let same = |pending: &PendingStep| {
            pending.by_micros.abs_diff(self.offset_micros) <= saturating_micros(TOLERANCE).unsigned_abs()
        };
        let Some(PendingStep { since, .. }) =
            self.pending_step.filter(same).or_else(|| self.pending_step_back(reading))
        else {
            self.pending_step = Some(PendingStep { since: reading.monotonic, by_micros: self.offset_micros });
            return Some(ClockChange::StepPending(self.offset_micros));
        };
        if reading.monotonic.saturating_sub(since) < self.required_confirmation(gained) {
            return None;
        }
        let by = std::mem::take(&mut self.offset_micros);
        self.reference = TimeReference::MachineClock { gained: gained.saturating_add(by).max(0) };
        (self.anchor, self.time_reset_at, self.pending_step) = (reading, reading.wall, None);
        Some(ClockChange::StepFollowed(by))
    }

    /// A step back while the time is not confirmed: the clock was wrong before it.
    fn pending_step_back(&self, reading: ClockReading) -> Option<PendingStep> {
        let is_return = self.suspension.is_some() && self.offset_micros < 0;
        is_return.then_some(PendingStep { since: reading.monotonic, by_micros: self.offset_micros })
    }

    /// How long the step of the machine's clock must last before it is followed.
    fn required_confirmation(&self, gained: i64) -> Duration {
        if self.suspension.is_some() && self.offset_micros < 0 {
            return Duration::ZERO;
        }
        confirmation_time(self.offset_micros, gained)
    }

    /// Ends a suspension. While a step is pending the time is not confirmed either.
    fn end_suspension(&mut self, mono: Duration) -> Option<ClockChange> {
        let is_settled = self.pending_step.is_none();
        let ended = self.suspension.take_if(|suspension| is_settled && suspension.until <= mono);
        ended.map(|_| ClockChange::Resumed)
    }
}

/// How long a step must last before it is followed. One back to where the clock was before it leapt ahead is the end of
/// that leap, and needs less.
pub(super) fn confirmation_time(by: i64, gained: i64) -> Duration {
    let is_return = by < 0 && by.unsigned_abs() <= (gained + saturating_micros(TOLERANCE)).unsigned_abs();
    let is_small = by.unsigned_abs() <= saturating_micros(LARGE_LEAP).unsigned_abs();
    if is_return || is_small { SMALL_STEP_CONFIRMATION } else { LARGE_STEP_CONFIRMATION }
}

fn difference_micros(one: Timestamp, other: Timestamp) -> i64 {
    one.micros().saturating_sub(other.micros())
}

fn saturating_micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
