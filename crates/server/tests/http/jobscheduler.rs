//! `/jobscheduler/master/api/order`, in the format of the JobScheduler API.

use std::time::Duration;

use pointsman_core::store::{NewOrder, OrderCommand};
use pointsman_core::{Tenant, Timestamp};
use pointsman_engine::machine_clock_now;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::auth::tokens_yaml;
use crate::chain_fixture::{StepGate, chain_setup, new_order, retrying_chain, two_step_chain};
use crate::raw_http_client::read_response;
use crate::test_server::TestServer;

const ORDERS_URL: &str = "/jobscheduler/master/api/order";

async fn get_orders_json(server: &TestServer, rest: &str) -> Value {
    let response = server.get(&format!("{ORDERS_URL}{rest}")).await;
    assert_eq!(response.status, 200, "{rest}: {}", response.text());
    response.json()
}

fn order_paths(orders: &Value) -> Vec<&str> {
    orders["orders"].as_array().expect("orders").iter().filter_map(|order| order["path"].as_str()).collect()
}

fn event_keys(seq: &Value) -> Vec<&str> {
    let events = seq["eventSnapshots"].as_array().expect("events");
    events.iter().filter_map(|event| event["key"].as_str()).collect()
}

/// Starts a server with three stopped chains.
async fn start_server_with_stopped_chains() -> TestServer {
    let server = TestServer::start_with_config(
        "",
        chain_setup(&StepGate::new_open(), ["/a/x", "/a/b/y", "/z"].map(two_step_chain).into()),
    )
    .await;
    for path in ["/a/x", "/a/b/y", "/z"] {
        server.set_chain_stopped(path, true).await;
    }
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_chains_and_orders_are_selected_by_get_and_post() {
    let server = start_server_with_stopped_chains().await;
    for key in ["/a/x,1", "/a/x,12", "/a/b/y,1", "/z,1"] {
        server.add_order_to_engine(new_order(key)).await;
    }
    let head = get_orders_json(&server, "").await["eventId"].clone();
    assert!(head.as_u64().unwrap() > 0);
    for (path, want) in [
        ("/", vec!["/a/b/y,1", "/a/x,1", "/a/x,12", "/z,1"]),
        ("/a/", vec!["/a/b/y,1", "/a/x,1", "/a/x,12"]),
        ("/a/*", vec!["/a/x,1", "/a/x,12"]),
        ("/a/x", vec!["/a/x,1", "/a/x,12"]),
        ("/a/b/", vec!["/a/b/y,1"]),
        ("/*", vec!["/z,1"]),
        ("/none/", vec![]),
        ("/a", vec![]),
    ] {
        let all = get_orders_json(&server, &format!("{path}?return=OrderOverview")).await;
        assert_eq!(order_paths(&all), want, "{path}");
        assert_eq!(all["eventId"], head);
        assert_eq!(get_orders_json(&server, path).await, all, "without `return`");
        let body = json!({"path": path}).to_string();
        let posted = server.post(&format!("{ORDERS_URL}?return=OrderOverview"), &body).await;
        assert_eq!(posted.json(), all, "{path}");
    }
    let all = get_orders_json(&server, "").await;
    for (path, body) in [("", "{}"), ("", ""), ("/", "{}"), ("", r#"{"path":null}"#)] {
        assert_eq!(server.post(&format!("{ORDERS_URL}{path}"), body).await.json(), all, "{body}");
    }

    let one = get_orders_json(&server, "/a/x,1").await;
    assert_eq!(
        one,
        json!({"TYPE": "OrderOverview", "path": "/a/x,1", "nodeId": "a", "orderState": "notPlanned",
            "suspended": false, "taskId": one["taskId"], "eventId": head})
    );
    assert_eq!(server.post(ORDERS_URL, r#"{"path":"/a/x,1"}"#).await.json(), one);
    assert_eq!(server.get(&format!("{ORDERS_URL}/a/x,2")).await.checked_problem_status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overview_shows_the_state_of_an_order() {
    let gate = StepGate::new_closed();
    let server = TestServer::start_with_config(
        "",
        chain_setup(&gate, vec![two_step_chain("/a"), retrying_chain("/p")]),
    )
    .await;
    let at = |key: &str| format!("{ORDERS_URL}/{key}");
    let later = Timestamp::from_millis(machine_clock_now().millis() + 3_600_000);
    server.add_order_to_engine(NewOrder { planned_at: Some(later), ..new_order("/a,later") }).await;
    let one = get_orders_json(&server, "/a,later").await;
    assert_eq!((&one["orderState"], &one["plannedAt"]), (&"planned".into(), &later.to_string().into()));
    assert!(one.get("startedAt").is_none());

    server.add_order_to_engine(new_order("/a,1")).await;
    let one = server.wait_until_get_returns(&at("a,1"), |one| one["orderState"] == "inProcess").await;
    assert!(one["taskId"].as_str().unwrap().starts_with("work_a_") && one["startedAt"].is_string(), "{one}");
    server.apply_order_command("/a,1", OrderCommand::Suspend).await;
    let one = get_orders_json(&server, "/a,1").await;
    assert_eq!((&one["orderState"], &one["suspended"]), (&"inProcess".into(), &true.into()));
    gate.let_steps_finish(1);
    let one = server.wait_until_get_returns(&at("a,1"), |one| one["orderState"] == "suspended").await;
    assert_eq!((&one["nodeId"], one.get("taskId")), (&"b".into(), None));

    server.add_failing_order_to_engine("/p,1").await;
    gate.let_steps_finish(1);
    let one = server.wait_until_get_returns(&at("p,1"), |one| one["orderState"] == "setback").await;
    assert!(one["setbackUntil"].is_string() && one["nodeId"] == "a", "{one}");
}

/// Describes each event by its key, type and fields.
fn describe_events(seq: &Value) -> Vec<String> {
    assert_eq!(seq["TYPE"], "NonEmpty", "{seq}");
    let events = seq["eventSnapshots"].as_array().expect("events").iter();
    let describe = |event: &Value| {
        let field = |name: &str| event.get(name).and_then(Value::as_str).map(|text| format!(" {text}"));
        let fields = ["fromNodeId", "nodeId"].iter().filter_map(|name| field(name));
        let transition = event["nodeTransition"]["TYPE"].as_str().map(|transition| format!(" {transition}"));
        let key = event["key"].as_str().unwrap_or_default();
        format!(
            "{key} {}{}",
            event["TYPE"].as_str().expect("a type"),
            fields.chain(transition).collect::<String>()
        )
    };
    events.map(describe).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_folder_are_read() {
    let server = TestServer::start_with_config(
        "",
        chain_setup(&StepGate::new_open(), vec![two_step_chain("/a/x"), two_step_chain("/z")]),
    )
    .await;
    let start = get_orders_json(&server, "").await["eventId"].as_u64().unwrap();
    // An emitted event whose key looks like that of an order.
    let emitted = server.emit(r#"{"type":"record","key":"/a/x,1"}"#).await;
    server.add_order_to_engine(new_order("/z,1")).await;
    server.add_order_to_engine(new_order("/a/x,1")).await;
    server.wait_until_get_returns(ORDERS_URL, |all| order_paths(all).is_empty()).await;
    let seq = get_orders_json(&server, &format!("/a/?return=Event&after={start}")).await;
    assert_eq!(
        describe_events(&seq),
        [
            "Order:/a/x,1 FileBasedAdded a",
            "/a/x,1 OrderStarted a",
            "/a/x,1 OrderStepStarted a",
            "/a/x,1 OrderStepEnded Success",
            "/a/x,1 OrderNodeChanged a b",
            "/a/x,1 OrderStepStarted b",
            "/a/x,1 OrderStepEnded Success",
            "/a/x,1 OrderNodeChanged b done",
            "/a/x,1 OrderFinished done",
            "Order:/a/x,1 FileBasedRemoved",
        ]
    );
    let query = format!("?return=Event&after={start}");
    let posted = server.post(&format!("{ORDERS_URL}{query}"), r#"{"path":"/a/"}"#).await.json();
    assert_eq!(posted["eventSnapshots"], seq["eventSnapshots"]);
    for path in ["/a/*", "/a/x", "/a/x,1"] {
        assert_eq!(
            describe_events(&get_orders_json(&server, &format!("{path}{query}")).await),
            describe_events(&seq),
            "{path}"
        );
    }
    let some =
        get_orders_json(&server, &format!("/a/?return=OrderStarted,OrderFinished&after={start}")).await;
    assert_eq!(describe_events(&some), ["/a/x,1 OrderStarted a", "/a/x,1 OrderFinished done"]);
    let last = get_orders_json(&server, "/a/?return=FileBasedEvent&limit=-1").await;
    assert_eq!(describe_events(&last), ["Order:/a/x,1 FileBasedRemoved"]);
    let first = get_orders_json(&server, &format!("/a/?return=OrderEvent&after={start}&limit=1")).await;
    assert_eq!(describe_events(&first), ["/a/x,1 OrderStarted a"]);

    // All engine events, and no others.
    let all = get_orders_json(&server, &format!("?return=Event&after={start}")).await;
    let ids: Vec<_> =
        all["eventSnapshots"].as_array().unwrap().iter().map(|e| e["eventId"].as_u64()).collect();
    assert!(ids.len() >= 20 && !ids.contains(&Some(emitted)), "{all}");
    let theirs = server.get(&format!("/api/v1/events?after={start}&path=/a/x,1&return=record")).await.json();
    assert_eq!(theirs["eventSnapshots"][0]["eventId"], emitted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_waits_for_an_event_of_its_orders() {
    let server = TestServer::start_with_config(
        "",
        chain_setup(&StepGate::new_closed(), vec![two_step_chain("/a/x"), two_step_chain("/z")]),
    )
    .await;
    let start = get_orders_json(&server, "").await["eventId"].as_u64().unwrap();
    let poll = send_long_poll(&server, &format!("/a/?return=OrderStarted&after={start}&timeout=PT1H")).await;
    server.add_order_to_engine(new_order("/z,1")).await;
    server.add_order_to_engine(new_order("/a/x,1")).await;
    assert_eq!(describe_events(&read_long_poll_response(poll).await), ["/a/x,1 OrderStarted a"]);
    let head = server
        .wait_until_get_returns(&format!("{ORDERS_URL}/z,1"), |one| one["orderState"] == "inProcess")
        .await["eventId"]
        .clone();
    let empty = get_orders_json(&server, &format!("/a/?return=OrderFinished&after={start}")).await;
    assert_eq!((&empty["TYPE"], &empty["lastEventId"]), (&"Empty".into(), &head));
}

/// Sends a request whose response is read later.
async fn send_long_poll(server: &TestServer, rest: &str) -> TcpStream {
    let mut poll = TcpStream::connect(server.address).await.expect("a connection");
    let request = server.request_head("GET", &format!("{ORDERS_URL}{rest}"), &[]);
    poll.write_all(format!("{request}\r\n").as_bytes()).await.expect("written");
    poll
}

async fn read_long_poll_response(mut poll: TcpStream) -> Value {
    read_response(&mut poll).await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_count_the_orders_of_a_path() {
    let server = start_server_with_stopped_chains().await;
    for key in ["/a/x,1", "/a/x,2", "/a/b/y,1", "/z,1"] {
        server.add_order_to_engine(new_order(key)).await;
    }
    server.apply_order_command("/a/x,2", OrderCommand::Suspend).await;
    let all = get_orders_json(&server, "?return=OrderStatistics").await;
    assert_eq!((&all["total"], &all["suspended"], &all["started"]), (&4.into(), &1.into(), &0.into()));
    assert_eq!(all.as_object().unwrap().len(), 13, "{all}");
    assert_eq!(all["eventId"], get_orders_json(&server, "").await["eventId"]);
    let some = get_orders_json(&server, "/a/x?return=OrderStatistics").await;
    assert_eq!((&some["total"], &some["suspended"]), (&2.into(), &1.into()));
    let one = server.post(&format!("{ORDERS_URL}?return=OrderStatistics"), r#"{"path":"/z,1"}"#).await.json();
    assert_eq!((&one["total"], &one["suspended"]), (&1.into(), &0.into()));
}

/// Returns the statistics of the only event of a response, an OrderStatisticsChanged, and the id of that event.
fn statistics_and_id_of_change(seq: &Value) -> (&Value, u64) {
    assert_eq!(seq["TYPE"], "NonEmpty", "{seq}");
    let events = seq["eventSnapshots"].as_array().expect("events");
    let event = events[0].as_object().expect("an event");
    let mut names: Vec<_> = event.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!((events.len(), names), (1, vec!["TYPE", "eventId", "orderStatistics"]));
    assert_eq!(event["TYPE"], "OrderStatisticsChanged");
    (&event["orderStatistics"], event["eventId"].as_u64().expect("an id"))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_statistics_change_is_reported_once() {
    let server = start_server_with_stopped_chains().await;
    let of = |after: u64, timeout: &str| {
        format!("/a/?return=OrderStatisticsChanged&after={after}&timeout={timeout}")
    };
    let start = get_orders_json(&server, "").await["eventId"].as_u64().unwrap();
    let empty = get_orders_json(&server, &of(start, "0")).await;
    assert_eq!((&empty["TYPE"], &empty["lastEventId"]), (&"Empty".into(), &start.into()));

    // A poll waits for the next change of the orders at its path, whatever happens to others.
    let poll = send_long_poll(&server, &of(start, "1h")).await;
    server.add_order_to_engine(new_order("/z,1")).await;
    server.emit(r#"{"type":"x","key":"/a/x,1"}"#).await;
    server.add_order_to_engine(new_order("/a/x,1")).await;
    let seq = read_long_poll_response(poll).await;
    let (numbers, after) = statistics_and_id_of_change(&seq);
    assert_eq!((&numbers["total"], numbers.as_object().unwrap().len()), (&1.into(), 12));
    assert_eq!(get_orders_json(&server, &of(after, "0.1")).await["TYPE"], "Empty");

    // A poll gets its response at once if the statistics have changed since its id.
    server.add_order_to_engine(new_order("/a/x,2")).await;
    server.apply_order_command("/a/x,2", OrderCommand::Suspend).await;
    let seq = get_orders_json(&server, &of(after, "1h")).await;
    let (numbers, after) = statistics_and_id_of_change(&seq);
    assert_eq!((&numbers["total"], &numbers["suspended"]), (&2.into(), &1.into()));
    assert_eq!(get_orders_json(&server, &of(after, "0")).await["TYPE"], "Empty");

    assert_eq!(get_orders_json(&server, &of(after + 1, "1h")).await["TYPE"], "Torn");
    let stream = server.get("/api/v1/events?after=0&return=OrderStatisticsChanged").await.json();
    assert_eq!(stream["TYPE"], "Empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_that_change_back_are_not_reported() {
    let server = start_server_with_stopped_chains().await;
    server.add_order_to_engine(new_order("/a/x,1")).await;
    let mut before = get_orders_json(&server, "?return=OrderStatistics").await;
    let start = before.as_object_mut().unwrap().remove("eventId").unwrap();
    let poll =
        send_long_poll(&server, &format!("?return=OrderStatisticsChanged&after={start}&timeout=1h")).await;
    // The poll has been accepted once a later connection has been answered.
    server.get("/healthz").await;
    for _ in 0..20 {
        server.apply_order_command("/a/x,1", OrderCommand::Suspend).await;
        server.apply_order_command("/a/x,1", OrderCommand::Resume).await;
    }
    server.add_order_to_engine(new_order("/a/x,2")).await;
    // The poll may report the statistics with the suspended order, but never those from before.
    assert_ne!(statistics_and_id_of_change(&read_long_poll_response(poll).await).0, &before);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_polls_get_the_same_statistics_change() {
    let server = start_server_with_stopped_chains().await;
    let start = get_orders_json(&server, "?return=OrderStatistics").await["eventId"].as_u64().unwrap();
    let mut polls = Vec::new();
    for _ in 0..100 {
        polls.push(
            send_long_poll(&server, &format!("/a/?return=OrderStatisticsChanged&after={start}&timeout=1h"))
                .await,
        );
    }
    server.get("/healthz").await;
    server.add_order_to_engine(new_order("/a/x,1")).await;
    for poll in polls {
        let seq = read_long_poll_response(poll).await;
        let (numbers, after) = statistics_and_id_of_change(&seq);
        assert_eq!(numbers["total"], 1);
        assert!(after > start);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_becomes_due_changes_the_statistics() {
    let server = start_server_with_stopped_chains().await;
    let soon = machine_clock_now().plus(Duration::from_secs(2));
    server.add_order_to_engine(NewOrder { planned_at: Some(soon), ..new_order("/a/x,1") }).await;
    let before = get_orders_json(&server, "?return=OrderStatistics").await;
    assert_eq!((&before["planned"], &before["due"]), (&1.into(), &0.into()));
    let after = before["eventId"].as_u64().unwrap();
    let seq =
        get_orders_json(&server, &format!("?return=OrderStatisticsChanged&after={after}&timeout=1h")).await;
    let (numbers, same) = statistics_and_id_of_change(&seq);
    assert_eq!((&numbers["planned"], &numbers["due"]), (&0.into(), &1.into()));
    assert_eq!(same, after, "nothing was journaled");
    let again = get_orders_json(&server, &format!("?return=OrderStatisticsChanged&after={after}")).await;
    assert_eq!(again["TYPE"], "Empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_bound_to_a_tenant_sees_its_orders_and_their_events() {
    let yaml =
        tokens_yaml(&[("all", "admin", None), ("shop", "viewer", Some("shop")), ("pull", "worker", None)]);
    let server =
        TestServer::start_with_config(&yaml, chain_setup(&StepGate::new_open(), vec![two_step_chain("/a")]))
            .await;
    server.set_chain_stopped("/a", true).await;
    server.add_order_to_engine(new_order("/a,1")).await;
    server.add_order_to_engine(NewOrder { tenant: Tenant::new("shop").unwrap(), ..new_order("/a,2") }).await;
    let call = async |token: &str, rest: &str| {
        server.call_with_token(token, "GET", &format!("{ORDERS_URL}{rest}"), "").await
    };
    assert_eq!(order_paths(&call("all", "").await.json()), ["/a,1", "/a,2"]);
    assert_eq!(order_paths(&call("shop", "").await.json()), ["/a,2"]);
    assert_eq!(call("shop", "/a,2").await.status, 200);
    assert_eq!(call("shop", "/a,1").await.checked_problem_status(), 404);
    let all = call("all", "?return=Event&after=0").await.json();
    assert!(event_keys(&all).contains(&"Order:/a,1") && event_keys(&all).contains(&"/a"), "{all}");
    let own = call("shop", "?return=Event&after=0").await.json();
    assert_eq!(event_keys(&own), ["Order:/a,2"], "of its own order, and of nothing else");
    let total = async |token: &str| call(token, "?return=OrderStatistics").await.json()["total"].clone();
    assert_eq!((total("all").await, total("shop").await), (2.into(), 1.into()));
    assert_eq!(call("shop", "/a,1?return=OrderStatistics").await.json()["total"], 0);

    let after = own["eventId"].as_u64().unwrap().max(own["eventSnapshots"][0]["eventId"].as_u64().unwrap());
    let change = format!("?return=OrderStatisticsChanged&after={after}&timeout=0");
    server.apply_order_command("/a,1", OrderCommand::Suspend).await;
    assert_eq!(call("shop", &change).await.json()["TYPE"], "Empty");
    server.apply_tenant_order_command("shop", "/a,2", OrderCommand::Suspend).await;
    let seq = call("shop", &change).await.json();
    let (numbers, _) = statistics_and_id_of_change(&seq);
    assert_eq!((&numbers["total"], &numbers["suspended"]), (&1.into(), &1.into()));
    assert_eq!(call("pull", "").await.checked_problem_status(), 403);
    assert_eq!(call("nobody", "").await.checked_problem_status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_the_server_ends_statistics_polls() {
    let server = start_server_with_stopped_chains().await;
    let start = get_orders_json(&server, "").await["eventId"].as_u64().unwrap();
    let poll =
        send_long_poll(&server, &format!("?return=OrderStatisticsChanged&after={start}&timeout=1h")).await;
    // The poll has been accepted once a later connection has been answered.
    server.get("/healthz").await;
    server.inner.stop().await;
    assert_ne!(read_long_poll_response(poll).await["TYPE"], "Torn");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_name_the_wrong_parameter_or_member() {
    let server =
        TestServer::start_with_config("", chain_setup(&StepGate::new_open(), vec![two_step_chain("/a/x")]))
            .await;
    for (rest, parameter) in [
        ("?return=", "return"),
        ("?return=record", "return"),
        ("?return=record.published&after=0", "return"),
        ("?return=OrderEvent,record&after=0", "return"),
        ("?return=Event,&after=0", "return"),
        ("?return=OrderOverview,Event&after=0", "return"),
        ("?return=Event&return=Event&after=0", "return"),
        ("?return=Event", "after"),
        ("?return=OrderEvent&limit=5", "after"),
        ("?return=OrderStatisticsChanged", "after"),
        ("?return=OrderStatisticsChanged&after=x", "after"),
        ("?return=OrderStatisticsChanged&after=0&timeout=5%20minutes", "timeout"),
        ("?return=OrderStatisticsChanged&after=0&limit=1", "limit"),
        ("?return=OrderStatistics&after=0", "after"),
        ("?after=0", "after"),
        ("?return=OrderOverview&timeout=1", "timeout"),
        ("?limit=1", "limit"),
        ("?return=Event&after=0&path=/a/", "path"),
        ("//?return=OrderOverview", "path"),
        ("//a/x", "path"),
        ("/a//x", "path"),
        ("/a//?return=Event&after=0", "path"),
        ("/a/x,", "path"),
        ("/a/x,1,2", "path"),
        ("/a/x%00", "path"),
        ("/a/../x/", "path"),
        ("/a/*/x", "path"),
    ] {
        let response = server.get(&format!("{ORDERS_URL}{rest}")).await;
        assert_eq!(response.checked_problem_status(), 400, "{rest}");
        assert_eq!(response.json()["parameter"], parameter, "{rest}");
    }
    for (body, pointer) in [
        (r#"{"path":"a"}"#, "/path"),
        (r#"{"path":""}"#, "/path"),
        (r#"{"path":"/a//x"}"#, "/path"),
        (r#"{"path":"/a/x,1,2"}"#, "/path"),
        (r#"{"path":["/a/"]}"#, "/path"),
        (r#"{"path":"/a/","orderId":"1"}"#, "/orderId"),
        (r#"{"path":"/","path":"/"}"#, "/path"),
        (r#"{"path":"/a/../x"}"#, "/path"),
        ("[]", ""),
        (r#"["/a/x"]"#, ""),
        ("{", ""),
    ] {
        for query in ["", "?return=Event&after=0", "?return=OrderStatistics"] {
            let response = server.post(&format!("{ORDERS_URL}{query}"), body).await;
            assert_eq!(response.checked_problem_status(), 400, "{body}");
            assert_eq!(response.json()["pointer"], pointer, "{body}");
        }
    }
    let twice = server.post(&format!("{ORDERS_URL}/a/"), "{}").await;
    assert_eq!((twice.checked_problem_status(), &twice.json()["parameter"]), (400, &"path".into()));
    let text = server.call("POST", ORDERS_URL, &[("content-type", "text/plain")], b"{}").await;
    assert_eq!(text.checked_problem_status(), 415);
    assert_eq!(server.call("PUT", ORDERS_URL, &[], b"").await.checked_problem_status(), 405);
    assert_eq!(server.delete(&format!("{ORDERS_URL}/a/x,1")).await.checked_problem_status(), 405);
}
