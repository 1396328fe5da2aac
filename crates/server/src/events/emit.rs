//! `POST /api/v1/events`: parses and emits events.

use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode, Uri};
use pointsman_api::{EmitResponse, EmittedEventBody};
use pointsman_core::event_json_parser::{JsonError, MAX_VALUE_BYTES, RawEmitBody, parse_string};
use pointsman_core::names::check_emittable_type;
use pointsman_core::store::{EmitBatch, EmitReceipt, IdempotencyKey};
use pointsman_core::{EventType, NewEvent, Tenant, Timestamp};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::cloudevents;
use crate::app_state::App;
use crate::auth::{Caller, Producer};
use crate::idempotency;
use crate::media_type;
use crate::problem::Problem;
use crate::request_body::ReceivedBody;
use crate::request_query::RequestQuery;

/// Maximum number of events in a request.
const MAX_EVENTS_PER_REQUEST: usize = 10_000;

/// Emits one event, an array of 1 to 10,000 of them (all or nothing), or CloudEvents 1.0.
#[utoipa::path(
    post,
    path = "/api/v1/events",
    operation_id = "emit_events",
    tag = "events",
    params(("Idempotency-Key" = Option<String>, Header,
        description = "1 to 255 printable ASCII characters; a repeat with the same content gets the same response")),
    request_body(content(
        (serde_json::Value = "application/json", example = json!({"type": "record.published", "key": "record:1",
            "value": {"title": "Hello"}})),
        (serde_json::Value = "application/cloudevents+json"),
        (serde_json::Value = "application/cloudevents-batch+json"),
    )),
    responses(
        (status = 201, description = "The events and their tasks are durable", body = EmitResponse),
        (status = 200, description = "A repeat of an earlier request with the same idempotency key and content; its response",
            body = EmitResponse),
        (status = 409, description = "The idempotency key was used with other content",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
        (status = 422, description = "A reserved type",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
        (status = 503, description = "Overloaded, or out of service because the node's clock is off; see `Retry-After`",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn emit_events(
    Producer(caller): Producer,
    State(app): State<App>,
    headers: HeaderMap,
    uri: Uri,
    body: ReceivedBody,
) -> Result<(StatusCode, Json<EmitResponse>), Problem> {
    RequestQuery::from_uri(&uri, &[])?;
    let tenant = caller.bound_tenant.clone().unwrap_or_default();
    let events = parse_events(&headers, &body.bytes, &tenant, app.now())?;
    check_event_tenants(&caller, &events)?;
    // Idempotency keys belong to a tenant: that of the first event, which a repeat names as well.
    let tenant = events.first().map_or(tenant, |first| first.tenant.clone());
    let digest = || compute_request_digest(&headers, &body.bytes);
    let idempotency = idempotency::read_idempotency_key_header(&headers)?.map(|key| IdempotencyKey {
        tenant,
        key,
        request_digest: digest(),
    });
    let receipt = app.engine.emit(EmitBatch { events, idempotency_key: idempotency }).await?;
    let status = if receipt.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(emit_response_body(&receipt))))
}

fn emit_response_body(receipt: &EmitReceipt) -> EmitResponse {
    let event = |event: &pointsman_core::store::EmittedEventReceipt| EmittedEventBody {
        event_id: event.id.get(),
        prev: event.prev.map(|prev| prev.get()),
        tasks: event.tasks.iter().map(ToString::to_string).collect(),
    };
    let events: Vec<_> = receipt.events.iter().map(event).collect();
    EmitResponse { last_event_id: events.last().map_or(0, |last| last.event_id), events }
}

/// Parses the events of a body: JSON or CloudEvents in any mode.
fn parse_events(
    headers: &HeaderMap,
    bytes: &[u8],
    tenant: &Tenant,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Problem> {
    let media_type = media_type::read_media_type(headers)?;
    match media_type.as_str() {
        "application/cloudevents+json" => {
            let event =
                cloudevents::parse_structured_event(parse_raw_json(media_type::decode_body_utf8(bytes)?)?)?;
            Ok(vec![build_event(event, tenant, now).map_err(|problem| {
                problem.into_body_problem("", cloudevents::EVENT_TO_CLOUDEVENT_POINTERS)
            })?])
        }
        "application/cloudevents-batch+json" => {
            parse_event_array(media_type::decode_body_utf8(bytes)?, |raw, pointer| {
                let event = cloudevents::parse_structured_event(raw)
                    .map_err(|fault| fault.with_pointer_prefix(pointer))?;
                build_event(event, tenant, now).map_err(|refusal| {
                    refusal.into_body_problem(pointer, cloudevents::EVENT_TO_CLOUDEVENT_POINTERS)
                })
            })
        }
        other if other.starts_with("application/cloudevents") => {
            Err(media_type::unsupported_media_type_problem(other))
        }
        _ if cloudevents::is_binary_mode(headers) => {
            let event = cloudevents::parse_binary_event(headers, &media_type, bytes)?;
            Ok(vec![build_event(event, tenant, now).map_err(EventRefusal::into_header_problem)?])
        }
        "" | "application/json" => parse_native_events(media_type::decode_body_utf8(bytes)?, tenant, now),
        other => Err(media_type::unsupported_media_type_problem(other)),
    }
}

/// Parses one event or an array of them in Pointsman's own JSON.
fn parse_native_events(text: &str, tenant: &Tenant, now: Timestamp) -> Result<Vec<NewEvent>, Problem> {
    let parse_event = |raw: &RawValue, pointer: &str| parse_event_at_pointer(raw, pointer, tenant, now);
    if text.trim_start().starts_with('[') {
        parse_event_array(text, parse_event)
    } else {
        Ok(vec![parse_event(parse_raw_json(text)?, "")?])
    }
}

/// Parses the event at a JSON pointer of a body, in Pointsman's own JSON.
pub(crate) fn parse_event_at_pointer(
    raw: &RawValue,
    pointer: &str,
    tenant: &Tenant,
    now: Timestamp,
) -> Result<NewEvent, Problem> {
    let body = RawEmitBody::parse(raw.get()).map_err(|fault| fault.with_pointer_prefix(pointer))?;
    build_event(body, tenant, now).map_err(|refusal| refusal.into_body_problem(pointer, &[]))
}

/// Parses an array; `parse_element` gets each element with its JSON pointer.
fn parse_event_array(
    text: &str,
    parse_element: impl Fn(&RawValue, &str) -> Result<NewEvent, Problem>,
) -> Result<Vec<NewEvent>, Problem> {
    let list: Vec<&RawValue> = serde_json::from_str(text).map_err(media_type::malformed_json_problem)?;
    if list.is_empty() || list.len() > MAX_EVENTS_PER_REQUEST {
        let detail =
            format!("an array has 1 to {MAX_EVENTS_PER_REQUEST} events, this one has {}", list.len());
        return Err(Problem::malformed(detail).with_pointer(""));
    }
    list.into_iter().enumerate().map(|(index, raw)| parse_element(raw, &format!("/{index}"))).collect()
}

fn parse_raw_json(text: &str) -> Result<&RawValue, Problem> {
    serde_json::from_str(text).map_err(media_type::malformed_json_problem)
}

/// Why an event was refused: the fault, and the constructor of its kind of problem.
struct EventRefusal {
    fault: JsonError,
    problem_constructor: fn(String) -> Problem,
}

impl EventRefusal {
    /// Converts to a problem in a body that has the event at `prefix`, with its pointer translated.
    fn into_body_problem(self, prefix: &str, translations: &[(&str, &str)]) -> Problem {
        let JsonError { pointer, detail } = self.fault;
        let pointer = translations
            .iter()
            .find_map(|(ours, theirs)| {
                let rest = pointer.strip_prefix(ours)?;
                Some(format!("{theirs}{rest}"))
            })
            .unwrap_or(pointer);
        (self.problem_constructor)(detail).with_pointer(format!("{prefix}{pointer}"))
    }

    /// Converts to a problem in the headers of a CloudEvent in binary mode.
    fn into_header_problem(self) -> Problem {
        let JsonError { pointer, detail } = self.fault;
        let problem = (self.problem_constructor)(detail);
        match cloudevents::header_for_pointer(&pointer) {
            Some(header) => problem.with_parameter(header),
            None => problem,
        }
    }
}

/// Builds the event of a body. A value that is too large and a reserved type have their own statuses.
fn build_event(body: RawEmitBody, tenant: &Tenant, now: Timestamp) -> Result<NewEvent, EventRefusal> {
    if body.value.as_ref().is_some_and(|value| value.get().len() > MAX_VALUE_BYTES) {
        let fault = JsonError::new("/value", format!("a value has at most {MAX_VALUE_BYTES} bytes"));
        return Err(EventRefusal { fault, problem_constructor: Problem::too_large });
    }
    let event_type = body.event_type.as_deref().and_then(|raw| parse_string("/type", raw).ok());
    let event_type = event_type.and_then(|text| EventType::new(text).ok());
    if let Some(Err(reserved)) = event_type.as_ref().map(check_emittable_type) {
        return Err(EventRefusal {
            fault: JsonError::new("/type", reserved),
            problem_constructor: Problem::unprocessable,
        });
    }
    body.into_new_event(now, tenant)
        .map_err(|fault| EventRefusal { fault, problem_constructor: Problem::malformed })
}

fn check_event_tenants(caller: &Caller, events: &[NewEvent]) -> Result<(), Problem> {
    match events.iter().find(|event| !caller.can_see_tenant(&event.tenant)) {
        Some(event) => Err(caller.tenant_forbidden_problem(&event.tenant)),
        None => Ok(()),
    }
}

fn compute_request_digest(headers: &HeaderMap, body: &[u8]) -> [u8; 32] {
    let is_digested = |name: &str| name == "content-type" || name.starts_with("ce-");
    let mut lines: Vec<(&str, &[u8])> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .filter(|(name, _)| is_digested(name))
        .collect();
    lines.sort_unstable();
    let mut digest = Sha256::new();
    for (name, value) in lines {
        // A length precedes each part, so that two different requests never give the same bytes.
        digest.update((name.len() as u64).to_be_bytes());
        digest.update(name);
        digest.update((value.len() as u64).to_be_bytes());
        digest.update(value);
    }
    digest.update(body);
    digest.finalize().into()
}
