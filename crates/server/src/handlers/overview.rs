//! What is known of handlers, put together from all who know a part of it.

use std::collections::BTreeMap;

use pointsman_api::{Counts, HandlerBody, HandlerDetail, QueueBody, RouteBody, RuleBody};
use pointsman_core::store::{QueueView, Registration};
use pointsman_core::{HandlerName, Rule};

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;

/// The handler, if there is one as far as the caller may see.
pub(super) async fn find(app: &App, caller: &Caller, name: &HandlerName) -> Result<HandlerDetail, Problem> {
    let Overview { event_id, mut handlers } = overview(app, caller).await?;
    let handler = handlers.remove(name);
    let handler = handler.ok_or_else(|| Problem::not_found(format!("there is no handler {name}")))?;
    Ok(HandlerDetail { event_id, handler })
}

pub(super) struct Overview {
    pub(super) event_id: u64,
    pub(super) handlers: BTreeMap<HandlerName, HandlerBody>,
}

/// All handlers that are defined, or have tasks or rules left, as far as the caller may see.
pub(super) async fn overview(app: &App, caller: &Caller) -> Result<Overview, Problem> {
    let store = app.store();
    // The stamp is read first: what comes after it may be in the answer already, and never the other way.
    let event_id = store.extent().await?.head.get();
    let registration = store.registration().await?;
    let mut handlers = defined(app, &registration);
    for queue in store.queues().await?.iter().filter(|queue| caller.sees(&queue.tenant)) {
        add_queue(&mut handlers, queue);
    }
    let visible = |rule: &&Rule| rule.tenant.as_ref().is_none_or(|tenant| caller.sees(tenant));
    for rule in store.rules().await?.iter().filter(visible) {
        entry(&mut handlers, &rule.handler).rules.push(RuleBody::from(rule));
    }
    Ok(Overview { event_id, handlers })
}

fn defined(app: &App, registration: &Registration) -> BTreeMap<HandlerName, HandlerBody> {
    let mut handlers = BTreeMap::new();
    for def in &registration.handlers {
        let body = entry(&mut handlers, &def.name);
        body.defined = true;
        body.order = Some(def.order);
        body.on_error = Some(def.on_error);
        body.retry_max = Some(def.retry.max);
    }
    for (kind, list) in registration.routes.iter() {
        for binding in list {
            let route = RouteBody { kind: kind.to_string(), sync: binding.sync };
            entry(&mut handlers, &binding.handler).routes.push(route);
        }
    }
    for spec in &app.engine.setup().handlers {
        let body = entry(&mut handlers, &spec.def.name);
        body.run = Some(spec.runner.kind().into());
        body.timeout_seconds = Some(spec.timeout.as_secs_f64());
    }
    handlers
}

fn add_queue(handlers: &mut BTreeMap<HandlerName, HandlerBody>, queue: &QueueView) {
    let body = entry(handlers, &queue.handler);
    let counts = Counts::from(queue);
    body.counts.add(&counts);
    body.queues.push(QueueBody { tenant: queue.tenant.to_string(), held: queue.held, counts });
}

fn entry<'a>(
    handlers: &'a mut BTreeMap<HandlerName, HandlerBody>,
    name: &HandlerName,
) -> &'a mut HandlerBody {
    handlers.entry(name.clone()).or_insert_with(|| HandlerBody {
        name: name.to_string(),
        defined: false,
        run: None,
        timeout_seconds: None,
        order: None,
        on_error: None,
        retry_max: None,
        routes: vec![],
        counts: Counts::default(),
        queues: vec![],
        rules: vec![],
    })
}
