//! Generates requests with invalid bodies: events in every form, actions, and bodies that are too large.

use crate::inputs::{mutate_bytes, random_bytes, random_hostile_text, random_json_like_text};
use crate::request::{ExpectedOutcome, HostileRequest, RequestDraft};
use pointsman_testing::Rng;

const MAX_VALUE_BYTES: usize = 1 << 20;
const MAX_BODY_BYTES: usize = 16 << 20;

/// Creates the body of an emit request that is always invalid.
fn generate_invalid_body(rng: &mut Rng) -> Vec<u8> {
    let fixed: &[&[u8]] = &[
        b"",
        b"null",
        b"7",
        b"\"a\"",
        b"[]",
        b"[null]",
        b"[[{\"type\":\"a\"}]]",
        b"{}",
        b"{\"type\":\"a\"",
        b"{\"type\":\"a\"}}",
        b"{\"type\":\"a\"}{\"type\":\"a\"}",
        b"{\"type\":\"a\",\"type\":\"a\"}",
        b"{\"type\":\"a\",\"key\":\"x\",\"key\":\"y\"}",
        b"{\"type\":\"a\",\"colour\":\"red\"}",
        b"{\"Type\":\"a\"}",
        b"{\"type\":null}",
        b"{\"type\":7}",
        b"{\"type\":\"\"}",
        b"{\"type\":\"a..b\"}",
        b"{\"type\":\"a b\"}",
        b"{\"type\":\"\xc3\xbc\"}",
        b"{\"type\":\"\xff\"}",
        b"{\"type\":\"a\",\"value\":\"\xc3\"}",
        b"{\"type\":\"a\",\"value\":\"\xed\xa0\x80\"}",
        b"{\"type\":\"a\",\"value\":\"\x00\"}",
        b"{\"type\":\"a\",\"value\":\"\\u0000\"}",
        b"{\"type\":\"a\",\"value\":{\"\\u0000\":1}}",
        b"{\"type\":\"a\",\"value\":1e400}",
        b"{\"type\":\"a\",\"value\":[{\"deep\":-1e999}]}",
        b"{\"type\":\"a\",\"value\":NaN}",
        b"{\"type\":\"a\",\"value\":\"\\ud800\"}",
        b"{\"type\":\"a\",\"key\":\"\"}",
        b"{\"type\":\"a\",\"key\":\"a\\r\\nb\"}",
        b"{\"type\":\"a\",\"key\":\"a\\u0000b\"}",
        b"{\"type\":\"a\",\"key\":[\"a\"]}",
        b"{\"type\":\"a\",\"context\":\"x\"}",
        b"{\"type\":\"a\",\"context\":{\"a\":{}}}",
        b"{\"type\":\"a\",\"tenant\":\"../b\"}",
        b"{\"type\":\"a\",\"tenant\":\"\"}",
        b"{\"type\":\"a\",\"delay\":-1}",
        b"{\"type\":\"a\",\"delay\":1e300}",
        b"{\"type\":\"a\",\"delay\":\"\"}",
        b"{\"type\":\"a\",\"delay\":\"1s\",\"at\":\"2030-01-01T00:00:00Z\"}",
        b"{\"type\":\"a\",\"at\":\"2030-02-30T00:00:00Z\"}",
        b"{\"type\":\"a\",\"at\":7}",
        b"{\"type\":\"a\",\"priority\":0}",
        b"{\"type\":\"a\",\"priority\":9001}",
        b"{\"type\":\"a\",\"priority\":99999999999999999999}",
        b"{\"type\":\"OrderStarted\"}",
        b"{\"type\":\"Event\"}",
        b"[{\"type\":\"a\"},{\"type\":\"a..b\"}]",
        b"[{\"type\":\"a\"},7]",
        b"[{\"type\":\"a\"},]",
    ];
    let member = rng.choose(&["key", "sub", "context", "tenant", "delay", "at", "priority", "type", "x"]);
    match rng.next_below(13) {
        0 => "[".repeat(10_000).into_bytes(),
        6 => format!("{{\"{member}\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000)).into_bytes(),
        1 => {
            format!("{{\"type\":\"a\",\"value\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000)).into_bytes()
        }
        2 => {
            format!("{{\"type\":\"a\",\"value\":{}1{}}}", "{\"a\":".repeat(101), "}".repeat(101)).into_bytes()
        }
        3 => format!("{{\"type\":\"{}\"}}", "a".repeat(256)).into_bytes(),
        4 => format!("{{\"type\":\"a\",\"key\":\"{}\"}}", "a".repeat(513)).into_bytes(),
        5 => format!("{{\"type\":\"a\",\"context\":{{{}}}}}", format_context_entries(10_000)).into_bytes(),
        _ => fixed[rng.next_below(fixed.len())].to_vec(),
    }
}

fn format_context_entries(count: usize) -> String {
    (0..count).map(|n| format!("\"k{n}\":\"v\"")).collect::<Vec<_>>().join(",")
}

/// Creates an emit request that must be refused.
pub(crate) fn generate_invalid_event_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let draft = RequestDraft::new_emit(token, generate_invalid_body(rng));
    if rng.one_in(5) {
        draft.build_chunked(1 + rng.next_below(50), ExpectedOutcome::Refused)
    } else {
        draft.build_expecting_refusal()
    }
}

/// Creates an emit request that may be invalid: with a nearly valid event, or a valid one of which some bytes were
/// changed.
pub(crate) fn generate_possibly_invalid_event_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let mut body = match rng.next_below(6) {
        4 | 5 => generate_unusual_event(rng).into_bytes(),
        0 => random_json_like_text(rng, 4).into_bytes(),
        1 => format!("{{\"type\":\"a.b\",\"value\":{}}}", random_json_like_text(rng, 4)).into_bytes(),
        2 => format!("[{},{}]", random_json_like_text(rng, 2), random_json_like_text(rng, 2)).into_bytes(),
        _ => {
            let good = "{\"type\":\"a.b\",\"key\":\"k:1\",\"value\":{\"n\":[1.5]},\"context\":{\"ip\":\"::1\"},\
                        \"tenant\":\"shop\",\"delay\":\"1h\",\"priority\":7}";
            good.as_bytes().to_vec()
        }
    };
    if rng.one_in(2) {
        mutate_bytes(&mut body, rng);
    }
    let media = ["application/json", "application/cloudevents+json", "application/cloudevents-batch+json"];
    RequestDraft::new("POST", "/api/v1/events", token)
        .with_header("content-type", *rng.choose(&media))
        .with_body(body)
        .build_expecting_response()
}

