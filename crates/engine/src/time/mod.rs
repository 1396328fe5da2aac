//! The one place that reads the clock, for the engine and the crates built on it. Everything below takes the time as
//! an argument.

mod clock_discipline;
pub(crate) mod clock_monitor;
mod machine_boot;
mod store_backoff;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use pointsman_core::Timestamp;
use pointsman_core::store::{ClockReport, Store, StoreError, TimeAtUptime, UnconfirmedTime};

pub use clock_discipline::ClockReading;
use clock_discipline::{CLOCK_TOLERANCE, ClockChange, ClockDiscipline, FiringSuspension};
pub use machine_boot::MachineBoot;
pub(crate) use store_backoff::StoreBackoff;

/// The machine's clock, uncorrected: for displaying times, and for programs without a node. A node uses its
/// [`TimeSource`].
pub fn machine_clock_now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::MIN.plus(since)
}

/// Reads the clocks of a machine.
pub trait MachineClocks: fmt::Debug + Send + Sync {
    /// Reads both clocks.
    fn read(&self) -> ClockReading;

    /// Which boot of the machine this is, and for how long it has been running; `None` where that is not known.
    fn read_boot(&self) -> Option<MachineBoot>;
}

/// The clocks of the machine that this runs on.
#[derive(Debug)]
struct SystemClocks {
    created_at: Instant,
}

impl MachineClocks for SystemClocks {
    fn read(&self) -> ClockReading {
        ClockReading { wall: machine_clock_now(), monotonic: self.created_at.elapsed() }
    }

    fn read_boot(&self) -> Option<MachineBoot> {
        MachineBoot::read()
    }
}

/// The time that a node uses: the time of the store's server, or of the machine if the store has no server. It advances
/// with the monotonic clock, so steps of the machine's clock do not affect it.
#[derive(Debug)]
pub struct TimeSource {
    clocks: Box<dyn MachineClocks>,
    discipline: Mutex<ClockDiscipline>,
}

impl Default for TimeSource {
    fn default() -> Self {
        Self::with_system_clocks()
    }
}

impl TimeSource {
    /// A time source that reads the clocks of this machine.
    pub fn with_system_clocks() -> Self {
        Self::new(SystemClocks { created_at: Instant::now() })
    }

    /// A time source that reads the given clocks.
    pub fn new(clocks: impl MachineClocks + 'static) -> Self {
        let discipline = Mutex::new(ClockDiscipline::new(clocks.read()));
        Self { clocks: Box::new(clocks), discipline }
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        let reading = self.clocks.read();
        let (now, change) = self.lock_discipline().apply_reading(reading);
        change.inspect(log_clock_change);
        now
    }

    /// Measures the clock of the store's server. `read_clock` returns `None` if the store has no server.
    pub async fn measure_server_clock<E>(
        &self,
        read_clock: impl AsyncFnOnce() -> Result<Option<Timestamp>, E>,
    ) -> Result<(), E> {
        let requested_at = self.clocks.read().monotonic;
        if let Some(server_time) = read_clock().await? {
            let reading = self.clocks.read();
            let change =
                self.lock_discipline().apply_store_clock_measurement(requested_at, reading, server_time);
            change.inspect(log_clock_change);
        }
        Ok(())
    }

    /// Sets the time before the first write to a store: to the clock of its server, or for an embedded store to the
    /// machine's clock, after a check against the machine's uptime or the last write to the store.
    pub(crate) async fn align_with_store(&self, store: &dyn Store) -> Result<(), StoreError> {
        self.measure_server_clock(async || store.read_store_server_clock().await).await?;
        if self.lock_discipline().uses_store_clock() {
            return Ok(());
        }
        let (nodes, journal_head) =
            (store.list_nodes().await?, store.read_journal_range().await?.newest_event_id.timestamp());
        let last_write = nodes.iter().map(|node| node.last_heartbeat_at).chain([journal_head]).max();
        // The newest node is found by its id: a node that joined with a clock that was ahead would otherwise count as
        // the newest for long.
        let newest_node = nodes.iter().max_by_key(|node| node.id);
        let time_at_uptime = newest_node.and_then(|node| node.capabilities.clock.time_at_uptime);
        self.align_with_embedded_store(time_at_uptime, last_write.filter(|seen| *seen > Timestamp::MIN));
        Ok(())
    }

    fn align_with_embedded_store(&self, time_at_uptime: Option<TimeAtUptime>, last_write: Option<Timestamp>) {
        let (boot, reading) = (self.clocks.read_boot(), self.clocks.read());
        let expected =
            time_at_uptime.zip(boot).and_then(|(reference, boot)| boot.compute_current_time(reference));
        // Times that were written by an unconfirmed clock do not show when the store was last written.
        let unconfirmed = time_at_uptime.and_then(|reference| reference.unconfirmed_time);
        let last_write = unconfirmed.map(|unconfirmed| unconfirmed.last_confirmed_write).or(last_write);
        let change = match (expected, last_write) {
            (Some(expected), _) => {
                let mut discipline = self.lock_discipline();
                if let Some((unconfirmed, boot)) = unconfirmed.zip(boot) {
                    let remaining =
                        Duration::from_millis(unconfirmed.until_uptime_ms).saturating_sub(boot.uptime);
                    let until = reading.monotonic + remaining;
                    discipline.suspend_firing(FiringSuspension {
                        until_monotonic: until,
                        last_confirmed_write: unconfirmed.last_confirmed_write,
                    });
                }
                discipline.start_from_uptime(reading, expected)
            }
            (None, Some(last_write)) => self.lock_discipline().start_from_last_write(reading, last_write),
            (None, None) => None,
        };
        change.inspect(log_clock_change);
    }

