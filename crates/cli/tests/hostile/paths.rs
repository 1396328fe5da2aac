//! Requests to every path with every method, and with invalid parameters, names, tokens and headers.

use crate::inputs::{percent_encode_randomly, random_hostile_text};
use crate::request::{HostileRequest, RequestDraft};
use pointsman_testing::Rng;

/// All URL paths of the server; `{}` is a name.
const PATHS: &[&str] = &[
    "/",
    "/docs",
    "/style.css",
    "/openapi.json",
    "/healthz",
    "/livez",
    "/readyz",
    "/metrics",
    "/api/v1/events",
    "/api/v1/events/{}",
    "/api/v1/stream",
    "/api/v1/objects/{}",
    "/api/v1/tasks",
    "/api/v1/tasks/{}",
    "/api/v1/tasks/{}/logs",
    "/api/v1/tasks/{}/retry",
    "/api/v1/tasks/{}/cancel",
    "/api/v1/handlers",
    "/api/v1/handlers/{}",
    "/api/v1/handlers/{}/pause",
    "/api/v1/handlers/{}/block",
    "/api/v1/handlers/{}/adopt",
    "/api/v1/orders/aFolder/test,117/suspend",
    "/tasks/{}",
    "/jobscheduler/master/api/order/{}",
    "/{}",
];

/// URL paths that need no token.
const PUBLIC_PATHS: &[&str] = &["/", "/docs", "/style.css", "/openapi.json", "/healthz", "/livez", "/readyz"];

const METHODS: &[&str] = &[
    "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get", "Post", "X",
    "M-SEARCH",
];

/// The paths that can be read, with the parameters that each accepts.
const READ_PATHS_AND_PARAMETERS: &[(&str, &[&str])] = &[
    ("/api/v1/events", &["return", "after", "timeout", "limit", "path", "key", "tenant"]),
    ("/api/v1/events/1", &[]),
    ("/api/v1/stream", &["return", "after", "path", "key", "tenant"]),
    ("/api/v1/objects/x", &["tenant", "limit"]),
    ("/api/v1/tasks", &["status", "handler", "tenant", "key", "start", "end", "limit", "cursor"]),
    ("/api/v1/tasks/x", &[]),
    ("/api/v1/tasks/x/logs", &["start", "end", "follow"]),
    ("/api/v1/handlers", &[]),
    ("/api/v1/handlers/known", &[]),
];

/// Creates a request with a random method to a random path.
pub(crate) fn random_method_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let name = if rng.one_in(2) {
        "known".to_owned()
    } else {
        percent_encode_randomly(&random_hostile_text(rng), rng)
    };
    let address = rng.choose(PATHS).replace("{}", &name);
    RequestDraft::new(rng.choose::<&str>(METHODS), address, token).build_expecting_response()
}

/// Creates a request whose path contains an unusual name in an unusual encoding.
pub(crate) fn unusual_name_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let with_name: Vec<&str> = PATHS.iter().copied().filter(|address| address.contains("{}")).collect();
    let name = percent_encode_randomly(&random_hostile_text(rng), rng);
    let method = rng.choose(&["GET", "GET", "POST", "PUT", "DELETE"]);
    RequestDraft::new(method, rng.choose(&with_name).replace("{}", &name), token).build_expecting_response()
}

/// Creates a read call whose parameters may be invalid, unknown, duplicate or garbled.
pub(crate) fn possibly_invalid_query_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let (address, parameters) = READ_PATHS_AND_PARAMETERS[rng.next_below(READ_PATHS_AND_PARAMETERS.len())];
    let mut pairs = vec![];
    for _ in 0..1 + rng.next_below(4) {
        let name = match parameters {
            [] => "x",
            _ if rng.one_in(8) => "unknown",
            _ => *rng.choose(parameters),
        };
        pairs.push(match name {
            // The server honours long timeouts, so only short and invalid ones are sent.
            "timeout" => {
                format!("timeout={}", rng.choose(&["0", "0.05s", "-1", "", "1ms", ".1", "x", "1%20s", "%00"]))
            }
            name => format!("{name}={}", percent_encode_randomly(&random_hostile_text(rng), rng)),
        });
    }
    let separator = rng.choose(&["&", "&", "&&", ";"]);
    RequestDraft::new("GET", format!("{address}?{}", pairs.join(separator)), token).build_expecting_response()
}

