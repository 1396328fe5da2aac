use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::clock_discipline::{LARGE_STEP_CONFIRMATION_TIME, LARGE_STEP_THRESHOLD};
use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
/// The true time at the start.
const TRUE_START_TIME: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Clocks that are set by hand.
#[derive(Clone, Debug, Default)]
struct ManualClocks {
    /// Microseconds since [`TRUE_START_TIME`].
    monotonic_micros: Arc<AtomicU64>,
    /// By how many microseconds the machine's clock is ahead.
    offset_micros: Arc<AtomicI64>,
}

impl ManualClocks {
    fn advance(&self, time: Duration) {
        self.monotonic_micros.fetch_add(u64::try_from(time.as_micros()).unwrap(), Ordering::Relaxed);
    }

    fn set_ahead(&self, by: Duration) {
        self.offset_micros.store(i64::try_from(by.as_micros()).unwrap(), Ordering::Relaxed);
    }

    fn set_behind(&self, by: Duration) {
        self.offset_micros.store(-i64::try_from(by.as_micros()).unwrap(), Ordering::Relaxed);
    }

    fn true_time(&self) -> Timestamp {
        TRUE_START_TIME.plus(self.read().monotonic)
    }

    /// Has the time source measure the clock of a server that shows the true time.
    async fn measure_server_with_true_time(&self, time: &TimeSource) {
        time.measure_server_clock(async || Ok::<_, ()>(Some(self.true_time()))).await.unwrap();
    }
}

impl MachineClocks for ManualClocks {
    fn read(&self) -> ClockReading {
        let monotonic = Duration::from_micros(self.monotonic_micros.load(Ordering::Relaxed));
        let wall = TRUE_START_TIME.plus(monotonic).micros() + self.offset_micros.load(Ordering::Relaxed);
        ClockReading { wall: Timestamp::from_micros(wall), monotonic }
    }

    fn read_boot(&self) -> Option<MachineBoot> {
        Some(MachineBoot { boot_id: 1, uptime: DAY + self.read().monotonic })
    }
}

fn manual_time_source() -> (ManualClocks, TimeSource) {
    let manual = ManualClocks::default();
    (manual.clone(), TimeSource::new(manual))
}

/// Sets the machine's clock ahead or back by a step.
fn step_machine_clock(manual: &ManualClocks, ahead: bool, by: Duration) {
    if ahead { manual.set_ahead(by) } else { manual.set_behind(by) }
}

#[tokio::test]
async fn a_measured_node_uses_the_store_time_however_wrong_its_clock_is() {
    for (ahead, by) in [(true, DAY * 40), (true, MINUTE * 26 * 60), (false, DAY * 40), (false, MINUTE)] {
        let manual = ManualClocks::default();
        step_machine_clock(&manual, ahead, by);
        let time = TimeSource::new(manual.clone());
        manual.measure_server_with_true_time(&time).await;
        assert_eq!(time.now(), manual.true_time());
        assert!(!time.is_in_service() && !time.may_fire_and_prune());
        let reason = time.out_of_service_reason().unwrap();
        assert!(reason.contains(if ahead { "ahead of" } else { "behind" }), "{reason}");
        manual.advance(MINUTE);
        assert_eq!(time.now(), manual.true_time(), "between two measurements the monotonic clock counts");
        manual.set_ahead(SECOND * 29);
        assert!(time.is_in_service() && time.out_of_service_reason().is_none(), "the clock agrees again");
        assert_eq!(time.now(), manual.true_time());
    }
}

#[tokio::test]
async fn a_clock_step_takes_a_measured_node_out_of_service_before_it_writes() {
    for ahead in [true, false] {
        let (manual, time) = manual_time_source();
        manual.measure_server_with_true_time(&time).await;
        step_machine_clock(&manual, ahead, DAY);
        assert_eq!(time.now(), manual.true_time());
        assert!(!time.is_in_service());
        let step = time.clock_report().last_step.unwrap();
        assert_eq!(step.by_ms.abs(), 86_400_000);
        assert_eq!((step.by_ms > 0, step.at), (ahead, manual.true_time()));
        manual.measure_server_with_true_time(&time).await;
        assert!(!time.is_in_service(), "the measurement shows that the machine's clock is wrong");
        manual.set_ahead(Duration::ZERO);
        assert!(time.is_in_service());
    }
}

