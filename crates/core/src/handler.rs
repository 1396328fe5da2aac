//! What the store knows of a handler: how its tasks are ordered, retried and shown. How it is *run* is the
//! engine's business.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limit::Limits;
use crate::names::CollectionName;
use crate::task::retry::RetryPolicy;
use crate::{HandlerName, Priority, Tenant};

/// Whether tasks of one object run one at a time, in journal order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    #[default]
    Key,
    None,
}

/// What becomes of a lane whose head fails for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneFailure {
    /// The task ends in `error` and the lane goes on.
    #[default]
    Park,
    /// The lane waits until a person retries or drops the task.
    Halt,
}

/// Which of a handler's attempts the journal tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Observe {
    All,
    #[default]
    Failures,
    None,
}

/// A registered handler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandlerDef {
    pub name: HandlerName,
    pub order: Order,
    pub on_error: LaneFailure,
    pub retry: RetryPolicy,
    /// How many nodes may die running one task before it ends in `error`.
    pub crashes: u32,
    #[serde(default)]
    pub observe: Observe,
    #[serde(default)]
    pub limits: Limits,
    /// Its tasks are fetched by workers elsewhere; no node runs them.
    #[serde(default)]
    pub pull: bool,
    /// What it synchronises, if it is a source. A source gets no events.
    #[serde(default)]
    pub source: Option<SourceDef>,
}

/// The collections of a source. Each is synchronised by one task at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceDef {
    pub tenant: Tenant,
    pub collections: BTreeMap<CollectionName, Priority>,
}

impl HandlerDef {
    pub fn new(name: HandlerName) -> Self {
        Self {
            name,
            order: Order::default(),
            on_error: LaneFailure::default(),
            retry: RetryPolicy::default(),
            crashes: 3,
            observe: Observe::default(),
            limits: Limits::default(),
            pull: false,
            source: None,
        }
    }
}
