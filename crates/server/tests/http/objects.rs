//! One object: its events, and the state of its lanes.

use pointsman_engine::Setup;
use serde_json::{Value, json};

use crate::test_server::TestServer;

const LANES_CONFIG: &str = "
handlers:
  loose: {run: pull, order: none}
  stay: {run: {command: ['sleep', '600']}}
  strict: {run: {command: ['false']}, retry: {max: 0}, on_error: halt}
event_handlers:
  a: [loose, stay, strict]
  b: [stay]
";

const EVENT_OF_TYPE_A: &str = r#"{"type":"a","key":"k"}"#;

async fn wait_for_lanes(server: &TestServer, is_expected: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let is_expected = |object: &Value| object["lanes"].as_array().is_some_and(|lanes| is_expected(lanes));
    server.wait_until_get_returns("/api/v1/objects/k", is_expected).await["lanes"]
        .as_array()
        .expect("a list")
        .clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_show_their_head_and_waiting_count() {
    let server = TestServer::start_with_config(LANES_CONFIG, Setup::default()).await;
    let emitted =
        server.post("/api/v1/events", &format!("[{EVENT_OF_TYPE_A},{EVENT_OF_TYPE_A}]")).await.json();
    let task = |event: usize, handler: usize| emitted["events"][event]["tasks"][handler].clone();
    server.emit(r#"{"type":"b","key":"k"}"#).await;
    server.emit(r#"{"type":"b","key":"k","tenant":"other"}"#).await;

    let running = |lane: &Value| lane["head"]["status"] == "RUNNING";
    let found = wait_for_lanes(&server, |lanes| running(&lanes[0]) && lanes[1]["halted"] == true).await;
    assert_eq!(found.len(), 2, "tasks of a handler without order are in no lane");
    let lane_fields = |lane: &Value| json!([lane["handler"], lane["halted"], lane["waiting"], lane["more"]]);
    assert_eq!(lane_fields(&found[0]), json!(["stay", false, 2, false]));
    assert_eq!(lane_fields(&found[1]), json!(["strict", true, 1, false]));
    assert_eq!((&found[0]["head"]["id"], &found[1]["head"]["id"]), (&task(0, 1), &task(0, 2)));
    let failed = server.get("/api/v1/tasks?key=k&status=FAILED").await.json();
    assert_eq!(found[1]["head"], failed["tasks"][0], "the same as in a list of tasks");
    let other = server.get("/api/v1/objects/k?tenant=other").await.json();
    assert_eq!((&other["lanes"][0]["waiting"], &other["moreLanes"]), (&json!(0), &json!(false)));

    // After the head of the halted lane is cancelled, the next task runs and halts the lane as well.
    server.post(&format!("/api/v1/tasks/{}/cancel", task(0, 2).as_str().unwrap()), "").await;
    let next = |lane: &Value| lane["head"]["id"] == task(1, 2) && lane["halted"] == true;
    assert_eq!(wait_for_lanes(&server, |lanes| next(&lanes[1])).await[1]["waiting"], 0);
    server.post(&format!("/api/v1/tasks/{}/cancel", task(1, 2).as_str().unwrap()), "").await;
    assert_eq!(wait_for_lanes(&server, |lanes| lanes.len() == 1).await[0]["handler"], "stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn limit_bounds_the_events_of_an_object() {
    let server = TestServer::start().await;
    server.emit(&format!("[{EVENT_OF_TYPE_A},{EVENT_OF_TYPE_A}]")).await;
    let last = server.emit(EVENT_OF_TYPE_A).await;
    let count = async |limit: &str| {
        let object = server.get(&format!("/api/v1/objects/k{limit}")).await.json();
        assert_eq!((&object["events"][0]["eventId"], &object["lanes"]), (&json!(last), &json!([])));
        object["events"].as_array().unwrap().len()
    };
    assert_eq!((count("").await, count("?limit=1").await, count("?limit=1000").await), (3, 1, 3));
    for limit in ["0", "1001", "x"] {
        assert_eq!(
            server.get(&format!("/api/v1/objects/k?limit={limit}")).await.checked_problem_status(),
            400,
            "{limit}"
        );
    }
    let unknown = server.get("/api/v1/objects/K?tenant=shop").await;
    assert_eq!(unknown.checked_problem_status(), 404);
    let detail = unknown.json()["detail"].as_str().unwrap().to_owned();
    assert_eq!(detail, "there is no object \"K\" of the tenant shop");
}
