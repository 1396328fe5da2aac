//! The typed client against the real server: worker calls, operator calls, chains and orders.

use pointsman_api::client::{Client, EmitBody, EventQuery, OrderQuery, TaskQuery, TenantOrderKey};
use pointsman_api::worker::{
    AddLogsBody, ClaimBody, DoneBody, FailBody, HeartbeatBody, NewLogLine, SnoozeBody,
};
use pointsman_api::{
    AdoptMissingTasksBody, ChangeOrderBody, EventSeq, NewOrderBody, RedriveBody, RuleRequestBody,
    ScheduleActionBody,
};
use pointsman_core::chain::{ChainNodeAction, ChainPath, OrderKey};
use pointsman_core::{EventType, Json, RuleKind};
use pointsman_engine::Setup;

use crate::orders::CHAINS_CONFIG;
use crate::test_server::TestServer;

const TYPED_CLIENT_CONFIG: &str = "
handlers:
  far: {run: pull, retry: {max: 1, delay: 0.001s}}
event_handlers: {far: [far]}
sources:
  shop: {collections: [{name: orders, schedule: '0 0 3 * * ?'}]}
schedules:
  nightly: {cron: '0 3 * * *', emit: {type: report.due}}
";

fn parse_event_type(text: &str) -> EventType {
    EventType::new(text).expect("a type")
}

