//! A queue of due times.

use std::collections::BTreeSet;

use pointsman_core::Timestamp;

/// The due times of numbered items, at most one for each. Finding due items costs nothing for items that are
/// due later.
#[derive(Debug, Default)]
pub struct DueQueue {
    items_by_due_time: BTreeSet<(Timestamp, usize)>,
    due_times: Vec<Option<Timestamp>>,
}

impl DueQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the due time of an item; with `None` the item is never due.
    pub fn set_due_time(&mut self, item: usize, time: Option<Timestamp>) {
        if self.due_times.len() <= item {
            self.due_times.resize(item + 1, None);
        }
        if let Some(old) = std::mem::replace(&mut self.due_times[item], time) {
            self.items_by_due_time.remove(&(old, item));
        }
        if let Some(time) = time {
            self.items_by_due_time.insert((time, item));
        }
    }

    /// Removes and returns the item that has been due for longest, if one is due.
    pub fn pop_due_item(&mut self, now: Timestamp) -> Option<usize> {
        let (time, item) = *self.items_by_due_time.first()?;
        if time > now {
            return None;
        }
        self.items_by_due_time.pop_first();
        self.due_times[item] = None;
        Some(item)
    }

    /// The earliest due time.
    pub fn earliest_due_time(&self) -> Option<Timestamp> {
        self.items_by_due_time.first().map(|(time, _)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timestamp(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    fn pop_all_due(queue: &mut DueQueue, now: i64) -> Vec<usize> {
        std::iter::from_fn(|| queue.pop_due_item(timestamp(now))).collect()
    }

    #[test]
    fn due_items_are_popped_once_earliest_first() {
        let mut queue = DueQueue::new();
        for (item, time) in [(0, 30), (1, 10), (2, 20), (3, 40)] {
            queue.set_due_time(item, Some(timestamp(time)));
        }
        assert_eq!(queue.earliest_due_time(), Some(timestamp(10)));
        assert!(pop_all_due(&mut queue, 9).is_empty());
        assert_eq!(pop_all_due(&mut queue, 30), [1, 2, 0]);
        assert!(pop_all_due(&mut queue, 30).is_empty());
        assert_eq!(queue.earliest_due_time(), Some(timestamp(40)));
    }

    #[test]
    fn a_new_due_time_replaces_that_of_the_item() {
        let mut queue = DueQueue::new();
        queue.set_due_time(7, Some(timestamp(10)));
        queue.set_due_time(7, Some(timestamp(50)));
        assert!(pop_all_due(&mut queue, 49).is_empty());
        assert_eq!(pop_all_due(&mut queue, 50), [7]);
        queue.set_due_time(7, Some(timestamp(60)));
        queue.set_due_time(7, None);
        assert_eq!((queue.earliest_due_time(), pop_all_due(&mut queue, 100)), (None, vec![]));
    }

    #[test]
    fn two_items_may_share_a_due_time() {
        let mut queue = DueQueue::new();
        queue.set_due_time(1, Some(timestamp(10)));
        queue.set_due_time(0, Some(timestamp(10)));
        assert_eq!(pop_all_due(&mut queue, 10), [0, 1]);
    }
}
