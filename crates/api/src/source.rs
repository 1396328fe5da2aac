//! Runs of sources, on the wire: the answers of `/tasks`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{LogBody, TaskBody};

/// Tasks of a source, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceTasks {
    pub tasks: Vec<TaskBody>,
}

/// The log of a task, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceLogs {
    pub logs: Vec<LogBody>,
}

/// The task of a pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceRun {
    pub task_id: String,
}
