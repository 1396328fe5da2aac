//! The OpenAPI document, generated from the calls.

use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, OpenApi as Document, Ref, RefOr, ResponseBuilder};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;

use crate::app_state::App;
use crate::{
    chains, config_status, event_stream, events, handlers, health, jobscheduler, me, nodes_and_audit, orders,
    pull_workers, redrives, schedules, source_tasks, tasks,
};

#[derive(OpenApi)]
#[openapi(
    info(title = "Pointsman", description = "A durable event bus and job scheduler."),
    tags(
        (name = "events", description = "Emitting events and reading the journal"),
        (name = "tasks", description = "Tasks, their logs, retrying and cancelling them"),
        (name = "sources", description = "Tasks of sources"),
        (name = "handlers", description = "Handlers, their queues and rules"),
        (name = "schedules", description = "Schedules, their ledgers and rules"),
        (name = "orders", description = "Orders and their events"),
        (name = "chains", description = "Chains, their nodes and rules"),
        (name = "worker", description = "Claiming tasks and reporting their outcome"),
        (name = "administration", description = "Nodes, configuration, audit log, and the caller's token"),
        (name = "health", description = "Health and metrics"),
    ),
    components(schemas(pointsman_api::ProblemDetails, pointsman_api::RuleRequestBody, pointsman_api::TaskChangeBody)),
    security(("token" = []), ("admin_token" = [])),
    modifiers(&TokenSecuritySchemes),
)]
struct OpenApiBase;

struct TokenSecuritySchemes;

impl Modify for TokenSecuritySchemes {
    fn modify(&self, document: &mut Document) {
        let components = document.components.get_or_insert_default();
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let header = ApiKeyValue::new("X-Admin-Token");
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
        components.add_security_scheme("admin_token", SecurityScheme::ApiKey(ApiKey::Header(header)));
    }
}

/// All calls of the API and their OpenAPI document.
pub(crate) fn build_api_router_and_document() -> (axum::Router<App>, Document) {
    let (router, mut document) = OpenApiRouter::with_openapi(OpenApiBase::openapi())
        .merge(events::http_routes())
        .merge(event_stream::http_routes())
        .merge(tasks::http_routes())
        .merge(redrives::http_routes())
        .merge(source_tasks::http_routes())
        .merge(handlers::http_routes())
        .merge(schedules::http_routes())
        .merge(orders::http_routes())
        .merge(chains::http_routes())
        .merge(jobscheduler::http_routes())
        .merge(pull_workers::http_routes())
        .merge(nodes_and_audit::http_routes())
        .merge(me::http_routes())
        .merge(config_status::http_routes())
        .merge(health::http_routes())
        .split_for_parts();
    normalize_tail_parameters(&mut document);
    add_problem_responses(&mut document);
    (router, document)
}

/// Writes a parameter that takes the rest of the path (`{*path}`) like any other (`{path}`).
fn normalize_tail_parameters(document: &mut Document) {
    let paths = std::mem::take(&mut document.paths.paths);
    document.paths.paths = paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
}

/// Description of the problem response that every call has.
const PROBLEM_DESCRIPTION: &str = "The request was refused or failed. A 429 (too many requests with unknown tokens) and a \
     503 (a limit is reached, or the server or its store is not available) have `Retry-After`. If the store is not available, \
     it is not known whether a change is durable; with an idempotency key the request can be repeated safely.";

/// Adds the problem response to every call.
fn add_problem_responses(document: &mut Document) {
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            let problem = RefOr::Ref(Ref::from_schema_name("ProblemDetails"));
            let response = ResponseBuilder::new()
                .description(PROBLEM_DESCRIPTION)
                .content(pointsman_api::problem::PROBLEM_MEDIA_TYPE, Content::new(Some(problem)))
                .build();
            operation.responses.responses.insert("default".into(), response.into());
        }
    }
}

/// The OpenAPI 3.1 document as JSON.
pub fn document_json() -> String {
    let mut text = build_api_router_and_document().1.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}
