//! `/api/v1/handlers`: what handlers there are, what waits for them, and holding them.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use http::{HeaderMap, Uri};
use pointsman_api::{
    Adopted, Counts, HandlerBody, HandlerDetail, HandlerList, HoldBody, QueueBody, RouteBody, RuleBody,
};
use pointsman_core::store::{QueueView, Registration};
use pointsman_core::{HandlerName, Rule, RuleKind};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::action;
use crate::app::{App, now};
use crate::auth::{Admin, Caller, Operator, Viewer};
use crate::body::Received;
use crate::problem::Problem;
use crate::query::Query;
use crate::segment::Segment;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(one))
        .routes(routes!(pause, unpause))
        .routes(routes!(block, unblock))
        .routes(routes!(adopt))
}

/// All handlers.
#[utoipa::path(
    get,
    path = "/api/v1/handlers",
    tag = "handlers",
    responses((status = 200, description = "The handlers", body = HandlerList)),
)]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<HandlerList>, Problem> {
    Query::of(&uri, &[])?;
    let Overview { event_id, handlers } = overview(&app, &caller).await?;
    Ok(Json(HandlerList { event_id, handlers: handlers.into_values().collect() }))
}

/// One handler: how it runs, what routes to it, what waits for it and what holds it.
#[utoipa::path(
    get,
    path = "/api/v1/handlers/{name}",
    tag = "handlers",
    params(("name" = String, Path, description = "a handler's name")),
    responses((status = 200, description = "The handler", body = HandlerDetail)),
)]
pub(crate) async fn one(
    Viewer(caller): Viewer,
    State(app): State<App>,
    Segment(name): Segment<HandlerName>,
    uri: Uri,
) -> Result<Json<HandlerDetail>, Problem> {
    Query::of(&uri, &[])?;
    find(&app, &caller, &name).await.map(Json)
}

/// The four calls that set and lift rules differ in their verb, their kind and the role they need.
macro_rules! rule_call {
    ($(#[doc = $doc:literal] $call:ident: $method:ident $path:literal as $role:ident, $kind:ident, $does:ident;)+) => {$(
        #[doc = $doc]
        #[utoipa::path(
            $method,
            path = $path,
            tag = "handlers",
            params(("name" = String, Path, description = "a handler's name")),
            request_body(content = Option<HoldBody>),
            responses((status = 200, description = "The handler as it stands now", body = HandlerDetail)),
        )]
        pub(crate) async fn $call(
            $role(caller): $role,
            State(app): State<App>,
            Segment(name): Segment<HandlerName>,
            uri: Uri,
            headers: HeaderMap,
            body: Received,
        ) -> Result<Json<HandlerDetail>, Problem> {
            Query::of(&uri, &[])?;
            let hold = action::hold(&headers, &body.bytes)?;
            $does(&app, &caller, RuleKind::$kind, name, hold).await
        }
    )+};
}

rule_call! {
    #[doc = "Pauses a handler: when this answers, no new attempt starts."]
    pause: put "/api/v1/handlers/{name}/pause" as Operator, Pause, set;
    #[doc = "Lifts a pause."]
    unpause: delete "/api/v1/handlers/{name}/pause" as Operator, Pause, lift;
    #[doc = "Blocks a handler: as a pause, but only an admin lifts it."]
    block: put "/api/v1/handlers/{name}/block" as Admin, Block, set;
    #[doc = "Lifts a block."]
    unblock: delete "/api/v1/handlers/{name}/block" as Admin, Block, lift;
}

async fn set(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    handler: HandlerName,
    hold: action::Hold,
) -> Result<Json<HandlerDetail>, Problem> {
    let tenant = caller.tenant(hold.tenant)?;
    find(app, caller, &handler).await?;
    let by = caller.name.clone();
    let rule = Rule { kind, handler: handler.clone(), tenant, by, reason: hold.reason, since: now() };
    app.store().hold(rule).await?;
    app.engine.nudge();
    find(app, caller, &handler).await.map(Json)
}

async fn lift(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    handler: HandlerName,
    hold: action::Hold,
) -> Result<Json<HandlerDetail>, Problem> {
    let tenant = caller.tenant(hold.tenant)?;
    find(app, caller, &handler).await?;
    app.store().release(kind, &handler, tenant.as_ref()).await?;
    app.engine.nudge();
    find(app, caller, &handler).await.map(Json)
}

/// Takes up the tasks of a handler that was gone and is back.
#[utoipa::path(
    post,
    path = "/api/v1/handlers/{name}/adopt",
    tag = "handlers",
    params(("name" = String, Path, description = "a handler's name")),
    responses((status = 200, description = "How many", body = Adopted)),
)]
pub(crate) async fn adopt(
    Operator(caller): Operator,
    State(app): State<App>,
    Segment(name): Segment<HandlerName>,
    uri: Uri,
    headers: HeaderMap,
    body: Received,
) -> Result<Json<Adopted>, Problem> {
    Query::of(&uri, &[])?;
    action::nothing(&headers, &body.bytes)?;
    if caller.tenant.is_some() {
        return Err(Problem::forbidden(
            "adopting reaches every tenant; this needs a token that is bound to none",
        ));
    }
    if !find(&app, &caller, &name).await?.handler.defined {
        return Err(Problem::conflict(format!(
            "the handler {name} is not defined, so nobody could run its tasks"
        )));
    }
    let adopted = app.store().adopt(&name, now()).await?;
    app.engine.nudge();
    Ok(Json(Adopted { adopted }))
}

/// The handler, if there is one as far as the caller may see.
async fn find(app: &App, caller: &Caller, name: &HandlerName) -> Result<HandlerDetail, Problem> {
    let Overview { event_id, mut handlers } = overview(app, caller).await?;
    let handler = handlers.remove(name);
    let handler = handler.ok_or_else(|| Problem::not_found(format!("there is no handler {name}")))?;
    Ok(HandlerDetail { event_id, handler })
}

struct Overview {
    event_id: u64,
    handlers: BTreeMap<HandlerName, HandlerBody>,
}

/// All handlers that are defined, or have tasks or rules left, as far as the caller may see.
async fn overview(app: &App, caller: &Caller) -> Result<Overview, Problem> {
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
        body.observe = Some(def.observe);
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
        observe: None,
        retry_max: None,
        routes: vec![],
        counts: Counts::default(),
        queues: vec![],
        rules: vec![],
    })
}
