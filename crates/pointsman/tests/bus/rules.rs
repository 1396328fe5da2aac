use pointsman::{NewRule, PauseError, RuleKind, RuleScope, Tenant};

use super::*;

async fn start_bus_with_handler() -> Bus {
    let builder = Bus::builder("sqlite::memory:").program_name("shop");
    builder.handler("index", |_: RawEvent| async {}).on::<RecordPublished>("index").start().await.unwrap()
}

#[tokio::test]
async fn tasks_of_a_paused_handler_wait_until_it_is_resumed() {
    let bus = start_bus_with_handler().await;
    bus.pause("index").await.unwrap();
    let emitted = bus.emit(RecordPublished::new(1)).await.unwrap();
    let gates = bus.explain_waiting(&emitted.tasks[0]).await.unwrap().unwrap();
    let closed = gates.into_iter().find(|gate| !gate.open).unwrap();
    assert_eq!(closed.rule.unwrap().set_by, "shop");
    assert!(bus.resume("index").await.unwrap());
    assert_eq!(
        wait_until_only_task_finished(&bus, &emitted).await.lifecycle.state.status(),
        TaskStatus::Done
    );
    assert!(!bus.resume("index").await.unwrap(), "it was not paused any more");
    bus.stop().await;
}

#[tokio::test]
async fn pausing_an_unknown_handler_names_a_similar_one() {
    let bus = start_bus_with_handler().await;
    let error = bus.pause("indx").await.unwrap_err();
    assert!(matches!(error, PauseError::UnknownHandler { .. }));
    assert_eq!(error.to_string(), "there is no handler indx in the store; did you mean `index`?");
    assert!(matches!(bus.resume("no handler").await, Err(PauseError::InvalidName(_))));
    bus.stop().await;
}

#[tokio::test]
async fn block_of_one_tenant_is_listed_and_lifted() {
    let bus = start_bus_with_handler().await;
    let (scope, tenant) = (RuleScope::Handler("index".parse().unwrap()), Tenant::new("a").unwrap());
    let rule = NewRule::block(scope.clone()).tenant(tenant.clone()).reason("a move");
    bus.set_rule(rule).await.unwrap();
    let rules = bus.list_rules().await.unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!((rules[0].kind, rules[0].reason.as_str()), (RuleKind::Block, "a move"));
    // Events of other tenants are handled.
    emit_and_wait_for_task(&bus, RecordPublished::new(1)).await;
    assert!(!bus.lift_rule(RuleKind::Block, &scope, None).await.unwrap());
    assert!(bus.lift_rule(RuleKind::Block, &scope, Some(&tenant)).await.unwrap());
    assert!(bus.list_rules().await.unwrap().is_empty());
    bus.stop().await;
}
