//! JSON bodies about redrives, which run many tasks in `error` again.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request to run tasks again. It needs at least one filter, or `all`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedriveBody {
    /// A handler or a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// An alias of `handler`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// An event's type or a source's collection.
    #[serde(rename = "collection", default, skip_serializing_if = "Option::is_none")]
    pub subject_name: Option<String>,
    /// Only tasks of this tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Only tasks for this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `FAILED` (the default), `CANCELED`, or `error` for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Only tasks created at or after this time (RFC 3339).
    #[serde(rename = "start", default, skip_serializing_if = "Option::is_none")]
    pub created_from: Option<String>,
    /// Only tasks created before this time (RFC 3339).
    #[serde(rename = "end", default, skip_serializing_if = "Option::is_none")]
    pub created_before: Option<String>,
    /// Runs all tasks of this status again. Excludes the other filters.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Only counts the tasks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The maximal rate at which tasks are run again, like `10/s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Runs this many tasks first, and the rest only if none of them fails.
    #[serde(rename = "canary", default, skip_serializing_if = "Option::is_none")]
    pub canary_count: Option<u32>,
}

/// The response to a dry run of a redrive: the number of tasks that the redrive would run again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RedriveCount)]
pub struct RedriveDryRunResponse {
    /// The number of tasks.
    pub matched: u64,
    /// Whether there are more tasks: counting stops at a limit.
    #[serde(rename = "more")]
    pub has_more: bool,
    /// The ids of some of these tasks.
    #[serde(rename = "sample")]
    pub sample_task_ids: Vec<String>,
    /// Always true.
    pub dry_run: bool,
}

/// A redrive. It runs on the node that received the request, and ends with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedriveJob {
    /// The redrive's id.
    pub id: String,
    /// `running`, `canary` while it waits for the first tasks, `done` or `stopped`.
    pub state: String,
    /// Why it stopped; null unless it did.
    pub stop_reason: Option<String>,
    /// The name of the token that started it.
    #[serde(rename = "by")]
    pub requested_by: String,
    /// The tasks that it runs again.
    pub filter: RedriveFilter,
    /// The maximal rate; null for no limit.
    pub rate: Option<String>,
    /// The number of tasks that run ahead of the others; null for none.
    #[serde(rename = "canary")]
    pub canary_count: Option<u32>,
    /// When it was started.
    pub started_at: String,
    /// When the redrive ended; empty while it runs.
    pub ended_at: String,
    /// The number of matching tasks that were read so far.
    pub matched: u64,
    /// The number of tasks that run again so far.
    pub retried: u64,
    /// The number of tasks that were no longer in `error` when the redrive reached them, or cannot be run again.
    pub refused: u64,
}

/// The filter of a redrive. A member that is null matches all tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedriveFilter {
    /// A handler or a source.
    pub handler: Option<String>,
    /// An event's type or a source's collection.
    #[serde(rename = "collection")]
    pub subject_name: Option<String>,
    /// Only tasks of this tenant.
    pub tenant: Option<String>,
    /// Only tasks for this object.
    pub key: Option<String>,
    /// `FAILED`, `CANCELED`, or `error` for both.
    pub status: String,
    /// Only tasks created at or after this time.
    #[serde(rename = "start")]
    pub created_from: Option<String>,
    /// Only tasks created before this time.
    #[serde(rename = "end")]
    pub created_before: Option<String>,
}

/// The redrives of the node that responds, the newest first: those that run, and the last ones that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedriveList {
    /// The redrives, newest first.
    pub redrives: Vec<RedriveJob>,
}
