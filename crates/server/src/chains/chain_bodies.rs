//! The bodies of chains: nodes with their orders and actions, and rules.

use std::collections::BTreeMap;

use pointsman_api::{ChainBody, ChainDetail, ChainList, ChainNodeBody, RemovedNodeOrderCountBody};
use pointsman_core::chain::{ChainPath, ChainState};
use pointsman_core::store::ChainView;
use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::{Rule, RuleScope};

use crate::app_state::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::rules::rule_body_visible_to;

pub(super) async fn list_chains(app: &App, caller: &Caller) -> Result<ChainList, Problem> {
    let ChainsOverview { newest_event_id: event_id, chains } = read_chains(app, caller).await?;
    Ok(ChainList { newest_event_id: event_id, chains: chains.into_values().collect() })
}

/// Finds a chain. A chain that is no longer defined is found while it has rules, so that they can be lifted.
pub(super) async fn find_chain(app: &App, caller: &Caller, path: &ChainPath) -> Result<ChainDetail, Problem> {
    let ChainsOverview { newest_event_id: event_id, mut chains } = read_chains(app, caller).await?;
    match chains.remove(path) {
        Some(chain) => Ok(ChainDetail { newest_event_id: event_id, chain }),
        None => {
            let hint = did_you_mean_suffix(path.as_str(), chains.keys().map(ChainPath::as_str));
            Err(Problem::not_found(format!("there is no chain {path}{hint}")))
        }
    }
}

struct ChainsOverview {
    newest_event_id: u64,
    chains: BTreeMap<ChainPath, ChainBody>,
}

async fn read_chains(app: &App, caller: &Caller) -> Result<ChainsOverview, Problem> {
    let (views, journal_range) = app.engine.list_chains().await?;
    let mut chains: BTreeMap<ChainPath, ChainBody> =
        views.iter().map(|view| (view.chain.path.clone(), chain_body(view, caller))).collect();
    let visible = |rule: &&Rule| rule.tenant.as_ref().is_none_or(|tenant| caller.can_see_tenant(tenant));
    for rule in app.store().list_rules().await?.iter().filter(visible) {
        if let RuleScope::Chain(path) = &rule.scope {
            chains
                .entry(path.clone())
                .or_insert_with(|| undefined_chain_body(path))
                .rules
                .push(rule_body_visible_to(caller, rule));
        }
    }
    Ok(ChainsOverview { newest_event_id: journal_range.newest_event_id.get(), chains })
}

fn chain_body(view: &ChainView, caller: &Caller) -> ChainBody {
    // The counts include orders of all tenants, so a caller bound to a tenant does not see them.
    let shows_counts = caller.bound_tenant.is_none();
    let count_orders_at = |id: &str| {
        view.order_counts_by_node.iter().find(|(node, _)| node.as_str() == id).map_or(0, |(_, count)| *count)
    };
    let ChainView { chain, state, order_counts_by_node: orders } = view;
    let nodes = chain.nodes.iter().map(|node| {
        let count = shows_counts.then(|| count_orders_at(node.id.as_str()));
        ChainNodeBody::new(node, state.node_action(&node.id), count)
    });
    let stranded_orders =
        orders.iter().filter(|(node, count)| shows_counts && *count > 0 && chain.find_node(node).is_none());
    ChainBody {
        path: chain.path.to_string(),
        defined: !chain.nodes.is_empty(),
        state: state.as_str().into(),
        nodes: nodes.collect(),
        order_counts_at_removed_nodes: stranded_orders
            .map(|(node, count)| RemovedNodeOrderCountBody { node: node.to_string(), order_count: *count })
            .collect(),
        order_count: shows_counts.then(|| orders.iter().map(|(_, count)| count).sum()),
        rules: vec![],
    }
}

/// The body of a chain that is no longer defined.
fn undefined_chain_body(path: &ChainPath) -> ChainBody {
    ChainBody {
        path: path.to_string(),
        defined: false,
        state: ChainState::default().as_str().into(),
        nodes: vec![],
        order_counts_at_removed_nodes: vec![],
        order_count: None,
        rules: vec![],
    }
}
