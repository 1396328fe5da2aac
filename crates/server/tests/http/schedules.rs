use pointsman_core::Timestamp;
use pointsman_engine::Setup;
use serde_json::{Value, json};

use crate::auth::tokens_yaml;
use crate::test_server::TestServer;

const SCHEDULES_CONFIG: &str = "
schedules:
  nightly: {cron: '0 3 * * *', timezone: Europe/Berlin, emit: {type: report.due, key: 'report:daily'}}
  often: {cron: 'every 1s', emit: {type: tick}}
sources:
  shop:
    run: {command: ['sleep', '600']}
    collections: [{name: orders, schedule: '0 0 3 * * ?'}, {name: customers}]
";

#[tokio::test(flavor = "multi_thread")]
async fn schedules_show_when_they_fire_and_what_they_create() {
    let server = TestServer::start_with_config(SCHEDULES_CONFIG, Setup::default()).await;
    let list = server.get("/api/v1/schedules").await.json();
    let names: Vec<_> =
        list["schedules"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["nightly", "often", "shop/orders"]);
    assert!(list["eventId"].is_u64() && list["next"].is_null());
    let first = server.get("/api/v1/schedules?limit=1").await.json();
    assert_eq!(first["next"], "nightly");
    let rest = server.get("/api/v1/schedules?limit=5&cursor=nightly").await.json();
    assert_eq!((&rest["schedules"][0]["name"], &rest["next"]), (&json!("often"), &json!(null)));

    let nightly = server.get("/api/v1/schedules/nightly").await.json();
    assert_eq!(
        (&nightly["expression"], &nightly["timezone"]),
        (&json!("0 3 * * *"), &json!("Europe/Berlin"))
    );
    assert!(!nightly["description"].as_str().unwrap().is_empty());
    assert_eq!(
        nightly["action"],
        json!({"event": {"type": "report.due", "key": "report:daily", "tenant": "default"}})
    );
    let next: Vec<Timestamp> =
        nightly["next"].as_array().unwrap().iter().map(|t| t.as_str().unwrap().parse().unwrap()).collect();
    assert!(next.len() == 5 && next.is_sorted_by(|a, b| a < b));
    assert_eq!((&nightly["held"], &nightly["defined"]), (&json!(false), &json!(true)));

    let orders = server.get("/api/v1/schedules/shop%2Forders").await.json();
    assert_eq!(orders["action"], json!({"run": {"source": "shop", "collection": "orders"}}));
    for (path, status) in [("nigthly", 404), ("shop%2Fcustomers", 404), ("a%20b", 400), ("a%2Fb%2Fc", 400)] {
        assert_eq!(
            server.get(&format!("/api/v1/schedules/{path}")).await.checked_problem_status(),
            status,
            "{path}"
        );
    }
    let hint = server.get("/api/v1/schedules/nigthly").await.json();
    assert!(hint["detail"].as_str().unwrap().contains("nightly"), "{hint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn planned_times_are_listed_for_the_requested_period() {
    let server = TestServer::start_with_config(SCHEDULES_CONFIG, Setup::default()).await;
    let week = "after=2027-03-22T00:00:00Z&until=2027-03-29T00:00:00Z";
    let list = server.get(&format!("/api/v1/schedules?times=1000&{week}")).await.json();
    let next = |at: usize| list["schedules"][at]["next"].as_array().unwrap();
    assert_eq!((next(0).len(), next(1).len(), next(2).len()), (7, 1000, 7));
    assert_eq!(next(0)[0], "2027-03-22T02:00:00.000000Z");
    assert_eq!(next(0)[6], "2027-03-28T01:00:00.000000Z", "the clocks have gone forward");
    assert_eq!(next(1)[0], "2027-03-22T00:00:01.000000Z");
    let one = server.get(&format!("/api/v1/schedules/nightly?times=2&{week}")).await.json();
    assert_eq!(one["next"], json!(["2027-03-22T02:00:00.000000Z", "2027-03-23T02:00:00.000000Z"]));
    assert_eq!(server.get("/api/v1/schedules/nightly?times=0").await.json()["next"], json!([]));
    for bad in ["times=1001", "times=-1", "times=x", "after=now", "until=x", "x=1"] {
        assert_eq!(
            server.get(&format!("/api/v1/schedules?{bad}")).await.checked_problem_status(),
            400,
            "{bad}"
        );
        assert_eq!(
            server.get(&format!("/api/v1/schedules/nightly?{bad}")).await.checked_problem_status(),
            400,
            "{bad}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_with_many_planned_times_ends_early() {
    let all: String =
        (0..13).map(|n| format!("  s{n:02}: {{cron: 'every 1s', emit: {{type: tick}}}}\n")).collect();
    let server = TestServer::start_with_config(&format!("schedules:\n{all}"), Setup::default()).await;
    let first = server.get("/api/v1/schedules?times=1000").await.json();
    assert_eq!((first["schedules"].as_array().unwrap().len(), &first["next"]), (10, &json!("s09")));
    let rest = server.get("/api/v1/schedules?times=1000&cursor=s09").await.json();
    assert_eq!((rest["schedules"].as_array().unwrap().len(), &rest["next"]), (3, &json!(null)));
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_show_warnings() {
    let server = TestServer::start_with_config(SCHEDULES_CONFIG, Setup::default()).await;
    let warnings = |name: &'static str| {
        let server = &server;
        async move { server.get(&format!("/api/v1/schedules/{name}")).await.json()["warnings"].clone() }
    };
    let unrouted_warning = |event_type: &str| format!("emits {event_type}, which is routed to no handler");
    assert_eq!(warnings("nightly").await, json!([unrouted_warning("report.due")]));
    assert_eq!(
        warnings("often").await,
        json!(["fires 86,400 times a day: every second", unrouted_warning("tick")])
    );
    assert_eq!(warnings("shop%2Forders").await, json!([]));
}

fn fire_rows(list: &Value) -> &Vec<Value> {
    list["fires"].as_array().expect("a list")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_has_a_row_per_planned_time() {
    let server = TestServer::start_with_config(SCHEDULES_CONFIG, Setup::default()).await;
    let path = "/api/v1/schedules/often/fires";
    let list = server.wait_until_get_returns(path, |list| fire_rows(list).len() >= 3).await;
    let planned: Vec<_> = fire_rows(&list).iter().map(|fire| fire["planned_at"].as_str().unwrap()).collect();
    assert!(planned.is_sorted_by(|a, b| a > b), "{planned:?}");
    let row = &fire_rows(&list)[0];
    assert!(["fired", "late", "caught_up"].contains(&row["outcome"].as_str().unwrap()), "{row}");
    let event = server.get(&format!("/api/v1/events/{}", row["event_id"])).await.json();
    assert_eq!(event["event"]["context"]["planned_at"].as_str().map(|t| &t[..19]), Some(&planned[0][..19]));
    let page = server.get(&format!("{path}?limit=1&before={}", planned[0])).await.json();
    assert_eq!(fire_rows(&page)[0]["planned_at"], planned[1]);
    assert_eq!(page["next"], planned[1]);
    assert_ne!(server.get("/api/v1/schedules/often").await.json()["last"], json!(null));
    for bad in ["limit=0", "limit=1001", "before=now", "x=1"] {
        assert_eq!(server.get(&format!("{path}?{bad}")).await.checked_problem_status(), 400, "{bad}");
    }
    assert_eq!(server.get("/api/v1/schedules/none/fires").await.checked_problem_status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_schedule_does_not_fire_and_is_marked_held() {
    let server = TestServer::start_with_config(SCHEDULES_CONFIG, Setup::default()).await;
    let response = server.put("/api/v1/schedules/often/pause", r#"{"reason":"a test"}"#).await;
    assert_eq!(response.status, 200, "{response:?}");
    let body = response.json();
    assert_eq!((&body["held"], &body["rules"][0]["reason"]), (&json!(true), &json!("a test")));
    assert_eq!(body["rules"][0]["space"], "schedule");
    let path = "/api/v1/schedules/often/fires";
    let held = |list: &Value| fire_rows(list).first().is_some_and(|fire| fire["reason"] == "held");
    let list = server.wait_until_get_returns(path, held).await;
    assert_eq!(fire_rows(&list)[0]["outcome"], "skipped");
    assert_eq!(server.delete("/api/v1/schedules/often/pause").await.json()["held"], false);
    server
        .wait_until_get_returns(path, |list| {
            fire_rows(list).first().is_some_and(|fire| fire["outcome"] == "fired")
        })
        .await;

    let blocked = server.put("/api/v1/schedules/shop%2Forders/block", "").await.json();
    assert_eq!(blocked["rules"][0]["kind"], "block");
    assert_eq!(
        server.get("/api/v1/handlers/shop").await.json()["rules"],
        json!([]),
        "its tasks are not held"
    );
    assert_eq!(server.delete("/api/v1/schedules/shop%2Forders/block").await.json()["rules"], json!([]));
    let tenant = server.put("/api/v1/schedules/often/pause", r#"{"tenant":"shop"}"#).await;
    assert_eq!((tenant.checked_problem_status(), &tenant.json()["pointer"]), (422, &json!("/tenant")));
    assert_eq!(server.put("/api/v1/schedules/oftne/pause", "").await.checked_problem_status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_can_be_run_now() {
    let server = TestServer::start_with_config(SCHEDULES_CONFIG, Setup::default()).await;
    let response = server.post("/api/v1/schedules/nightly/run", "").await;
    assert_eq!(response.status, 201, "{response:?}");
    let event = server.get(&format!("/api/v1/events/{}", response.json()["eventId"])).await.json();
    assert_eq!(
        (&event["event"]["TYPE"], &event["event"]["key"]),
        (&json!("report.due"), &json!("report:daily"))
    );
    assert_eq!(server.get("/api/v1/schedules/nightly/fires").await.json()["fires"], json!([]));

    let first = server.post("/api/v1/schedules/shop%2Forders/run", "").await;
    let again = server.post("/api/v1/schedules/shop%2Forders/run", "").await;
    assert_eq!((first.status, again.status), (201, 200));
    assert_eq!(first.json()["task_id"], again.json()["task_id"]);
    assert_eq!(server.post("/api/v1/schedules/none/run", "").await.checked_problem_status(), 404);
    assert_eq!(
        server.post("/api/v1/schedules/nightly/run", r#"{"x":1}"#).await.checked_problem_status(),
        400
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_bound_to_a_tenant_sees_only_the_schedules_of_the_tenant() {
    let list = [("other", "operator", Some("other"))];
    let mine = "  mine: {cron: '0 3 * * *', emit: {type: report.due, tenant: other}}\n";
    let yaml = SCHEDULES_CONFIG.replace("schedules:\n", &format!("schedules:\n{mine}"));
    let mut server =
        TestServer::start_with_config(&format!("{yaml}{}", tokens_yaml(&list)), Setup::default()).await;
    server.token = "other".into();
    let list = server.get("/api/v1/schedules").await.json();
    assert_eq!(list["schedules"].as_array().unwrap().len(), 1);
    assert_eq!(list["schedules"][0]["name"], "mine");
    for path in ["nightly", "shop%2Forders"] {
        assert_eq!(
            server.get(&format!("/api/v1/schedules/{path}")).await.checked_problem_status(),
            404,
            "{path}"
        );
        assert_eq!(
            server.post(&format!("/api/v1/schedules/{path}/run"), "").await.checked_problem_status(),
            404,
            "{path}"
        );
        assert_eq!(
            server.put(&format!("/api/v1/schedules/{path}/pause"), "").await.checked_problem_status(),
            404,
            "{path}"
        );
    }
    assert_eq!(server.post("/api/v1/schedules/mine/run", "").await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_cannot_run_a_blocked_schedule() {
    let list = [("root", "admin", None), ("ops", "operator", None)];
    let mut server =
        TestServer::start_with_config(&format!("{SCHEDULES_CONFIG}{}", tokens_yaml(&list)), Setup::default())
            .await;
    server.token = "root".into();
    server.put("/api/v1/schedules/nightly/pause", "").await;
    let path = "/api/v1/schedules/nightly/run";
    assert_eq!(
        server.call_with_token("ops", "POST", path, "").await.status,
        201,
        "an operator may run a schedule that an operator can resume"
    );
    server.put("/api/v1/schedules/nightly/block", r#"{"reason":"wrong figures"}"#).await;
    let response = server.call_with_token("ops", "POST", path, "").await;
    assert_eq!(response.checked_problem_status(), 409);
    let detail = response.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("blocked by root") && detail.contains("wrong figures"), "{detail}");
    assert_eq!(server.post(path, "").await.status, 201, "an admin may run a blocked schedule");
}
