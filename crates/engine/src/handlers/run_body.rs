//! The JSON body that a source's handler gets for a run.

use pointsman_core::store::Claimed;
use pointsman_core::task::Run;
use serde::Serialize;

#[derive(Serialize)]
struct RunBody<'a> {
    task_id: &'a str,
    source: &'a str,
    collection: &'a str,
    tenant: &'a str,
    /// Empty for a run that no schedule planned.
    planned_at: String,
}

/// The same for commands and for HTTP targets.
pub(super) fn to_json(task: &Claimed, run: &Run) -> String {
    let body = RunBody {
        task_id: task.id.as_str(),
        source: run.pair.source.as_str(),
        collection: run.pair.collection.as_str(),
        tenant: run.tenant.as_str(),
        planned_at: task.planned.map(|planned| planned.to_string()).unwrap_or_default(),
    };
    // Strings always serialise.
    serde_json::to_string(&body).unwrap_or_default()
}
