//! Derives a node's time from readings of clocks alone.
//!
//! A node's time always advances with the monotonic clock from an *anchor*: a time, and the reading of the monotonic
//! clock then. Between two anchors a step of the machine's clock does not affect the store.
//!
//! | reference | the anchor is | a machine's clock that disagrees |
//! |---|---|---|
//! | store | the time of the store's server, measured again every few seconds | by more than [`CLOCK_TOLERANCE`]: the node is out of service until it agrees again |
//! | machine | the machine's own clock, because the store is embedded | by up to [`CLOCK_TOLERANCE`]: is followed at once; by more: is followed when it has lasted ([`step_confirmation_time`]) |

use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_core::store::{ClockReport, ClockStep};

/// By how much a machine's clock may differ from the time of its node. If it differs more, the node leaves service, or
/// waits before it follows the step.
pub(super) const CLOCK_TOLERANCE: Duration = Duration::from_secs(30);
/// A step ahead by more than this is large: it could delete rows, or start tasks, long before they are due.
pub(super) const LARGE_STEP_THRESHOLD: Duration = Duration::from_secs(3600);
/// How long a step must last before an embedded store's node follows it.
const SMALL_STEP_CONFIRMATION_TIME: Duration = Duration::from_secs(60);
/// How long a step of more than [`LARGE_STEP_THRESHOLD`] must last before an embedded store's node follows it.
pub(super) const LARGE_STEP_CONFIRMATION_TIME: Duration = Duration::from_secs(600);
/// The minimum change of a clock's offset that counts as a step. A smaller change is drift, or the imprecision of a
/// measurement.
const MIN_CLOCK_STEP: Duration = Duration::from_secs(2);
/// The maximum duration of a measurement of the store's clock. A slower measurement is too imprecise, unless there is
/// no better one.
const MAX_ROUND_TRIP: Duration = Duration::from_secs(1);

/// The readings of a machine's clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The machine's clock, which may be set at any time.
    pub wall: Timestamp,
    /// The monotonic clock: the time since some fixed moment.
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
    FiringSuspended(i64),
    FiringResumed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeReference {
    /// The node follows the machine's clock. `gained_micros`: how far ahead the followed
    /// steps have put it, in microseconds.
    MachineClock { gained_micros: i64 },
    /// The node follows the clock of the store's server. `max_error`: by how much the measured time may be wrong.
    StoreClock { max_error: Duration },
}

/// A step that is not followed yet: when it was noticed, by the monotonic clock, and by how many microseconds it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PendingStep {
    noticed_at_monotonic: Duration,
    step_micros: i64,
}

/// A time in which nothing is pruned and no planned time fires, because the clock is not confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FiringSuspension {
    /// When the suspension ends, by the monotonic clock.
    pub(super) until_monotonic: Duration,
    /// The last confirmed time at which the store was written.
    pub(super) last_confirmed_write: Timestamp,
}

#[derive(Clone, Debug)]
pub(super) struct ClockDiscipline {
    /// The anchor of the node's time, which was `wall` when the monotonic clock was at `monotonic`.
    anchor: ClockReading,
    reference: TimeReference,
    /// By how many microseconds the machine's clock was ahead at the last reading.
    machine_clock_ahead_micros: i64,
    pending_step: Option<PendingStep>,
    last_step: Option<ClockStep>,
    is_out_of_service: bool,
    firing_suspension: Option<FiringSuspension>,
    /// The node's time when it was last reset: at the start, or by a step that was followed.
    time_reset_at: Timestamp,
}

impl ClockDiscipline {
    /// Uses the machine's clock until a server's clock is measured.
    pub(super) fn new(reading: ClockReading) -> Self {
        Self {
            anchor: reading,
            reference: TimeReference::MachineClock { gained_micros: 0 },
            machine_clock_ahead_micros: 0,
            pending_step: None,
            last_step: None,
            is_out_of_service: false,
            firing_suspension: None,
            time_reset_at: reading.wall,
        }
    }

    /// Applies a reading; returns the current time and how the reading changed the state of the clock.
    pub(super) fn apply_reading(&mut self, reading: ClockReading) -> (Timestamp, Option<ClockChange>) {
        let offset = difference_micros(reading.wall, self.time_at_monotonic(reading.monotonic));
        let new_step_micros = offset.saturating_sub(self.machine_clock_ahead_micros);
        if new_step_micros.unsigned_abs() >= saturating_micros(MIN_CLOCK_STEP).unsigned_abs() {
            self.last_step = Some(ClockStep {
                at: self.time_at_monotonic(reading.monotonic),
                by_ms: new_step_micros / 1000,
            });
        }
        self.machine_clock_ahead_micros = offset;
        let change = match self.reference {
            TimeReference::StoreClock { max_error } => self.update_service_from_store_clock(max_error),
            TimeReference::MachineClock { gained_micros } => {
                self.follow_machine_clock(reading, gained_micros)
            }
        };
        (
            self.time_at_monotonic(reading.monotonic),
            change.or_else(|| self.end_elapsed_firing_suspension(reading.monotonic)),
        )
    }