#[tokio::test]
async fn a_machine_that_slept_is_back_in_service_after_one_measurement() {
    let (manual, time) = manual_time_source();
    manual.measure_server_with_true_time(&time).await;
    // The monotonic clock does not count the sleep: the server and the machine's clock do.
    manual.set_ahead(DAY);
    assert!(!time.is_in_service());
    time.measure_server_clock(async || Ok::<_, ()>(Some(manual.true_time().plus(DAY)))).await.unwrap();
    assert!(time.is_in_service());
    assert_eq!(time.now(), manual.true_time().plus(DAY));
    assert_eq!(time.time_reset_at(), time.now(), "leases that expired in the sleep get time to be renewed");
}

#[tokio::test]
async fn a_slow_measurement_does_not_replace_a_better_one() {
    let (manual, time) = manual_time_source();
    manual.measure_server_with_true_time(&time).await;
    let slow = async || {
        let server = manual.true_time();
        manual.advance(SECOND * 50);
        Ok::<_, ()>(Some(server))
    };
    time.measure_server_clock(slow).await.unwrap();
    assert_eq!(time.now(), manual.true_time());
    assert!(time.is_in_service());
}

#[test]
fn a_small_step_is_followed_at_once_and_reported() {
    let (manual, time) = manual_time_source();
    for by in [SECOND * 20, SECOND * 45, SECOND * 30] {
        manual.set_ahead(by);
        assert_eq!(time.now(), manual.true_time().plus(by));
    }
    assert_eq!(time.clock_report().last_step.map(|step| step.by_ms), Some(-15_000));
    assert_eq!(time.clock_report().offset_ms, 0);
}

#[test]
fn a_step_that_is_undone_has_no_effect() {
    for (ahead, by) in [(true, MINUTE * 50), (true, DAY * 40), (false, MINUTE * 50), (false, DAY * 40)] {
        let (manual, time) = manual_time_source();
        step_machine_clock(&manual, ahead, by);
        for _ in 0..12 {
            manual.advance(SECOND);
            assert_eq!(time.now(), manual.true_time());
            assert!(time.may_fire_and_prune() && time.is_in_service(), "work continues on the old time");
        }
        manual.set_ahead(Duration::ZERO);
        assert_eq!(time.now(), manual.true_time());
        manual.advance(DAY);
        assert_eq!(time.now(), manual.true_time());
        assert!(time.clock_report().last_step.is_some());
    }
}

#[test]
fn a_step_that_lasts_is_followed() {
    let large = LARGE_STEP_THRESHOLD + MINUTE;
    for (ahead, by, confirmation) in [
        (true, MINUTE * 50, MINUTE),
        (true, large, LARGE_STEP_CONFIRMATION_TIME),
        (true, DAY * 40, LARGE_STEP_CONFIRMATION_TIME),
        (false, MINUTE * 50, MINUTE),
        (false, DAY, LARGE_STEP_CONFIRMATION_TIME),
    ] {
        let (manual, time) = manual_time_source();
        step_machine_clock(&manual, ahead, by);
        time.now();
        manual.advance(confirmation - SECOND);
        assert_eq!(time.now(), manual.true_time());
        manual.advance(SECOND);
        let followed = if ahead { manual.true_time().plus(by) } else { manual.true_time().minus(by) };
        assert_eq!((time.now(), time.time_reset_at()), (followed, followed));
        assert_eq!(time.clock_report().offset_ms, 0);
    }
}

#[test]
fn a_step_back_after_a_followed_step_ahead_is_followed_soon() {
    let (manual, time) = manual_time_source();
    manual.set_ahead(DAY * 40);
    time.now();
    manual.advance(LARGE_STEP_CONFIRMATION_TIME);
    assert_eq!(time.now(), manual.true_time().plus(DAY * 40));
    manual.set_ahead(Duration::ZERO);
    time.now();
    manual.advance(MINUTE);
    assert_eq!(time.now(), manual.true_time());
}