/// Creates a well-formed event with unusual texts, some of which are valid.
fn generate_unusual_event(rng: &mut Rng) -> String {
    let mut event = serde_json::json!({"type": "odd"});
    for member in ["key", "sub", "value", "tenant", "delay", "at", "context"] {
        if rng.one_in(3) {
            event[member] = match member {
                "context" => serde_json::json!({random_hostile_text(rng): random_hostile_text(rng)}),
                _ => random_hostile_text(rng).into(),
            };
        }
    }
    event.to_string()
}

/// Creates an emit request with a valid body and a wrong media type.
pub(crate) fn generate_wrong_media_type_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let types: &[&[u8]] = &[
        b"text/plain",
        b"application/xml",
        b"application/json; charset=latin1",
        b"application/json; charset=utf-16",
        b"application/cloudevents",
        b"application/cloudevents+xml",
        b"application/cloudevents-batch+avro",
        b"multipart/form-data; boundary=x",
        b"application/x-www-form-urlencoded",
        b"/",
        b"*/*",
        b"\xff\xfe",
        b"json",
        b";",
    ];
    let media_type = types[rng.next_below(types.len())];
    let draft = RequestDraft::new("POST", "/api/v1/events", token).with_body("{\"type\":\"a\"}");
    // A header without a media type means the default, JSON.
    let expected = if media_type == b";" { ExpectedOutcome::AnyResponse } else { ExpectedOutcome::Refused };
    draft.with_header("content-type", media_type).build(expected)
}

/// Creates an emit request with a CloudEvent that lacks attributes or has invalid ones.
pub(crate) fn generate_invalid_cloud_event_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let post = || RequestDraft::new("POST", "/api/v1/events", token);
    let structured =
        |body: &str| post().with_header("content-type", "application/cloudevents+json").with_body(body);
    let binary = |event_type: &str| {
        post()
            .with_header("ce-specversion", "1.0")
            .with_header("ce-id", "1")
            .with_header("ce-source", "/x")
            .with_header("ce-type", event_type)
    };
    match rng.next_below(14) {
        0 => structured("{\"specversion\":\"0.3\",\"id\":\"1\",\"source\":\"/x\",\"type\":\"a\"}")
            .build_expecting_refusal(),
        1 => structured("{\"specversion\":\"1.0\",\"id\":\"\",\"source\":\"/x\",\"type\":\"a\"}")
            .build_expecting_refusal(),
        2 => {
            structured("{\"specversion\":\"1.0\",\"source\":\"/x\",\"type\":\"a\"}").build_expecting_refusal()
        }
        3 => structured("[{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/x\",\"type\":\"a\"}]")
            .build_expecting_refusal(),
        4 => {
            let both = "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/x\",\"type\":\"a\",\"data\":1,\
                        \"data_base64\":\"MQ==\"}";
            structured(both).build_expecting_refusal()
        }
        5 => {
            let attribute = serde_json::Value::from(format!("A{}", random_hostile_text(rng)));
            let body = "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/x\",\"type\":\"a\",";
            structured(&format!("{body}{attribute}:1}}")).build_expecting_refusal()
        }
        6 => {
            let body = "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/x\",\"type\":\"a\",\"data_base64\":\"%%\"}";
            structured(body).build_expecting_refusal()
        }
        7 => post()
            .with_header("content-type", "application/cloudevents-batch+json")
            .with_body("[]")
            .build_expecting_refusal(),
        8 => post()
            .with_header("ce-type", "a")
            .with_body("1")
            .with_header("content-type", "application/json")
            .build_expecting_refusal(),
        9 => binary("a..b").build_expecting_refusal(),
        10 => binary("a").with_header("ce-type", "b").build_expecting_refusal(),
        11 => binary("a").with_header("ce-subject", "%zz").build_expecting_refusal(),
        12 => binary("a").with_header("ce-time", "yesterday").build_expecting_refusal(),
        _ => {
            let draft = binary("a").with_header("content-type", "application/json");
            draft
                .with_header("ce-priority", generate_header_text(rng))
                .with_body(random_bytes(rng, 40))
                .build_expecting_response()
        }
    }
}

