//! `watch --tree`: prints each event below its cause.
//!
//! ```text
//!  order.placed  order:1
//!     └─ SUCCESS  bill
//!     └─ invoice.made  invoice:1
//!        └─ mail.sent  mail:9
//!  shop.opened
//!  … order.placed  order:1
//!     └─ order.packed  order:1
//! ```
//!
//! An event is printed below the event whose handler emitted it, an order below the event that started it, the order's
//! events below its first line, and a task's end below its event or order. If the line above belongs to another branch,
//! the branch is repeated in dim text.

use std::collections::{BTreeMap, HashMap};

use pointsman_api::{EventCauseBody, TaskChangeBody};
use pointsman_core::EventId;

use super::line::{WatchLine, order_key_of_step};
use crate::output::{Paint, escape_and_shorten, time_of_day};
use crate::stream_line::{EventSubject, StreamLine};

/// The number of events kept as possible parents. A child of an older event starts a new tree.
const MAX_KEPT_EVENTS: usize = 5000;
/// The maximum width of an error, in columns of the terminal.
const MAX_ERROR_WIDTH: usize = 160;

/// The tree of the printed events, to find the parent of the next line.
#[derive(Default)]
pub(super) struct EventTree {
    /// The printed events.
    events: BTreeMap<EventId, PrintedEvent>,
    /// The parent event of each order key and task id. They never collide: an order key starts with a slash, a task id
    /// with a handler's name.
    parent_by_order_or_task: HashMap<String, EventId>,
    /// The ids of the events from the root of the tree to the last printed event.
    current_branch: Vec<EventId>,
}

/// A printed event that may become the parent of later lines.
struct PrintedEvent {
    parent: Option<EventId>,
    label: String,
}

impl EventTree {
    /// Adds an event and returns its lines. Only emitted events have a cause.
    pub(super) fn add_event(
        &mut self,
        paint: Paint,
        event: &StreamLine,
        cause: Option<&EventCauseBody>,
    ) -> Vec<WatchLine> {
        let parent = self.find_parent(event, cause);
        let time = event.event_id.timestamp().to_string();
        let mut lines = self.switch_branch(paint, parent, &time);
        let unprinted_cause = cause.filter(|_| parent.is_none());
        // Below its order, an event does not repeat the order's key.
        let is_below_order = !is_order_added(event)
            && event.order_key().is_some_and(|order| self.parent_by_order_or_task.contains_key(order));
        let key = event.key.as_deref().filter(|_| !is_below_order);
        let text = format_event(paint, event, key, unprinted_cause);
        lines.push(self.format_line(paint, &time, &text));
        self.current_branch.push(event.event_id);
        self.insert_printed_event(event, parent);
        lines
    }

    /// Adds a task change and returns its lines: none unless an attempt ended.
    pub(super) fn add_task_change(&mut self, paint: Paint, change: &TaskChangeBody) -> Vec<WatchLine> {
        let parent = match order_key_of_step(change) {
            Some(order) => {
                let named = self
                    .parent_by_order_or_task
                    .get(&change.id)
                    .or_else(|| self.parent_by_order_or_task.get(order))
                    .copied();
                named.or_else(|| self.find_starting_event(order))
            }
            None => change.event_id.and_then(EventId::new).filter(|event| self.events.contains_key(event)),
        };
        self.parent_by_order_or_task.extend(parent.map(|parent| (change.id.clone(), parent)));
        let is_end = !matches!(change.status.as_str(), "SCHEDULED" | "RUNNING");
        if !is_end && change.error.is_none() {
            return vec![];
        }
        let mut lines = self.switch_branch(paint, parent, &change.time);
        let error =
            change.error.as_deref().map(|error| format!(": {}", escape_and_shorten(error, MAX_ERROR_WIDTH)));
        let status = paint.color_by_status(&change.status, &change.status).into_owned();
        let text =
            format!("{status}  {}{}  {}", change.handler, error.unwrap_or_default(), paint.dim(&change.id));
        lines.push(self.format_line(paint, &change.time, &text));
        lines
    }

