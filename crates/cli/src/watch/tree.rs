//! `watch --tree`: what happens, each below what caused it, as it comes.
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
//! An event stands below the one that its handler was working on. An order stands below the event that made it, and
//! what it goes through below its first line; a task and its attempts below their event or their order. Nothing that
//! was printed is printed anew: where the line above is of another branch, the branch is named again, faintly.

use std::collections::{BTreeMap, HashMap};

use pointsman_api::{CauseBody, TaskChangeBody};
use pointsman_core::EventId;

use super::line::{Line, order_of};
use crate::happening::{Happening, Of};
use crate::output::{Paint, clock, short};

/// How many events are remembered, so that what they cause finds them. Of those before, it begins a tree of its own.
const MOST: usize = 5000;
/// The longest error that is shown.
const ERROR: usize = 160;

#[derive(Default)]
pub(super) struct Tree {
    known: BTreeMap<EventId, Known>,
    /// Below which event stands what belongs to an order or a task. Their names are never alike: an order's begins
    /// with a slash, and a handler's, with which a task's begins, does not.
    names: HashMap<String, EventId>,
    /// From a root to the last event that was shown.
    path: Vec<EventId>,
}

struct Known {
    parent: Option<EventId>,
    label: String,
}

impl Tree {
    /// The lines for an event. What caused it is known for emitted ones alone.
    pub(super) fn event(&mut self, paint: Paint, event: &Happening, cause: Option<&CauseBody>) -> Vec<Line> {
        let parent = self.parent(event, cause);
        let time = event.id.timestamp().to_string();
        let mut lines = self.go_to(paint, parent, &time);
        let unseen = cause.filter(|_| parent.is_none());
        // Below its order, an event need not name it again.
        let below = !is_new(event) && event.order().is_some_and(|order| self.names.contains_key(order));
        let key = event.key.as_deref().filter(|_| !below);
        lines.push(self.line(paint, &time, &said(paint, event, key, unseen)));
        self.path.push(event.id);
        self.remember(event, parent);
        lines
    }

    /// The lines for a change of a task. Only the end of an attempt has any: what waits and begins causes nothing yet.
    pub(super) fn task(&mut self, paint: Paint, change: &TaskChangeBody) -> Vec<Line> {
        let parent = match order_of(change) {
            Some(order) => {
                let named = self.names.get(&change.id).or_else(|| self.names.get(order)).copied();
                named.or_else(|| self.made_by(order))
            }
            None => change.event_id.and_then(EventId::new).filter(|event| self.known.contains_key(event)),
        };
        self.names.extend(parent.map(|parent| (change.id.clone(), parent)));
        let is_end = !matches!(change.status.as_str(), "SCHEDULED" | "RUNNING");
        if !is_end && change.error.is_none() {
            return vec![];
        }
        let mut lines = self.go_to(paint, parent, &change.time);
        let error = change.error.as_deref().map(|error| format!(": {}", short(error, ERROR)));
        let status = paint.status(&change.status, &change.status).into_owned();
        let text =
            format!("{status}  {}{}  {}", change.handler, error.unwrap_or_default(), paint.dim(&change.id));
        lines.push(self.line(paint, &change.time, &text));
        lines
    }

    fn parent(&self, event: &Happening, cause: Option<&CauseBody>) -> Option<EventId> {
        let known = |id: EventId| self.known.contains_key(&id).then_some(id);
        let named = |name: &str| self.names.get(name).copied();
        match event.of {
            Of::Emitted => {
                let by_event = || cause?.event_id.and_then(EventId::new).and_then(known);
                // A step's task stands below its order, which says more than the event that made the order.
                cause.and_then(|cause| named(cause.task.as_deref()?)).or_else(by_event)
            }
            Of::Order => {
                let order = event.order()?;
                named(order).filter(|_| !is_new(event)).or_else(|| self.made_by(order))
            }
            Of::Task => named(event.task.as_deref()?),
            Of::Chain | Of::File | Of::Scheduler => None,
        }
    }

    /// The event that made an order, if it was shown: the order has its id.
    fn made_by(&self, order: &str) -> Option<EventId> {
        let id = order.rsplit(',').next()?.parse().ok().and_then(EventId::new)?;
        self.known.contains_key(&id).then_some(id)
    }

