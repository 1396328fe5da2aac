//! The JSON body that the handler of a source gets for a run of a collection.

use pointsman_core::store::ClaimedTask;
use pointsman_core::task::CollectionRun;
use serde::Serialize;

#[derive(Serialize)]
struct CollectionRunBody<'a> {
    task_id: &'a str,
    source: &'a str,
    collection: &'a str,
    tenant: &'a str,
    /// Empty for a run that no schedule planned.
    planned_at: String,
}

/// Encodes the body of a collection run, which is the same for commands and HTTP targets.
pub(super) fn encode_collection_run_body(task: &ClaimedTask, run: &CollectionRun) -> String {
    let body = CollectionRunBody {
        task_id: task.id.as_str(),
        source: run.source_collection.source.as_str(),
        collection: run.source_collection.collection.as_str(),
        tenant: run.tenant.as_str(),
        planned_at: task.planned_at.map(|planned| planned.to_string()).unwrap_or_default(),
    };
    // Strings always serialise.
    serde_json::to_string(&body).unwrap_or_default()
}