/// Creates a random text that is valid in a header.
fn generate_header_text(rng: &mut Rng) -> String {
    random_hostile_text(rng).chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect()
}

/// Creates a request for an action, with a wrong body or on an unknown name.
pub(crate) fn generate_invalid_action_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let calls = [
        ("PUT", "/api/v1/handlers/known/pause"),
        ("PUT", "/api/v1/handlers/known/block"),
        ("DELETE", "/api/v1/handlers/known/pause"),
        ("POST", "/api/v1/handlers/known/adopt"),
        ("POST", "/api/v1/tasks/known_a_00000000-0000-8000-8000-000000000000/retry"),
        ("POST", "/api/v1/tasks/x/cancel"),
    ];
    let (method, target) = calls[rng.next_below(calls.len())];
    let draft = |target: &str| {
        RequestDraft::new(method, target, token).with_header("content-type", "application/json")
    };
    match rng.next_below(5) {
        0 => draft(target)
            .with_body(format!("{{\"reason\":{}", random_json_like_text(rng, 2)))
            .build_expecting_refusal(),
        1 => draft(target).with_body("{\"what\":1}").build_expecting_refusal(),
        2 => draft(target).with_body("[".repeat(10_000)).build_expecting_refusal(),
        3 => draft(&format!("{target}?x=1")).with_body("{}").build_expecting_refusal(),
        _ => draft(target).with_body(random_json_like_text(rng, 3)).build_expecting_response(),
    }
}

/// Creates a request that is too large. Such requests are expensive, so that few are sent.
pub(crate) fn generate_too_large_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let emit = |body: Vec<u8>| RequestDraft::new_emit(token, body);
    let post = || RequestDraft::new("POST", "/api/v1/events", token);
    let name = "x".repeat(1 << 20);
    match rng.next_below(13) {
        8 => emit(format!("{{\"{name}\":1}}").into_bytes()).build_expecting_refusal(),
        9 => emit(format!("{{\"type\":\"{name}\"}}").into_bytes()).build_expecting_refusal(),
        10 => emit(format!("{{\"type\":\"a\",\"context\":{{\"{name}\":1}}}}").into_bytes())
            .build_expecting_refusal(),
        11 => emit(format!("{{\"type\":\"a\",\"priority\":{}}}", "9".repeat(1 << 20)).into_bytes())
            .build_expecting_refusal(),
        12 => {
            let body = format!(
                "{{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/x\",\"type\":\"a\",\"{name}\":[]}}"
            );
            post()
                .with_header("content-type", "application/cloudevents+json")
                .with_body(body)
                .build_expecting_refusal()
        }
        0 => emit(vec![b' '; MAX_BODY_BYTES + 1]).build_expecting_refusal(),
        1 => emit(vec![b'['; MAX_BODY_BYTES + 1]).build_chunked(1 << 20, ExpectedOutcome::Refused),
        2 => emit(format!("{{\"type\":\"a\",\"value\":\"{}\"}}", "x".repeat(MAX_VALUE_BYTES)).into_bytes())
            .build_expecting_refusal(),
        3 => emit(format!("[{}]", vec!["{\"type\":\"a\"}"; 10_001].join(",")).into_bytes())
            .build_expecting_refusal(),
        4 => post()
            .with_header("content-length", "99999999999")
            .with_header("expect", "100-continue")
            .build_expecting_refusal(),
        5 => post()
            .with_header("content-length", "18446744073709551614")
            .with_header("expect", "100-continue")
            .build(ExpectedOutcome::ResponseOrClosed),
        6 => RequestDraft::new("PUT", "/api/v1/handlers/known/pause", token)
            .with_body(vec![b'x'; MAX_BODY_BYTES + 1])
            .build_expecting_refusal(),
        _ => RequestDraft::new("POST", "/nowhere", token)
            .with_body(vec![b'x'; 1 << 20])
            .build_expecting_refusal(),
    }
}