    fn remember(&mut self, event: &Happening, parent: Option<EventId>) {
        let key = event.key.as_ref().map(|key| format!("  {}", short(key, usize::MAX))).unwrap_or_default();
        let label = format!("{}{key}", event.kind);
        self.known.insert(event.id, Known { parent, label });
        if let Some(order) = event.order() {
            if is_new(event) {
                self.names.remove(order);
            }
            let top = *self.names.entry(order.to_owned()).or_insert(event.id);
            self.names.extend(event.task.clone().map(|task| (task, top)));
        }
        while self.known.len() > MOST {
            self.known.pop_first();
        }
        if self.names.len() > 4 * MOST {
            self.names.retain(|_, id| self.known.contains_key(id));
        }
    }

    /// Makes the path end at this event, or be empty. Lines name what of it was not the path before.
    fn go_to(&mut self, paint: Paint, to: Option<EventId>, time: &str) -> Vec<Line> {
        let mut wanted = vec![];
        let mut above = to;
        while let Some((id, known)) = above.and_then(|id| Some((id, self.known.get(&id)?))) {
            wanted.push(id);
            above = known.parent;
        }
        wanted.reverse();
        let shared = self.path.iter().zip(&wanted).take_while(|(is, wanted)| is == wanted).count();
        self.path.truncate(shared);
        let mut lines = vec![];
        for id in wanted.drain(shared..) {
            let label = self.known.get(&id).map(|known| format!("… {}", known.label)).unwrap_or_default();
            lines.push(self.line(paint, time, &paint.dim(&label)));
            self.path.push(id);
        }
        lines
    }

    /// A line below the end of the path.
    fn line(&self, paint: Paint, time: &str, text: &str) -> Line {
        let branch = match self.path.len() {
            0 => String::new(),
            depth => format!("{}└─ ", "   ".repeat(depth)),
        };
        let text = format!("{}  {}{text}", paint.dim(clock(time)), paint.dim(&branch));
        Line { day: time.get(..10).map(Into::into), text: text.trim_end().into() }
    }
}

/// Whether an order appears. One of the same name may have been there before.
fn is_new(event: &Happening) -> bool {
    event.kind == "FileBasedAdded"
}

