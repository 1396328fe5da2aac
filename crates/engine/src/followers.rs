//! Followers: readers of the journal that wait for matching events and are woken only by those.
//!
//! ```text
//!   filler ──new events──▶ by key: the one object's readers ──▶ woken
//!                      └─▶ others: each filter is checked ─────▶ woken
//! ```
//!
//! Thousands may follow the journal, most of them one object each. If every commit woke all of them, waking readers
//! would cost more than everything else. So a reader registers its filter and its cursor, and sleeps until a matching
//! event arrives. Its cursor advances past events that do not match, so that it neither falls out of the tail nor
//! examines them again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pointsman_core::journal::EventFilter;
use pointsman_core::{Event, EventId, ObjectKey};
use tokio::sync::oneshot;

/// All waiting followers.
#[derive(Debug, Default)]
pub(crate) struct Followers(Mutex<FollowerRegistry>);

#[derive(Debug, Default)]
struct FollowerRegistry {
    /// Followers of one object, by its key.
    followers_by_key: HashMap<ObjectKey, Vec<FollowerEntry>>,
    /// Followers whose filter names no object.
    followers_without_key: Vec<FollowerEntry>,
    /// The id up to which all followers have been notified of events.
    notified_up_to_event: EventId,
    last_follower_id: u64,
}

#[derive(Debug)]
struct FollowerEntry {
    id: u64,
    filter: EventFilter,
    /// The id after which the follower waits for events.
    after: EventId,
    wake_sender: oneshot::Sender<EventId>,
}

impl FollowerEntry {
    fn matches(&self, event: &Event) -> bool {
        event.id > self.after && self.filter.matches(event)
    }

    /// Wakes the follower and passes it the cursor from which to continue: no matching event is before it.
    fn wake(self, cursor: EventId) {
        // A follower that was dropped needs no wakeup.
        let _ = self.wake_sender.send(cursor.max(self.after));
    }
}

impl Followers {
    /// Adds a follower that waits for a matching event after `after`.
    ///
    /// `find_unmatched_until` returns `None` if such an event exists already, or else the id up to which none does;
    /// events that arrive from then on are not missed.
    pub(crate) fn add(
        self: &Arc<Self>,
        filter: &EventFilter,
        after: EventId,
        find_unmatched_until: impl FnOnce() -> Option<EventId>,
    ) -> Follower {
        let mut registry = self.lock_registry();
        let (wake_sender, wake_receiver) = oneshot::channel();
        registry.last_follower_id += 1;
        let id = registry.last_follower_id;
        match find_unmatched_until() {
            None => drop(wake_sender.send(after)),
            Some(unmatched_until) => {
                let after = unmatched_until.max(after);
                let entry = FollowerEntry { id, filter: filter.clone(), after, wake_sender };
                match &filter.key {
                    Some(key) => registry.followers_by_key.entry(key.clone()).or_default().push(entry),
                    None => registry.followers_without_key.push(entry),
                }
            }
        }
        Follower { followers: self.clone(), key: filter.key.clone(), id, after, wake_receiver }
    }

    /// Wakes the followers that wait for one of these events, which are all events since the last call, up to `until`.
    pub(crate) fn wake_followers_of_events(&self, events: &[Arc<Event>], until: EventId) {
        let mut registry = self.lock_registry();
        let cursor = std::mem::replace(&mut registry.notified_up_to_event, until);
        for event in events {
            let Some(key) = &event.key else { continue };
            let Some(entries) = registry.followers_by_key.get_mut(key) else { continue };
            entries.extract_if(.., |entry| entry.matches(event)).for_each(|entry| entry.wake(cursor));
            if entries.is_empty() {
                registry.followers_by_key.remove(key);
            }
        }
        let is_matched = |entry: &mut FollowerEntry| events.iter().any(|event| entry.matches(event));
        registry.followers_without_key.extract_if(.., is_matched).for_each(|entry| entry.wake(cursor));
    }

    /// Continues notifications after `begin`. Followers that may have missed an event before it are woken and read from
    /// the store.
    pub(crate) fn restart_notifications_after(&self, begin: EventId) {
        let mut registry = self.lock_registry();
        registry.notified_up_to_event = begin;
        let may_have_missed = |entry: &mut FollowerEntry| entry.after < begin;
        registry
            .followers_without_key
            .extract_if(.., may_have_missed)
            .for_each(|entry| entry.wake(EventId::ZERO));
        registry.followers_by_key.retain(|_, entries| {
            entries.extract_if(.., may_have_missed).for_each(|entry| entry.wake(EventId::ZERO));
            !entries.is_empty()
        });
    }

    fn lock_registry(&self) -> MutexGuard<'_, FollowerRegistry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FollowerRegistry {
    /// Removes a follower, unless it has been woken.
    fn remove(&mut self, key: Option<&ObjectKey>, id: u64) -> Option<FollowerEntry> {
        let take_entry = |entries: &mut Vec<FollowerEntry>| {
            let index = entries.iter().position(|entry| entry.id == id)?;
            Some(entries.swap_remove(index))
        };
        let Some(key) = key else { return take_entry(&mut self.followers_without_key) };
        let entries = self.followers_by_key.get_mut(key)?;
        let taken = take_entry(entries);
        if entries.is_empty() {
            self.followers_by_key.remove(key);
        }
        taken
    }
}

/// A waiting follower. Dropping it removes it from the registry.
#[derive(Debug)]
pub(crate) struct Follower {
    followers: Arc<Followers>,
    key: Option<ObjectKey>,
    id: u64,
    after: EventId,
    wake_receiver: oneshot::Receiver<EventId>,
}