/// Creates a read call with parameters that are always invalid.
pub(crate) fn invalid_query_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let invalid = [
        "/api/v1/events",
        "/api/v1/events?after=-1",
        "/api/v1/events?after=1.0",
        "/api/v1/events?after=9007199254740992",
        "/api/v1/events?after=0&after=0",
        "/api/v1/events?after=0&limit=x",
        "/api/v1/events?after=0&limit=0.5",
        "/api/v1/events?after=0&timeout=-1s",
        "/api/v1/events?after=0&timeout=5ms",
        "/api/v1/events?after=0&timeout=P99999999999999999999D",
        "/api/v1/events?after=0&return=a..b",
        "/api/v1/events?after=0&path=a",
        "/api/v1/events?after=0&key=",
        "/api/v1/events?after=0&key=%00",
        "/api/v1/events?after=0&tenant=a%2Fb",
        "/api/v1/events?after=0&%ff=1",
        "/api/v1/events?after=%zz",
        "/api/v1/stream?after=x",
        "/api/v1/stream?limit=1",
        "/api/v1/tasks?status=Done",
        "/api/v1/tasks?limit=0",
        "/api/v1/tasks?limit=1001",
        "/api/v1/tasks?cursor=-1",
        "/api/v1/tasks?start=yesterday",
        "/api/v1/tasks?handler=a%20b",
        "/api/v1/events/0x10",
        "/api/v1/objects/%00",
        "/api/v1/handlers?x",
    ];
    RequestDraft::new("GET", *rng.choose(&invalid), token).build_expecting_refusal()
}

/// Creates a request with a missing, wrong or malformed token.
pub(crate) fn invalid_token_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let guarded: Vec<&str> =
        PATHS.iter().copied().filter(|address| !PUBLIC_PATHS.contains(address)).collect();
    let address = rng.choose(&guarded).replace("{}", "known");
    let method = rng.choose(&["GET", "POST", "PUT", "DELETE"]);
    let draft = || RequestDraft::new(method, address.clone(), token).without_token();
    let cut = &token[..token.len() - 1];
    match rng.next_below(9) {
        0 => draft().build_expecting_refusal(),
        1 => draft().with_header("authorization", format!("Bearer {cut}")).build_expecting_refusal(),
        2 => draft().with_header("authorization", format!("Basic {token}")).build_expecting_refusal(),
        3 => draft().with_header("authorization", token).build_expecting_refusal(),
        4 => draft().with_header("authorization", "Bearer").build_expecting_refusal(),
        5 => draft()
            .with_header("authorization", format!("Bearer {}", "x".repeat(20_000)))
            .build_expecting_refusal(),
        6 => draft().with_header("authorization", b"Bearer \xff\xfe".as_slice()).build_expecting_refusal(),
        7 => draft().with_header("x-admin-token", format!("{token}x")).build_expecting_refusal(),
        _ => draft()
            .with_header("authorization", "Bearer x")
            .with_header("x-admin-token", token)
            .build_expecting_refusal(),
    }
}

/// Creates a request that is valid but for one header.
pub(crate) fn invalid_header_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let emit = || RequestDraft::new_emit(token, "{\"type\":\"a\"}");
    let long = "x".repeat(256);
    let key: &[&[u8]] = &[b"", b"\xff", b"a\tb", b"\xc3\xbc", long.as_bytes()];
    match rng.next_below(4) {
        0 => emit().with_header("idempotency-key", key[rng.next_below(key.len())]).build_expecting_refusal(),
        1 => emit()
            .with_header("idempotency-key", "a")
            .with_header("idempotency-key", "a")
            .build_expecting_refusal(),
        2 => {
            let id = *rng.choose(&["x", "-1", "1.0", "9007199254740992", "0x1", "1 2"]);
            RequestDraft::new("GET", "/api/v1/stream", token)
                .with_header("last-event-id", id)
                .build_expecting_refusal()
        }
        _ => RequestDraft::new("POST", format!("/api/v1/events?{}", "x".repeat(3)), token)
            .with_body("{\"type\":\"a\"}")
            .build_expecting_refusal(),
    }
}

/// Creates a valid request that keeps its connection for a long time.
pub(crate) fn long_lasting_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let waiting =
        ["/api/v1/stream", "/api/v1/stream?after=0", "/api/v1/events?after=0&return=never&timeout=1h"];
    RequestDraft::new("GET", *rng.choose(&waiting), token).build_expecting_response()
}

/// Creates a request whose path is too long.
pub(crate) fn long_path_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let length = 8_200 + rng.next_below(50_000);
    let address = match rng.next_below(3) {
        0 => format!("/api/v1/objects/{}", "a".repeat(length)),
        1 => format!("/api/v1/events?after={}", "9".repeat(length)),
        _ => "/%41".repeat(length / 4),
    };
    RequestDraft::new("GET", address, token).build_expecting_refusal()
}
