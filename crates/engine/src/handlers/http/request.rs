//! The body and the headers of a delivery: a CloudEvent 1.0.2 in binary mode, the headers that Pointsman adds, and the
//! signature.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use pointsman_core::store::ClaimedTask;
use pointsman_core::task::{CollectionRun, StepRun, TaskSubject};
use pointsman_core::{Event, Timestamp};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::super::{collection_run_body, step_body};
use super::handler::HttpTarget;
use super::signature::signature_header;

/// The characters that the CloudEvents HTTP binding percent-encodes in a header, in addition to non-ASCII ones.
const PERCENT_ENCODED_CHARS: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// Builds all headers of one attempt. The headers of the configuration are set first, so that they cannot replace those
/// of the delivery.
pub(super) fn build_headers(
    target: &HttpTarget,
    task: &ClaimedTask,
    body: &str,
    now: Timestamp,
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &target.headers {
        headers.append(name, value.clone());
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let header_pairs = match &task.subject {
        TaskSubject::Event(event) => event_headers(event),
        TaskSubject::CollectionRun(run) => collection_run_headers(task, run),
        TaskSubject::Step(step) => step_headers(task, step),
    };
    for (name, value) in header_pairs.into_iter().chain(attempt_headers(task)) {
        insert_header(&mut headers, name, &value);
    }
    if let Some(traceparent) = task.subject.event().and_then(|event| event.context.get("traceparent")) {
        insert_header(&mut headers, "traceparent", traceparent);
    }
    if !target.webhook_secrets.is_empty() {
        // The task's id is the same for all attempts, so that a receiver can detect a repeat.
        let (id, seconds) = (task.id.as_str(), now.millis() / 1000);
        insert_header(&mut headers, "webhook-id", id);
        insert_header(&mut headers, "webhook-timestamp", &seconds.to_string());
        insert_header(
            &mut headers,
            "webhook-signature",
            &signature_header(&target.webhook_secrets, id, seconds, body.as_bytes()),
        );
    }
    headers
}

/// Builds the body: the event's value, the collection to synchronise, or the order and its value.
pub(super) fn build_body(task: &ClaimedTask) -> String {
    match &task.subject {
        TaskSubject::Event(event) => event.value.as_str().to_owned(),
        TaskSubject::CollectionRun(run) => collection_run_body::encode_collection_run_body(task, run),
        TaskSubject::Step(step) => step_body::encode_step_body(task, step),
    }
}

/// The headers of a collection run. It is not an event of the journal, but is delivered like one, so that a target
/// needs only one endpoint.
fn collection_run_headers(task: &ClaimedTask, run: &CollectionRun) -> Vec<(&'static str, String)> {
    let mut header_pairs = vec![
        ("ce-specversion", "1.0".to_owned()),
        ("ce-id", task.id.to_string()),
        ("ce-source", format!("/sources/{}", run.source_collection.source)),
        ("ce-type", "pointsman.run".to_owned()),
        ("ce-subject", run.source_collection.collection.to_string()),
    ];
    header_pairs.extend(task.planned_at.map(|planned| ("ce-time", planned.to_string())));
    header_pairs
}

/// The headers of a step, which is also delivered like an event.
fn step_headers(task: &ClaimedTask, step: &StepRun) -> Vec<(&'static str, String)> {
    let mut header_pairs = vec![
        ("ce-specversion", "1.0".to_owned()),
        ("ce-id", task.id.to_string()),
        ("ce-source", format!("/chains{}", step.order_key.chain)),
        ("ce-type", "pointsman.step".to_owned()),
        ("ce-subject", step.order_key.to_string()),
    ];
    header_pairs.extend(task.planned_at.map(|planned| ("ce-time", planned.to_string())));
    header_pairs
}

fn event_headers(event: &Event) -> Vec<(&'static str, String)> {
    let mut header_pairs = vec![
        ("ce-specversion", "1.0".to_owned()),
        ("ce-id", event.id.to_string()),
        ("ce-source", format!("/pointsman/{}", event.tenant)),
        ("ce-type", event.event_type.to_string()),
        ("ce-time", event.id.timestamp().to_string()),
    ];
    let encode_subject = |key: &str| utf8_percent_encode(key, PERCENT_ENCODED_CHARS).to_string();
    header_pairs.extend(event.key.as_ref().map(|key| ("ce-subject", encode_subject(key.as_str()))));
    header_pairs.extend(event.prev.map(|prev| ("pointsman-prev", prev.to_string())));
    header_pairs
}

fn attempt_headers(task: &ClaimedTask) -> Vec<(&'static str, String)> {
    let mut header_pairs = vec![
        ("pointsman-task", task.id.to_string()),
        ("pointsman-attempt", task.attempt.to_string()),
        ("pointsman-fence", task.fence.to_string()),
    ];
    header_pairs.extend(task.prev_sent_event_id.map(|prev| ("pointsman-prev-sent", prev.to_string())));
    header_pairs.extend(task.out_of_order.then(|| ("pointsman-late", "true".to_owned())));
    header_pairs
}

/// Inserts a header. All values are ASCII except possibly a traceparent from outside; an invalid one is omitted.
fn insert_header(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}
