//! Readers that wait for something of theirs to be journaled, and how each is woken by that alone.
//!
//! ```text
//!   filler ──new events──▶ by key: the one object's readers ──▶ woken
//!                      └─▶ others: each looks at what is new ──▶ woken
//! ```
//!
//! Thousands may follow the journal, most of them one object each. Were all of them woken by every commit, the commits
//! would cost more in readers than in anything else. So a reader says what it waits for and where it has got to, and is
//! left alone until that is there. What has passed meanwhile is none of its business: its cursor is moved over it, so
//! that it neither falls out of the tail nor has to look at it again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pointsman_core::journal::Filter;
use pointsman_core::{Event, EventId, ObjectKey};
use tokio::sync::oneshot;

/// All that wait.
#[derive(Debug, Default)]
pub(crate) struct Followers(Mutex<FollowerRegistry>);

#[derive(Debug, Default)]
struct FollowerRegistry {
    /// Those who follow one object.
    by_key: HashMap<ObjectKey, Vec<FollowerEntry>>,
    without_key: Vec<FollowerEntry>,
    /// Up to here everything new has been shown to all who wait.
    notified_until: EventId,
    last_id: u64,
}

#[derive(Debug)]
struct FollowerEntry {
    id: u64,
    filter: Filter,
    /// What it waits for comes after this.
    after: EventId,
    wake: oneshot::Sender<EventId>,
}

impl FollowerEntry {
    fn matches(&self, event: &Event) -> bool {
        event.id > self.after && self.filter.matches(event)
    }

    /// Tells it where to read on: nothing of what it wants lies before that.
    fn wake(self, cursor: EventId) {
        // One that has gone need not be told.
        let _ = self.wake.send(cursor.max(self.after));
    }
}

impl Followers {
    /// Waits for something that matches after `after`. `find_unmatched` finds out whether it is there already, or else up to
    /// where it is known not to be; what is shown from then on is not missed.
    pub(crate) fn add(
        self: &Arc<Self>,
        filter: &Filter,
        after: EventId,
        find_unmatched: impl FnOnce() -> Option<EventId>,
    ) -> Follower {
        let mut waiting = self.lock_registry();
        let (wake, woken) = oneshot::channel();
        waiting.last_id += 1;
        let id = waiting.last_id;
        match find_unmatched() {
            None => drop(wake.send(after)),
            Some(passed) => {
                let after = passed.max(after);
                let entry = FollowerEntry { id, filter: filter.clone(), after, wake };
                match &filter.key {
                    Some(key) => waiting.by_key.entry(key.clone()).or_default().push(entry),
                    None => waiting.without_key.push(entry),
                }
            }
        }
        Follower { followers: self.clone(), key: filter.key.clone(), id, after, woken }
    }

    /// Wakes those who wait for one of these events, which are all there are after what was shown before, up to `until`.
    pub(crate) fn notify_events(&self, events: &[Arc<Event>], until: EventId) {
        let mut waiting = self.lock_registry();
        let cursor = std::mem::replace(&mut waiting.notified_until, until);
        for event in events {
            let Some(key) = &event.key else { continue };
            let Some(entries) = waiting.by_key.get_mut(key) else { continue };
            entries.extract_if(.., |entry| entry.matches(event)).for_each(|entry| entry.wake(cursor));
            if entries.is_empty() {
                waiting.by_key.remove(key);
            }
        }
        let is_matched = |entry: &mut FollowerEntry| events.iter().any(|event| entry.matches(event));
        waiting.without_key.extract_if(.., is_matched).for_each(|entry| entry.wake(cursor));
    }

    /// What is shown from now on begins after `begin`. Who waits for something that may lie before that has to look for
    /// it elsewhere.
    pub(crate) fn restart_after(&self, begin: EventId) {
        let mut waiting = self.lock_registry();
        waiting.notified_until = begin;
        let may_have_missed = |entry: &mut FollowerEntry| entry.after < begin;
        waiting.without_key.extract_if(.., may_have_missed).for_each(|entry| entry.wake(EventId::ZERO));
        waiting.by_key.retain(|_, entries| {
            entries.extract_if(.., may_have_missed).for_each(|entry| entry.wake(EventId::ZERO));
            !entries.is_empty()
        });
    }

    fn lock_registry(&self) -> MutexGuard<'_, FollowerRegistry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FollowerRegistry {
    /// Takes one out again, unless it has been woken.
    fn remove(&mut self, key: Option<&ObjectKey>, id: u64) -> Option<FollowerEntry> {
        let take_entry = |entries: &mut Vec<FollowerEntry>| {
            let index = entries.iter().position(|entry| entry.id == id)?;
            Some(entries.swap_remove(index))
        };
        let Some(key) = key else { return take_entry(&mut self.without_key) };
        let entries = self.by_key.get_mut(key)?;
        let taken = take_entry(entries);
        if entries.is_empty() {
            self.by_key.remove(key);
        }
        taken
    }
}

