//! Sources and schedules: runs them on request, and lists and pauses their times.

use crate::test_server::{ServerFixture, wait_for_file, wait_until};

const SOURCES_AND_SCHEDULES_CONFIG: &str = r#"
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
    run: {command: ["sh", "-c", "echo $$ > pid; mv pid started; while [ ! -e finish ]; do sleep 0.05; done"]}
    collections: [{name: all}]
schedules:
  often: {cron: every 1s, emit: {type: tick}}
  nightly: {cron: "0 3 * * *", emit: {type: report.due, key: "report:1"}}
"#;

#[test]
fn run_wait_follows_the_log_and_fails_with_the_task() {
    let mut pointsman = ServerFixture::new(SOURCES_AND_SCHEDULES_CONFIG);
    let _node = pointsman.serve();
    let good = pointsman.run_ok(&["run", "shop/orders", "--wait"]);
    assert!(good.starts_with("shop_orders_") && good.ends_with("orders"), "{good}");

    let bad = pointsman.run_command(&["run", "shop/customers", "--wait"]);
    assert_eq!(bad.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("FAILED"));

    let unknown = pointsman.run_command(&["run", "shop/order"]);
    let stderr = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(unknown.status.code() == Some(1) && stderr.contains("orders"), "the nearest is named: {stderr}");
    let tasks = pointsman.run_json(&["tasks", "list", "--source", "shop", "--collection", "orders"]);
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 1);
}

#[test]
fn a_collection_has_one_task_at_a_time() {
    let mut pointsman = ServerFixture::new(SOURCES_AND_SCHEDULES_CONFIG);
    let _node = pointsman.serve();
    let first = pointsman.run_json(&["run", "slow/all"]);
    wait_for_file(&pointsman.file_path("started"));
    let again = pointsman.run_json(&["run", "slow/all"]);
    assert_eq!((&first["created"], &again["created"]), (&true.into(), &false.into()));
    assert_eq!(first["task_id"], again["task_id"]);
    // Standard output has only the id, for scripts; the note is on standard error.
    let repeated = pointsman.run_command(&["run", "slow/all"]);
    assert_eq!(String::from_utf8_lossy(&repeated.stdout).trim_end(), first["task_id"].as_str().unwrap());
    assert!(String::from_utf8_lossy(&repeated.stderr).contains("already"));
    std::fs::write(pointsman.file_path("finish"), "").unwrap();
    wait_until("it has ended", || {
        pointsman.run_json(&["tasks", "show", first["task_id"].as_str().unwrap()])["status"] == "SUCCESS"
    });
    assert_eq!(pointsman.run_json(&["run", "slow/all"])["created"], true);
}

#[test]
fn schedules_are_listed_with_past_times_and_can_be_run_and_paused() {
    let mut pointsman = ServerFixture::new(SOURCES_AND_SCHEDULES_CONFIG);
    let _node = pointsman.serve();
    let list = pointsman.run_ok(&["schedules"]);
    for name in ["often", "nightly", "shop/orders"] {
        assert!(list.contains(name), "{name} in\n{list}");
    }
    wait_until("one has fired", || {
        let fires = pointsman.run_json(&["schedules", "fires", "often"]);
        fires["fires"].as_array().unwrap().iter().any(|fire| fire["outcome"] == "fired")
    });
    assert!(pointsman.run_ok(&["schedules", "fires", "often"]).contains("fired"));

    let event = pointsman.run_json(&["schedules", "run", "nightly"]);
    assert!(event["eventId"].is_u64(), "{event}");
    let task = pointsman.run_json(&["schedules", "run", "shop/orders"]);
    assert!(task["task_id"].as_str().unwrap().starts_with("shop_orders_"), "{task}");

    let paused = pointsman.run_json(&["pause", "--schedule", "often", "--reason", "a test"]);
    assert_eq!((&paused["held"], &paused["rules"][0]["reason"]), (&true.into(), &"a test".into()));
    wait_until("a time was skipped", || {
        pointsman.run_ok(&["schedules", "fires", "often"]).contains("skipped: held")
    });
    assert_eq!(pointsman.run_json(&["resume", "--schedule", "often"])["held"], false);
    let collection = pointsman.run_json(&["pause", "shop/orders"]);
    assert_eq!(collection["rules"][0]["name"], "shop/orders");
}
