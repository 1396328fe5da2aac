use pointsman_engine::{Outcome, Setup};
use serde_json::{Value, json};

use crate::auth::tokens;
use crate::house::{House, handler};

fn gate<'a>(why: &'a Value, name: &str) -> &'a Value {
    let gates = why["gates"].as_array().expect("a list");
    gates.iter().find(|gate| gate["gate"] == name).unwrap_or_else(|| panic!("no gate {name} in {why}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_task_names_what_holds_it() {
    let house = House::with("", handler("job", |_| Outcome::done())).await;
    let late = house.task_of(r#"{"type":"job","key":"k","delay":"1h"}"#).await;
    house.put("/api/v1/handlers/job/pause", r#"{"reason":"lunch"}"#).await;
    let next = house.task_of(r#"{"type":"job","key":"k"}"#).await;

    let why = house.get(&format!("/api/v1/tasks/{late}/why")).await.json();
    assert_eq!((&why["task_id"], &why["status"]), (&json!(late), &json!("SCHEDULED")));
    assert!(why["eventId"].is_u64());
    let due = gate(&why, "due");
    assert_eq!((&due["open"], due["until"].as_str().unwrap().is_empty()), (&json!(false), false));
    let rule = gate(&why, "rule");
    assert_eq!((&rule["open"], &rule["rule"]["kind"]), (&json!(false), &json!("pause")));
    assert_eq!((&rule["rule"]["reason"], &rule["rule"]["name"]), (&json!("lunch"), &json!("job")));
    assert_eq!(gate(&why, "handler")["open"], true);

    let why = house.get(&format!("/api/v1/tasks/{next}/why")).await.json();
    assert_eq!(gate(&why, "lane")["tasks"], json!([late]));
    assert_eq!(why["summary"], gate(&why, "lane")["detail"], "the first that is closed");
    assert_eq!(house.get("/api/v1/tasks/none/why").await.problem(), 404);
    assert_eq!(house.get(&format!("/api/v1/tasks/{next}/why?x=1")).await.problem(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_or_has_ended_has_no_gates_but_a_word() {
    let config = "
handlers:
  stay: {run: {command: ['sleep', '600']}}
  fails: {run: {command: ['false']}, retry: {max: 0}}
event_handlers: {stay: [stay], fails: [fails]}
";
    let house = House::with(config, Setup::default()).await;
    let stay = house.task_of(r#"{"type":"stay"}"#).await;
    let fails = house.task_of(r#"{"type":"fails"}"#).await;
    let path = format!("/api/v1/tasks/{stay}");
    let task = house.until(&path, |task| task["status"] == "RUNNING").await;
    assert_eq!((&task["running"]["number"], &task["running"]["lease_until"]), (&json!(1), &json!("")));
    assert_eq!((&task["running"]["started_at"], &task["attempts"]), (&task["started_at"], &json!([])));
    let why = house.get(&format!("{path}/why")).await.json();
    assert_eq!((&why["status"], &why["gates"]), (&json!("RUNNING"), &json!([])));
    assert!(why["summary"].as_str().unwrap().contains("attempt 1"), "{why}");

    house.post(&format!("{path}/cancel"), "").await;
    let why = house.get(&format!("{path}/why")).await.json();
    assert_eq!((&why["status"], &why["gates"]), (&json!("CANCELED"), &json!([])));
    assert!(why["summary"].as_str().unwrap().contains("cancelled"), "{why}");
    assert_eq!(house.get(&path).await.json()["running"], json!(null));

    let path = format!("/api/v1/tasks/{fails}/why");
    let why = house.until(&path, |why| why["status"] == "FAILED").await;
    assert_eq!(why["gates"], json!([]));
    assert!(why["summary"].as_str().unwrap().contains("failed"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_token_learns_nothing_of_others() {
    let config = "
handlers:
  stay: {run: {command: ['sleep', '600']}, concurrency: 1}
event_handlers: {stay: [stay]}
";
    let list = [("rootadmin", "admin", None), ("shop", "viewer", Some("shop"))];
    let mut house = House::with(&format!("{config}{}", tokens(&list)), Setup::default()).await;
    house.token = "rootadmin".into();
    let theirs = house.task_of(r#"{"type":"stay","tenant":"other"}"#).await;
    house.until(&format!("/api/v1/tasks/{theirs}"), |task| task["status"] == "RUNNING").await;
    let ours = house.task_of(r#"{"type":"stay","key":"k","tenant":"shop"}"#).await;
    let next = house.task_of(r#"{"type":"stay","key":"k","tenant":"shop"}"#).await;
    house.put("/api/v1/handlers/stay/pause", r#"{"reason":"lunch"}"#).await;
    let path = format!("/api/v1/tasks/{next}/why");
    let whole = house.get(&path).await;
    assert_eq!(gate(&whole.json(), "concurrency")["tasks"], json!([theirs]));
    assert!(whole.text().contains("rootadmin") && whole.text().contains("pointsman-"), "{whole:?}");

    house.token = "shop".into();
    let answer = house.get(&path).await;
    for secret in [theirs.as_str(), "rootadmin", "pointsman-"] {
        assert!(!answer.text().contains(secret), "{secret} in {}", answer.text());
    }
    let why = answer.json();
    let crowded = gate(&why, "concurrency");
    assert_eq!((&crowded["open"], &crowded["tasks"]), (&json!(false), &json!([])));
    let told = crowded["detail"].as_str().unwrap();
    assert!(told.contains("1 of at most 1") && told.contains("one of the tasks"), "{told}");
    assert_eq!(gate(&why, "lane")["tasks"], json!([ours]), "its own is shown");
    let rule = gate(&why, "rule");
    assert_eq!((&rule["rule"]["kind"], &rule["rule"]["by"]), (&json!("pause"), &json!("")));
    assert!(rule["detail"].as_str().unwrap().contains("all tenants"), "{rule}");
    let handler = house.get("/api/v1/handlers/stay").await.json();
    assert_eq!((&handler["rules"][0]["by"], &handler["rules"][0]["reason"]), (&json!(""), &json!("lunch")));
}