/// One that waits. Dropped, it waits no longer.
#[derive(Debug)]
pub(crate) struct Follower {
    followers: Arc<Followers>,
    key: Option<ObjectKey>,
    id: u64,
    after: EventId,
    woken: oneshot::Receiver<EventId>,
}

impl Follower {
    /// Waits until something that it wants is there.
    pub(crate) async fn wait_until_woken(&mut self) {
        // The sender goes only when it has been used, or with this one.
        if let Ok(cursor) = (&mut self.woken).await {
            self.after = cursor;
        }
    }

    /// Up to where nothing that it wants has come; it waits no longer.
    pub(crate) fn stop_and_get_cursor(&mut self) -> EventId {
        let mut waiting = self.followers.lock_registry();
        match waiting.remove(self.key.as_ref(), self.id) {
            Some(entry) => self.after = entry.after.max(waiting.notified_until),
            None => self.after = self.woken.try_recv().unwrap_or(self.after),
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
    use pointsman_core::{HandlingKey, Json, Tenant};

    fn id(number: u64) -> EventId {
        EventId::new(number).unwrap()
    }

    fn event(number: u64, key: &str) -> Arc<Event> {
        Arc::new(Event {
            id: id(number),
            prev: None,
            kind: HandlingKey::new("a").unwrap(),
            key: Some(ObjectKey::new(key).unwrap()),
            sub: None,
            value: Json::null(),
            context: Default::default(),
            tenant: Tenant::default(),
            cause: None,
        })
    }

    fn key_filter(key: &str) -> Filter {
        Filter { key: Some(ObjectKey::new(key).unwrap()), ..Filter::default() }
    }

    fn is_woken(follower: &mut Follower) -> bool {
        follower.woken.try_recv().is_ok_and(|cursor| {
            follower.after = cursor;
            true
        })
    }

    fn count_waiting(all: &Followers) -> usize {
        let waiting = all.lock_registry();
        waiting.without_key.len() + waiting.by_key.values().map(Vec::len).sum::<usize>()
    }

    #[test]
    fn only_matching_followers_are_woken_and_all_cursors_advance() {
        let all = Arc::new(Followers::default());
        all.restart_after(id(10));
        let join = |filter: &Filter| all.add(filter, id(10), || Some(id(10)));
        let (mut x, mut y, mut every) =
            (join(&key_filter("x")), join(&key_filter("y")), join(&Filter::default()));
        all.notify_events(&[event(11, "z"), event(12, "x")], id(15));
        assert!(is_woken(&mut x) && is_woken(&mut every) && !is_woken(&mut y));
        assert_eq!(
            (x.stop_and_get_cursor(), every.stop_and_get_cursor()),
            (id(10), id(10)),
            "what came is still to be read"
        );
        assert_eq!(count_waiting(&all), 1);
        all.notify_events(&[event(16, "x")], id(16));
        assert_eq!(y.stop_and_get_cursor(), id(16), "nothing of its own lies before that");
        assert_eq!(count_waiting(&all), 0);
        assert_eq!(y.stop_and_get_cursor(), id(16));
    }

    #[test]
    fn events_before_the_cursor_wake_nobody_and_existing_matches_wake_at_once() {
        let all = Arc::new(Followers::default());
        let mut ahead = all.add(&key_filter("x"), id(20), || Some(id(15)));
        all.notify_events(&[event(18, "x")], id(18));
        assert!(!is_woken(&mut ahead));
        all.notify_events(&[event(21, "x")], id(21));
        assert!(is_woken(&mut ahead));
        assert_eq!(ahead.stop_and_get_cursor(), id(20), "its own cursor lay further on than what was shown");
        let mut there = all.add(&key_filter("x"), id(20), || None);
        assert!(is_woken(&mut there));
        assert_eq!(there.stop_and_get_cursor(), id(20));
    }

    #[test]
    fn a_gap_wakes_followers_that_may_have_missed_events() {
        let all = Arc::new(Followers::default());
        let mut behind = all.add(&key_filter("x"), id(5), || Some(id(5)));
        let mut also = all.add(&Filter::default(), id(5), || Some(id(5)));
        let mut ahead = all.add(&key_filter("x"), id(30), || Some(id(30)));
        all.restart_after(id(30));
        assert!(is_woken(&mut behind) && is_woken(&mut also) && !is_woken(&mut ahead));
        assert_eq!((behind.stop_and_get_cursor(), also.stop_and_get_cursor()), (id(5), id(5)));
    }

    #[test]
    fn dropped_followers_are_removed() {
        let all = Arc::new(Followers::default());
        drop(all.add(&key_filter("x"), id(5), || Some(id(5))));
        drop(all.add(&Filter::default(), id(5), || Some(id(5))));
        assert_eq!(count_waiting(&all), 0);
        assert!(all.lock_registry().by_key.is_empty());
    }
}