fn claim_body(handler: &str) -> ClaimBody {
    ClaimBody { handlers: vec![handler.into()], wait: Some("60s".into()), ..ClaimBody::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_runs_with_the_typed_client() {
    let server = TestServer::start_with_config(TYPED_CLIENT_CONFIG, Setup::default()).await;
    let client = Client::new(&format!("http://{}", server.address), Some(&server.token)).unwrap();
    client.emit(&EmitBody::new(parse_event_type("far")), None).await.unwrap();
    let task = client.claim_tasks(&claim_body("far")).await.unwrap().tasks.remove(0);
    let fence = task.fence;
    let beat = HeartbeatBody { fence, lease: Some("5m".into()) };
    assert!(client.send_heartbeat(&task.id, &beat).await.unwrap().lease_until > task.lease_until);
    let logs = vec![NewLogLine { time: None, level: None, message: "hello".into() }];
    assert_eq!(
        client.add_task_logs(&task.id, &AddLogsBody { fence, logs }).await.unwrap().added_line_count,
        1
    );
    let until = Some("2000-01-01T00:00:00Z".into());
    client.snooze_task(&task.id, &SnoozeBody { fence, until, ..SnoozeBody::default() }).await.unwrap();

    let task = client.claim_tasks(&claim_body("far")).await.unwrap().tasks.remove(0);
    let fail = FailBody { fence: task.fence, error: "no".into(), ..FailBody::default() };
    assert_eq!(client.fail_task(&task.id, &fail).await.unwrap().state, "new");
    let task = client.claim_tasks(&claim_body("far")).await.unwrap().tasks.remove(0);
    assert_eq!((task.attempt, task.retries), (3, 1));
    let emit = vec![EmitBody::new(parse_event_type("child"))];
    let done = DoneBody { fence: task.fence, events_to_emit: emit, ..DoneBody::default() };
    let ended = client.complete_task(&task.id, &done).await.unwrap();
    assert_eq!((ended.status.as_str(), ended.emitted_event_ids.len()), ("SUCCESS", 1));
    let refused = client.complete_task(&task.id, &done).await.unwrap_err();
    assert_eq!(refused.http_status(), Some(409));
    assert!(client.read_task_why(&task.id).await.unwrap().gates.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_calls_work_with_the_typed_client() {
    let server = TestServer::start_with_config(TYPED_CLIENT_CONFIG, Setup::default()).await;
    let client = Client::new(&format!("http://{}", server.address), Some(&server.token)).unwrap();
    let (run, created) = client.run_collection("shop", "orders", None).await.unwrap();
    assert!(created);
    assert_eq!(client.run_collection("shop", "orders", None).await.unwrap(), (run.clone(), false));
    assert_eq!(client.read_task(&run.task_id).await.unwrap().task.subject_name, "orders");
    let of_shop = TaskQuery { handler: Some("shop".into()), ..TaskQuery::default() };
    assert_eq!(client.list_tasks(&of_shop).await.unwrap().tasks.len(), 1);

    let reason = RuleRequestBody { reason: Some("a test".into()), tenant: None };
    let held = client.set_handler_rule(RuleKind::Pause, "shop/orders", &reason).await.unwrap();
    assert_eq!(held.handler.rules[0].name, "shop/orders");
    let gates = client.read_task_why(&run.task_id).await.unwrap().gates;
    assert!(gates.iter().any(|gate| !gate.open && gate.rule.as_ref() == Some(&held.handler.rules[0])));
    let freed = client
        .delete_handler_rule(RuleKind::Pause, "shop/orders", &RuleRequestBody::default())
        .await
        .unwrap();
    assert!(freed.handler.rules.is_empty());

    let schedules = client.list_schedules().await.unwrap().schedules;
    assert_eq!(schedules.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["nightly", "shop/orders"]);
    assert!(
        matches!(&schedules[0].action, Some(ScheduleActionBody::EmitEvent { event_type, .. }) if event_type == "report.due")
    );
    assert!(
        client
            .set_schedule_rule(RuleKind::Block, "shop/orders", &reason)
            .await
            .unwrap()
            .schedule
            .is_paused_or_blocked
    );
    assert!(
        !client
            .delete_schedule_rule(RuleKind::Block, "shop/orders")
            .await
            .unwrap()
            .schedule
            .is_paused_or_blocked
    );
    assert!(client.run_schedule("nightly", None).await.unwrap().event_id.is_some());
    assert_eq!(client.run_schedule("shop/orders", None).await.unwrap().task_id.as_ref(), Some(&run.task_id));
    assert!(client.list_fires("nightly", None, Some(5)).await.unwrap().fires.is_empty());
    assert_eq!(client.read_schedule("nightly").await.unwrap().schedule.next_planned_times.len(), 5);

    let failed = RedriveBody { handler: Some("far".into()), ..RedriveBody::default() };
    assert_eq!(client.dry_run_redrive(&failed).await.unwrap().matched, 0);
    let job = client.start_redrive(&failed).await.unwrap();
    assert_eq!(client.read_redrive(&job.id).await.unwrap().id, job.id);
    assert_eq!(client.list_redrives().await.unwrap().redrives.len(), 1);
    assert_eq!(client.stop_redrive(&job.id).await.unwrap().id, job.id);
    let adopted = client.adopt_missing_tasks("far", &AdoptMissingTasksBody::default()).await.unwrap();
    assert_eq!(adopted.adopted_task_count, 0);
    assert_eq!(client.list_nodes().await.unwrap().nodes.len(), 1);
    let config = client.read_server_config().await.unwrap();
    assert!(config.watched && config.settings.contains("nightly:"), "{config:?}");
    assert_eq!(client.read_current_token().await.unwrap().role, "admin");
    assert!(client.list_audit_entries(None, Some(3)).await.unwrap().next.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn chains_and_orders_are_controlled_with_the_typed_client() {
    let server = TestServer::start_with_config(CHAINS_CONFIG, Setup::default()).await;
    let client = Client::new(&format!("http://{}", server.address), Some(&server.token)).unwrap();
    let chain: ChainPath = "/publish/article".parse().unwrap();
    let key = TenantOrderKey::from("/publish/article,1".parse::<OrderKey>().unwrap());
    assert_eq!(client.list_chains().await.unwrap().chains.len(), 2);
    assert_eq!(client.set_chain_stopped(&chain, true).await.unwrap().chain.state, "stopped");
    let value = Some(Json::parse(r#"{ "n": 1.50 }"#).unwrap());
    let order = NewOrderBody { path: key.key.to_string(), value: value.clone(), ..NewOrderBody::default() };
    let added = client.add_orders(&order, None).await.unwrap();
    assert_eq!(added.orders[0].path, key.key.to_string());
    assert_eq!(client.add_orders(&[&order], None).await.unwrap_err().http_status(), Some(409));
    let shown = client.read_order(&key).await.unwrap();
    assert_eq!((Some(shown.value), shown.newest_event_id >= Some(added.last_event_id)), (value, true));

    assert!(client.suspend_order(&key).await.unwrap().suspended);
    let to_deploy = ChangeOrderBody { node: Some("deploy".into()), ..ChangeOrderBody::default() };
    assert_eq!(client.change_order(&key, &to_deploy).await.unwrap().node, "deploy");
    assert!(!client.resume_order(&key).await.unwrap().suspended);
    let of_chain = OrderQuery { path: Some(chain.to_string()), limit: Some(1), ..OrderQuery::default() };
    let list = client.list_orders(&of_chain).await.unwrap();
    assert_eq!((list.orders.len(), list.next, list.orders[0].newest_event_id), (1, None, None));

    assert_eq!(client.set_chain_stopped(&chain, false).await.unwrap().chain.state, "running");
    let task = client.claim_tasks(&claim_body("deploy")).await.unwrap().tasks.remove(0);
    assert_eq!(task.order_step.map(|step| step.path), Some(key.key.to_string()));
    assert_eq!(client.remove_order(&key).await.unwrap_err().http_status(), Some(409));
    client.complete_task(&task.id, &DoneBody { fence: task.fence, ..DoneBody::default() }).await.unwrap();
    assert_eq!(client.read_order(&key).await.unwrap_err().http_status(), Some(404));

    let node = "render".parse().unwrap();
    let set = client.set_chain_node_action(&chain, &node, ChainNodeAction::NextState).await.unwrap();
    assert_eq!(set.chain.nodes[0].action, ChainNodeAction::NextState);
    let held = client.set_chain_rule(RuleKind::Pause, &chain, &RuleRequestBody::default()).await.unwrap();
    assert_eq!(held.chain.rules[0].name, chain.to_string());
    client.delete_chain_rule(RuleKind::Pause, &chain, &RuleRequestBody::default()).await.unwrap();
    assert!(client.read_chain(&chain).await.unwrap().chain.rules.is_empty());
    let events = client.list_events(&EventQuery { after: Some(0), ..EventQuery::default() }).await.unwrap();
    let EventSeq::NonEmpty { event_snapshots, .. } = events else { panic!("{events:?}") };
    assert!(
        event_snapshots.iter().any(|event| event.is_engine_event() && event.event_type == "OrderFinished")
    );
}