    fn find_parent(&self, event: &StreamLine, cause: Option<&EventCauseBody>) -> Option<EventId> {
        let printed = |id: EventId| self.events.contains_key(&id).then_some(id);
        let named = |name: &str| self.parent_by_order_or_task.get(name).copied();
        match event.subject {
            EventSubject::Emitted => {
                let by_event = || cause?.event_id.and_then(EventId::new).and_then(printed);
                // An event emitted by a step goes below the order rather than below the event that started it.
                cause.and_then(|cause| named(cause.task.as_deref()?)).or_else(by_event)
            }
            EventSubject::Order => {
                let order = event.order_key()?;
                named(order).filter(|_| !is_order_added(event)).or_else(|| self.find_starting_event(order))
            }
            EventSubject::Task => named(event.task_id.as_deref()?),
            EventSubject::Chain | EventSubject::ConfiguredObject | EventSubject::Scheduler => None,
        }
    }

    /// Finds the printed event that started an order: the id of the order is that of the event.
    fn find_starting_event(&self, order: &str) -> Option<EventId> {
        let id = order.rsplit(',').next()?.parse().ok().and_then(EventId::new)?;
        self.events.contains_key(&id).then_some(id)
    }

    fn insert_printed_event(&mut self, event: &StreamLine, parent: Option<EventId>) {
        let key = event
            .key
            .as_ref()
            .map(|key| format!("  {}", escape_and_shorten(key, usize::MAX)))
            .unwrap_or_default();
        let label = format!("{}{key}", event.event_type);
        self.events.insert(event.event_id, PrintedEvent { parent, label });
        if let Some(order) = event.order_key() {
            if is_order_added(event) {
                self.parent_by_order_or_task.remove(order);
            }
            let first = *self.parent_by_order_or_task.entry(order.to_owned()).or_insert(event.event_id);
            self.parent_by_order_or_task.extend(event.task_id.clone().map(|task| (task, first)));
        }
        while self.events.len() > MAX_KEPT_EVENTS {
            self.events.pop_first();
        }
        if self.parent_by_order_or_task.len() > 4 * MAX_KEPT_EVENTS {
            self.parent_by_order_or_task.retain(|_, id| self.events.contains_key(id));
        }
    }

    /// Makes the current branch end at `target`, or empties it. Returns a line for each event that the branch did not
    /// contain before.
    fn switch_branch(&mut self, paint: Paint, target: Option<EventId>, time: &str) -> Vec<WatchLine> {
        let mut new_branch = vec![];
        let mut ancestor = target;
        while let Some((id, event)) = ancestor.and_then(|id| Some((id, self.events.get(&id)?))) {
            new_branch.push(id);
            ancestor = event.parent;
        }
        new_branch.reverse();
        let shared = self.current_branch.iter().zip(&new_branch).take_while(|(old, new)| old == new).count();
        self.current_branch.truncate(shared);
        let mut lines = vec![];
        for id in new_branch.drain(shared..) {
            let label = self.events.get(&id).map(|event| format!("… {}", event.label)).unwrap_or_default();
            lines.push(self.format_line(paint, time, &paint.dim(&label)));
            self.current_branch.push(id);
        }
        lines
    }

    /// Formats a line one level below the end of the current branch.
    fn format_line(&self, paint: Paint, time: &str, text: &str) -> WatchLine {
        let branch = match self.current_branch.len() {
            0 => String::new(),
            depth => format!("{}└─ ", "   ".repeat(depth)),
        };
        let text = format!("{}  {}{text}", paint.dim(time_of_day(time)), paint.dim(&branch));
        WatchLine { day: time.get(..10).map(Into::into), text: text.trim_end().into() }
    }
}

/// Whether the event adds an order. An earlier order may have had the same key.
fn is_order_added(event: &StreamLine) -> bool {
    event.event_type == "FileBasedAdded"
}

