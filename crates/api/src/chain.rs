//! Chains on the wire.

use pointsman_core::chain::{Action, Node, Role};
use pointsman_core::task::retry::{Backoff, RetryPolicy};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::RuleBody;

/// All chains there are, by path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChainList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    pub chains: Vec<ChainBody>,
}

/// One chain, stamped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChainDetail {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    #[serde(flatten)]
    pub chain: ChainBody,
}

/// A chain: its nodes, how it is set, how many orders are where, and what holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChainBody {
    pub path: String,
    /// False when only its rules are left.
    pub defined: bool,
    /// `running` or `stopped`.
    pub state: String,
    /// In the order of the configuration: orders begin at the first one if they name no other.
    pub nodes: Vec<ChainNodeBody>,
    /// Orders that stand at nodes which the chain no longer has.
    pub stranded: Vec<StrandedBody>,
    /// How many orders there are; null for a token that is bound to a tenant, as they are everybody's.
    pub orders: Option<u64>,
    pub rules: Vec<RuleBody>,
}

/// A node of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChainNodeBody {
    pub id: String,
    /// An order that comes here has arrived.
    pub end: bool,
    /// Null for an end, as are the next three.
    pub handler: Option<String>,
    pub next: Option<String>,
    /// Where an order goes whose step has failed for good; null if it is suspended where it stands.
    pub on_error: Option<String>,
    /// How often and when a failed step is tried again; null if its handler's `retry` says so.
    pub setback: Option<SetbackBody>,
    /// `process`, `stop` or `next_state`.
    #[schema(value_type = String)]
    pub action: Action,
    /// How many orders stand here; null for a token that is bound to a tenant.
    pub orders: Option<u64>,
}

impl ChainNodeBody {
    pub fn new(node: &Node, action: Action, orders: Option<u64>) -> Self {
        let step = match &node.role {
            Role::Step(step) => Some(step),
            Role::End => None,
        };
        Self {
            id: node.id.to_string(),
            end: step.is_none(),
            handler: step.map(|step| step.handler.to_string()),
            next: step.map(|step| step.next.to_string()),
            on_error: step.and_then(|step| step.on_error.as_ref()).map(ToString::to_string),
            setback: step.and_then(|step| step.setback.as_ref()).map(SetbackBody::from),
            action,
            orders,
        }
    }
}

/// When a failed step is tried again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SetbackBody {
    /// How many times.
    pub max: u32,
    /// `fixed`, `linear`, `exponential` or `list`.
    pub backoff: String,
    /// The first wait.
    pub delay_seconds: f64,
    /// The longest one.
    pub max_delay_seconds: f64,
    /// The waits one by one, where they are a `list`; the last one repeats.
    pub delays_seconds: Vec<f64>,
}

impl From<&RetryPolicy> for SetbackBody {
    fn from(policy: &RetryPolicy) -> Self {
        let (backoff, delays) = match &policy.backoff {
            Backoff::Fixed => ("fixed", &[][..]),
            Backoff::Linear => ("linear", &[][..]),
            Backoff::Exponential => ("exponential", &[][..]),
            Backoff::List(delays) => ("list", delays.as_slice()),
        };
        let longest = match policy.backoff {
            Backoff::Fixed => policy.delay,
            Backoff::Linear | Backoff::Exponential => policy.max_delay,
            Backoff::List(_) => delays.iter().max().copied().unwrap_or(policy.delay),
        };
        Self {
            max: policy.max,
            backoff: backoff.into(),
            delay_seconds: delays.first().unwrap_or(&policy.delay).as_secs_f64(),
            max_delay_seconds: longest.as_secs_f64(),
            delays_seconds: delays.iter().map(|delay| delay.as_secs_f64()).collect(),
        }
    }
}

/// Orders at a node that is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StrandedBody {
    pub node: String,
    pub orders: u64,
}

/// Stops a chain, or starts it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChainStateBody {
    /// `running` or `stopped`.
    pub state: String,
}

/// Says what a node does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeActionBody {
    /// `process`; `stop`: orders wait here; `next_state`: orders go on without a step.
    #[schema(value_type = String)]
    pub action: Action,
}
