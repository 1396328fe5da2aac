//! The engine's own events lie in the journal like all others, and are nobody's.

use pointsman_core::EventId;
use pointsman_core::engine_event::{EngineEvent, SchedulerState};
use pointsman_core::handler::Observe;
use pointsman_core::journal::{Filter, Retention};
use pointsman_core::store::{NewOrder, Read};

use crate::Harness;
use crate::fixture::*;

fn plan() -> RegistrationBuilder {
    RegistrationBuilder::default().chain("/x/y", "a=first>done done")
}

fn state(state: SchedulerState) -> EngineEvent {
    EngineEvent::SchedulerStateChanged { state }
}

async fn tell(world: &StoreFixture<'_>, events: Vec<EngineEvent>) {
    expect_ok(world.store.tell(events, world.now).await);
}

pub async fn engine_state_changes_are_published(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let since = world.journal_head().await;
    tell(&world, vec![state(SchedulerState::Starting), state(SchedulerState::Running)]).await;
    tell(&world, vec![state(SchedulerState::Stopping), EngineEvent::SchedulerClosed]).await;
    let want = [
        r#"{"TYPE":"SchedulerStateChanged","state":"starting"}"#,
        r#"{"TYPE":"SchedulerStateChanged","state":"running"}"#,
        r#"{"TYPE":"SchedulerStateChanged","state":"stopping"}"#,
        r#"{"TYPE":"SchedulerClosed"}"#,
    ];
    assert_eq!(world.engine_event_json_after(since).await, want);
    tell(&world, vec![]).await;
    let world = world.reopen().await;
    assert_eq!(world.engine_event_json_after(since).await, want, "they are kept like any others");
}

/// They stand in the one order of the journal, between what others emit.
pub async fn engine_events_share_the_journals_id_order(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(world.emit(new_event("note")).await.id);
        tell(&world, vec![EngineEvent::SchedulerClosed]).await;
        ids.push(world.journal_head().await);
        ids.push(world.try_add_order(new_order("/x/y")).await.expect("nothing to refuse").event);
        world.advance_clock(1);
    }
    assert_ascending(&ids);
    let read: Vec<EventId> = world.read_all_events().await.iter().map(|event| event.id).collect();
    assert_eq!(read, ids);
    assert_eq!(world.journal_head().await, ids[8]);
}

/// Not even where somebody has bound their types, or the one above all.
pub async fn engine_events_create_no_tasks_or_orders(harness: &dyn Harness) {
    let types = ["Event", "OrderEvent", "OrderStarted", "OrderFinished", "SchedulerClosed", "FileBasedAdded"];
    let plan =
        types.into_iter().fold(plan(), |plan, key| plan.route(key, &["curious"]).chain_route(key, "/x/y"));
    let world = StoreFixture::new(harness, plan).await;
    tell(&world, vec![EngineEvent::SchedulerClosed]).await;
    world.add_order(new_order("/x/y,1")).await;
    let ran = world.run_all_ready().await;
    assert_eq!(ran.len(), 1, "the order's step alone");
    for event in world.read_all_events().await {
        let view = expect_ok(world.store.event(event.id).await).expect("it is remembered");
        assert!(view.tasks.is_empty() && view.caused.is_empty());
        assert_eq!(*view.event, *event);
        assert!(event.is_engine() && event.prev.is_none() && event.cause.is_none() && event.sub.is_none());
    }
    assert!(world.list_orders("/").await.is_empty());
}

/// What is told of an order does not belong to the object that somebody calls the same.
pub async fn engine_events_do_not_belong_to_an_object(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    world.add_order(new_order("/x/y,1")).await;
    world.claim_one().await;
    let object = async |world: &StoreFixture<'_>| {
        expect_ok(world.store.object(&Default::default(), &object_key("/x/y,1"), 10).await)
    };
    assert!(object(&world).await.is_none());
    let emitted = world.emit(new_event("note").with_key("/x/y,1")).await;
    assert_eq!(emitted.prev, None);
    world.suspend_order("/x/y,1").await;
    let next = world.emit(new_event("note").with_key("/x/y,1")).await;
    assert_eq!(next.prev, Some(emitted.id));
    let view = object(&world).await.expect("it has events");
    assert_eq!(view.events.iter().map(|event| event.id).collect::<Vec<_>>(), [next.id, emitted.id]);
}