/// Formats an event in one line, with its cause if that is not printed above.
fn format_event(
    paint: Paint,
    event: &StreamLine,
    key: Option<&str>,
    unprinted_cause: Option<&EventCauseBody>,
) -> String {
    let mut parts = vec![paint.cyan(&event.event_type).into_owned()];
    parts.extend(key.map(|key| escape_and_shorten(key, usize::MAX)));
    parts.push(event.event_id.to_string());
    parts.extend(Some(event.text.clone()).filter(|text| !text.is_empty()));
    parts.extend(
        event.task_id.as_ref().map(|task| paint.dim(&escape_and_shorten(task, usize::MAX)).into_owned()),
    );
    let cause =
        unprinted_cause.and_then(|cause| cause.event_id.map(|id| id.to_string()).or(cause.task.clone()));
    parts.extend(cause.map(|cause| paint.dim(&format!("caused by {cause}")).into_owned()));
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ColorChoice;

    fn plain_paint() -> Paint {
        Paint::for_stdout(ColorChoice::Never)
    }

    fn emitted_event(id: u64, event_type: &str) -> StreamLine {
        let json = format!(r#"{{"eventId":{id},"TYPE":"{event_type}","value":null,"tenant":"default"}}"#);
        StreamLine::from_json(&json).unwrap()
    }

    fn event_cause(event: u64) -> Option<EventCauseBody> {
        Some(EventCauseBody { event_id: Some(event), task: None, depth: 1 })
    }

    /// The lines without their times.
    fn texts_without_time(lines: Vec<WatchLine>) -> Vec<String> {
        lines.into_iter().map(|line| line.text.split_once("  ").unwrap().1.to_owned()).collect()
    }

    fn add_emitted(
        tree: &mut EventTree,
        id: u64,
        event_type: &str,
        cause: Option<EventCauseBody>,
    ) -> Vec<String> {
        texts_without_time(tree.add_event(plain_paint(), &emitted_event(id, event_type), cause.as_ref()))
    }

    fn add_engine_event(tree: &mut EventTree, json: &str) -> Vec<String> {
        texts_without_time(tree.add_event(plain_paint(), &StreamLine::from_json(json).unwrap(), None))
    }

    #[test]
    fn an_event_is_printed_below_its_cause() {
        let mut tree = EventTree::default();
        assert_eq!(add_emitted(&mut tree, 1, "placed", None), ["placed  1  null"]);
        assert_eq!(add_emitted(&mut tree, 2, "billed", event_cause(1)), ["   └─ billed  2  null"]);
        assert_eq!(add_emitted(&mut tree, 3, "mailed", event_cause(2)), ["      └─ mailed  3  null"]);
        assert_eq!(add_emitted(&mut tree, 4, "packed", event_cause(1)), ["   └─ packed  4  null"]);
    }

    #[test]
    fn a_branch_is_repeated_after_lines_of_another_branch() {
        let mut tree = EventTree::default();
        add_emitted(&mut tree, 1, "placed", None);
        add_emitted(&mut tree, 2, "billed", event_cause(1));
        assert_eq!(add_emitted(&mut tree, 3, "other", None), ["other  3  null"]);
        let lines = add_emitted(&mut tree, 4, "mailed", event_cause(2));
        assert_eq!(lines, ["… placed", "   └─ … billed", "      └─ mailed  4  null"]);
    }

    #[test]
    fn a_cause_that_was_not_printed_is_named() {
        let lines = add_emitted(&mut EventTree::default(), 9, "billed", event_cause(1));
        assert_eq!(lines, ["billed  9  null  caused by 1"]);
    }

    #[test]
    fn an_order_is_printed_below_its_event_and_its_steps_below_it() {
        let mut tree = EventTree::default();
        add_emitted(&mut tree, 5, "published", None);
        let added = r#"{"eventId":6,"key":"Order:/a,5","TYPE":"FileBasedAdded","nodeId":"x"}"#;
        assert_eq!(
            add_engine_event(&mut tree, added),
            ["   └─ FileBasedAdded  Order:/a,5  6  order 5 added to /a at x"]
        );
        let started =
            r#"{"eventId":7,"key":"/a,5","TYPE":"OrderStepStarted","nodeId":"x","taskId":"do_x_1"}"#;
        assert_eq!(
            add_engine_event(&mut tree, started),
            ["      └─ OrderStepStarted  7  order 5 runs step x  do_x_1"]
        );
        let cause = EventCauseBody { event_id: Some(5), task: Some("do_x_1".into()), depth: 1 };
        assert_eq!(add_emitted(&mut tree, 8, "rendered", Some(cause)), ["      └─ rendered  8  null"]);
    }

    #[test]
    fn an_order_added_again_starts_a_new_tree() {
        let mut tree = EventTree::default();
        let added =
            |id| format!(r#"{{"eventId":{id},"key":"Order:/a,x","TYPE":"FileBasedAdded","nodeId":"n"}}"#);
        add_engine_event(&mut tree, &added(1));
        add_engine_event(&mut tree, r#"{"eventId":2,"key":"Order:/a,x","TYPE":"FileBasedRemoved"}"#);
        assert_eq!(
            add_engine_event(&mut tree, &added(3)),
            ["FileBasedAdded  Order:/a,x  3  order x added to /a at n"]
        );
        let suspended = r#"{"eventId":4,"key":"/a,x","TYPE":"OrderSuspended"}"#;
        assert_eq!(add_engine_event(&mut tree, suspended), ["   └─ OrderSuspended  4  order x suspended"]);
        assert_eq!(tree.current_branch.first().map(|id| id.get()), Some(3));
    }

    fn task_change(id: &str, key: Option<&str>, status: &str) -> TaskChangeBody {
        TaskChangeBody {
            id: id.into(),
            handler: "bill".into(),
            tenant: "default".into(),
            key: key.map(Into::into),
            subject_name: "placed".into(),
            event_id: Some(1),
            status: status.into(),
            state: String::new(),
            attempt: 1,
            error: None,
            delay_until: String::new(),
            time: "2016-11-04T11:07:36.000000Z".into(),
        }
    }

    #[test]
    fn the_end_of_a_task_is_printed_below_its_event() {
        let mut tree = EventTree::default();
        add_emitted(&mut tree, 1, "placed", None);
        assert!(
            tree.add_task_change(plain_paint(), &task_change("bill_placed_1", None, "RUNNING")).is_empty()
        );
        let lines = texts_without_time(
            tree.add_task_change(plain_paint(), &task_change("bill_placed_1", None, "SUCCESS")),
        );
        assert_eq!(lines, ["   └─ SUCCESS  bill  bill_placed_1"]);
    }

    #[test]
    fn the_end_of_a_step_is_printed_below_its_order_even_if_an_event_started_it() {
        let mut tree = EventTree::default();
        add_emitted(&mut tree, 1, "placed", None);
        add_engine_event(
            &mut tree,
            r#"{"eventId":2,"key":"Order:/a,1","TYPE":"FileBasedAdded","nodeId":"x"}"#,
        );
        tree.add_task_change(plain_paint(), &task_change("bill_x_1", Some("/a,1"), "RUNNING"));
        let cause = EventCauseBody { event_id: Some(1), task: Some("bill_x_1".into()), depth: 1 };
        assert_eq!(add_emitted(&mut tree, 3, "billed", Some(cause)), ["      └─ billed  3  null"]);
        let lines = texts_without_time(
            tree.add_task_change(plain_paint(), &task_change("bill_x_1", Some("/a,1"), "SUCCESS")),
        );
        assert_eq!(lines, ["      └─ SUCCESS  bill  bill_x_1"]);
    }

    #[test]
    fn the_number_of_events_kept_as_parents_is_limited() {
        let mut tree = EventTree::default();
        for id in 1..=MAX_KEPT_EVENTS as u64 + 10 {
            add_emitted(&mut tree, id, "x", None);
        }
        assert_eq!(tree.events.len(), MAX_KEPT_EVENTS);
    }
}
