//! One object: its events, and the state of its lanes.

use pointsman_engine::Setup;
use serde_json::{Value, json};

use crate::house::House;

const CONFIG: &str = "
handlers:
  loose: {run: pull, order: none}
  stay: {run: {command: ['sleep', '600']}}
  strict: {run: {command: ['false']}, retry: {max: 0}, on_error: halt}
event_handlers:
  a: [loose, stay, strict]
  b: [stay]
";

const A: &str = r#"{"type":"a","key":"k"}"#;

async fn lanes(house: &House, wished: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let wished = |object: &Value| object["lanes"].as_array().is_some_and(|lanes| wished(lanes));
    house.until("/api/v1/objects/k", wished).await["lanes"].as_array().expect("a list").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_tell_their_heads_and_what_waits_behind() {
    let house = House::with(CONFIG, Setup::default()).await;
    let emitted = house.post("/api/v1/events", &format!("[{A},{A}]")).await.json();
    let task = |event: usize, handler: usize| emitted["events"][event]["tasks"][handler].clone();
    house.emit(r#"{"type":"b","key":"k"}"#).await;
    house.emit(r#"{"type":"b","key":"k","tenant":"other"}"#).await;

    let running = |lane: &Value| lane["head"]["status"] == "RUNNING";
    let found = lanes(&house, |lanes| running(&lanes[0]) && lanes[1]["halted"] == true).await;
    assert_eq!(found.len(), 2, "what runs without order is in no lane");
    let told = |lane: &Value| json!([lane["handler"], lane["halted"], lane["waiting"], lane["more"]]);
    assert_eq!(told(&found[0]), json!(["stay", false, 2, false]));
    assert_eq!(told(&found[1]), json!(["strict", true, 1, false]));
    assert_eq!((&found[0]["head"]["id"], &found[1]["head"]["id"]), (&task(0, 1), &task(0, 2)));
    let failed = house.get("/api/v1/tasks?key=k&status=FAILED").await.json();
    assert_eq!(found[1]["head"], failed["tasks"][0], "as lists have it");
    let other = house.get("/api/v1/objects/k?tenant=other").await.json();
    assert_eq!((&other["lanes"][0]["waiting"], &other["moreLanes"]), (&json!(0), &json!(false)));

    // The way out: the next one runs, and halts the lane in its turn.
    house.post(&format!("/api/v1/tasks/{}/cancel", task(0, 2).as_str().unwrap()), "").await;
    let next = |lane: &Value| lane["head"]["id"] == task(1, 2) && lane["halted"] == true;
    assert_eq!(lanes(&house, |lanes| next(&lanes[1])).await[1]["waiting"], 0);
    house.post(&format!("/api/v1/tasks/{}/cancel", task(1, 2).as_str().unwrap()), "").await;
    assert_eq!(lanes(&house, |lanes| lanes.len() == 1).await[0]["handler"], "stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_its_events_as_many_are_told_as_are_wanted() {
    let house = House::new().await;
    house.emit(&format!("[{A},{A}]")).await;
    let last = house.emit(A).await;
    let count = async |limit: &str| {
        let object = house.get(&format!("/api/v1/objects/k{limit}")).await.json();
        assert_eq!((&object["events"][0]["eventId"], &object["lanes"]), (&json!(last), &json!([])));
        object["events"].as_array().unwrap().len()
    };
    assert_eq!((count("").await, count("?limit=1").await, count("?limit=1000").await), (3, 1, 3));
    for limit in ["0", "1001", "x"] {
        assert_eq!(house.get(&format!("/api/v1/objects/k?limit={limit}")).await.problem(), 400, "{limit}");
    }
    let unknown = house.get("/api/v1/objects/K?tenant=shop").await;
    assert_eq!(unknown.problem(), 404);
    let detail = unknown.json()["detail"].as_str().unwrap().to_owned();
    assert_eq!(detail, "nothing has happened to \"K\" of the tenant shop");
}
