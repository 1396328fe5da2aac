//! Generates requests that violate HTTP: invalid heads and body framing.

use crate::inputs::{mutate_bytes, random_bytes};
use crate::request::{ExpectedOutcome, HostileRequest, RequestDraft};
use pointsman_testing::Rng;

/// Returns a request to which a response below 500 or a closed connection is expected.
fn new_invalid_http_request(bytes: impl Into<Vec<u8>>) -> HostileRequest {
    HostileRequest { bytes: bytes.into(), expected_outcome: ExpectedOutcome::ResponseOrClosed }
}

/// Creates a request with an invalid head.
pub(crate) fn generate_invalid_head_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let fixed: &[&[u8]] = &[
        b"\r\n\r\n",
        b"GARBAGE\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET  / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1 x\r\n\r\n",
        b"GET /a b HTTP/1.1\r\n\r\n",
        b"GET /<a> HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /?\"{}|^` HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /a\0b HTTP/1.1\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET \\healthz HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET healthz HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET http://[::1/ HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET * HTTP/1.1\r\nhost: x\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nhost: x\r\n\r\n",
        b"CONNECT / HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET / HTTP/1.1\r\n: empty\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost : x\r\n\r\n",
        b"GET / HTTP/1.1\r\n folded: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: a\r\n b\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\nhost: x\n\n",
        b"GET / HTTP/1.1\r\nhost: x\rx: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: \xff\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /healthz HTTP/1.1\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        b"*1\r\n$4\r\nPING\r\n",
    ];
    match rng.next_below(5) {
        0 => new_invalid_http_request(random_bytes(rng, 400)),
        1 => new_invalid_http_request(format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "x: y\r\n".repeat(101 + rng.next_below(400))
        )),
        2 => new_invalid_http_request(format!(
            "GET / HTTP/1.1\r\nx: {}\r\n\r\n",
            "y".repeat(65_000 + rng.next_below(200_000))
        )),
        3 => new_invalid_http_request(format!(
            "{} / HTTP/1.1\r\nauthorization: Bearer {token}\r\n\r\n",
            "M".repeat(70_000)
        )),
        _ => new_invalid_http_request(fixed[rng.next_below(fixed.len())]),
    }
}

/// A body that is invalid in any framing, so that nothing is stored.
const INVALID_BODY: &str = "[[[";

/// Creates a request with invalid body framing.
pub(crate) fn generate_invalid_framing_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let fixed = [
        "content-length: x\r\n\r\n",
        "content-length: -1\r\n\r\n",
        "content-length: +3\r\n\r\n",
        "content-length: 3, 4\r\n\r\n",
        "content-length: 3\r\ncontent-length: 4\r\n\r\n",
        "content-length: 99999999999999999999999\r\n\r\n",
        "content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n3\r\n[[[\r\n0\r\n\r\n",
        "content-length: 10\r\n\r\n[[[",
        "transfer-encoding: gzip\r\n\r\n",
        "transfer-encoding: chunked, gzip\r\n\r\n",
        "transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "transfer-encoding: \x0bchunked\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\nx\r\n[[[\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n-3\r\n[[[\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n[[[",
        "transfer-encoding: chunked\r\n\r\nfffffffffffffff0\r\n[[[",
        "transfer-encoding: chunked\r\n\r\n3\r\n[[[[[[[\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n5\r\n[[[\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n3\r\n[[[\r\n",
        "transfer-encoding: chunked\r\n\r\n3;x=\"\r\n[[[\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n0\r\nx: y\r\nbad trailer\r\n\r\n",
        "expect: 200-ok\r\ncontent-length: 3\r\n\r\n[[[",
        "content-encoding: gzip\r\ncontent-length: 3\r\n\r\n[[[",
    ];
    let head = format!("POST /api/v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n");
    if rng.one_in(4) {
        let extension = "x".repeat(20_000 + rng.next_below(20_000));
        let frame = match rng.next_below(2) {
            0 => format!("transfer-encoding: chunked\r\n\r\n3;{extension}\r\n{INVALID_BODY}\r\n0\r\n\r\n"),
            _ => format!("transfer-encoding: chunked\r\n\r\n0\r\n{}\r\n", "x: y\r\n".repeat(5_000)),
        };
        return new_invalid_http_request(format!("{head}{frame}"));
    }
    new_invalid_http_request(format!("{head}{}", rng.choose(&fixed)))
}

/// Creates a request of which a few bytes were changed. In its original form it would store nothing.
pub(crate) fn generate_mutated_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let draft = match rng.next_below(4) {
        0 => RequestDraft::new("GET", "/api/v1/events?after=0&limit=3&timeout=0", token),
        1 => RequestDraft::new("GET", "/api/v1/tasks?status=done&limit=2", token),
        2 => RequestDraft::new("PUT", "/api/v1/handlers/known/pause", token).with_body("{\"reason\":7}"),
        _ => RequestDraft::new_emit(token, INVALID_BODY)
            .with_header("idempotency-key", "k")
            .with_header("ce-id", "1"),
    };
    let mut request = draft.build(ExpectedOutcome::ResponseOrClosed);
    mutate_bytes(&mut request.bytes, rng);
    request
}

/// Creates several requests for one connection. The first may have a body that contains another request.
pub(crate) fn generate_pipelined_requests(rng: &mut Rng, token: &str) -> HostileRequest {
    let inner = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    let head = format!("POST /api/v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n");
    let mut all = match rng.next_below(4) {
        0 => inner.repeat(2 + rng.next_below(50)).into_bytes(),
        1 => format!("{head}content-length: {}\r\n\r\n{inner}", inner.len()).into_bytes(),
        2 => format!("{head}content-length: 6\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{inner}")
            .into_bytes(),
        _ => format!("{head}content-length: 0\r\n\r\n{inner}").into_bytes(),
    };
    all.extend(random_bytes(rng, 100));
    new_invalid_http_request(all)
}

/// Creates a request that is cut off.
pub(crate) fn generate_truncated_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let mut request =
        RequestDraft::new_emit(token, "{\"type\":\"cut.short\"}").build(ExpectedOutcome::ResponseOrClosed);
    request.bytes.truncate(1 + rng.next_below(request.bytes.len() - 1));
    request
}
