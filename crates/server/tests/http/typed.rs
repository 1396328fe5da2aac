//! The typed client reads every response of the real server.

use pointsman_api::client::{Client, EmitBody, EventQuery, OrderName, OrderQuery, TaskQuery};
use pointsman_api::worker::{ClaimBody, DoneBody, FailBody, HeartbeatBody, LogsBody, NewLog, SnoozeBody};
use pointsman_api::{AdoptBody, ChangeOrderBody, EventSeq, HoldBody, MakesBody, NewOrderBody, RedriveBody};
use pointsman_core::chain::{Action, ChainPath, OrderKey};
use pointsman_core::{HandlingKey, Json, RuleKind};
use pointsman_engine::Setup;

use crate::orders::CHAINS_CONFIG;
use crate::test_server::TestServer;

const CONFIG: &str = "
handlers:
  far: {run: pull, retry: {max: 1, delay: 0.001s}}
event_handlers: {far: [far]}
sources:
  shop: {collections: [{name: orders, schedule: '0 0 3 * * ?'}]}
schedules:
  nightly: {cron: '0 3 * * *', emit: {type: report.due}}
";

fn event_type(text: &str) -> HandlingKey {
    HandlingKey::new(text).expect("a type")
}

fn claim_body(handler: &str) -> ClaimBody {
    ClaimBody { handlers: vec![handler.into()], wait: Some("60s".into()), ..ClaimBody::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_runs_with_the_typed_client() {
    let server = TestServer::start_with(CONFIG, Setup::default()).await;
    let client = Client::new(&format!("http://{}", server.address), Some(&server.token)).unwrap();
    client.emit(&EmitBody::of(event_type("far")), None).await.unwrap();
    let task = client.claim(&claim_body("far")).await.unwrap().tasks.remove(0);
    let fence = task.fence;
    let beat = HeartbeatBody { fence, lease: Some("5m".into()) };
    assert!(client.heartbeat(&task.id, &beat).await.unwrap().lease_until > task.lease_until);
    let logs = vec![NewLog { time: None, level: None, message: "hello".into() }];
    assert_eq!(client.add_logs(&task.id, &LogsBody { fence, logs }).await.unwrap().logged, 1);
    let until = Some("2000-01-01T00:00:00Z".into());
    client.snooze(&task.id, &SnoozeBody { fence, until, ..SnoozeBody::default() }).await.unwrap();

    let task = client.claim(&claim_body("far")).await.unwrap().tasks.remove(0);
    let fail = FailBody { fence: task.fence, error: "no".into(), ..FailBody::default() };
    assert_eq!(client.fail(&task.id, &fail).await.unwrap().state, "new");
    let task = client.claim(&claim_body("far")).await.unwrap().tasks.remove(0);
    assert_eq!((task.attempt, task.retries), (3, 1));
    let emit = vec![EmitBody::of(event_type("child"))];
    let done = DoneBody { fence: task.fence, emit, ..DoneBody::default() };
    let ended = client.done(&task.id, &done).await.unwrap();
    assert_eq!((ended.status.as_str(), ended.events.len()), ("SUCCESS", 1));
    let refused = client.done(&task.id, &done).await.unwrap_err();
    assert_eq!(refused.status(), Some(409));
    assert!(client.why(&task.id).await.unwrap().gates.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_calls_work_with_the_typed_client() {
    let server = TestServer::start_with(CONFIG, Setup::default()).await;
    let client = Client::new(&format!("http://{}", server.address), Some(&server.token)).unwrap();
    let (run, created) = client.run("shop", "orders", None).await.unwrap();
    assert!(created);
    assert_eq!(client.run("shop", "orders", None).await.unwrap(), (run.clone(), false));
    assert_eq!(client.task(&run.task_id).await.unwrap().task.collection, "orders");
    let of_shop = TaskQuery { handler: Some("shop".into()), ..TaskQuery::default() };
    assert_eq!(client.tasks(&of_shop).await.unwrap().tasks.len(), 1);

    let reason = HoldBody { reason: Some("quiet".into()), tenant: None };
    let held = client.hold(RuleKind::Pause, "shop/orders", &reason).await.unwrap();
    assert_eq!(held.handler.rules[0].name, "shop/orders");
    let gates = client.why(&run.task_id).await.unwrap().gates;
    assert!(gates.iter().any(|gate| !gate.open && gate.rule.as_ref() == Some(&held.handler.rules[0])));
    let freed = client.release(RuleKind::Pause, "shop/orders", &HoldBody::default()).await.unwrap();
    assert!(freed.handler.rules.is_empty());

    let schedules = client.schedules().await.unwrap().schedules;
    assert_eq!(schedules.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["nightly", "shop/orders"]);
    assert!(matches!(&schedules[0].makes, Some(MakesBody::Event { kind, .. }) if kind == "report.due"));
    assert!(client.hold_schedule(RuleKind::Block, "shop/orders", &reason).await.unwrap().schedule.held);
    assert!(!client.release_schedule(RuleKind::Block, "shop/orders").await.unwrap().schedule.held);
    assert!(client.run_schedule("nightly", None).await.unwrap().event_id.is_some());
    assert_eq!(client.run_schedule("shop/orders", None).await.unwrap().task_id.as_ref(), Some(&run.task_id));
    assert!(client.fires("nightly", None, Some(5)).await.unwrap().fires.is_empty());
    assert_eq!(client.schedule("nightly").await.unwrap().schedule.next.len(), 5);

    let failed = RedriveBody { handler: Some("far".into()), ..RedriveBody::default() };
    assert_eq!(client.redrive_count(&failed).await.unwrap().matched, 0);
    let job = client.redrive(&failed).await.unwrap();
    assert_eq!(client.redrive_job(&job.id).await.unwrap().id, job.id);
    assert_eq!(client.redrives().await.unwrap().redrives.len(), 1);
    assert_eq!(client.stop_redrive(&job.id).await.unwrap().id, job.id);
    assert_eq!(client.adopt("far", &AdoptBody::default()).await.unwrap().adopted, 0);
    assert_eq!(client.nodes().await.unwrap().nodes.len(), 1);
    let config = client.config().await.unwrap();
    assert!(config.watched && config.settings.contains("nightly:"), "{config:?}");
    assert_eq!(client.me().await.unwrap().role, "admin");
    assert!(client.audit(None, Some(3)).await.unwrap().next.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn chains_and_orders_are_controlled_with_the_typed_client() {
    let server = TestServer::start_with(CHAINS_CONFIG, Setup::default()).await;
    let client = Client::new(&format!("http://{}", server.address), Some(&server.token)).unwrap();
    let chain: ChainPath = "/publish/article".parse().unwrap();
    let key = OrderName::from("/publish/article,1".parse::<OrderKey>().unwrap());
    assert_eq!(client.chains().await.unwrap().chains.len(), 2);
    assert_eq!(client.stop_chain(&chain, true).await.unwrap().chain.state, "stopped");
    let value = Some(Json::parse(r#"{ "n": 1.50 }"#).unwrap());
    let order = NewOrderBody { path: key.key.to_string(), value: value.clone(), ..NewOrderBody::default() };
    let added = client.add_orders(&order, None).await.unwrap();
    assert_eq!(added.orders[0].path, key.key.to_string());
    assert_eq!(client.add_orders(&[&order], None).await.unwrap_err().status(), Some(409));
    let shown = client.order(&key).await.unwrap();
    assert_eq!((Some(shown.value), shown.event_id >= Some(added.event_id)), (value, true));

    assert!(client.suspend_order(&key).await.unwrap().suspended);
    let to_deploy = ChangeOrderBody { node: Some("deploy".into()), ..ChangeOrderBody::default() };
    assert_eq!(client.change_order(&key, &to_deploy).await.unwrap().node, "deploy");
    assert!(!client.resume_order(&key).await.unwrap().suspended);
    let of_chain = OrderQuery { path: Some(chain.to_string()), limit: Some(1), ..OrderQuery::default() };
    let list = client.orders(&of_chain).await.unwrap();
    assert_eq!((list.orders.len(), list.next, list.orders[0].event_id), (1, None, None));

    assert_eq!(client.stop_chain(&chain, false).await.unwrap().chain.state, "running");
    let task = client.claim(&claim_body("deploy")).await.unwrap().tasks.remove(0);
    assert_eq!(task.order.map(|step| step.path), Some(key.key.to_string()));
    assert_eq!(client.remove_order(&key).await.unwrap_err().status(), Some(409));
    client.done(&task.id, &DoneBody { fence: task.fence, ..DoneBody::default() }).await.unwrap();
    assert_eq!(client.order(&key).await.unwrap_err().status(), Some(404));

    let node = "render".parse().unwrap();
    let set = client.set_node(&chain, &node, Action::NextState).await.unwrap();
    assert_eq!(set.chain.nodes[0].action, Action::NextState);
    let held = client.hold_chain(RuleKind::Pause, &chain, &HoldBody::default()).await.unwrap();
    assert_eq!(held.chain.rules[0].name, chain.to_string());
    client.release_chain(RuleKind::Pause, &chain, &HoldBody::default()).await.unwrap();
    assert!(client.chain(&chain).await.unwrap().chain.rules.is_empty());
    let events = client.events(&EventQuery { after: Some(0), ..EventQuery::default() }).await.unwrap();
    let EventSeq::NonEmpty { event_snapshots, .. } = events else { panic!("{events:?}") };
    assert!(event_snapshots.iter().any(|event| event.is_engine() && event.kind == "OrderFinished"));
}
