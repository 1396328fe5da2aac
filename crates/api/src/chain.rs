//! JSON bodies about chains.

use pointsman_core::chain::{ChainNode, ChainNodeAction, ChainNodeRole};
use pointsman_core::task::retry::{Backoff, RetryPolicy};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::RuleBody;

/// All chains, by path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChainList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The chains, by path.
    pub chains: Vec<ChainBody>,
}

/// One chain, and the newest event id when it was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChainDetail {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The chain.
    #[serde(flatten)]
    pub chain: ChainBody,
}

/// A chain: its nodes, its state, how many orders are at each node, and its rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChainBody {
    /// The chain's path.
    pub path: String,
    /// False if it is no longer configured and only its rules are left.
    pub defined: bool,
    /// `running` or `stopped`.
    pub state: String,
    /// The nodes, in the order of the configuration. An order starts at the first node unless it names another.
    pub nodes: Vec<ChainNodeBody>,
    /// Orders at nodes that the chain no longer has.
    #[serde(rename = "stranded")]
    pub order_counts_at_removed_nodes: Vec<RemovedNodeOrderCountBody>,
    /// The number of orders; null for a token that is bound to a tenant, because it counts all tenants'.
    #[serde(rename = "orders")]
    pub order_count: Option<u64>,
    /// The rules that pause or block the chain.
    pub rules: Vec<RuleBody>,
}

/// A node of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChainNodeBody {
    /// The node's id within the chain.
    pub id: String,
    /// Whether the node is an end: an order that reaches it is finished.
    #[serde(rename = "end")]
    pub is_end: bool,
    /// The handler that runs the step; null for an end node, as are `next`, `on_error` and `setback`.
    pub handler: Option<String>,
    /// The node to which an order moves when the step has succeeded; null for an end.
    pub next: Option<String>,
    /// The node an order moves to when its step has failed for good; null if the order is suspended instead.
    pub on_error: Option<String>,
    /// How often and when a failed step is retried; null if its handler's `retry` decides.
    pub setback: Option<SetbackPolicyBody>,
    /// The treatment of an order that reaches the node: `process`, `stop` or `next_state`.
    #[schema(value_type = String)]
    pub action: ChainNodeAction,
    /// The number of orders at this node; null for a token that is bound to a tenant.
    #[serde(rename = "orders")]
    pub order_count: Option<u64>,
}

impl ChainNodeBody {
    /// A node with its action, and the number of its orders if it is known.
    pub fn new(node: &ChainNode, action: ChainNodeAction, order_count: Option<u64>) -> Self {
        let step = match &node.role {
            ChainNodeRole::Step(step) => Some(step),
            ChainNodeRole::End => None,
        };
        Self {
            id: node.id.to_string(),
            is_end: step.is_none(),
            handler: step.map(|step| step.handler.to_string()),
            next: step.map(|step| step.next.to_string()),
            on_error: step.and_then(|step| step.on_error.as_ref()).map(ToString::to_string),
            setback: step.and_then(|step| step.retry.as_ref()).map(SetbackPolicyBody::from),
            action,
            order_count,
        }
    }
}

/// How often and when a failed step is retried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SetbackPolicyBody {
    /// The maximal number of retries.
    #[serde(rename = "max")]
    pub max_retries: u32,
    /// `fixed`, `linear`, `exponential` or `list`.
    pub backoff: String,
    /// The delay before the first retry.
    pub delay_seconds: f64,
    /// The longest delay.
    pub max_delay_seconds: f64,
    /// The delays one by one, if `backoff` is `list`; the last one repeats.
    pub delays_seconds: Vec<f64>,
}

impl From<&RetryPolicy> for SetbackPolicyBody {
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
            max_retries: policy.max_retries,
            backoff: backoff.into(),
            delay_seconds: delays.first().unwrap_or(&policy.delay).as_secs_f64(),
            max_delay_seconds: longest.as_secs_f64(),
            delays_seconds: delays.iter().map(|delay| delay.as_secs_f64()).collect(),
        }
    }
}

/// The number of orders at a node that the chain no longer has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = StrandedOrdersBody)]
pub struct RemovedNodeOrderCountBody {
    /// The id of the node that the chain no longer has.
    pub node: String,
    /// The number of orders that wait at that node.
    #[serde(rename = "orders")]
    pub order_count: u64,
}

/// Stops a chain, or starts it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetChainStateBody {
    /// `running` or `stopped`.
    pub state: String,
}

/// Sets what happens to orders at a node of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetChainNodeActionBody {
    /// `process`; `stop`: orders wait here; `next_state`: orders move on without running the step.
    #[schema(value_type = String)]
    pub action: ChainNodeAction,
}
