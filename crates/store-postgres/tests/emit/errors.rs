//! A call of `emit` with an invalid event fails with the message of the HTTP API, and nothing is stored.

use pointsman_core::names::{ENGINE_EVENT_TYPES, STREAM_FRAME_TYPES};
use pointsman_core::{EventType, ObjectKey, Priority, Tenant};
use tokio_postgres::Client;
use tokio_postgres::error::DbError;

use crate::test_store::{TestStore, emit_in_sql};

/// Returns the error of a call, which must fail.
async fn error_of_sql_call(client: &Client, call: &str) -> DbError {
    match client.query_one(&format!("SELECT pointsman.{call}"), &[]).await {
        Ok(_) => panic!("{call:.80} was accepted"),
        Err(error) => error.as_db_error().unwrap().clone(),
    }
}

async fn assert_rejected(client: &Client, call: &str, message: &str) {
    let error = error_of_sql_call(client, call).await;
    assert_eq!((error.code().code(), error.message()), ("22023", message), "{call:.80}");
}

async fn assert_nothing_stored(client: &Client) {
    let count_rows_sql = "SELECT (SELECT count(*) FROM pointsman.outbox) + (SELECT count(*) FROM pointsman.outbox_idempotency_key)
                     + (SELECT count(*) FROM pointsman.journal)";
    assert_eq!(client.query_one(count_rows_sql, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test]
async fn invalid_names_get_the_error_texts_of_the_core() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    let long = "é".repeat(300);
    for bad in ["", ".", "a.", ".a", "a..b", "a b", "a/b", "é", "a\n", "a'b", "a\"\\b", "a\u{1}", &long] {
        let core_error = EventType::new(bad).unwrap_err();
        let error = client.query_one("SELECT pointsman.emit($1)", &[&bad]).await.unwrap_err();
        assert_eq!(error.as_db_error().unwrap().message(), format!("type: {core_error}"));
    }
    for bad in ["", "a\r\nb", "\t", "a\u{7f}", "a\u{85}", &long] {
        let core_error = ObjectKey::new(bad).unwrap_err();
        for argument in ["key", "sub"] {
            let call = format!("SELECT pointsman.emit('a', {argument} => $1)");
            let error = client.query_one(&call, &[&bad]).await.unwrap_err();
            assert_eq!(error.as_db_error().unwrap().message(), format!("{argument}: {core_error}"));
        }
    }
    for bad in ["", "a b", "é", "a/b", "a\n", &long] {
        let core_error = Tenant::new(bad).unwrap_err();
        let error = client.query_one("SELECT pointsman.emit('a', tenant => $1)", &[&bad]).await.unwrap_err();
        assert_eq!(error.as_db_error().unwrap().message(), format!("tenant: {core_error}"));
    }
    for bad in [0, -1, 9001, i32::MAX] {
        let core_error = Priority::try_from(i64::from(bad)).unwrap_err();
        assert_rejected(
            &client,
            &format!("emit('a', priority => {bad})"),
            &format!("priority: {core_error}"),
        )
        .await;
    }
    assert_nothing_stored(&client).await;
}

#[tokio::test]
async fn other_invalid_arguments_name_what_is_allowed() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    let context = "emit('a', context => jsonb_build_object";
    for (call, message) in [
        ("emit(NULL)", "type: an event has a type"),
        (
            "emit('a', value => to_jsonb(repeat('x', 1048575)))",
            "value: a value has at most 1048576 bytes, this one has 1048577",
        ),
        (
            "emit('a', value => (repeat('[', 101) || repeat(']', 101))::jsonb)",
            "value: nested deeper than 100",
        ),
        (
            r#"emit('a', value => (repeat('{"a":', 101) || '1' || repeat('}', 101))::jsonb)"#,
            "value: nested deeper than 100",
        ),
        ("emit('a', value => '1e309')", "value: a number too large for a double"),
        (r#"emit('a', value => '{"a": [1, -1e400]}')"#, "value: a number too large for a double"),
        ("emit('a', context => '[]')", "context: this is not an object of strings"),
        ("emit('a', context => 'null')", "context: this is not an object of strings"),
        (r#"emit('a', context => '{"a/b~": 1}')"#, "context/a~1b~0: this is not a string"),
        (&format!("{context}('a', repeat('x', 4097)))"), "context/a: it has more than 4096 bytes"),
        (&format!("{context}(repeat('x', 4097), ''))"), "context: a name in it has more than 4096 bytes"),
        (
            "emit('a', context => (SELECT jsonb_object_agg(i::text, '') FROM generate_series(1, 65) i))",
            "context: a context has at most 64 entries, this one has 65",
        ),
        ("emit('a', delay => '-1s')", "delay: a delay is from 0 to 36600 days, this one is -00:00:01"),
        (
            "emit('a', delay => '36601 days')",
            "delay: a delay is from 0 to 36600 days, this one is 36601 days",
        ),
        (
            "emit('a', delay => '10000000 years')",
            "delay: a delay is from 0 to 36600 days, this one is 10000000 years",
        ),
    ] {
        assert_rejected(&client, call, message).await;
    }
    for bad in ["''", "'é'", "repeat('x', 256)", "E'a\\n'"] {
        let message = "idempotency_key: an idempotency key has 1 to 255 printable ASCII characters";
        assert_rejected(&client, &format!("emit('a', idempotency_key => {bad})"), message).await;
    }
    // Values that PostgreSQL itself rejects as JSON.
    for bad in [r#"'"\u0000"'"#, r#"'"\ud800"'"#, "'{'"] {
        assert!(
            error_of_sql_call(&client, &format!("emit('a', value => {bad})"))
                .await
                .code()
                .code()
                .starts_with("22P0")
        );
    }
    assert_nothing_stored(&client).await;
}

#[tokio::test]
async fn values_at_the_limits_are_accepted() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    for call in [
        "emit(repeat('x', 255), repeat('é', 256), sub => '../x ключ')",
        "emit('a', value => (repeat('[', 100) || repeat(']', 100))::jsonb)",
        "emit('a', value => to_jsonb(repeat('x', 1048574)))",
        "emit('a', value => '[1.7976931348623157e308, -1.7976931348623157e308, 1e-400]')",
        "emit('a', tenant => repeat('x', 128), delay => '36600 days', priority => 9000)",
        "emit('a', delay => '0', priority => 1, idempotency_key => ' ' || repeat('~', 254))",
        "emit('a', context => (SELECT jsonb_object_agg(i || repeat('n', 4090), repeat('x', 4096))
                               FROM generate_series(1, 64) i))",
        "emit('Eventful.OrderStarted')",
        "emit('task.done')",
        "emit('Torn.page')",
    ] {
        emit_in_sql(&client, call).await;
    }
    store_node.wait_for_events(10).await;
    let refused_count = client.query_one("SELECT count(*) FROM pointsman.outbox_refused", &[]).await.unwrap();
    assert_eq!(refused_count.get::<_, i64>(0), 0);
}