    /// Applies a measurement: the server's clock showed `server_time` at some moment between `requested_at` and
    /// `reading`. This time is assigned to `reading`: the real time is at least that late, so nothing starts early.
    pub(super) fn apply_store_clock_measurement(
        &mut self,
        requested_at: Duration,
        reading: ClockReading,
        server_time: Timestamp,
    ) -> Option<ClockChange> {
        let round_trip = reading.monotonic.saturating_sub(requested_at);
        let (estimate, max_error) = (server_time, round_trip);
        let current_max_error = match self.reference {
            TimeReference::MachineClock { .. } => None,
            TimeReference::StoreClock { max_error } => Some(max_error),
        };
        if let Some(current_max_error) = current_max_error {
            let difference = difference_micros(estimate, self.time_at_monotonic(reading.monotonic));
            let agrees =
                difference.unsigned_abs() <= saturating_micros(max_error + current_max_error).unsigned_abs();
            // However slow, the measurement shows that the machine was paused or the server's clock was set.
            let is_far = difference.unsigned_abs()
                > saturating_micros(max_error + current_max_error + CLOCK_TOLERANCE).unsigned_abs();
            if (round_trip > MAX_ROUND_TRIP && !is_far) || (agrees && current_max_error <= max_error) {
                return self.apply_reading(reading).1;
            }
            if difference.unsigned_abs() > saturating_micros(CLOCK_TOLERANCE).unsigned_abs() {
                self.time_reset_at = estimate;
            }
        } else {
            self.time_reset_at = estimate;
        }
        self.anchor = ClockReading { wall: estimate, monotonic: reading.monotonic };
        self.reference = TimeReference::StoreClock { max_error };
        self.pending_step = None;
        // The offset changes with the reference here, not because the machine's clock was set.
        self.machine_clock_ahead_micros = difference_micros(reading.wall, estimate);
        self.apply_reading(reading).1
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

    /// Starts on an embedded store that was last written at `last_write`, where the elapsed time is not known
    /// otherwise. If `last_write` is in the future, the machine's clock is used as it is: an earlier time starts
    /// nothing early.
    pub(super) fn start_from_last_write(
        &mut self,
        reading: ClockReading,
        last_write: Timestamp,
    ) -> Option<ClockChange> {
        let leap = difference_micros(reading.wall, last_write);
        (leap > saturating_micros(LARGE_STEP_THRESHOLD)).then(|| {
            self.suspend_firing(FiringSuspension {
                until_monotonic: reading.monotonic + LARGE_STEP_CONFIRMATION_TIME,
                last_confirmed_write: last_write,
            });
            ClockChange::FiringSuspended(leap)
        })
    }

    /// Suspends pruning and the firing of planned times.
    pub(super) fn suspend_firing(&mut self, suspension: FiringSuspension) {
        self.firing_suspension = Some(suspension);
    }

    pub(super) fn is_out_of_service(&self) -> bool {
        self.is_out_of_service
    }

    pub(super) fn is_firing_suspended(&self) -> bool {
        self.firing_suspension.is_some()
    }

    pub(super) fn firing_suspension(&self) -> Option<FiringSuspension> {
        self.firing_suspension
    }

    /// Whether times come from a server's clock.
    pub(super) fn uses_store_clock(&self) -> bool {
        matches!(self.reference, TimeReference::StoreClock { .. })
    }

    pub(super) fn time_reset_at(&self) -> Timestamp {
        self.time_reset_at
    }

    /// By how many microseconds the machine's clock was ahead at the last reading.
    pub(super) fn machine_clock_ahead_micros(&self) -> i64 {
        self.machine_clock_ahead_micros
    }

    pub(super) fn build_clock_report(&self) -> ClockReport {
        ClockReport {
            offset_ms: self.machine_clock_ahead_micros / 1000,
            out_of_service: self.is_out_of_service,
            last_step: self.last_step,
            time_at_uptime: None,
        }
    }

    fn time_at_monotonic(&self, monotonic: Duration) -> Timestamp {
        self.anchor.wall.plus(monotonic.saturating_sub(self.anchor.monotonic))
    }

    /// Takes the node out of service while the machine's clock disagrees with the store's, and back when it agrees.
    fn update_service_from_store_clock(&mut self, max_error: Duration) -> Option<ClockChange> {
        let disagrees = self.machine_clock_ahead_micros.unsigned_abs()
            > saturating_micros(CLOCK_TOLERANCE + max_error).unsigned_abs();
        match (std::mem::replace(&mut self.is_out_of_service, disagrees), disagrees) {
            (false, true) => Some(ClockChange::LeftService(self.machine_clock_ahead_micros)),
            (true, false) => Some(ClockChange::ReturnedToService),
            (true, true) | (false, false) => None,
        }
    }

    /// Follows the machine's clock, a large step only when it has lasted.
    fn follow_machine_clock(&mut self, reading: ClockReading, gained_micros: i64) -> Option<ClockChange> {
        if self.machine_clock_ahead_micros.unsigned_abs() <= saturating_micros(CLOCK_TOLERANCE).unsigned_abs()
        {
            (self.anchor, self.machine_clock_ahead_micros) = (reading, 0);
            return self.pending_step.take().map(|_| ClockChange::StepUndone);
        }
        let is_same_step = |pending: &PendingStep| {
            pending.step_micros.abs_diff(self.machine_clock_ahead_micros)
                <= saturating_micros(CLOCK_TOLERANCE).unsigned_abs()
        };
        let Some(PendingStep { noticed_at_monotonic: noticed_at, .. }) =
            self.pending_step.filter(is_same_step).or_else(|| self.find_correcting_step_back(reading))
        else {
            self.pending_step = Some(PendingStep {
                noticed_at_monotonic: reading.monotonic,
                step_micros: self.machine_clock_ahead_micros,
            });
            return Some(ClockChange::StepPending(self.machine_clock_ahead_micros));
        };
        if reading.monotonic.saturating_sub(noticed_at) < self.pending_step_confirmation_time(gained_micros) {
            return None;
        }
        let step_micros = std::mem::take(&mut self.machine_clock_ahead_micros);
        self.reference =
            TimeReference::MachineClock { gained_micros: gained_micros.saturating_add(step_micros).max(0) };
        (self.anchor, self.time_reset_at, self.pending_step) = (reading, reading.wall, None);
        Some(ClockChange::StepFollowed(step_micros))
    }

    /// A step back during a firing suspension: it corrects the clock, and is followed at once.
    fn find_correcting_step_back(&self, reading: ClockReading) -> Option<PendingStep> {
        let is_return = self.firing_suspension.is_some() && self.machine_clock_ahead_micros < 0;
        is_return.then_some(PendingStep {
            noticed_at_monotonic: reading.monotonic,
            step_micros: self.machine_clock_ahead_micros,
        })
    }

    /// How long the pending step must last before it is followed.
    fn pending_step_confirmation_time(&self, gained_micros: i64) -> Duration {
        if self.firing_suspension.is_some() && self.machine_clock_ahead_micros < 0 {
            return Duration::ZERO;
        }
        step_confirmation_time(self.machine_clock_ahead_micros, gained_micros)
    }

    /// Ends a firing suspension whose time is over, unless a step is pending.
    fn end_elapsed_firing_suspension(&mut self, monotonic: Duration) -> Option<ClockChange> {
        let has_no_pending_step = self.pending_step.is_none();
        let ended = self.firing_suspension.take_if(|firing_suspension| {
            has_no_pending_step && firing_suspension.until_monotonic <= monotonic
        });
        ended.map(|_| ClockChange::FiringResumed)
    }
}

/// How long a step of this many microseconds must last before it is followed. A step back that undoes steps ahead
/// (`gained_micros`) needs less.
pub(super) fn step_confirmation_time(step_micros: i64, gained_micros: i64) -> Duration {
    let is_return = step_micros < 0
        && step_micros.unsigned_abs() <= (gained_micros + saturating_micros(CLOCK_TOLERANCE)).unsigned_abs();
    let is_small = step_micros.unsigned_abs() <= saturating_micros(LARGE_STEP_THRESHOLD).unsigned_abs();
    if is_return || is_small { SMALL_STEP_CONFIRMATION_TIME } else { LARGE_STEP_CONFIRMATION_TIME }
}

fn difference_micros(one: Timestamp, other: Timestamp) -> i64 {
    one.micros().saturating_sub(other.micros())
}

fn saturating_micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
