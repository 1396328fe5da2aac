//! The bodies of handlers, assembled from the registration, this node's setup, the queues and the rules.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use pointsman_api::{
    HandlerBody, HandlerDetail, HandlerList, LimitsBody, QueueBody, RouteBody, SourceBody, TaskCounts,
};
use pointsman_core::store::{QueueView, Registration};
use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::task::QueueSubject;
use pointsman_core::{HandlerName, Rule, RuleScope, SourceCollection, Timestamp};

use crate::app_state::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::rules::rule_body_visible_to;

/// Maximum number of queues of each handler in the response that lists handlers.
const MAX_QUEUES_IN_LIST: usize = 100;
/// Maximum number of queues in the response with a single handler.
const MAX_QUEUES_IN_DETAIL: usize = 1000;

/// Lists all handlers, each with its busiest queues.
pub(super) async fn list_handlers(app: &App, caller: &Caller) -> Result<HandlerList, Problem> {
    let HandlersOverview { newest_event_id: event_id, handlers } = read_handlers(app, caller, None).await?;
    let handlers =
        handlers.into_values().map(|handler| keep_busiest_queues(handler, MAX_QUEUES_IN_LIST)).collect();
    Ok(HandlerList { newest_event_id: event_id, handlers })
}

/// Reduces a single handler to its busiest queues.
pub(super) fn keep_busiest_queues_in_detail(found: HandlerDetail) -> HandlerDetail {
    HandlerDetail { handler: keep_busiest_queues(found.handler, MAX_QUEUES_IN_DETAIL), ..found }
}

/// Keeps only the queues with the most tasks, in their order.
fn keep_busiest_queues(mut handler: HandlerBody, max_queues: usize) -> HandlerBody {
    let more = handler.queues.len().saturating_sub(max_queues);
    if more > 0 {
        handler.queues.sort_by_key(|queue| Reverse(queue.counts.total()));
        handler.queues.truncate(max_queues);
        handler.queues.sort_by(|a, b| queue_sort_key(a).cmp(&queue_sort_key(b)));
    }
    HandlerBody { omitted_queue_count: more as u64, ..handler }
}

/// Sort key of a handler's queues.
fn queue_sort_key(queue: &QueueBody) -> (&str, Option<&str>, Option<&str>, Option<&str>) {
    let QueueBody { tenant, collection, chain, chain_node, .. } = queue;
    (tenant, collection.as_deref(), chain.as_deref(), chain_node.as_deref())
}

/// Finds a handler with all its queues, if the caller may see it.
pub(super) async fn find_handler(
    app: &App,
    caller: &Caller,
    name: &HandlerName,
) -> Result<HandlerDetail, Problem> {
    let HandlersOverview { newest_event_id: event_id, mut handlers } =
        read_handlers(app, caller, Some(name)).await?;
    match handlers.remove(name) {
        Some(handler) => Ok(HandlerDetail { newest_event_id: event_id, handler }),
        None => {
            let hint = did_you_mean_suffix(name.as_str(), handlers.keys().map(HandlerName::as_str));
            Err(Problem::not_found(format!("there is no handler {name}{hint}")))
        }
    }
}

/// Finds the handler or source that is the target of a rule, if the caller may see it. A handler that is no
/// longer defined can be paused, blocked and released while it has tasks or rules.
pub(super) async fn find_rule_target(
    app: &App,
    caller: &Caller,
    scope: &RuleScope,
) -> Result<HandlerDetail, Problem> {
    match scope {
        RuleScope::Handler(name) => find_handler(app, caller, name).await,
        RuleScope::Collection(pair) => {
            let found = find_handler(app, caller, &pair.source).await?;
            require_collection(&found.handler, pair)?;
            Ok(found)
        }
        RuleScope::Schedule(name) => Err(Problem::not_found(format!("{name} is a schedule, not a handler"))),
        RuleScope::Chain(path) => Err(Problem::not_found(format!("{path} is a chain, not a handler"))),
    }
}

fn require_collection(handler: &HandlerBody, pair: &SourceCollection) -> Result<(), Problem> {
    let own = handler.source.iter().flat_map(|source| &source.collections);
    let mut existing: BTreeSet<&str> = own.map(|collection| collection.name.as_str()).collect();
    existing.extend(handler.queues.iter().filter_map(|queue| queue.collection.as_deref()));
    let ruled = handler.rules.iter().filter(|rule| rule.target_kind == "collection");
    existing.extend(ruled.filter_map(|rule| rule.name.split_once('/')).map(|(_, collection)| collection));
    if existing.contains(pair.collection.as_str()) {
        return Ok(());
    }
    let hint = did_you_mean_suffix(pair.collection.as_str(), existing);
    Err(Problem::not_found(format!("{} has no collection {}{hint}", pair.source, pair.collection)))
}

struct HandlersOverview {
    newest_event_id: u64,
    handlers: BTreeMap<HandlerName, HandlerBody>,
}

