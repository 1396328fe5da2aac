//! `/jobscheduler/master/api/order`, as its document writes it.

use std::time::Duration;

use pointsman_core::store::{NewOrder, OrderCommand};
use pointsman_core::{Tenant, Timestamp};
use pointsman_engine::now;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::auth::tokens;
use crate::client::read;
use crate::house::House;
use crate::track::{Gate, chain, order, patient, setup};

const BASE: &str = "/jobscheduler/master/api/order";

async fn get(house: &House, rest: &str) -> Value {
    let answer = house.get(&format!("{BASE}{rest}")).await;
    assert_eq!(answer.status, 200, "{rest}: {}", answer.text());
    answer.json()
}

fn paths(orders: &Value) -> Vec<&str> {
    orders["orders"].as_array().expect("orders").iter().filter_map(|order| order["path"].as_str()).collect()
}

fn keys(seq: &Value) -> Vec<&str> {
    let events = seq["eventSnapshots"].as_array().expect("events");
    events.iter().filter_map(|event| event["key"].as_str()).collect()
}

/// A server with three chains that are stopped.
async fn still() -> House {
    let house = House::with("", setup(&Gate::open(), ["/a/x", "/a/b/y", "/z"].map(chain).into())).await;
    for path in ["/a/x", "/a/b/y", "/z"] {
        house.stop_chain(path, true).await;
    }
    house
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_chains_and_single_orders_by_get_and_by_post() {
    let house = still().await;
    for key in ["/a/x,1", "/a/x,12", "/a/b/y,1", "/z,1"] {
        house.add(order(key)).await;
    }
    let head = get(&house, "").await["eventId"].clone();
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
        let all = get(&house, &format!("{path}?return=OrderOverview")).await;
        assert_eq!(paths(&all), want, "{path}");
        assert_eq!(all["eventId"], head);
        assert_eq!(get(&house, path).await, all, "without `return`");
        let body = json!({"path": path}).to_string();
        let posted = house.post(&format!("{BASE}?return=OrderOverview"), &body).await;
        assert_eq!(posted.json(), all, "{path}");
    }
    let all = get(&house, "").await;
    for (path, body) in [("", "{}"), ("", ""), ("/", "{}"), ("", r#"{"path":null}"#)] {
        assert_eq!(house.post(&format!("{BASE}{path}"), body).await.json(), all, "{body}");
    }

    let one = get(&house, "/a/x,1").await;
    assert_eq!(
        one,
        json!({"TYPE": "OrderOverview", "path": "/a/x,1", "nodeId": "a", "orderState": "notPlanned",
            "suspended": false, "taskId": one["taskId"], "eventId": head})
    );
    assert_eq!(house.post(BASE, r#"{"path":"/a/x,1"}"#).await.json(), one);
    assert_eq!(house.get(&format!("{BASE}/a/x,2")).await.problem(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overview_tells_where_an_order_stands() {
    let gate = Gate::closed();
    let house = House::with("", setup(&gate, vec![chain("/a"), patient("/p")])).await;
    let at = |key: &str| format!("{BASE}/{key}");
    let later = Timestamp::from_millis(now().millis() + 3_600_000);
    house.add(NewOrder { at: Some(later), ..order("/a,later") }).await;
    let one = get(&house, "/a,later").await;
    assert_eq!((&one["orderState"], &one["plannedAt"]), (&"planned".into(), &later.to_string().into()));
    assert!(one.get("startedAt").is_none());

    house.add(order("/a,1")).await;
    let one = house.until(&at("a,1"), |one| one["orderState"] == "inProcess").await;
    assert!(one["taskId"].as_str().unwrap().starts_with("work_a_") && one["startedAt"].is_string(), "{one}");
    house.steer("/a,1", OrderCommand::Suspend).await;
    let one = get(&house, "/a,1").await;
    assert_eq!((&one["orderState"], &one["suspended"]), (&"inProcess".into(), &true.into()));
    gate.let_pass(1);
    let one = house.until(&at("a,1"), |one| one["orderState"] == "suspended").await;
    assert_eq!((&one["nodeId"], one.get("taskId")), (&"b".into(), None));

    house.add_failing("/p,1").await;
    gate.let_pass(1);
    let one = house.until(&at("p,1"), |one| one["orderState"] == "setback").await;
    assert!(one["setbackUntil"].is_string() && one["nodeId"] == "a", "{one}");
}

/// What a reader of events would note down: the type, the key and the fields beside them.
fn told(seq: &Value) -> Vec<String> {
    assert_eq!(seq["TYPE"], "NonEmpty", "{seq}");
    let events = seq["eventSnapshots"].as_array().expect("events").iter();
    let note = |event: &Value| {
        let field = |name: &str| event.get(name).and_then(Value::as_str).map(|text| format!(" {text}"));
        let fields = ["fromNodeId", "nodeId"].iter().filter_map(|name| field(name));
        let how = event["nodeTransition"]["TYPE"].as_str().map(|how| format!(" {how}"));
        let key = event["key"].as_str().unwrap_or_default();
        format!("{key} {}{}", event["TYPE"].as_str().expect("a type"), fields.chain(how).collect::<String>())
    };
    events.map(note).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_a_folders_orders() {
    let house = House::with("", setup(&Gate::open(), vec![chain("/a/x"), chain("/z")])).await;
    let start = get(&house, "").await["eventId"].as_u64().unwrap();
    // Somebody's own event, whose key looks like an order's.
    let emitted = house.emit(r#"{"type":"record","key":"/a/x,1"}"#).await;
    house.add(order("/z,1")).await;
    house.add(order("/a/x,1")).await;
    house.until(BASE, |all| paths(all).is_empty()).await;
    let seq = get(&house, &format!("/a/?return=Event&after={start}")).await;
    assert_eq!(
        told(&seq),
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
    let posted = house.post(&format!("{BASE}{query}"), r#"{"path":"/a/"}"#).await.json();
    assert_eq!(posted["eventSnapshots"], seq["eventSnapshots"]);
    for path in ["/a/*", "/a/x", "/a/x,1"] {
        assert_eq!(told(&get(&house, &format!("{path}{query}")).await), told(&seq), "{path}");
    }
    let some = get(&house, &format!("/a/?return=OrderStarted,OrderFinished&after={start}")).await;
    assert_eq!(told(&some), ["/a/x,1 OrderStarted a", "/a/x,1 OrderFinished done"]);
    let last = get(&house, "/a/?return=FileBasedEvent&limit=-1").await;
    assert_eq!(told(&last), ["Order:/a/x,1 FileBasedRemoved"]);
    let first = get(&house, &format!("/a/?return=OrderEvent&after={start}&limit=1")).await;
    assert_eq!(told(&first), ["/a/x,1 OrderStarted a"]);

    // All events of the engine's own, and nobody else's.
    let all = get(&house, &format!("?return=Event&after={start}")).await;
    let ids: Vec<_> =
        all["eventSnapshots"].as_array().unwrap().iter().map(|e| e["eventId"].as_u64()).collect();
    assert!(ids.len() >= 20 && !ids.contains(&Some(emitted)), "{all}");
    let theirs = house.get(&format!("/api/v1/events?after={start}&path=/a/x,1&return=record")).await.json();
    assert_eq!(theirs["eventSnapshots"][0]["eventId"], emitted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_waits_for_an_event_of_its_orders() {
    let house = House::with("", setup(&Gate::closed(), vec![chain("/a/x"), chain("/z")])).await;
    let start = get(&house, "").await["eventId"].as_u64().unwrap();
    let poll = ask(&house, &format!("/a/?return=OrderStarted&after={start}&timeout=PT1H")).await;
    house.add(order("/z,1")).await;
    house.add(order("/a/x,1")).await;
    assert_eq!(told(&answer(poll).await), ["/a/x,1 OrderStarted a"]);
    let head =
        house.until(&format!("{BASE}/z,1"), |one| one["orderState"] == "inProcess").await["eventId"].clone();
    let empty = get(&house, &format!("/a/?return=OrderFinished&after={start}")).await;
    assert_eq!((&empty["TYPE"], &empty["lastEventId"]), (&"Empty".into(), &head));
}

/// Sends a request whose answer is awaited later.
async fn ask(house: &House, rest: &str) -> TcpStream {
    let mut poll = TcpStream::connect(house.address).await.expect("a connection");
    let request = house.head("GET", &format!("{BASE}{rest}"), &[]);
    poll.write_all(format!("{request}\r\n").as_bytes()).await.expect("written");
    poll
}

async fn answer(mut poll: TcpStream) -> Value {
    read(&mut poll).await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_count_the_orders_of_a_path() {
    let house = still().await;
    for key in ["/a/x,1", "/a/x,2", "/a/b/y,1", "/z,1"] {
        house.add(order(key)).await;
    }
    house.steer("/a/x,2", OrderCommand::Suspend).await;
    let all = get(&house, "?return=OrderStatistics").await;
    assert_eq!((&all["total"], &all["suspended"], &all["started"]), (&4.into(), &1.into(), &0.into()));
    assert_eq!(all.as_object().unwrap().len(), 13, "{all}");
    assert_eq!(all["eventId"], get(&house, "").await["eventId"]);
    let some = get(&house, "/a/x?return=OrderStatistics").await;
    assert_eq!((&some["total"], &some["suspended"]), (&2.into(), &1.into()));
    let one = house.post(&format!("{BASE}?return=OrderStatistics"), r#"{"path":"/z,1"}"#).await.json();
    assert_eq!((&one["total"], &one["suspended"]), (&1.into(), &0.into()));
}

/// The numbers of the one event, and the id to go on after.
fn changed(seq: &Value) -> (&Value, u64) {
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
async fn a_change_of_the_statistics_comes_once() {
    let house = still().await;
    let of = |after: u64, timeout: &str| {
        format!("/a/?return=OrderStatisticsChanged&after={after}&timeout={timeout}")
    };
    let start = get(&house, "").await["eventId"].as_u64().unwrap();
    let empty = get(&house, &of(start, "0")).await;
    assert_eq!((&empty["TYPE"], &empty["lastEventId"]), (&"Empty".into(), &start.into()));

    // On the next change, whatever happens elsewhere.
    let poll = ask(&house, &of(start, "1h")).await;
    house.add(order("/z,1")).await;
    house.emit(r#"{"type":"x","key":"/a/x,1"}"#).await;
    house.add(order("/a/x,1")).await;
    let seq = answer(poll).await;
    let (numbers, after) = changed(&seq);
    assert_eq!((&numbers["total"], numbers.as_object().unwrap().len()), (&1.into(), 12));
    assert_eq!(get(&house, &of(after, "0.1")).await["TYPE"], "Empty");

    // At once, if they have changed since.
    house.add(order("/a/x,2")).await;
    house.steer("/a/x,2", OrderCommand::Suspend).await;
    let seq = get(&house, &of(after, "1h")).await;
    let (numbers, after) = changed(&seq);
    assert_eq!((&numbers["total"], &numbers["suspended"]), (&2.into(), &1.into()));
    assert_eq!(get(&house, &of(after, "0")).await["TYPE"], "Empty");

    assert_eq!(get(&house, &of(after + 1, "1h")).await["TYPE"], "Torn");
    let stream = house.get("/api/v1/events?after=0&return=OrderStatisticsChanged").await.json();
    assert_eq!(stream["TYPE"], "Empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_to_nothing_is_no_change() {
    let house = still().await;
    house.add(order("/a/x,1")).await;
    let mut before = get(&house, "?return=OrderStatistics").await;
    let start = before.as_object_mut().unwrap().remove("eventId").unwrap();
    let poll = ask(&house, &format!("?return=OrderStatisticsChanged&after={start}&timeout=1h")).await;
    // The poll has been accepted once a later connection has been answered.
    house.get("/healthz").await;
    for _ in 0..20 {
        house.steer("/a/x,1", OrderCommand::Suspend).await;
        house.steer("/a/x,1", OrderCommand::Resume).await;
    }
    house.add(order("/a/x,2")).await;
    // It may have seen the order suspended; what it never tells is what was before.
    assert_ne!(changed(&answer(poll).await).0, &before);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_wait_are_told_the_same() {
    let house = still().await;
    let start = get(&house, "?return=OrderStatistics").await["eventId"].as_u64().unwrap();
    let mut polls = Vec::new();
    for _ in 0..100 {
        polls.push(ask(&house, &format!("/a/?return=OrderStatisticsChanged&after={start}&timeout=1h")).await);
    }
    house.get("/healthz").await;
    house.add(order("/a/x,1")).await;
    for poll in polls {
        let seq = answer(poll).await;
        let (numbers, after) = changed(&seq);
        assert_eq!(numbers["total"], 1);
        assert!(after > start);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_whose_time_comes_changes_the_statistics() {
    let house = still().await;
    let soon = now().plus(Duration::from_secs(2));
    house.add(NewOrder { at: Some(soon), ..order("/a/x,1") }).await;
    let before = get(&house, "?return=OrderStatistics").await;
    assert_eq!((&before["planned"], &before["due"]), (&1.into(), &0.into()));
    let after = before["eventId"].as_u64().unwrap();
    let seq = get(&house, &format!("?return=OrderStatisticsChanged&after={after}&timeout=1h")).await;
    let (numbers, same) = changed(&seq);
    assert_eq!((&numbers["planned"], &numbers["due"]), (&0.into(), &1.into()));
    assert_eq!(same, after, "nothing was journaled");
    let again = get(&house, &format!("?return=OrderStatisticsChanged&after={after}")).await;
    assert_eq!(again["TYPE"], "Empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_with_a_tenant_sees_its_own_orders_and_their_events() {
    let yaml = tokens(&[("all", "admin", None), ("shop", "viewer", Some("shop")), ("pull", "worker", None)]);
    let house = House::with(&yaml, setup(&Gate::open(), vec![chain("/a")])).await;
    house.stop_chain("/a", true).await;
    house.add(order("/a,1")).await;
    house.add(NewOrder { tenant: Tenant::new("shop").unwrap(), ..order("/a,2") }).await;
    let call =
        async |token: &str, rest: &str| house.call_as(token, "GET", &format!("{BASE}{rest}"), "").await;
    assert_eq!(paths(&call("all", "").await.json()), ["/a,1", "/a,2"]);
    assert_eq!(paths(&call("shop", "").await.json()), ["/a,2"]);
    assert_eq!(call("shop", "/a,2").await.status, 200);
    assert_eq!(call("shop", "/a,1").await.problem(), 404);
    let all = call("all", "?return=Event&after=0").await.json();
    assert!(keys(&all).contains(&"Order:/a,1") && keys(&all).contains(&"/a"), "{all}");
    let own = call("shop", "?return=Event&after=0").await.json();
    assert_eq!(keys(&own), ["Order:/a,2"], "of its own order, and of nothing else");
    let total = async |token: &str| call(token, "?return=OrderStatistics").await.json()["total"].clone();
    assert_eq!((total("all").await, total("shop").await), (2.into(), 1.into()));
    assert_eq!(call("shop", "/a,1?return=OrderStatistics").await.json()["total"], 0);

    let after = own["eventId"].as_u64().unwrap().max(own["eventSnapshots"][0]["eventId"].as_u64().unwrap());
    let change = format!("?return=OrderStatisticsChanged&after={after}&timeout=0");
    house.steer("/a,1", OrderCommand::Suspend).await;
    assert_eq!(call("shop", &change).await.json()["TYPE"], "Empty");
    house.steer_of("shop", "/a,2", OrderCommand::Suspend).await;
    let seq = call("shop", &change).await.json();
    let (numbers, _) = changed(&seq);
    assert_eq!((&numbers["total"], &numbers["suspended"]), (&1.into(), &1.into()));
    assert_eq!(call("pull", "").await.problem(), 403);
    assert_eq!(call("nobody", "").await.problem(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_polls_of_statistics() {
    let house = still().await;
    let start = get(&house, "").await["eventId"].as_u64().unwrap();
    let poll = ask(&house, &format!("?return=OrderStatisticsChanged&after={start}&timeout=1h")).await;
    // The poll has been accepted once a later connection has been answered.
    house.get("/healthz").await;
    house.server.stop().await;
    assert_ne!(answer(poll).await["TYPE"], "Torn");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_named() {
    let house = House::with("", setup(&Gate::open(), vec![chain("/a/x")])).await;
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
        let answer = house.get(&format!("{BASE}{rest}")).await;
        assert_eq!(answer.problem(), 400, "{rest}");
        assert_eq!(answer.json()["parameter"], parameter, "{rest}");
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
            let answer = house.post(&format!("{BASE}{query}"), body).await;
            assert_eq!(answer.problem(), 400, "{body}");
            assert_eq!(answer.json()["pointer"], pointer, "{body}");
        }
    }
    let twice = house.post(&format!("{BASE}/a/"), "{}").await;
    assert_eq!((twice.problem(), &twice.json()["parameter"]), (400, &"path".into()));
    let text = house.call("POST", BASE, &[("content-type", "text/plain")], b"{}").await;
    assert_eq!(text.problem(), 415);
    assert_eq!(house.call("PUT", BASE, &[], b"").await.problem(), 405);
    assert_eq!(house.delete(&format!("{BASE}/a/x,1")).await.problem(), 405);
}