#[tokio::test]
async fn reserved_types_are_those_of_the_core() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    let reserved_types = client.query_one("SELECT pointsman.reserved_types()", &[]).await.unwrap();
    assert_eq!(reserved_types.get::<_, Vec<String>>(0), ENGINE_EVENT_TYPES);
    for event_type in ENGINE_EVENT_TYPES {
        for event_type in [event_type.to_string(), format!("{event_type}.mine")] {
            let message = format!("type: only the engine itself emits {event_type}");
            assert_rejected(&client, &format!("emit('{event_type}')"), &message).await;
        }
    }
    let frames = client.query_one("SELECT pointsman.stream_frame_types()", &[]).await.unwrap();
    assert_eq!(frames.get::<_, Vec<String>>(0), STREAM_FRAME_TYPES);
    for event_type in STREAM_FRAME_TYPES {
        let message = format!(
            "type: {event_type} is the name of a frame of the event stream; use another type, such as {event_type}.changed"
        );
        assert_rejected(&client, &format!("emit('{event_type}')"), &message).await;
    }
    assert_nothing_stored(&client).await;
}

#[tokio::test]
async fn session_settings_do_not_affect_emit() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    client
        .batch_execute(
            "SET standard_conforming_strings = off; SET escape_string_warning = off; SET bytea_output = escape;
             SET IntervalStyle = iso_8601; SET TimeZone = 'Pacific/Chatham'; SET search_path = pg_temp;
             CREATE TEMP TABLE outbox (n bigint); CREATE TEMP TABLE drainer_state (last_value bigint)",
        )
        .await
        .unwrap();
    assert_rejected(
        &client,
        "emit('a', E'x\\u0007')",
        "key: a key holds no control characters, this one has '\\u{7}'",
    )
    .await;
    let first = emit_in_sql(&client, "emit('a', delay => '1 day', idempotency_key => 'once')").await;
    client.batch_execute("RESET ALL").await.unwrap();
    let second = emit_in_sql(&client, "emit('a', delay => '1 day', idempotency_key => 'once')").await;
    assert_eq!(first, second);
    store_node.wait_for_events(1).await;
}
