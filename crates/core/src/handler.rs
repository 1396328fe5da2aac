//! The stored definition of a handler: how its tasks are ordered, retried, limited and observed. How it is *run* is
//! defined in the engine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limit::Limits;
use crate::names::CollectionName;
use crate::task::retry::RetryPolicy;
use crate::{HandlerName, Priority, Tenant};

/// Whether a handler's tasks for one object run one at a time, in journal order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneOrdering {
    /// The handler has a lane for each object key.
    #[default]
    Key,
    /// The handler has no lanes: tasks of one object run in any order, and at the same time.
    None,
}

/// The policy for a lane whose head fails for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneFailurePolicy {
    /// The task ends in `error` and the lane continues.
    #[default]
    Park,
    /// The lane waits until a person retries or cancels the task.
    Halt,
}

/// Selects the attempts of a handler that are published as engine events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptEventPolicy {
    /// Every attempt is published.
    All,
    /// Failed attempts are published.
    #[default]
    Failures,
    /// No attempt is published.
    None,
}

/// The definition of a registered handler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandlerDef {
    /// The handler's name.
    pub name: HandlerName,
    /// Whether events of one object are handled in order.
    #[serde(rename = "order")]
    pub ordering: LaneOrdering,
    /// What happens to a lane whose head fails for good.
    pub on_error: LaneFailurePolicy,
    /// How often and when a failed task is retried.
    pub retry: RetryPolicy,
    /// A task ends in `error` after this many nodes died running it.
    #[serde(rename = "crashes")]
    pub max_crashes: u32,
    /// The attempts that are published as engine events.
    #[serde(rename = "observe", default)]
    pub attempt_event_policy: AttemptEventPolicy,
    /// The limits of concurrency and rate, the weight and the ageing of the handler's tasks.
    #[serde(default)]
    pub limits: Limits,
    /// External workers claim the handler's tasks over HTTP; no node runs them.
    #[serde(default)]
    pub pull: bool,
    /// The collections of a source; None for a handler of events. A source gets no events.
    #[serde(default)]
    pub source: Option<SourceDef>,
}

/// The collections of a source. Each is synchronised by one task at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceDef {
    /// The tenant of the source's tasks.
    pub tenant: Tenant,
    /// The collections, each with the priority of its tasks.
    pub collections: BTreeMap<CollectionName, Priority>,
}

impl HandlerDef {
    /// A handler with the default policies.
    pub fn new(name: HandlerName) -> Self {
        Self {
            name,
            ordering: LaneOrdering::default(),
            on_error: LaneFailurePolicy::default(),
            retry: RetryPolicy::default(),
            max_crashes: 3,
            attempt_event_policy: AttemptEventPolicy::default(),
            limits: Limits::default(),
            pull: false,
            source: None,
        }
    }
}
