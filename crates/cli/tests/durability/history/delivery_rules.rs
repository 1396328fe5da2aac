//! The rules of delivery: each event reaches each of its handlers in lane order, and is repeated only after a kill.
//!
//! A request that a killed server has just sent may arrive late, even after the next server has sent the same event
//! again. Its fence is then below that of the attempt that counted: it is a repeat, and does not count for the order.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{FinalJournalEntry, History, RecordedDelivery, Violation};

/// A handler's name and an event id.
type HandlerAndEventId<'a> = (&'a str, u64);

impl History {
    /// Checks that every event reached exactly its handlers, with the same data each time, and with few repeats.
    pub(super) fn check_deliveries(&self, violations: &mut Vec<Violation>) {
        let mut entries: HashMap<u64, &FinalJournalEntry> = HashMap::new();
        for entry in &self.journal_entries {
            entries.insert(entry.id, entry);
        }
        let mut attempts = HashSet::new();
        let mut fences = HashSet::new();
        for delivery in &self.deliveries {
            let RecordedDelivery { handler, event_id: event, attempt, fence, .. } = delivery;
            let is_routed = |entry: &&FinalJournalEntry| {
                self.handlers_of_event_type(&entry.event.event_type).contains(handler)
            };
            let Some(entry) = entries.get(event).copied().filter(&is_routed) else {
                violations.push(Violation::Misdelivered { handler: handler.clone(), event: *event });
                continue;
            };
            if delivery.prev != entry.prev {
                let whose = handler.clone();
                let (actual, expected) = (delivery.prev, entry.prev);
                violations.push(Violation::WrongPrev { whose, id: *event, actual, expected });
            }
            if !attempts.insert((handler, event, attempt)) || !fences.insert(fence) {
                let (handler, event, attempt) = (handler.clone(), *event, *attempt);
                violations.push(Violation::RepeatedAttempt { handler, event, attempt });
            }
        }
        let pairs: HashSet<HandlerAndEventId> =
            self.deliveries.iter().map(|d| (&*d.handler, d.event_id)).collect();
        let repeats = self.deliveries.len() - pairs.len();
        let max_repeats = self.kill_count * self.worker_slots;
        if repeats > max_repeats {
            violations.push(Violation::TooManyRedeliveries { repeats, max_repeats });
        }
    }

    /// Checks that in every lane the handling of an event ended before that of the next one began, and that each handler
    /// got the id of its previous event.
    pub(super) fn check_lanes(&self, violations: &mut Vec<Violation>) {
        let mut deliveries: HashMap<HandlerAndEventId, Vec<&RecordedDelivery>> = HashMap::new();
        for delivery in &self.deliveries {
            deliveries.entry((&delivery.handler, delivery.event_id)).or_default().push(delivery);
        }
        let mut lanes: BTreeMap<(&str, &str), PreviousDelivery> = BTreeMap::new();
        for entry in &self.journal_entries {
            for handler in self.handlers_of_event_type(&entry.event.event_type) {
                let pair = (handler.as_str(), entry.id);
                let attempts = deliveries.get(&pair).map_or(&[][..], Vec::as_slice);
                let Some(ended) =
                    delivery_of_final_attempt(attempts).and_then(|delivery| delivery.end_position)
                else {
                    violations.push(Violation::NotDelivered { handler: handler.clone(), event: entry.id });
                    continue;
                };
                let Some(key) = &entry.event.key else { continue };
                let previous = lanes
                    .insert((handler, key), PreviousDelivery { event_id: entry.id, end_position: ended });
                check_lane_order(previous, attempts, violations);
            }
        }
    }
}

/// The delivery of the attempt that completed the task: the one with the highest fence.
fn delivery_of_final_attempt<'a>(attempts: &[&'a RecordedDelivery]) -> Option<&'a RecordedDelivery> {
    attempts.iter().copied().max_by_key(|delivery| delivery.fence)
}

/// The previous event of a lane, and when its delivery ended.
struct PreviousDelivery {
    event_id: u64,
    end_position: u64,
}

/// Checks all deliveries of one event against the previous event of the lane.
fn check_lane_order(
    previous: Option<PreviousDelivery>,
    attempts: &[&RecordedDelivery],
    violations: &mut Vec<Violation>,
) {
    for delivery in attempts {
        let RecordedDelivery { handler, event_id: event, .. } = delivery;
        if let Some(previous) =
            previous.as_ref().filter(|previous| delivery.start_position <= previous.end_position)
        {
            let (handler, first, second) = (handler.clone(), previous.event_id, *event);
            violations.push(Violation::OutOfOrder { handler, first, second });
        }
        let expected = previous.as_ref().map(|previous| previous.event_id);
        if let Some(actual) = delivery.prev_sent.filter(|actual| *actual != expected) {
            let whose = format!("{handler}, previously sent");
            violations.push(Violation::WrongPrev { whose, id: *event, actual, expected });
        }
    }
}