    /// Why the node is out of service; `None` if it is in service.
    pub fn out_of_service_reason(&self) -> Option<String> {
        self.now();
        let discipline = self.lock_discipline();
        discipline.is_out_of_service().then(|| {
            format!(
                "this node is out of service: its clock is {} the store's; set the clock of its machine",
                format_offset(discipline.machine_clock_ahead_micros())
            )
        })
    }

    pub(crate) fn is_in_service(&self) -> bool {
        self.now();
        !self.lock_discipline().is_out_of_service()
    }

    /// Whether planned times may fire and retention may delete.
    pub(crate) fn may_fire_and_prune(&self) -> bool {
        self.now();
        let discipline = self.lock_discipline();
        !discipline.is_out_of_service() && !discipline.is_firing_suspended()
    }

    /// A warning about the clock of a node that is in service.
    pub fn clock_warning(&self) -> Option<String> {
        self.now();
        self.lock_discipline().is_firing_suspended().then(|| {
            "the clock is more than an hour ahead of the last write to the store: nothing is pruned and no \
             schedule fires for 10 min after the start; if the machine was not off, set its clock"
                .into()
        })
    }

    /// When the node's time was last reset: at its start, or by a step of the clock that was followed.
    pub(crate) fn time_reset_at(&self) -> Timestamp {
        self.lock_discipline().time_reset_at()
    }

    /// The state of the clock, for other nodes and for people.
    pub fn clock_report(&self) -> ClockReport {
        let at = self.now();
        let (monotonic, discipline) = (self.clocks.read().monotonic, self.lock_discipline());
        let time_at_uptime = self.clocks.read_boot().map(|boot| {
            let unconfirmed = discipline.firing_suspension().map(
                |FiringSuspension { until_monotonic: until, last_confirmed_write }| {
                    let until = boot.uptime + until.saturating_sub(monotonic);
                    UnconfirmedTime {
                        until_uptime_ms: machine_boot::saturating_millis(until),
                        last_confirmed_write,
                    }
                },
            );
            TimeAtUptime { unconfirmed_time: unconfirmed, ..boot.to_time_at_uptime(at) }
        });
        ClockReport { time_at_uptime, ..discipline.build_clock_report() }
    }

    fn lock_discipline(&self) -> MutexGuard<'_, ClockDiscipline> {
        self.discipline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log_clock_change(change: &ClockChange) {
    match *change {
        ClockChange::LeftService(by) => tracing::warn!(
            offset_s = micros_to_seconds(by),
            "this machine's clock is {} the store's; the node is out of service until they agree within {} s: it claims, \
             fires, prunes and accepts nothing. Set the clock",
            format_offset(by),
            CLOCK_TOLERANCE.as_secs()
        ),
        ClockChange::ReturnedToService => {
            tracing::info!(
                "this machine's clock agrees with the store's again; the node is back in service, and claims and \
                 accepts work"
            );
        }
        ClockChange::StepPending(by) => tracing::warn!(
            step_s = micros_to_seconds(by),
            "this machine's clock stepped by {:+.1} s; the node continues on its monotonic clock and follows the step if \
             it lasts {}",
            micros_to_seconds(by),
            format_minutes(clock_discipline::step_confirmation_time(by, 0))
        ),
        ClockChange::StepFollowed(by) => tracing::warn!(
            step_s = micros_to_seconds(by),
            "this machine's clock has kept a step of {:+.1} s; the node follows it from now on",
            micros_to_seconds(by)
        ),
        ClockChange::StepUndone => {
            tracing::info!(
                "the step of this machine's clock was undone before the node followed it; it had no effect"
            )
        }
        ClockChange::FiringSuspended(by) => tracing::warn!(
            since_last_write_s = micros_to_seconds(by),
            "this machine's clock is {:.0} s ahead of the last write to the store: nothing is pruned and no schedule fires \
             for {}. If the machine was off for that long, there is nothing to do; else set its clock",
            micros_to_seconds(by),
            format_minutes(clock_discipline::LARGE_STEP_CONFIRMATION_TIME)
        ),
        ClockChange::FiringResumed => {
            tracing::info!("the wait for a confirmed clock is over; pruning and schedules continue")
        }
    }
}

fn format_minutes(duration: Duration) -> String {
    format!("{} min", duration.as_secs() / 60)
}

fn micros_to_seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

/// Formats how far a clock is ahead of another or behind it: `31.0 s ahead of`.
fn format_offset(micros: i64) -> String {
    let direction = if micros < 0 { "behind" } else { "ahead of" };
    format!("{:.1} s {direction}", micros_to_seconds(micros).abs())
}
