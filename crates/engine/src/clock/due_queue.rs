//! A queue of due times.

use std::collections::BTreeSet;

use pointsman_core::Timestamp;

/// The due times of numbered items, at most one for each. Finding due items costs nothing for items that are
/// due later.
#[derive(Debug, Default)]
pub struct DueQueue {
    by_time: BTreeSet<(Timestamp, usize)>,
    due_times: Vec<Option<Timestamp>>,
}

impl DueQueue {
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the due time of an item; with `None` it is never due.
    pub fn set_due_time(&mut self, number: usize, time: Option<Timestamp>) {
        if self.due_times.len() <= number {
            self.due_times.resize(number + 1, None);
        }
        if let Some(old) = std::mem::replace(&mut self.due_times[number], time) {
            self.by_time.remove(&(old, number));
        }
        if let Some(time) = time {
            self.by_time.insert((time, number));
        }
    }

    /// Removes and returns the item that has been due for longest, if one is due.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<usize> {
        let (time, number) = *self.by_time.first()?;
        if time > now {
            return None;
        }
        self.by_time.pop_first();
        self.due_times[number] = None;
        Some(number)
    }

    /// The earliest due time.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(time, _)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    fn pop_all_due(agenda: &mut DueQueue, now: i64) -> Vec<usize> {
        std::iter::from_fn(|| agenda.pop_due(at(now))).collect()
    }

    #[test]
    fn due_items_are_popped_once_earliest_first() {
        let mut agenda = DueQueue::new();
        for (number, time) in [(0, 30), (1, 10), (2, 20), (3, 40)] {
            agenda.set_due_time(number, Some(at(time)));
        }
        assert_eq!(agenda.next_due(), Some(at(10)));
        assert!(pop_all_due(&mut agenda, 9).is_empty());
        assert_eq!(pop_all_due(&mut agenda, 30), [1, 2, 0]);
        assert!(pop_all_due(&mut agenda, 30).is_empty());
        assert_eq!(agenda.next_due(), Some(at(40)));
    }

    #[test]
    fn an_item_has_one_due_time() {
        let mut agenda = DueQueue::new();
        agenda.set_due_time(7, Some(at(10)));
        agenda.set_due_time(7, Some(at(50)));
        assert!(pop_all_due(&mut agenda, 49).is_empty());
        assert_eq!(pop_all_due(&mut agenda, 50), [7]);
        agenda.set_due_time(7, Some(at(60)));
        agenda.set_due_time(7, None);
        assert_eq!((agenda.next_due(), pop_all_due(&mut agenda, 100)), (None, vec![]));
    }

    #[test]
    fn two_items_may_share_a_due_time() {
        let mut agenda = DueQueue::new();
        agenda.set_due_time(1, Some(at(10)));
        agenda.set_due_time(0, Some(at(10)));
        assert_eq!(pop_all_due(&mut agenda, 10), [0, 1]);
    }
}