/// An event in one line; where its cause is not shown above it, with that.
fn said(paint: Paint, event: &Happening, key: Option<&str>, unseen: Option<&CauseBody>) -> String {
    let mut parts = vec![paint.name(&event.kind).into_owned()];
    parts.extend(key.map(|key| short(key, usize::MAX)));
    parts.push(event.id.to_string());
    parts.extend(Some(event.words.clone()).filter(|words| !words.is_empty()));
    parts.extend(event.task.as_ref().map(|task| paint.dim(&short(task, usize::MAX)).into_owned()));
    let by = unseen.and_then(|cause| cause.event_id.map(|id| id.to_string()).or(cause.task.clone()));
    parts.extend(by.map(|by| paint.dim(&format!("caused by {by}")).into_owned()));
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Color;

    fn paint() -> Paint {
        Paint::new(Color::Never)
    }

    fn emitted(id: u64, kind: &str) -> Happening {
        let json = format!(r#"{{"eventId":{id},"TYPE":"{kind}","value":null,"tenant":"default"}}"#);
        Happening::read(&json).unwrap()
    }

    fn by(event: u64) -> Option<CauseBody> {
        Some(CauseBody { event_id: Some(event), task: None, depth: 1 })
    }

    /// The lines without their times.
    fn texts(lines: Vec<Line>) -> Vec<String> {
        lines.into_iter().map(|line| line.text.split_once("  ").unwrap().1.to_owned()).collect()
    }

    fn show(tree: &mut Tree, id: u64, kind: &str, cause: Option<CauseBody>) -> Vec<String> {
        texts(tree.event(paint(), &emitted(id, kind), cause.as_ref()))
    }

    fn order(tree: &mut Tree, json: &str) -> Vec<String> {
        texts(tree.event(paint(), &Happening::read(json).unwrap(), None))
    }

    #[test]
    fn what_was_caused_stands_below_its_cause() {
        let mut tree = Tree::default();
        assert_eq!(show(&mut tree, 1, "placed", None), ["placed  1  null"]);
        assert_eq!(show(&mut tree, 2, "billed", by(1)), ["   └─ billed  2  null"]);
        assert_eq!(show(&mut tree, 3, "mailed", by(2)), ["      └─ mailed  3  null"]);
        assert_eq!(show(&mut tree, 4, "packed", by(1)), ["   └─ packed  4  null"]);
    }

    #[test]
    fn a_branch_is_named_again_when_another_was_shown_in_between() {
        let mut tree = Tree::default();
        show(&mut tree, 1, "placed", None);
        show(&mut tree, 2, "billed", by(1));
        assert_eq!(show(&mut tree, 3, "other", None), ["other  3  null"]);
        let lines = show(&mut tree, 4, "mailed", by(2));
        assert_eq!(lines, ["… placed", "   └─ … billed", "      └─ mailed  4  null"]);
    }

    #[test]
    fn a_cause_that_was_not_shown_is_named() {
        let lines = show(&mut Tree::default(), 9, "billed", by(1));
        assert_eq!(lines, ["billed  9  null  caused by 1"]);
    }

    #[test]
    fn an_order_stands_below_the_event_that_made_it_and_its_steps_below_it() {
        let mut tree = Tree::default();
        show(&mut tree, 5, "published", None);
        let added = r#"{"eventId":6,"key":"Order:/a,5","TYPE":"FileBasedAdded","nodeId":"x"}"#;
        assert_eq!(order(&mut tree, added), ["   └─ FileBasedAdded  Order:/a,5  6  at x"]);
        let started =
            r#"{"eventId":7,"key":"/a,5","TYPE":"OrderStepStarted","nodeId":"x","taskId":"do_x_1"}"#;
        assert_eq!(order(&mut tree, started), ["      └─ OrderStepStarted  7  at x  do_x_1"]);
        let cause = CauseBody { event_id: Some(5), task: Some("do_x_1".into()), depth: 1 };
        assert_eq!(show(&mut tree, 8, "rendered", Some(cause)), ["      └─ rendered  8  null"]);
    }

    #[test]
    fn an_order_that_comes_again_begins_anew() {
        let mut tree = Tree::default();
        let added =
            |id| format!(r#"{{"eventId":{id},"key":"Order:/a,x","TYPE":"FileBasedAdded","nodeId":"n"}}"#);
        order(&mut tree, &added(1));
        order(&mut tree, r#"{"eventId":2,"key":"Order:/a,x","TYPE":"FileBasedRemoved"}"#);
        assert_eq!(order(&mut tree, &added(3)), ["FileBasedAdded  Order:/a,x  3  at n"]);
        let suspended = r#"{"eventId":4,"key":"/a,x","TYPE":"OrderSuspended"}"#;
        assert_eq!(order(&mut tree, suspended), ["   └─ OrderSuspended  4"]);
        assert_eq!(tree.path.first().map(|id| id.get()), Some(3));
    }

    fn change(id: &str, key: Option<&str>, status: &str) -> TaskChangeBody {
        TaskChangeBody {
            id: id.into(),
            handler: "bill".into(),
            tenant: "default".into(),
            key: key.map(Into::into),
            collection: "placed".into(),
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
    fn the_end_of_a_task_stands_below_its_event() {
        let mut tree = Tree::default();
        show(&mut tree, 1, "placed", None);
        assert!(tree.task(paint(), &change("bill_placed_1", None, "RUNNING")).is_empty());
        let lines = texts(tree.task(paint(), &change("bill_placed_1", None, "SUCCESS")));
        assert_eq!(lines, ["   └─ SUCCESS  bill  bill_placed_1"]);
    }

    #[test]
    fn the_end_of_a_step_stands_below_its_order_also_where_an_event_made_it() {
        let mut tree = Tree::default();
        show(&mut tree, 1, "placed", None);
        order(&mut tree, r#"{"eventId":2,"key":"Order:/a,1","TYPE":"FileBasedAdded","nodeId":"x"}"#);
        tree.task(paint(), &change("bill_x_1", Some("/a,1"), "RUNNING"));
        let cause = CauseBody { event_id: Some(1), task: Some("bill_x_1".into()), depth: 1 };
        assert_eq!(show(&mut tree, 3, "billed", Some(cause)), ["      └─ billed  3  null"]);
        let lines = texts(tree.task(paint(), &change("bill_x_1", Some("/a,1"), "SUCCESS")));
        assert_eq!(lines, ["      └─ SUCCESS  bill  bill_x_1"]);
    }

    #[test]
    fn what_is_remembered_has_its_bound() {
        let mut tree = Tree::default();
        for id in 1..=MOST as u64 + 10 {
            show(&mut tree, id, "x", None);
        }
        assert_eq!(tree.known.len(), MOST);
    }
}
