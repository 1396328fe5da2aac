//! Whether there is such a handler or source, for requests that name one whose tasks are meant.

use pointsman_core::HandlerName;
use pointsman_core::store::TaskFilter;

use crate::app::App;
use crate::auth::Caller;
use crate::config::nearest::hint;
use crate::problem::Problem;

/// How many stretches of the history are looked through for tasks of a handler that is no longer defined.
const MAX_HISTORY_PAGES: usize = 4;

/// Makes sure that there is a handler of this name, or that there was one of which tasks are left, as far as the caller
/// may see. One that was gone before all that the look comes to is not found any more. `noun` says what it is called
/// where there is none.
pub(crate) async fn require_handler(
    app: &App,
    caller: &Caller,
    name: &HandlerName,
    noun: &str,
) -> Result<(), Problem> {
    let registration = app.store().registration().await?;
    let defs = registration.handlers.iter();
    let visible: Vec<_> = defs
        .filter(|def| def.source.as_ref().is_none_or(|source| caller.sees(&source.tenant)))
        .map(|def| def.name.as_str())
        .collect();
    if visible.contains(&name.as_str())
        || has_queues(app, caller, name).await?
        || has_archived_tasks(app, caller, name).await?
    {
        return Ok(());
    }
    let hint = hint(name.as_str(), visible);
    Err(Problem::not_found(format!("there is no {noun} {name}{hint}")))
}

async fn has_queues(app: &App, caller: &Caller, name: &HandlerName) -> Result<bool, Problem> {
    let queues = app.store().queues(Some(name)).await?;
    Ok(queues.iter().any(|queue| caller.sees(&queue.tenant)))
}

/// A page that came to nothing says only that it looked at as much as it may.
async fn has_archived_tasks(app: &App, caller: &Caller, name: &HandlerName) -> Result<bool, Problem> {
    let (handler, tenant) = (Some(name.clone()), caller.tenant.clone());
    let filter = TaskFilter { handler, tenant, ..TaskFilter::default() };
    let mut before = None;
    for _ in 0..MAX_HISTORY_PAGES {
        let page = app.store().tasks(filter.clone(), before, 1).await?;
        if !page.tasks.is_empty() {
            return Ok(true);
        }
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    Ok(false)
}