#[test]
fn each_further_step_restarts_its_confirmation() {
    let (manual, time) = manual_time_source();
    for days in 1..10 {
        manual.set_ahead(DAY * days);
        assert_eq!(time.now(), manual.true_time());
        manual.advance(LARGE_STEP_CONFIRMATION_TIME - SECOND);
        assert_eq!(time.now(), manual.true_time());
    }
}

/// The time source of a node that starts on a machine where another node ran before; the machine kept running.
fn time_source_after_restart(after: Duration, ahead: bool, offset: Duration) -> (ManualClocks, TimeSource) {
    let manual = ManualClocks::default();
    let first = TimeSource::new(manual.clone());
    let reference = first.clock_report().time_at_uptime.unwrap();
    manual.advance(after);
    step_machine_clock(&manual, ahead, offset);
    let time = TimeSource::new(manual.clone());
    time.align_with_embedded_store(Some(reference), Some(TRUE_START_TIME));
    (manual, time)
}

#[test]
fn a_restart_on_a_machine_that_kept_running_uses_its_uptime() {
    for after in [MINUTE, DAY * 40] {
        let (manual, time) = time_source_after_restart(after, true, SECOND);
        assert!(time.may_fire_and_prune(), "the machine's clock has kept its time");
        assert_eq!(time.now(), manual.true_time().plus(SECOND));
        assert_eq!(time.clock_report().last_step, None);
    }
    for (ahead, offset) in
        [(true, MINUTE * 26 * 60), (true, DAY * 40), (false, MINUTE * 26 * 60), (false, DAY * 40)]
    {
        let (manual, time) = time_source_after_restart(MINUTE, ahead, offset);
        assert_eq!(time.now(), manual.true_time(), "the clock was set while no node ran");
        manual.advance(LARGE_STEP_CONFIRMATION_TIME - SECOND);
        assert_eq!(time.now(), manual.true_time());
        manual.advance(SECOND);
        assert_ne!(time.now(), manual.true_time(), "the step has lasted and is followed");
        manual.set_ahead(Duration::ZERO);
        time.now();
        manual.advance(LARGE_STEP_CONFIRMATION_TIME);
        assert_eq!(time.now(), manual.true_time());
    }
}

#[test]
fn a_reference_of_another_boot_is_ignored() {
    let (manual, time) = manual_time_source();
    let reference = TimeAtUptime {
        boot_id: 2,
        uptime_ms: 0,
        at: TRUE_START_TIME.minus(DAY * 400),
        unconfirmed_time: None,
    };
    time.align_with_embedded_store(Some(reference), Some(TRUE_START_TIME.minus(DAY)));
    assert_eq!(time.now(), manual.true_time());
    assert!(!time.may_fire_and_prune());
}

#[test]
fn an_embedded_store_that_was_written_long_ago_waits_before_it_prunes_or_fires() {
    let (manual, time) = manual_time_source();
    let change = time.lock_discipline().start_from_last_write(manual.read(), TRUE_START_TIME.minus(DAY * 40));
    assert!(matches!(change, Some(ClockChange::FiringSuspended(_))));
    assert!(time.is_in_service() && !time.may_fire_and_prune() && time.clock_warning().is_some());
    assert_eq!(time.now(), manual.true_time(), "events emitted meanwhile have the right time");
    manual.advance(LARGE_STEP_CONFIRMATION_TIME - SECOND);
    assert!(!time.may_fire_and_prune());
    manual.advance(SECOND);
    assert!(time.may_fire_and_prune() && time.clock_warning().is_none());

    let (manual, time) = manual_time_source();
    assert_eq!(
        time.lock_discipline()
            .start_from_last_write(manual.read(), TRUE_START_TIME.minus(LARGE_STEP_THRESHOLD)),
        None
    );
    assert!(time.may_fire_and_prune());
}

