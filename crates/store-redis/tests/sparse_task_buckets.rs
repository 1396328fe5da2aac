//! Unfinished tasks with distant numbers: each is alone in its bucket.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_core::store::Store;
use pointsman_store_conformance::fixture::{
    KEEP_EVERYTHING, NewEventExt, RegistrationBuilder, START_TIME, expect_ok, new_emit_batch, new_event, secs,
};
use pointsman_testing::{RedisReply, RedisServer, RedisSettings};

/// Number of tasks per bucket.
const TASKS_PER_BUCKET: u64 = 1024;
/// Number of tasks: more than a prune reads in two batches.
const TASK_COUNT: usize = 1_100;

fn decode_varint(bytes: &[u8], offset: usize) -> (u64, usize) {
    let length = bytes[offset..].iter().position(|byte| *byte < 0x80).unwrap() + 1;
    let digits = bytes[offset..offset + length].iter().rev();
    (digits.fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f)), length)
}

fn encode_varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Skips the numbers of a bucket, as if its tasks had been created and had ended. The changed nonce makes the store read its
/// counters again.
fn skip_task_numbers(server: &RedisServer) {
    let RedisReply::Bytes(mut state) = server.run_command(&["GET", "pointsman:store-state"]).unwrap() else {
        panic!()
    };
    // Version and nonce, then six numbers before the last task number.
    state[15] ^= 1;
    let offset = (0..6).fold(16, |offset, _| offset + decode_varint(&state, offset).1);
    let (tasks, length) = decode_varint(&state, offset);
    // Varints have the sign in the lowest bit.
    state.splice(offset..offset + length, encode_varint(tasks + 2 * TASKS_PER_BUCKET));
    server.run_command(&[b"SET".as_slice(), b"pointsman:store-state", &state]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_tasks_in_sparse_buckets_are_not_deleted() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let store: Arc<dyn Store> =
        Arc::new(pointsman_store_redis::Redis::open(&server.url(), START_TIME).await.unwrap());
    expect_ok(
        store
            .register_definitions(
                RegistrationBuilder::single_handler().unordered("index").build(),
                START_TIME,
            )
            .await,
    );
    let emit = async |event_type: &str, object: &str, now| {
        let (receipts, _) = expect_ok(
            store.append(vec![new_emit_batch(vec![new_event(event_type).with_key(object)])], None, now).await,
        );
        receipts.into_iter().next().unwrap().unwrap().events.remove(0)
    };
    let mut emitted = Vec::with_capacity(TASK_COUNT);
    for n in 0..TASK_COUNT {
        emitted.push(emit("record", &format!("object:{n}"), START_TIME).await);
        skip_task_numbers(&server);
    }
    emit("note", "unused", START_TIME).await;
    let buckets = server.run_command(&["ZCARD", "pointsman:active-task-buckets"]).unwrap().number();
    assert_eq!(buckets, Some(TASK_COUNT as i64), "each task has its own bucket");

    let (day, now) = (Duration::from_secs(86_400), START_TIME.plus(secs(2 * 86_400)));
    let retain = Retention { max_age: day, ..KEEP_EVERYTHING };
    let mut deleted = 0;
    loop {
        let pruned = expect_ok(store.prune_events_tasks_and_objects(retain, KEEP_EVERYTHING, day, now).await);
        deleted += pruned.deleted_object_count;
        if !pruned.has_more {
            break;
        }
    }
    assert_eq!(deleted, 1, "only the unused object is deleted");
    for (n, before) in emitted.iter().enumerate().rev().step_by(100) {
        assert_eq!(emit("note", &format!("object:{n}"), now).await.prev, Some(before.id), "{n}");
    }
    store.close();
}