/// Reads all handlers that are defined or have tasks or rules left, as far as the caller may see. Queues are read for
/// all of them, or only for `queues_of`.
async fn read_handlers(
    app: &App,
    caller: &Caller,
    queues_of: Option<&HandlerName>,
) -> Result<HandlersOverview, Problem> {
    let store = app.store();
    // The event id is read first, so that the response may include later changes but never misses earlier ones.
    let event_id = store.read_journal_range().await?.newest_event_id.get();
    let registration = store.read_merged_registration().await?;
    let mut handlers = registered_handler_bodies(app, &registration);
    let now = app.now();
    for queue in
        store.list_queues(queues_of).await?.iter().filter(|queue| caller.can_see_tenant(&queue.tenant))
    {
        add_queue_to_handler(&mut handlers, queue, now);
    }
    let visible = |rule: &&Rule| rule.tenant.as_ref().is_none_or(|tenant| caller.can_see_tenant(tenant));
    for rule in store.list_rules().await?.iter().filter(visible) {
        let name = match &rule.scope {
            RuleScope::Handler(name) => name,
            RuleScope::Collection(pair) => &pair.source,
            RuleScope::Schedule(_) | RuleScope::Chain(_) => continue,
        };
        get_or_insert_handler(&mut handlers, name).rules.push(rule_body_visible_to(caller, rule));
    }
    // A source belongs to one tenant and is hidden from others.
    for def in &registration.handlers {
        if def.source.as_ref().is_some_and(|source| !caller.can_see_tenant(&source.tenant)) {
            handlers.remove(&def.name);
        }
    }
    Ok(HandlersOverview { newest_event_id: event_id, handlers })
}

fn registered_handler_bodies(app: &App, registration: &Registration) -> BTreeMap<HandlerName, HandlerBody> {
    let mut handlers = BTreeMap::new();
    for def in &registration.handlers {
        let body = get_or_insert_handler(&mut handlers, &def.name);
        body.defined = true;
        // A collection has one task at a time, so a source has no lane ordering.
        let is_source = def.source.is_some();
        body.ordering = (!is_source).then_some(def.ordering);
        body.on_error = (!is_source).then_some(def.on_error);
        body.retry_max = Some(def.retry.max_retries);
        body.limits = Some(LimitsBody::from(&def.limits));
        body.source = def.source.as_ref().map(SourceBody::from);
        body.run_kind = def.pull.then(|| "pull".into());
    }
    for (event_type, list) in registration.routes.iter() {
        for binding in list {
            let route = RouteBody { event_type: event_type.to_string(), sync: binding.sync };
            get_or_insert_handler(&mut handlers, &binding.handler).routes.push(route);
        }
    }
    for spec in &app.engine.current_setup().handlers {
        if let Some(runner) = &spec.runner {
            let body = get_or_insert_handler(&mut handlers, &spec.def.name);
            body.run_kind = Some(runner.handler_kind().into());
            body.target = runner.target_label();
            body.timeout_seconds = Some(spec.attempt_timeout.as_secs_f64());
        }
    }
    handlers
}

fn add_queue_to_handler(
    handlers: &mut BTreeMap<HandlerName, HandlerBody>,
    queue: &QueueView,
    now: Timestamp,
) {
    let body = get_or_insert_handler(handlers, &queue.handler);
    let counts = TaskCounts::from(queue);
    let oldest = queue.next_ready_task_created_at.map(|since| now.duration_since(since).as_secs_f64());
    body.counts.add(&counts);
    body.max_next_ready_task_age_seconds = match (body.max_next_ready_task_age_seconds, oldest) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    };
    let (chain, chain_node) = match &queue.subject {
        QueueSubject::ChainNode { chain, node } => (Some(chain.to_string()), Some(node.to_string())),
        QueueSubject::Events | QueueSubject::Collection(_) => (None, None),
    };
    body.queues.push(QueueBody {
        tenant: queue.tenant.to_string(),
        collection: queue.subject.collection().map(ToString::to_string),
        chain,
        chain_node,
        next_ready_task_age_seconds: oldest,
        is_paused_or_blocked: queue.is_paused_or_blocked,
        counts,
    });
}

fn get_or_insert_handler<'a>(
    handlers: &'a mut BTreeMap<HandlerName, HandlerBody>,
    name: &HandlerName,
) -> &'a mut HandlerBody {
    handlers.entry(name.clone()).or_insert_with(|| HandlerBody {
        name: name.to_string(),
        defined: false,
        run_kind: None,
        target: None,
        timeout_seconds: None,
        ordering: None,
        on_error: None,
        retry_max: None,
        limits: None,
        source: None,
        routes: vec![],
        counts: TaskCounts::default(),
        max_next_ready_task_age_seconds: None,
        queues: vec![],
        omitted_queue_count: 0,
        rules: vec![],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_busiest_queues_are_kept_in_order() {
        let name = HandlerName::new("index").unwrap();
        let mut handlers = BTreeMap::new();
        let body = get_or_insert_handler(&mut handlers, &name);
        for n in 0..10_u64 {
            let counts = TaskCounts { ready: n % 5, ..TaskCounts::default() };
            let tenant = format!("t{n}");
            body.queues.push(QueueBody {
                tenant,
                collection: None,
                chain: None,
                chain_node: None,
                next_ready_task_age_seconds: None,
                is_paused_or_blocked: false,
                counts,
            });
        }
        let whole = keep_busiest_queues(body.clone(), 10);
        assert_eq!((whole.queues.len(), whole.omitted_queue_count), (10, 0));
        let some = keep_busiest_queues(body.clone(), 4);
        let tenants: Vec<_> = some.queues.iter().map(|queue| queue.tenant.as_str()).collect();
        assert_eq!((tenants, some.omitted_queue_count), (vec!["t3", "t4", "t8", "t9"], 6));
    }
}
