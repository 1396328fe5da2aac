//! Redrives on the wire: running many tasks in `error` again.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which tasks to run again, and how carefully: by at least one of the filters, or `all`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedriveBody {
    /// A handler or a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// The same as `handler`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// An event's type or a source's collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `FAILED` (the default), `CANCELED`, or `error` for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Created at or after this time (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Created before this time (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// All tasks of this status. Excludes the other filters.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Only count them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// How many to run again in how much time, like `10/s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Runs so many first, and the rest only if none of them fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<u32>,
}

/// What a redrive would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedriveCount {
    pub matched: u64,
    /// `matched` is where the counting stopped: there are more.
    pub more: bool,
    /// Some of them.
    pub sample: Vec<String>,
    /// Always true.
    pub dry_run: bool,
}

/// A redrive. It belongs to the node that was asked, and ends with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedriveJob {
    pub id: String,
    /// `running`, `canary` while it waits for the first ones, `done` or `stopped`.
    pub state: String,
    /// Why it stopped; null unless it did.
    pub why: Option<String>,
    /// Whose token began it.
    pub by: String,
    pub filter: RedriveFilter,
    /// Null if it goes as fast as the store takes them.
    pub rate: Option<String>,
    /// So many go ahead of the others; null if none do.
    pub canary: Option<u32>,
    pub started_at: String,
    /// Empty while it goes on.
    pub ended_at: String,
    pub matched: u64,
    pub retried: u64,
    /// Were no longer in `error` when their turn came, or cannot be run again.
    pub refused: u64,
}

/// Which tasks a redrive is about. Null where it is about all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedriveFilter {
    /// A handler or a source.
    pub handler: Option<String>,
    /// An event's type or a source's collection.
    pub collection: Option<String>,
    pub tenant: Option<String>,
    pub key: Option<String>,
    /// `FAILED`, `CANCELED`, or `error` for both.
    pub status: String,
    /// Created at or after this time.
    pub start: Option<String>,
    /// Created before this time.
    pub end: Option<String>,
}

/// The redrives of the node that was asked, the newest first: those that go on, and the last ones that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedriveList {
    pub redrives: Vec<RedriveJob>,
}
