//! JSON bodies of `/tasks`: runs of sources.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{LogLineBody, TaskBody};

/// Tasks of a source or a handler, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceTaskList {
    /// The tasks.
    pub tasks: Vec<TaskBody>,
}

/// The log of a task, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceTaskLogs {
    /// The lines, in order.
    pub logs: Vec<LogLineBody>,
}

/// The response to a request to run a collection of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SourceRunResponse)]
pub struct CollectionRunResponse {
    /// The id of the created task, or of the one that was already queued or running.
    pub task_id: String,
}
