//! Generates requests with invalid headers: tokens, `Idempotency-Key` and `Last-Event-ID`.

use crate::request::{HostileRequest, RequestDraft};
use crate::request_targets::{PATHS, PUBLIC_PATHS};
use pointsman_testing::Rng;

/// Creates a request with a missing, wrong or malformed token.
pub(crate) fn generate_invalid_token_request(rng: &mut Rng, token: &str) -> HostileRequest {
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

/// Creates a request with a duplicate or malformed `Idempotency-Key`, or a malformed `Last-Event-ID`.
pub(crate) fn generate_invalid_header_request(rng: &mut Rng, token: &str) -> HostileRequest {
    let emit = || RequestDraft::new_emit(token, "{\"type\":\"a\"}");
    let long = "x".repeat(256);
    let key: &[&[u8]] = &[b"", b"\xff", b"a\tb", b"\xc3\xbc", long.as_bytes()];
    match rng.next_below(3) {
        0 => emit().with_header("idempotency-key", key[rng.next_below(key.len())]).build_expecting_refusal(),
        1 => emit()
            .with_header("idempotency-key", "a")
            .with_header("idempotency-key", "a")
            .build_expecting_refusal(),
        _ => {
            let id = *rng.choose(&["x", "-1", "1.0", "9007199254740992", "0x1", "1 2"]);
            RequestDraft::new("GET", "/api/v1/stream", token)
                .with_header("last-event-id", id)
                .build_expecting_refusal()
        }
    }
}
