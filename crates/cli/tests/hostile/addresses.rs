//! Requests to every address with every method, and with parameters, names, tokens and headers that are wrong.

use crate::atoms::{escaped, text};
use crate::request::{Draft, Request};
use pointsman_testing::Chance;

/// Everything that answers, `{}` standing for a name.
const ADDRESSES: &[&str] = &[
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

/// What no token is needed for.
const OPEN: &[&str] = &["/", "/docs", "/style.css", "/openapi.json", "/healthz", "/livez", "/readyz"];

const METHODS: &[&str] = &[
    "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get", "Post", "X",
    "M-SEARCH",
];

/// The reading calls and what each of them knows.
const READS: &[(&str, &[&str])] = &[
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

/// Any method anywhere.
pub(crate) fn methods(chance: &mut Chance, token: &str) -> Request {
    let name = if chance.one_in(2) { "known".to_owned() } else { escaped(&text(chance), chance) };
    let address = chance.of(ADDRESSES).replace("{}", &name);
    Draft::new(chance.of::<&str>(METHODS), address, token).answered()
}

/// Names that are odd, written oddly.
pub(crate) fn names(chance: &mut Chance, token: &str) -> Request {
    let named: Vec<&str> = ADDRESSES.iter().copied().filter(|address| address.contains("{}")).collect();
    let name = escaped(&text(chance), chance);
    let method = chance.of(&["GET", "GET", "POST", "PUT", "DELETE"]);
    Draft::new(method, chance.of(&named).replace("{}", &name), token).answered()
}

/// Reading calls with parameters that are wrong, unknown, doubled or garbled.
pub(crate) fn queries(chance: &mut Chance, token: &str) -> Request {
    let (address, known) = READS[chance.below(READS.len())];
    let mut pairs = vec![];
    for _ in 0..1 + chance.below(4) {
        let name = match known {
            [] => "x",
            _ if chance.one_in(8) => "unknown",
            _ => *chance.of(known),
        };
        pairs.push(match name {
            // A long timeout is kept as the caller asked, so only short ones and wrong ones are sent.
            "timeout" => {
                format!("timeout={}", chance.of(&["0", "0.05s", "-1", "", "1ms", ".1", "x", "1%20s", "%00"]))
            }
            name => format!("{name}={}", escaped(&text(chance), chance)),
        });
    }
    let separator = chance.of(&["&", "&", "&&", ";"]);
    Draft::new("GET", format!("{address}?{}", pairs.join(separator)), token).answered()
}

/// Parameters that are wrong whatever one thinks of them.
pub(crate) fn wrong_queries(chance: &mut Chance, token: &str) -> Request {
    let bad = [
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
    Draft::new("GET", *chance.of(&bad), token).refused()
}

/// Tokens that are missing, wrong, or not quite a token.
pub(crate) fn tokens(chance: &mut Chance, token: &str) -> Request {
    let guarded: Vec<&str> = ADDRESSES.iter().copied().filter(|address| !OPEN.contains(address)).collect();
    let address = chance.of(&guarded).replace("{}", "known");
    let method = chance.of(&["GET", "POST", "PUT", "DELETE"]);
    let draft = || Draft::new(method, address.clone(), token).without_token();
    let cut = &token[..token.len() - 1];
    match chance.below(9) {
        0 => draft().refused(),
        1 => draft().header("authorization", format!("Bearer {cut}")).refused(),
        2 => draft().header("authorization", format!("Basic {token}")).refused(),
        3 => draft().header("authorization", token).refused(),
        4 => draft().header("authorization", "Bearer").refused(),
        5 => draft().header("authorization", format!("Bearer {}", "x".repeat(20_000))).refused(),
        6 => draft().header("authorization", b"Bearer \xff\xfe".as_slice()).refused(),
        7 => draft().header("x-admin-token", format!("{token}x")).refused(),
        _ => draft().header("authorization", "Bearer x").header("x-admin-token", token).refused(),
    }
}

/// Right requests with one header that is not.
pub(crate) fn headers(chance: &mut Chance, token: &str) -> Request {
    let emit = || Draft::emit(token, "{\"type\":\"a\"}");
    let long = "x".repeat(256);
    let key: &[&[u8]] = &[b"", b"\xff", b"a\tb", b"\xc3\xbc", long.as_bytes()];
    match chance.below(4) {
        0 => emit().header("idempotency-key", key[chance.below(key.len())]).refused(),
        1 => emit().header("idempotency-key", "a").header("idempotency-key", "a").refused(),
        2 => {
            let id = *chance.of(&["x", "-1", "1.0", "9007199254740992", "0x1", "1 2"]);
            Draft::new("GET", "/api/v1/stream", token).header("last-event-id", id).refused()
        }
        _ => Draft::new("POST", format!("/api/v1/events?{}", "x".repeat(3)), token)
            .body("{\"type\":\"a\"}")
            .refused(),
    }
}

/// Right requests that would keep a connection for a long time.
pub(crate) fn waits(chance: &mut Chance, token: &str) -> Request {
    let waiting =
        ["/api/v1/stream", "/api/v1/stream?after=0", "/api/v1/events?after=0&return=never&timeout=1h"];
    Draft::new("GET", *chance.of(&waiting), token).answered()
}

/// Addresses that are far too long.
pub(crate) fn long_addresses(chance: &mut Chance, token: &str) -> Request {
    let length = 8_200 + chance.below(50_000);
    let address = match chance.below(3) {
        0 => format!("/api/v1/objects/{}", "a".repeat(length)),
        1 => format!("/api/v1/events?after={}", "9".repeat(length)),
        _ => "/%41".repeat(length / 4),
    };
    Draft::new("GET", address, token).refused()
}
