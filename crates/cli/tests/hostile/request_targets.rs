//! Generates requests to many paths with every method, and with invalid parameters and names.

use crate::inputs::{percent_encode_randomly, random_hostile_text};
use crate::request::{HostileRequest, RequestDraft};
use pointsman_testing::Rng;

/// URL paths of the server; `{}` is a name.
pub(crate) const PATHS: &[&str] = &[
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
pub(crate) const PUBLIC_PATHS: &[&str] =
    &["/", "/docs", "/style.css", "/openapi.json", "/healthz", "/livez", "/readyz"];

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
pub(crate) fn generate_random_method_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let name = if rng.one_in(2) {
        "known".to_owned()
    } else {
        percent_encode_randomly(&random_hostile_text(rng), rng)
    };
    let address = rng.choose(PATHS).replace("{}", &name);
    RequestDraft::new(rng.choose::<&str>(METHODS), address, token).build_expecting_response()
}

/// Creates a request whose path contains an unusual name in an unusual encoding.
pub(crate) fn generate_unusual_name_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let with_name: Vec<&str> = PATHS.iter().copied().filter(|address| address.contains("{}")).collect();
    let name = percent_encode_randomly(&random_hostile_text(rng), rng);
    let method = rng.choose(&["GET", "GET", "POST", "PUT", "DELETE"]);
    RequestDraft::new(method, rng.choose(&with_name).replace("{}", &name), token).build_expecting_response()
}

/// Creates a read call whose parameters may be invalid, unknown, duplicate or garbled.
pub(crate) fn generate_possibly_invalid_query_request(rng: &mut Rng, token: &str) -> HostileRequest {
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

/// Creates a read call with parameters that are always invalid, or an emit request with an unknown parameter.
pub(crate) fn generate_invalid_query_request(rng: &mut Rng, token: &str) -> HostileRequest {
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
    if rng.one_in(invalid.len() + 1) {
        return RequestDraft::new("POST", "/api/v1/events?xxx", token)
            .with_body("{\"type\":\"a\"}")
            .build_expecting_refusal();
    }
    RequestDraft::new("GET", *rng.choose(&invalid), token).build_expecting_refusal()
}

/// Creates a valid request that keeps its connection for a long time.
pub(crate) fn generate_long_lasting_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let waiting =
        ["/api/v1/stream", "/api/v1/stream?after=0", "/api/v1/events?after=0&return=never&timeout=1h"];
    RequestDraft::new("GET", *rng.choose(&waiting), token).build_expecting_response()
}

/// Creates a request whose path is too long.
pub(crate) fn generate_long_path_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let length = 8_200 + rng.next_below(50_000);
    let address = match rng.next_below(3) {
        0 => format!("/api/v1/objects/{}", "a".repeat(length)),
        1 => format!("/api/v1/events?after={}", "9".repeat(length)),
        _ => "/%41".repeat(length / 4),
    };
    RequestDraft::new("GET", address, token).build_expecting_refusal()
}