#[test]
fn after_a_last_write_in_the_future_the_machine_clock_is_used_as_it_is() {
    let (manual, time) = manual_time_source();
    assert_eq!(time.lock_discipline().start_from_last_write(manual.read(), TRUE_START_TIME.plus(DAY)), None);
    manual.advance(MINUTE);
    assert_eq!(time.now(), manual.true_time());
    assert!(time.may_fire_and_prune());
}

/// The time source of a node on a machine that booted with its clock ahead; the last write was an hour before `TRUE_START_TIME`.
fn time_source_after_boot_ahead(by: Duration) -> (ManualClocks, TimeSource) {
    let manual = ManualClocks::default();
    manual.set_ahead(by);
    let time = TimeSource::new(manual.clone());
    time.align_with_embedded_store(None, Some(TRUE_START_TIME.minus(LARGE_STEP_THRESHOLD)));
    assert!(!time.may_fire_and_prune());
    (manual, time)
}

#[test]
fn a_restart_does_not_end_the_wait_after_a_boot_with_a_wrong_clock() {
    let (manual, first) = time_source_after_boot_ahead(DAY * 40);
    manual.advance(MINUTE);
    let reference = first.clock_report().time_at_uptime;
    let second = TimeSource::new(manual.clone());
    second.align_with_embedded_store(reference, Some(first.now()));
    assert!(!second.may_fire_and_prune());
    assert_eq!(
        second.clock_report().time_at_uptime.unwrap().unconfirmed_time,
        reference.unwrap().unconfirmed_time
    );
    manual.advance(LARGE_STEP_CONFIRMATION_TIME - MINUTE - SECOND);
    assert!(!second.may_fire_and_prune());
    manual.advance(SECOND);
    assert!(second.may_fire_and_prune(), "both nodes together have waited long enough");
}

#[test]
fn a_second_boot_with_a_wrong_clock_waits_again() {
    let (manual, first) = time_source_after_boot_ahead(DAY * 40);
    let reference = TimeAtUptime { boot_id: 2, ..first.clock_report().time_at_uptime.unwrap() };
    let second = TimeSource::new(manual.clone());
    second.align_with_embedded_store(Some(reference), Some(first.now()));
    assert!(!second.may_fire_and_prune(), "times that the first node wrote do not confirm the clock");
    manual.advance(LARGE_STEP_CONFIRMATION_TIME);
    assert!(
        second.may_fire_and_prune()
            && second.clock_report().time_at_uptime.unwrap().unconfirmed_time.is_none()
    );
}

#[test]
fn a_clock_that_is_corrected_after_a_boot_is_followed_at_once() {
    let (manual, time) = time_source_after_boot_ahead(MINUTE * 60 * 8);
    manual.advance(MINUTE * 9);
    manual.set_ahead(Duration::ZERO);
    assert_eq!(time.now(), manual.true_time());
    manual.advance(MINUTE);
    assert_eq!(time.now(), manual.true_time());
    assert!(time.may_fire_and_prune());
}

#[test]
fn a_step_ahead_while_the_time_is_not_confirmed_prolongs_the_wait() {
    let (manual, time) = time_source_after_boot_ahead(DAY);
    manual.advance(MINUTE * 9);
    manual.set_ahead(DAY * 40);
    time.now();
    manual.advance(MINUTE * 9);
    assert!(!time.may_fire_and_prune(), "the step is pending");
    manual.advance(MINUTE);
    time.now();
    assert!(time.may_fire_and_prune(), "the step was followed");
}

#[tokio::test]
async fn a_slow_measurement_is_used_if_it_shows_that_the_machine_was_paused() {
    let (manual, time) = manual_time_source();
    manual.measure_server_with_true_time(&time).await;
    manual.set_ahead(DAY);
    let slow = async || {
        let server = manual.true_time().plus(DAY);
        manual.advance(SECOND * 5);
        Ok::<_, ()>(Some(server))
    };
    assert!(!time.is_in_service());
    time.measure_server_clock(slow).await.unwrap();
    assert!(time.is_in_service());
}
