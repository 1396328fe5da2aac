use pointsman_api::CausedEventBody;
use pointsman_api::client::Client;
use pointsman_core::{EventType, Json, NewEvent, Tenant};
use pointsman_engine::{Delivery, HandlerOutcome};
use serde_json::{Value, json};

use crate::auth::tokens_yaml;
use crate::test_server::{TestServer, in_process_handler_setup};

/// A handler that emits an event with the next lower number, down to zero. For an event of the type `job.fork` the
/// handler also emits the same event for the tenant `other`.
fn succeed_and_emit_next_lower_number(delivery: &Delivery) -> HandlerOutcome {
    let event = delivery.task.subject.event().expect("an event");
    let number: u64 = event.value.decode().expect("a number");
    let child = |tenant: &Tenant| NewEvent {
        value: Json::from_value(&(number - 1)).expect("a number"),
        tenant: tenant.clone(),
        ..NewEvent::new(event.event_type.clone())
    };
    let mut emits = Vec::new();
    if number > 0 {
        emits.push(child(&event.tenant));
    }
    if number > 0 && event.event_type == EventType::new("job.fork").expect("a type") {
        emits.push(child(&Tenant::new("other").expect("a tenant")));
    }
    HandlerOutcome { emitted_events: emits, ..HandlerOutcome::succeeded() }
}

/// Waits until the journal has this many events of a type with the number zero.
async fn wait_for_events_with_value_zero(server: &TestServer, event_type: &str, count: usize) {
    server
        .wait_until_get_returns(&format!("/api/v1/events?after=0&return={event_type}"), |seq| {
            let events = seq["eventSnapshots"].as_array().cloned().unwrap_or_default();
            events.iter().filter(|event| event["value"] == 0).count() == count
        })
        .await;
}

fn count_caused_events(caused: &Value) -> usize {
    let list = caused.as_array().expect("a list");
    list.iter().map(|event| 1 + count_caused_events(&event["caused"])).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_shows_the_tree_of_the_events_it_caused() {
    let list = [("admin", "admin", None), ("tenant-viewer", "viewer", Some("default"))];
    let mut server = TestServer::start_with_config(
        &tokens_yaml(&list),
        in_process_handler_setup("job", succeed_and_emit_next_lower_number),
    )
    .await;
    server.token = "admin".into();
    let id = server.emit(r#"{"type":"job.fork","value":3}"#).await;
    wait_for_events_with_value_zero(&server, "job.fork", 8).await;
    let path = format!("/api/v1/events/{id}");
    let root = server.get(&path).await.json();
    assert_eq!(
        (count_caused_events(&root["caused"]), &root["causedTruncated"]),
        (14, &json!(false)),
        "{root}"
    );
    let first = &root["caused"][0];
    assert_eq!(first["task"], root["tasks"][0]["id"]);
    assert_eq!((&first["event"]["TYPE"], &first["event"]["value"]), (&json!("job.fork"), &json!(2)));
    assert_eq!(first["caused"].as_array().unwrap().len(), 2);
    assert_eq!(root["caused"][1]["event"]["tenant"], "other");

    let child = server.get(&format!("/api/v1/events/{}", first["event"]["eventId"])).await.json();
    assert_eq!(
        (count_caused_events(&child["caused"]), &child["caused"]),
        (6, &first["caused"]),
        "the tree continues there"
    );
    assert_eq!(first["caused"][0]["task"], child["tasks"][0]["id"]);
    assert_eq!(child["cause"], json!({"eventId": id, "task": root["tasks"][0]["id"], "depth": 1}));

    let theirs = &root["caused"][1]["caused"][0]["event"]["eventId"];
    server.token = "tenant-viewer".into();
    assert_eq!(
        count_caused_events(&server.get(&path).await.json()["caused"]),
        3,
        "only events of its own tenant"
    );
    assert_eq!(server.get(&format!("/api/v1/events/{theirs}")).await.checked_problem_status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn causes_of_other_tenants_are_hidden() {
    let act = |_: &Delivery| {
        let tenant = Tenant::new("other").expect("a tenant");
        let child = NewEvent { tenant, ..NewEvent::new(EventType::new("child").expect("a type")) };
        HandlerOutcome { emitted_events: vec![child], ..HandlerOutcome::succeeded() }
    };
    let list = [("admin", "admin", None), ("tenant-viewer", "viewer", Some("other"))];
    let mut server =
        TestServer::start_with_config(&tokens_yaml(&list), in_process_handler_setup("job", act)).await;
    server.token = "admin".into();
    server.emit(r#"{"type":"job"}"#).await;
    server.token = "tenant-viewer".into();
    let found = server
        .wait_until_get_returns("/api/v1/events?limit=-1&return=child", |seq| seq["TYPE"] == "NonEmpty")
        .await;
    let path = format!("/api/v1/events/{}", found["eventSnapshots"][0]["eventId"]);
    assert_eq!(server.get(&path).await.json()["cause"], json!({"eventId": null, "task": null, "depth": 1}));
    assert_ne!(
        server.call_with_token("admin", "GET", &path, "").await.json()["cause"]["eventId"],
        json!(null)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_causal_trees_are_truncated_and_marked() {
    let server = TestServer::start_with_config(
        "",
        in_process_handler_setup("job", succeed_and_emit_next_lower_number),
    )
    .await;
    let id = server.emit(r#"{"type":"job","value":50}"#).await;
    wait_for_events_with_value_zero(&server, "job", 1).await;
    let client = Client::new(&format!("http://{}", server.address), Some(&server.token)).unwrap();
    let detail = client.read_event(id).await.unwrap();
    assert!(detail.are_caused_events_truncated);
    let mut last: &CausedEventBody = &detail.caused_events[0];
    let mut depth = 1;
    while let Some(below) = last.caused_events.first() {
        (last, depth) = (below, depth + 1);
    }
    let rest = client.read_event(last.event.event_id).await.unwrap();
    assert_eq!(
        (rest.caused_events.len(), rest.are_caused_events_truncated),
        (1, false),
        "the rest can be read separately"
    );
    assert_eq!(rest.cause.unwrap().depth, depth);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_event_is_shown_as_in_the_event_list() {
    let server =
        TestServer::start_with_config("", in_process_handler_setup("job", |_| HandlerOutcome::failed("no")))
            .await;
    server.emit(r#"{"type":"job"}"#).await;
    let path = "/api/v1/events?after=0&return=TaskClosed";
    let seq = server.wait_until_get_returns(path, |seq| seq["TYPE"] == "NonEmpty").await;
    let engine_event = &seq["eventSnapshots"][0];
    let shown = server.get(&format!("/api/v1/events/{}", engine_event["eventId"])).await.json();
    assert_eq!(shown["event"], *engine_event);
    assert_eq!(engine_event["tenant"], Value::Null);
}
