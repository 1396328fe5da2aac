//! JSON bodies of `/tasks`: runs of sources.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{LogLineBody, TaskBody};

/// Tasks of a source, the newest first.
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

/// The task that runs a collection of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceRunResponse {
    /// The task that is queued or running.
    pub task_id: String,
}