/// A world whose journal holds something of everything.
async fn motley(harness: &dyn Harness) -> StoreFixture<'_> {
    let plan = plan()
        .chain("/x/deep/z", "a=first>done done")
        .observe_attempts("first", pointsman_core::handler::Observe::All)
        .config_file("JobChain:/x/y", "1")
        .config_file("Job:/first", "1");
    let world = StoreFixture::new(harness, plan).await;
    tell(&world, vec![state(SchedulerState::Running)]).await;
    for key in ["/x/y,1", "/x/y,12", "/x/deep/z,1"] {
        world.add_order(new_order(key)).await;
    }
    world.emit(new_event("note").with_key("/x/y,1")).await;
    world.emit(new_event("note").with_key("Order:/x/y,1").for_tenant("shop")).await;
    world.run_all_ready().await;
    world.set_chain_stopped("/x/y", true).await;
    world.set_chain_stopped("/x/y", false).await;
    world
}

async fn found(world: &StoreFixture<'_>, filter: Filter) -> usize {
    let found = world.read_events_after(world.journal_extent().await.forgotten, &filter).await;
    let all = world.read_all_events().await;
    let want: Vec<_> = all.into_iter().filter(|event| filter.matches(event)).collect();
    assert_eq!(found, want, "{filter:?}");
    found.len()
}

pub async fn engine_events_are_filtered_by_type_and_parent_type(harness: &dyn Harness) {
    let world = motley(harness).await;
    let of = |names: &[&str]| Filter {
        kinds: names.iter().map(|name| handling_key(name)).collect(),
        ..Filter::default()
    };
    for (names, count) in [
        (&["OrderEvent"][..], 3 * 5),
        (&["OrderStarted"], 3),
        (&["OrderFinished", "OrderStarted"], 6),
        (&["TaskEvent"], 3 * 3),
        (&["TaskClosed"], 3),
        (&["FileBasedEvent"], 2 * 2 + 3 * 2),
        (&["FileBasedRemoved"], 3),
        (&["JobChainEvent"], 2),
        (&["SchedulerEvent"], 1),
        (&["SchedulerEvent", "JobChainEvent", "note"], 5),
        (&["OrderSuspended"], 0),
        (&["Event"], 15 + 9 + 10 + 2 + 1 + 2),
    ] {
        assert_eq!(found(&world, of(names)).await, count, "{names:?}");
    }
}

pub async fn engine_events_are_filtered_by_path_and_key(harness: &dyn Harness) {
    let world = motley(harness).await;
    let orders = || vec![handling_key("OrderEvent")];
    for (text, count) in [("/x/", 15), ("/x/*", 10), ("/x/y", 10), ("/x/y,1", 5), ("/x/deep/", 5), ("/y/", 0)]
    {
        let filter = Filter { kinds: orders(), path: path_filter(text), ..Filter::default() };
        assert_eq!(found(&world, filter).await, count, "{text}");
    }
    for text in ["/x/", "/x/*", "/x/y", "/x/y,1", "/x/deep/", "/first", "/y/"] {
        found(&world, Filter { path: path_filter(text), ..Filter::default() }).await;
    }
    for (text, count) in [("/x/y,1", 6), ("/x/y", 2), ("Order:/x/y,12", 2), ("Job:/first", 2)] {
        let filter = Filter { key: Some(object_key(text)), ..Filter::default() };
        assert_eq!(found(&world, filter).await, count, "{text}");
    }
}

/// What is told of a tenant's orders and tasks is seen by whoever may see the tenant's events; all else is not.
pub async fn a_tenant_sees_engine_events_of_its_orders_and_tasks(harness: &dyn Harness) {
    let plan = plan().observe_attempts("first", Observe::All);
    let world = StoreFixture::new(harness, plan).await;
    tell(&world, vec![EngineEvent::SchedulerClosed]).await;
    let shop = tenant("shop");
    world.add_order(NewOrder { tenant: shop.clone(), ..new_order("/x/y,1") }).await;
    world.add_order(new_order("/x/y,2")).await;
    world.run_all_ready().await;
    assert_eq!(expect_ok(world.store.stop_chain(&chain_path("/x/y"), true, world.now).await), Ok(()));
    for (of, own) in [(shop, "/x/y,1"), (tenant("default"), "/x/y,2")] {
        let filter = Filter { tenant: Some(of), ..Filter::default() };
        let seen = world.read_events_after(EventId::ZERO, &filter).await;
        let keys: Vec<_> =
            seen.iter().map(|event| event.key.as_ref().map_or("", |key| key.as_str())).collect();
        assert!(keys.iter().all(|key| key.ends_with(own) || key.starts_with("{\"jobPath\"")), "{keys:?}");
        let kinds: Vec<_> = seen.iter().map(|event| event.kind.as_str()).collect();
        for kind in [
            "FileBasedAdded",
            "TaskStarted",
            "OrderStarted",
            "OrderFinished",
            "TaskClosed",
            "FileBasedRemoved",
        ] {
            assert_eq!(kinds.iter().filter(|k| **k == kind).count(), 1, "{kind} in {kinds:?}");
        }
    }
}

