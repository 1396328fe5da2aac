//! Checks that a handler or source exists, for requests that name one to select its tasks.

use pointsman_core::HandlerName;
use pointsman_core::store::TaskFilter;
use pointsman_core::suggestion::did_you_mean_suffix;

use crate::app_state::App;
use crate::auth::Caller;
use crate::problem::Problem;

/// Maximum pages of the history that are searched for tasks of a handler that is no longer defined.
const MAX_HISTORY_PAGES: usize = 4;

/// Returns 404 unless a handler of this name is defined or tasks of it are left, as far as the caller may see. Tasks
/// older than the searched pages do not count. `noun` is what the message calls the handler: handler or source.
pub(crate) async fn check_handler_exists_or_has_tasks(
    app: &App,
    caller: &Caller,
    name: &HandlerName,
    noun: &str,
) -> Result<(), Problem> {
    let registration = app.store().read_merged_registration().await?;
    let defs = registration.handlers.iter();
    let visible: Vec<_> = defs
        .filter(|def| def.source.as_ref().is_none_or(|source| caller.can_see_tenant(&source.tenant)))
        .map(|def| def.name.as_str())
        .collect();
    if visible.contains(&name.as_str())
        || has_queues(app, caller, name).await?
        || has_retained_tasks(app, caller, name).await?
    {
        return Ok(());
    }
    let hint = did_you_mean_suffix(name.as_str(), visible);
    Err(Problem::not_found(format!("there is no {noun} {name}{hint}")))
}

async fn has_queues(app: &App, caller: &Caller, name: &HandlerName) -> Result<bool, Problem> {
    let queues = app.store().list_queues(Some(name)).await?;
    Ok(queues.iter().any(|queue| caller.can_see_tenant(&queue.tenant)))
}

/// Whether the history has a task of the handler that the caller may see. An empty page only means that the store
/// stopped scanning; later pages may have tasks.
async fn has_retained_tasks(app: &App, caller: &Caller, name: &HandlerName) -> Result<bool, Problem> {
    let (handler, tenant) = (Some(name.clone()), caller.bound_tenant.clone());
    let filter = TaskFilter { handler, tenant, ..TaskFilter::default() };
    let mut before = None;
    for _ in 0..MAX_HISTORY_PAGES {
        let page = app.store().list_tasks(filter.clone(), before, 1).await?;
        if !page.tasks.is_empty() {
            return Ok(true);
        }
        before = page.next_cursor;
        if before.is_none() {
            break;
        }
    }
    Ok(false)
}
