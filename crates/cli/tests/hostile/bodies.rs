//! Requests whose bodies are wrong: events in every form, actions, and all of them too large.

use crate::atoms::{bytes, json, mutate, text};
use crate::request::{Draft, Expected, Request};
use pointsman_testing::Chance;

const VALUE: usize = 1 << 20;
const BODY: usize = 16 << 20;

/// Bodies that are wrong whatever one thinks of them.
fn wrong(chance: &mut Chance) -> Vec<u8> {
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
    let member = chance.of(&["key", "sub", "context", "tenant", "delay", "at", "priority", "type", "x"]);
    match chance.below(13) {
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
        5 => format!("{{\"type\":\"a\",\"context\":{{{}}}}}", entries(10_000)).into_bytes(),
        _ => fixed[chance.below(fixed.len())].to_vec(),
    }
}

fn entries(count: usize) -> String {
    (0..count).map(|n| format!("\"k{n}\":\"v\"")).collect::<Vec<_>>().join(",")
}

/// An emit that must be refused.
pub(crate) fn wrong_events(chance: &mut Chance, token: &str) -> Request {
    let draft = Draft::emit(token, wrong(chance));
    if chance.one_in(5) { draft.chunked(1 + chance.below(50), Expected::Refused) } else { draft.refused() }
}

/// An event that is nearly right, or was right before its bytes were changed.
pub(crate) fn doubtful_events(chance: &mut Chance, token: &str) -> Request {
    let mut body = match chance.below(6) {
        4 | 5 => odd_event(chance).into_bytes(),
        0 => json(chance, 4).into_bytes(),
        1 => format!("{{\"type\":\"a.b\",\"value\":{}}}", json(chance, 4)).into_bytes(),
        2 => format!("[{},{}]", json(chance, 2), json(chance, 2)).into_bytes(),
        _ => {
            let good = "{\"type\":\"a.b\",\"key\":\"k:1\",\"value\":{\"n\":[1.5]},\"context\":{\"ip\":\"::1\"},\
                        \"tenant\":\"shop\",\"delay\":\"1h\",\"priority\":7}";
            good.as_bytes().to_vec()
        }
    };
    if chance.one_in(2) {
        mutate(&mut body, chance);
    }
    let media = ["application/json", "application/cloudevents+json", "application/cloudevents-batch+json"];
    Draft::new("POST", "/api/v1/events", token)
        .header("content-type", *chance.of(&media))
        .body(body)
        .answered()
}

/// An event of the right shape with texts in it that nobody would expect. Some of them are taken.
fn odd_event(chance: &mut Chance) -> String {
    let mut event = serde_json::json!({"type": "odd"});
    for member in ["key", "sub", "value", "tenant", "delay", "at", "context"] {
        if chance.one_in(3) {
            event[member] = match member {
                "context" => serde_json::json!({text(chance): text(chance)}),
                _ => text(chance).into(),
            };
        }
    }
    event.to_string()
}

/// A right body that says it is something else.
pub(crate) fn media_types(chance: &mut Chance, token: &str) -> Request {
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
    let kind = types[chance.below(types.len())];
    let draft = Draft::new("POST", "/api/v1/events", token).body("{\"type\":\"a\"}");
    // A lone parameter is a type that was left out.
    let expected = if kind == b";" { Expected::Answered } else { Expected::Refused };
    draft.header("content-type", kind).expecting(expected)
}

