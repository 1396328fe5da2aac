//! The rules of handling: each event reaches each of its handlers, in the order of its lane, and is sent again
//! only because a server died.
//!
//! A request that a killed server had just written may reach its handler late, even after the next server has
//! sent the same event again. Its attempt has been taken over then, and its fence is below that of the attempt
//! which counted: such a straggler is a repeat, and says nothing about the order.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Delivery, Entry, Fault, History};

/// Handler and event.
type Aim<'a> = (&'a str, u64);

impl History {
    /// Every event reached each of its handlers and nobody else, told the same each time, and seldom twice.
    pub(super) fn check_deliveries(&self, faults: &mut Vec<Fault>) {
        let mut entries: HashMap<u64, &Entry> = HashMap::new();
        for entry in &self.journal {
            entries.insert(entry.id, entry);
        }
        let mut attempts = HashSet::new();
        let mut fences = HashSet::new();
        for delivery in &self.deliveries {
            let Delivery { handler, event, attempt, fence, .. } = delivery;
            let meant = |entry: &&Entry| self.handlers(&entry.event.kind).contains(handler);
            let Some(entry) = entries.get(event).copied().filter(&meant) else {
                faults.push(Fault::Misdelivered { handler: handler.clone(), event: *event });
                continue;
            };
            if delivery.prev != entry.prev {
                let whose = handler.clone();
                let (told, really) = (delivery.prev, entry.prev);
                faults.push(Fault::WrongPrev { whose, id: *event, told, really });
            }
            if !attempts.insert((handler, event, attempt)) || !fences.insert(fence) {
                let (handler, event, attempt) = (handler.clone(), *event, *attempt);
                faults.push(Fault::SameAttempt { handler, event, attempt });
            }
        }
        let aims: HashSet<Aim> = self.deliveries.iter().map(|d| (&*d.handler, d.event)).collect();
        let repeats = self.deliveries.len() - aims.len();
        let most = self.kills * self.slots;
        if repeats > most {
            faults.push(Fault::Repeated { repeats, most });
        }
    }

    /// In every lane an event was handled to its end before the next was begun, and each handler was told
    /// which one it was sent before.
    pub(super) fn check_lanes(&self, faults: &mut Vec<Fault>) {
        let mut deliveries: HashMap<Aim, Vec<&Delivery>> = HashMap::new();
        for delivery in &self.deliveries {
            deliveries.entry((&delivery.handler, delivery.event)).or_default().push(delivery);
        }
        let mut lanes: BTreeMap<(&str, &str), Before> = BTreeMap::new();
        for entry in &self.journal {
            for handler in self.handlers(&entry.event.kind) {
                let aim = (handler.as_str(), entry.id);
                let made = deliveries.get(&aim).map_or(&[][..], Vec::as_slice);
                let Some(ended) = counted(made).and_then(|delivery| delivery.ended) else {
                    faults.push(Fault::NotDelivered { handler: handler.clone(), event: entry.id });
                    continue;
                };
                let Some(key) = &entry.event.key else { continue };
                let before = lanes.insert((handler, key), Before { event: entry.id, ended });
                check_step(before, made, faults);
            }
        }
    }
}

/// The attempt that ended the task: the one with the highest fence. All others were taken over.
fn counted<'a>(made: &[&'a Delivery]) -> Option<&'a Delivery> {
    made.iter().copied().max_by_key(|delivery| delivery.fence)
}

/// The event before in a lane, and when it was handled.
struct Before {
    event: u64,
    ended: u64,
}

/// All deliveries of one event against the event before it in the lane.
fn check_step(before: Option<Before>, made: &[&Delivery], faults: &mut Vec<Fault>) {
    for delivery in made {
        let Delivery { handler, event, .. } = delivery;
        if let Some(before) = before.as_ref().filter(|before| delivery.began <= before.ended) {
            let (handler, first, second) = (handler.clone(), before.event, *event);
            faults.push(Fault::OutOfOrder { handler, first, second });
        }
        let really = before.as_ref().map(|before| before.event);
        if let Some(told) = delivery.prev_sent.filter(|told| *told != really) {
            let whose = format!("{handler}, previously sent");
            faults.push(Fault::WrongPrev { whose, id: *event, told, really });
        }
    }
}
