//! The causal tree of an event: the events that its tasks emitted, and so on.
//!
//! The store returns a list in which each event names its cause. Events of tenants that the caller may not see are left
//! out, with their subtrees.

use std::collections::HashMap;

use pointsman_api::{CausedEventBody, EventBody};
use pointsman_core::store::{EventView, MAX_CAUSED_EVENTS, StoreError, TaskFilter};
use pointsman_core::task::Task;
use pointsman_core::{Event, EventId, TaskSeq};

use crate::app_state::App;
use crate::auth::Caller;

/// Maximum depth of a tree. JSON parsers limit the depth, and deeper events can be read by their own id.
const MAX_TREE_DEPTH: usize = 32;

pub(super) struct CausalTree {
    pub(super) caused_events: Vec<CausedEventBody>,
    /// Whether the tree may have more events than it contains here.
    pub(super) is_truncated: bool,
}

/// Builds the tree below an event, as far as the caller may see.
pub(super) async fn build_causal_tree(
    app: &App,
    caller: &Caller,
    view: &EventView,
) -> Result<CausalTree, StoreError> {
    let visible: Vec<&Event> =
        view.caused_events.iter().map(AsRef::as_ref).filter(|e| caller.can_see_tenant(&e.tenant)).collect();
    let tasks = read_emitting_task_ids(app, caller, view, &visible).await?;
    let mut builder = CausalTreeBuilder {
        task_ids_by_seq: tasks,
        children_by_cause: HashMap::new(),
        is_truncated: view.caused_events.len() >= MAX_CAUSED_EVENTS,
    };
    for event in visible {
        if let Some(cause) = event.cause.and_then(|cause| cause.event) {
            builder.children_by_cause.entry(cause).or_default().push(event);
        }
    }
    let caused = builder.build_subtree(view.event.id, 1);
    Ok(CausalTree { caused_events: caused, is_truncated: builder.is_truncated })
}

struct CausalTreeBuilder<'a> {
    children_by_cause: HashMap<EventId, Vec<&'a Event>>,
    task_ids_by_seq: HashMap<TaskSeq, String>,
    is_truncated: bool,
}

impl CausalTreeBuilder<'_> {
    fn build_subtree(&mut self, id: EventId, level: usize) -> Vec<CausedEventBody> {
        let mut children = self.children_by_cause.remove(&id).unwrap_or_default();
        if level > MAX_TREE_DEPTH {
            self.is_truncated |= !children.is_empty();
            return vec![];
        }
        children.sort_by_key(|event| event.id);
        let to_body = |event: &Event| CausedEventBody {
            event: EventBody::from(event),
            task: event.cause.and_then(|cause| self.task_ids_by_seq.get(&cause.task).cloned()),
            caused_events: self.build_subtree(event.id, level + 1),
        };
        children.into_iter().map(to_body).collect()
    }
}

/// Reads the ids of the tasks that emitted these events, as far as they are retained.
async fn read_emitting_task_ids(
    app: &App,
    caller: &Caller,
    view: &EventView,
    events: &[&Event],
) -> Result<HashMap<TaskSeq, String>, StoreError> {
    let mut task_ids: HashMap<_, _> = view.tasks.iter().map(|task| (task.seq, task.id.to_string())).collect();
    for seq in events.iter().filter_map(|event| event.cause).map(|cause| cause.task) {
        if !task_ids.contains_key(&seq)
            && let Some(task) =
                find_task_by_seq(app, seq).await?.filter(|task| caller.can_see_tenant(&task.tenant))
        {
            task_ids.insert(seq, task.id.to_string());
        }
    }
    Ok(task_ids)
}

/// Finds a task by its sequence number, if it is retained.
pub(super) async fn find_task_by_seq(app: &App, seq: TaskSeq) -> Result<Option<Task>, StoreError> {
    let above = TaskSeq(seq.0.saturating_add(1));
    let page = app.store().list_tasks(TaskFilter::default(), Some(above), 1).await?;
    Ok(page.tasks.into_iter().find(|task| task.seq == seq))
}
