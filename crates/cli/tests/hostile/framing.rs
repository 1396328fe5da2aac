//! Requests that are hardly HTTP: heads and bodies that break the rules of the protocol itself.

use crate::atoms::{bytes, mutate};
use crate::request::{Draft, Expected, Request};
use pointsman_testing::Chance;

fn broken(bytes: impl Into<Vec<u8>>) -> Request {
    Request { bytes: bytes.into(), expected: Expected::Broken }
}

/// Heads that are wrong.
pub(crate) fn heads(chance: &mut Chance, token: &str) -> Request {
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
    match chance.below(5) {
        0 => broken(bytes(chance, 400)),
        1 => broken(format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(101 + chance.below(400)))),
        2 => broken(format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(65_000 + chance.below(200_000)))),
        3 => broken(format!("{} / HTTP/1.1\r\nauthorization: Bearer {token}\r\n\r\n", "M".repeat(70_000))),
        _ => broken(fixed[chance.below(fixed.len())]),
    }
}

/// A body that was never right, so that nothing is stored whatever its frame says.
const BODY: &str = "[[[";

/// Bodies that are framed wrongly.
pub(crate) fn frames(chance: &mut Chance, token: &str) -> Request {
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
    if chance.one_in(4) {
        let extension = "x".repeat(20_000 + chance.below(20_000));
        let frame = match chance.below(2) {
            0 => format!("transfer-encoding: chunked\r\n\r\n3;{extension}\r\n{BODY}\r\n0\r\n\r\n"),
            _ => format!("transfer-encoding: chunked\r\n\r\n0\r\n{}\r\n", "x: y\r\n".repeat(5_000)),
        };
        return broken(format!("{head}{frame}"));
    }
    broken(format!("{head}{}", chance.of(&fixed)))
}

/// Right requests with a few bytes changed anywhere in them. None of them could store anything as it was.
pub(crate) fn mutations(chance: &mut Chance, token: &str) -> Request {
    let draft = match chance.below(4) {
        0 => Draft::new("GET", "/api/v1/events?after=0&limit=3&timeout=0", token),
        1 => Draft::new("GET", "/api/v1/tasks?status=done&limit=2", token),
        2 => Draft::new("PUT", "/api/v1/handlers/known/pause", token).body("{\"reason\":7}"),
        _ => Draft::emit(token, BODY).header("idempotency-key", "k").header("ce-id", "1"),
    };
    let mut request = draft.expecting(Expected::Broken);
    mutate(&mut request.bytes, chance);
    request
}

/// Several requests at once on one connection, the first with a body that hides another.
pub(crate) fn pipelines(chance: &mut Chance, token: &str) -> Request {
    let inner = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    let head = format!("POST /api/v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n");
    let mut all = match chance.below(4) {
        0 => inner.repeat(2 + chance.below(50)).into_bytes(),
        1 => format!("{head}content-length: {}\r\n\r\n{inner}", inner.len()).into_bytes(),
        2 => format!("{head}content-length: 6\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{inner}")
            .into_bytes(),
        _ => format!("{head}content-length: 0\r\n\r\n{inner}").into_bytes(),
    };
    all.extend(bytes(chance, 100));
    broken(all)
}

/// Requests that break off.
pub(crate) fn cut_short(chance: &mut Chance, token: &str) -> Request {
    let mut request = Draft::emit(token, "{\"type\":\"cut.short\"}").expecting(Expected::Broken);
    request.bytes.truncate(1 + chance.below(request.bytes.len() - 1));
    request
}