/// CloudEvents that lack something or have too much of it.
pub(crate) fn cloud_events(chance: &mut Chance, token: &str) -> Request {
    let post = || Draft::new("POST", "/api/v1/events", token);
    let structured = |body: &str| post().header("content-type", "application/cloudevents+json").body(body);
    let binary = |kind: &str| {
        post()
            .header("ce-specversion", "1.0")
            .header("ce-id", "1")
            .header("ce-source", "/x")
            .header("ce-type", kind)
    };
    match chance.below(14) {
        0 => structured("{\"specversion\":\"0.3\",\"id\":\"1\",\"source\":\"/x\",\"type\":\"a\"}").refused(),
        1 => structured("{\"specversion\":\"1.0\",\"id\":\"\",\"source\":\"/x\",\"type\":\"a\"}").refused(),
        2 => structured("{\"specversion\":\"1.0\",\"source\":\"/x\",\"type\":\"a\"}").refused(),
        3 => {
            structured("[{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/x\",\"type\":\"a\"}]").refused()
        }
        4 => {
            let both = "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/x\",\"type\":\"a\",\"data\":1,\
                        \"data_base64\":\"MQ==\"}";
            structured(both).refused()
        }
        5 => {
            let attribute = serde_json::Value::from(format!("A{}", text(chance)));
            let body = "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/x\",\"type\":\"a\",";
            structured(&format!("{body}{attribute}:1}}")).refused()
        }
        6 => {
            let body = "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/x\",\"type\":\"a\",\"data_base64\":\"%%\"}";
            structured(body).refused()
        }
        7 => post().header("content-type", "application/cloudevents-batch+json").body("[]").refused(),
        8 => post().header("ce-type", "a").body("1").header("content-type", "application/json").refused(),
        9 => binary("a..b").refused(),
        10 => binary("a").header("ce-type", "b").refused(),
        11 => binary("a").header("ce-subject", "%zz").refused(),
        12 => binary("a").header("ce-time", "yesterday").refused(),
        _ => {
            let draft = binary("a").header("content-type", "application/json");
            draft.header("ce-priority", printable(chance)).body(bytes(chance, 40)).answered()
        }
    }
}

/// A text that can stand in a header.
fn printable(chance: &mut Chance) -> String {
    text(chance).chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect()
}

/// Actions with bodies that are not theirs, and on what is not there.
pub(crate) fn actions(chance: &mut Chance, token: &str) -> Request {
    let calls = [
        ("PUT", "/api/v1/handlers/known/pause"),
        ("PUT", "/api/v1/handlers/known/block"),
        ("DELETE", "/api/v1/handlers/known/pause"),
        ("POST", "/api/v1/handlers/known/adopt"),
        ("POST", "/api/v1/tasks/known_a_00000000-0000-8000-8000-000000000000/retry"),
        ("POST", "/api/v1/tasks/x/cancel"),
    ];
    let (method, target) = calls[chance.below(calls.len())];
    let draft = |target: &str| Draft::new(method, target, token).header("content-type", "application/json");
    match chance.below(5) {
        0 => draft(target).body(format!("{{\"reason\":{}", json(chance, 2))).refused(),
        1 => draft(target).body("{\"what\":1}").refused(),
        2 => draft(target).body("[".repeat(10_000)).refused(),
        3 => draft(&format!("{target}?x=1")).body("{}").refused(),
        _ => draft(target).body(json(chance, 3)).answered(),
    }
}

/// Too large, each in its own way. These are dear, so there are few of them.
pub(crate) fn too_large(chance: &mut Chance, token: &str) -> Request {
    let emit = |body: Vec<u8>| Draft::emit(token, body);
    let post = || Draft::new("POST", "/api/v1/events", token);
    let name = "x".repeat(1 << 20);
    match chance.below(13) {
        8 => emit(format!("{{\"{name}\":1}}").into_bytes()).refused(),
        9 => emit(format!("{{\"type\":\"{name}\"}}").into_bytes()).refused(),
        10 => emit(format!("{{\"type\":\"a\",\"context\":{{\"{name}\":1}}}}").into_bytes()).refused(),
        11 => emit(format!("{{\"type\":\"a\",\"priority\":{}}}", "9".repeat(1 << 20)).into_bytes()).refused(),
        12 => {
            let body = format!(
                "{{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/x\",\"type\":\"a\",\"{name}\":[]}}"
            );
            post().header("content-type", "application/cloudevents+json").body(body).refused()
        }
        0 => emit(vec![b' '; BODY + 1]).refused(),
        1 => emit(vec![b'['; BODY + 1]).chunked(1 << 20, Expected::Refused),
        2 => emit(format!("{{\"type\":\"a\",\"value\":\"{}\"}}", "x".repeat(VALUE)).into_bytes()).refused(),
        3 => emit(format!("[{}]", vec!["{\"type\":\"a\"}"; 10_001].join(",")).into_bytes()).refused(),
        4 => post().header("content-length", "99999999999").header("expect", "100-continue").refused(),
        5 => post()
            .header("content-length", "18446744073709551614")
            .header("expect", "100-continue")
            .expecting(Expected::Broken),
        6 => Draft::new("PUT", "/api/v1/handlers/known/pause", token).body(vec![b'x'; BODY + 1]).refused(),
        _ => Draft::new("POST", "/nowhere", token).body(vec![b'x'; 1 << 20]).refused(),
    }
}