impl Follower {
    /// Waits until a matching event exists, or may have been missed.
    pub(crate) async fn wait_until_woken(&mut self) {
        // The sender is dropped only after it was used, or together with this follower.
        if let Ok(cursor) = (&mut self.wake_receiver).await {
            self.after = cursor;
        }
    }

    /// Removes the follower from the registry, and returns the id up to which no event matched.
    pub(crate) fn stop_and_get_cursor(&mut self) -> EventId {
        let mut registry = self.followers.lock_registry();
        match registry.remove(self.key.as_ref(), self.id) {
            Some(entry) => self.after = entry.after.max(registry.notified_up_to_event),
            None => self.after = self.wake_receiver.try_recv().unwrap_or(self.after),
        }
        self.after
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop_and_get_cursor();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pointsman_core::{EventType, Json, Tenant};

    fn event_id(number: u64) -> EventId {
        EventId::new(number).unwrap()
    }

    fn build_event(number: u64, key: &str) -> Arc<Event> {
        Arc::new(Event {
            id: event_id(number),
            prev: None,
            event_type: EventType::new("a").unwrap(),
            key: Some(ObjectKey::new(key).unwrap()),
            sub_object: None,
            value: Json::null(),
            context: Default::default(),
            tenant: Tenant::default(),
            cause: None,
        })
    }

    fn key_filter(key: &str) -> EventFilter {
        EventFilter { key: Some(ObjectKey::new(key).unwrap()), ..EventFilter::default() }
    }

    fn is_woken(follower: &mut Follower) -> bool {
        follower.wake_receiver.try_recv().is_ok_and(|cursor| {
            follower.after = cursor;
            true
        })
    }

    fn count_waiting(followers: &Followers) -> usize {
        let registry = followers.lock_registry();
        registry.followers_without_key.len() + registry.followers_by_key.values().map(Vec::len).sum::<usize>()
    }

    #[test]
    fn only_matching_followers_are_woken_and_all_cursors_advance() {
        let followers = Arc::new(Followers::default());
        followers.restart_notifications_after(event_id(10));
        let add = |filter: &EventFilter| followers.add(filter, event_id(10), || Some(event_id(10)));
        let (mut x_follower, mut y_follower, mut unfiltered_follower) =
            (add(&key_filter("x")), add(&key_filter("y")), add(&EventFilter::default()));
        followers.wake_followers_of_events(&[build_event(11, "z"), build_event(12, "x")], event_id(15));
        assert!(
            is_woken(&mut x_follower) && is_woken(&mut unfiltered_follower) && !is_woken(&mut y_follower)
        );
        assert_eq!(
            (x_follower.stop_and_get_cursor(), unfiltered_follower.stop_and_get_cursor()),
            (event_id(10), event_id(10)),
            "the matching event is still to be read"
        );
        assert_eq!(count_waiting(&followers), 1);
        followers.wake_followers_of_events(&[build_event(16, "x")], event_id(16));
        assert_eq!(y_follower.stop_and_get_cursor(), event_id(16), "no matching event is before that");
        assert_eq!(count_waiting(&followers), 0);
        assert_eq!(y_follower.stop_and_get_cursor(), event_id(16));
    }

    #[test]
    fn events_before_a_cursor_wake_no_follower_and_existing_matches_wake_at_once() {
        let followers = Arc::new(Followers::default());
        let mut follower_ahead = followers.add(&key_filter("x"), event_id(20), || Some(event_id(15)));
        followers.wake_followers_of_events(&[build_event(18, "x")], event_id(18));
        assert!(!is_woken(&mut follower_ahead));
        followers.wake_followers_of_events(&[build_event(21, "x")], event_id(21));
        assert!(is_woken(&mut follower_ahead));
        assert_eq!(
            follower_ahead.stop_and_get_cursor(),
            event_id(20),
            "its own cursor was ahead of the notified events"
        );
        let mut with_existing_match = followers.add(&key_filter("x"), event_id(20), || None);
        assert!(is_woken(&mut with_existing_match));
        assert_eq!(with_existing_match.stop_and_get_cursor(), event_id(20));
    }

    #[test]
    fn a_gap_wakes_followers_that_may_have_missed_events() {
        let followers = Arc::new(Followers::default());
        let mut follower_behind = followers.add(&key_filter("x"), event_id(5), || Some(event_id(5)));
        let mut unfiltered_follower =
            followers.add(&EventFilter::default(), event_id(5), || Some(event_id(5)));
        let mut follower_ahead = followers.add(&key_filter("x"), event_id(30), || Some(event_id(30)));
        followers.restart_notifications_after(event_id(30));
        assert!(
            is_woken(&mut follower_behind)
                && is_woken(&mut unfiltered_follower)
                && !is_woken(&mut follower_ahead)
        );
        assert_eq!(
            (follower_behind.stop_and_get_cursor(), unfiltered_follower.stop_and_get_cursor()),
            (event_id(5), event_id(5))
        );
    }

    #[test]
    fn dropped_followers_are_removed() {
        let followers = Arc::new(Followers::default());
        drop(followers.add(&key_filter("x"), event_id(5), || Some(event_id(5))));
        drop(followers.add(&EventFilter::default(), event_id(5), || Some(event_id(5))));
        assert_eq!(count_waiting(&followers), 0);
        assert!(followers.lock_registry().followers_by_key.is_empty());
    }
}
