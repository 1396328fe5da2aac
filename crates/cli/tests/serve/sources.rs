//! Sources and schedules: running one now, and seeing when they fire.

use crate::node::{Place, exists, until};

const SHOP: &str = r#"
handlers:
  report: {run: {command: ["true"]}}
event_handlers:
  report.due: [report]
sources:
  shop:
    run: {command: ["sh", "-c", "echo $POINTSMAN_COLLECTION; test $POINTSMAN_COLLECTION = orders"]}
    retry: {max: 0}
    collections:
      - {name: orders, schedule: "0 0 3 * * ?", timezone: Europe/Berlin}
      - {name: customers}
  slow:
    run: {command: ["sh", "-c", "echo $$ > pid; mv pid begun; while [ ! -e go ]; do sleep 0.05; done"]}
    collections: [{name: all}]
schedules:
  often: {cron: every 1s, emit: {type: tick}}
  nightly: {cron: "0 3 * * *", emit: {type: report.due, key: "report:1"}}
"#;

#[test]
fn a_run_is_followed_to_its_end_and_ends_as_it_does() {
    let mut place = Place::new(SHOP);
    let _node = place.serve();
    let good = place.ok(&["run", "shop/orders", "--wait"]);
    assert!(good.starts_with("shop_orders_") && good.ends_with("orders"), "{good}");

    let bad = place.run(&["run", "shop/customers", "--wait"]);
    assert_eq!(bad.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("FAILED"));

    let unknown = place.run(&["run", "shop/order"]);
    let told = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(unknown.status.code() == Some(1) && told.contains("orders"), "the nearest is named: {told}");
    let tasks = place.json(&["tasks", "list", "--source", "shop", "--collection", "orders"]);
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 1);
}

#[test]
fn a_collection_has_one_task_at_a_time() {
    let mut place = Place::new(SHOP);
    let _node = place.serve();
    let first = place.json(&["run", "slow/all"]);
    exists(&place.path("begun"));
    let again = place.json(&["run", "slow/all"]);
    assert_eq!((&first["created"], &again["created"]), (&true.into(), &false.into()));
    assert_eq!(first["task_id"], again["task_id"]);
    // Scripts read the id; that it is not new is told beside it.
    let told = place.run(&["run", "slow/all"]);
    assert_eq!(String::from_utf8_lossy(&told.stdout).trim_end(), first["task_id"].as_str().unwrap());
    assert!(String::from_utf8_lossy(&told.stderr).contains("already"));
    std::fs::write(place.path("go"), "").unwrap();
    until("it has ended", || {
        place.json(&["tasks", "show", first["task_id"].as_str().unwrap()])["status"] == "SUCCESS"
    });
    assert_eq!(place.json(&["run", "slow/all"])["created"], true);
}

#[test]
fn schedules_are_listed_with_their_past_and_can_be_run_and_held() {
    let mut place = Place::new(SHOP);
    let _node = place.serve();
    let list = place.ok(&["schedules"]);
    for name in ["often", "nightly", "shop/orders"] {
        assert!(list.contains(name), "{name} in\n{list}");
    }
    until("one has fired", || {
        let fires = place.json(&["schedules", "fires", "often"]);
        fires["fires"].as_array().unwrap().iter().any(|fire| fire["outcome"] == "fired")
    });
    assert!(place.ok(&["schedules", "fires", "often"]).contains("fired"));

    let event = place.json(&["schedules", "run", "nightly"]);
    assert!(event["eventId"].is_u64(), "{event}");
    let task = place.json(&["schedules", "run", "shop/orders"]);
    assert!(task["task_id"].as_str().unwrap().starts_with("shop_orders_"), "{task}");

    let held = place.json(&["pause", "--schedule", "often", "--reason", "a test"]);
    assert_eq!((&held["held"], &held["rules"][0]["reason"]), (&true.into(), &"a test".into()));
    until("a time was skipped", || place.ok(&["schedules", "fires", "often"]).contains("skipped: held"));
    assert_eq!(place.json(&["resume", "--schedule", "often"])["held"], false);
    let collection = place.json(&["pause", "shop/orders"]);
    assert_eq!(collection["rules"][0]["name"], "shop/orders");
}
