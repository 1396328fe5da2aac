//! JSON bodies of `/tasks`: runs of sources.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{LogLineBody, TaskBody};

/// Tasks of a source, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceTaskList {
    pub tasks: Vec<TaskBody>,
}

/// The log of a task, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceTaskLogs {
    pub logs: Vec<LogLineBody>,
}

/// The task that runs a collection of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceRunResponse {
    pub task_id: String,
}