pub async fn engine_events_can_be_read_backwards(harness: &dyn Harness) {
    let world = motley(harness).await;
    let filter = Filter { kinds: vec![handling_key("JobChainEvent")], ..Filter::default() };
    let read = Read { after: EventId::ZERO, until: None, filter, limit: 1, backwards: true };
    let page = expect_ok(world.store.read(read).await);
    let told: Vec<_> = page.events.iter().map(|event| summarize_event(event)).collect();
    assert_eq!(told, ["JobChainStateChanged state:running"]);
}

pub async fn engine_events_expire_like_any_other(harness: &dyn Harness) {
    let mut world = motley(harness).await;
    world.add_order(new_order("/x/y,2")).await;
    let head = world.journal_head().await;
    world.advance_clock(1000);
    let nothing = Retention { count: 0, age: secs(1) };
    assert_eq!(world.prune(nothing, KEEP_EVERYTHING).await.events, 39 + 1);
    let extent = world.journal_extent().await;
    assert_eq!((extent.forgotten, extent.head), (head, head));
    assert!(world.read_all_events().await.is_empty() && expect_ok(world.store.event(head).await).is_none());
    world.run_all_ready().await;
    assert!(world.find_order("/x/y,2").await.is_none(), "orders go on without their past");
    let fresh = world.engine_events_after(head).await;
    assert_eq!((fresh.len(), fresh[0].id > head), (3 + 6, true));
}

/// What changed in the files since the last registration, and nothing else.
pub async fn changed_configuration_files_are_published(harness: &dyn Harness) {
    let filed = |plan: RegistrationBuilder| {
        plan.config_file("Job:/first", "1")
            .config_file("JobChain:/x/y", "1")
            .config_file("Schedule:/nightly", "1")
    };
    let mut world = StoreFixture::new(harness, filed(plan())).await;
    let told = async |world: &StoreFixture<'_>, since| {
        let mut told = world.engine_event_json_after(since).await;
        told.sort();
        told
    };
    let line = |key: &str, change: &str| format!(r#"{{"key":"{key}","TYPE":"FileBased{change}"}}"#);
    let all = ["Job:/first", "JobChain:/x/y", "Schedule:/nightly"];
    let mut want: Vec<_> = all.iter().flat_map(|key| [line(key, "Activated"), line(key, "Added")]).collect();
    want.sort();
    assert_eq!(told(&world, world.journal_extent().await.forgotten).await, want);

    let since = world.journal_head().await;
    world.register(filed(plan())).await;
    let mut world = world.reopen().await;
    world.register(filed(plan())).await;
    assert_eq!(world.journal_head().await, since, "a start without changes tells nothing");

    world.register(filed(plan()).config_file("Job:/first", "2").without_config_file("JobChain:/x/y")).await;
    let mut want = vec![
        line("Job:/first", "Activated"),
        line("Job:/first", "Replaced"),
        line("JobChain:/x/y", "Removed"),
    ];
    want.sort();
    assert_eq!(told(&world, since).await, want);

    let since = world.journal_head().await;
    world.register(filed(plan()).config_file("Job:/first", "2")).await;
    assert_eq!(
        told(&world, since).await,
        [line("JobChain:/x/y", "Activated"), line("JobChain:/x/y", "Added")]
    );
    let read = expect_ok(world.store.registration().await);
    assert_eq!(read.files, world.plan.build().files, "they are read back");
}

/// First that it changed, then that it is in force.
pub async fn a_configuration_file_is_activated_after_it_was_read(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan().config_file("Job:/first", "1")).await;
    world.register(plan().config_file("Job:/first", "2")).await;
    let told = world.engine_event_summaries_after(world.journal_extent().await.forgotten).await;
    let want = ["FileBasedAdded", "FileBasedActivated", "FileBasedReplaced", "FileBasedActivated"];
    assert_eq!(told, want);
}
