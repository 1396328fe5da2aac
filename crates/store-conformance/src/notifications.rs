//! Listeners are notified of commits, and a closed store refuses calls.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::store::{StoreError, StoreListener, StoreSignal};
use tokio::sync::mpsc;

use crate::Harness;
use crate::fixture::*;

/// The time after which a behaviour fails because a signal has not arrived; signals usually take milliseconds.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(30);

struct ForwardingListener(mpsc::UnboundedSender<StoreSignal>);

impl StoreListener for ForwardingListener {
    fn on_signal(&self, signal: StoreSignal) {
        // A receiver that was dropped needs no signal.
        let _ = self.0.send(signal);
    }
}

pub(crate) fn subscribe_to_signals(fixture: &StoreFixture<'_>) -> mpsc::UnboundedReceiver<StoreSignal> {
    let (sender, signals) = mpsc::unbounded_channel();
    fixture.store.add_listener(Arc::new(ForwardingListener(sender)));
    signals
}

pub(crate) async fn wait_for_signal(
    signals: &mut mpsc::UnboundedReceiver<StoreSignal>,
    is_expected: impl Fn(StoreSignal) -> bool,
) {
    let wait = async { while !signals.recv().await.is_some_and(&is_expected) {} };
    tokio::time::timeout(SIGNAL_TIMEOUT, wait).await.expect("the signal arrives");
}

/// Signals may be lost when a store loses the connection to its listeners; here no connection is lost.
pub async fn listeners_are_notified_of_new_events_and_ready_tasks(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let mut signals = subscribe_to_signals(&fixture);
    let sequenced = fixture.emit(new_event("record").with_key("a")).await;
    wait_for_signal(
        &mut signals,
        |signal| matches!(signal, StoreSignal::JournalGrew(id) if id >= sequenced.id),
    )
    .await;
    fixture.emit(new_event("record").with_key("b")).await;
    wait_for_signal(&mut signals, |signal| signal == StoreSignal::TasksReady).await;
}

/// A node that sleeps until the next due time must be notified of an earlier one.
pub async fn listeners_are_notified_of_earlier_due_times(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    for seconds in [1000, 100] {
        let mut signals = subscribe_to_signals(&fixture);
        fixture.emit(new_event("record").due_at(fixture.seconds_from_now(seconds))).await;
        wait_for_signal(&mut signals, |signal| signal == StoreSignal::TasksReady).await;
    }
}

/// Tasks become ready when a lane advances, a rule is lifted or a task is retried.
pub async fn listeners_are_notified_when_waiting_tasks_become_ready(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    let head = fixture.claim_one().await;
    let mut signals = subscribe_to_signals(&fixture);
    fixture.succeed(&head).await;
    wait_for_signal(&mut signals, |signal| signal == StoreSignal::TasksReady).await;
    fixture.set_pause_rule("index").await;
    let mut signals = subscribe_to_signals(&fixture);
    fixture.lift_pause_rule("index").await;
    wait_for_signal(&mut signals, |signal| signal == StoreSignal::TasksReady).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    let mut signals = subscribe_to_signals(&fixture);
    fixture.retry_task(&events[1].tasks[0]).await.expect("the task has failed permanently");
    wait_for_signal(&mut signals, |signal| signal == StoreSignal::TasksReady).await;
}

/// Tasks also become ready by a freed concurrency slot, a run request, a fire, an adoption or a replay.
pub async fn listeners_are_notified_of_freed_slots_runs_fires_adoptions_and_replays(harness: &dyn Harness) {
    let registration =
        RegistrationBuilder::single_handler().collection("shop/orders", 100).concurrency_limit("index", 1);
    let mut fixture = StoreFixture::new(harness, registration.clone()).await;
    fixture.emit_copies(2, new_event("record")).await;
    fixture.register_daily_schedule("nightly").await;
    let head = fixture.claim_one().await;
    let mut signals = subscribe_to_signals(&fixture);
    fixture.succeed(&head).await;
    wait_for_signal(&mut signals, |signal| signal == StoreSignal::TasksReady).await;
    let mut signals = subscribe_to_signals(&fixture);
    fixture.request_new_collection_run("shop/orders").await;
    wait_for_signal(&mut signals, |signal| signal == StoreSignal::TasksReady).await;
    let mut signals = subscribe_to_signals(&fixture);
    fixture
        .record_fire(FireRequestBuilder::emitting_event(new_event("record")).build("nightly", fixture.now))
        .await;
    wait_for_signal(&mut signals, |signal| matches!(signal, StoreSignal::JournalGrew(_))).await;
    let mut signals = subscribe_to_signals(&fixture);
    fixture
        .record_fire(
            FireRequestBuilder::emitting_event(new_event("record"))
                .build("nightly", fixture.seconds_from_now(1)),
        )
        .await;
    wait_for_signal(&mut signals, |signal| signal == StoreSignal::TasksReady).await;
    assert_eq!(fixture.undefine_handler_and_rescue("index").await, 3);
    fixture.register(registration.clone().route("record", &["new-handler"])).await;
    let mut signals = subscribe_to_signals(&fixture);
    fixture.adopt_missing_tasks("index").await;
    wait_for_signal(&mut signals, |signal| signal == StoreSignal::TasksReady).await;
    let mut signals = subscribe_to_signals(&fixture);
    assert_eq!(fixture.replay_events("new-handler", pointsman_core::EventId::ZERO).await, 4);
    wait_for_signal(&mut signals, |signal| signal == StoreSignal::TasksReady).await;
}

/// Removing a limit makes waiting tasks ready.
pub async fn listeners_are_notified_when_a_limit_is_removed(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().concurrency_limit("index", 1)).await;
    fixture.emit_copies(3, new_event("record")).await;
    fixture.claim_one().await;
    let mut signals = subscribe_to_signals(&fixture);
    fixture.register(RegistrationBuilder::single_handler()).await;
    wait_for_signal(&mut signals, |signal| signal == StoreSignal::TasksReady).await;
}

/// Listeners are notified after the commit, so the event can be read.
pub async fn notified_events_are_already_readable(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let mut signals = subscribe_to_signals(&fixture);
    for _ in 0..20 {
        fixture.emit(new_event("record")).await;
    }
    let last = fixture.read_journal_range().await.newest_event_id;
    let mut last_notified = None;
    while last_notified != Some(last) {
        let signal = tokio::time::timeout(SIGNAL_TIMEOUT, signals.recv()).await.expect("the signal arrives");
        if let Some(StoreSignal::JournalGrew(id)) = signal {
            assert!(fixture.read_journal_range().await.newest_event_id >= id);
            last_notified = Some(id);
        }
    }
}

pub async fn a_closed_store_refuses_calls_and_keeps_its_data(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let sequenced = fixture.emit(new_event("record").with_key("a")).await;
    fixture.store.close();
    let answer = fixture.store.append(vec![new_emit_batch([new_event("record")])], None, fixture.now).await;
    assert!(matches!(answer, Err(StoreError::Closed)));
    let answer = fixture.store.claim_tasks(fixture.claim_request(1), fixture.now).await;
    assert!(matches!(answer, Err(StoreError::Closed)));
    let fixture = fixture.reopen().await;
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), [sequenced.id]);
}
