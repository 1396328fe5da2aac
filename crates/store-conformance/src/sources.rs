//! Sources: a pair of source and collection has one task at a time, whatever races, and no event.

use std::sync::Arc;

use pointsman_core::journal::Retention;
use pointsman_core::store::{Ending, NewRun, NoSuchPair, TaskFilter};
use pointsman_core::task::{AttemptEnd, Rejected, Run};
use pointsman_core::{Priority, Status, TaskId, Tenant};

use crate::Harness;
use crate::fixture::*;

fn plan() -> RegistrationBuilder {
    RegistrationBuilder::single_handler()
        .collection("shop/orders", 100)
        .collection("shop/orders_x", 500)
        .collection("crm/people", 100)
}

async fn refused(world: &StoreFixture<'_>, name: &str) {
    let run = NewRun { pair: pair(name), priority: None };
    assert_eq!(
        expect_ok(world.store.run(run, None, world.now).await),
        Err(NoSuchPair(pair(name)).into()),
        "{name}"
    );
}

pub async fn a_run_is_a_task_without_an_event(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    let head = world.journal_extent().await;
    let id = world.request_new_run("shop/orders").await;
    let uuid = id.uuid().expect("the name ends in a uuid");
    assert_eq!(id.as_str(), format!("shop_orders_{uuid}"));
    let task = world.read_task(&id).await;
    assert_eq!((&task.id, &task.handler, &*task.collection), (&id, &handler_name("shop"), "orders"));
    assert_eq!((task.event, &task.key, task.planned_at, task.priority.get()), (None, &None, None, 100));
    assert_eq!((&task.tenant, task.created_at), (&Tenant::default(), world.now));
    assert_eq!(task.life.state.status(), Status::New);
    assert_eq!(world.journal_extent().await, head, "nothing is journaled");
    world.advance_clock(5);
    let claimed = world.claim_one().await;
    assert_eq!((&claimed.id, &claimed.handler, claimed.attempt), (&id, &handler_name("shop"), 1));
    assert_eq!((claimed.planned, claimed.prev_sent, claimed.late), (None, None, false));
    assert_eq!(*claimed.run(), Run { pair: pair("shop/orders"), tenant: Tenant::default() });
    world.succeed(&claimed).await;
    let task = world.read_task(&id).await;
    assert_eq!((task.life.state.status(), task.finished_at), (Status::Done, Some(world.now)));
}

pub async fn a_pair_has_at_most_one_unfinished_run(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let id = world.request_new_run("shop/orders").await;
    let same = async |world: &StoreFixture<'_>, when: &str| {
        let run = world.request_run("shop/orders").await;
        assert_eq!((run.task, run.created), (id.clone(), false), "{when}");
    };
    same(&world, "new").await;
    assert_eq!(world.schedule_ahead(5).await, 1);
    same(&world, "scheduled").await;
    let task = world.claim_one().await;
    same(&world, "locked").await;
    world.fail(&task).await;
    same(&world, "waiting to be retried").await;
    let mut world = world.reopen().await;
    same(&world, "after a restart").await;
    world.advance_clock(RETRY_DELAY_SECS);
    world.succeed(&world.claim_one().await).await;
    assert_ne!(world.request_new_run("shop/orders").await, id, "the next one, once it has ended");
    world.request_new_run("shop/orders_x").await;
    world.request_new_run("crm/people").await;
}

pub async fn a_pair_can_run_again_after_any_end(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    for end in ["success", "failure", "cancelled while it waits", "cancelled while it runs", "crash"] {
        let id = world.request_new_run("shop/orders").await;
        match end {
            "success" => drop(world.succeed(&world.claim_one().await).await),
            "failure" => drop(world.fail_permanently(&world.claim_one().await).await),
            "crash" => {
                for _ in 0..3 {
                    assert_eq!(world.claim_one().await.id, id);
                    world.advance_clock(LEASE_SECS + 1);
                    world.node = expect_ok(world.store.join("heir", world.now).await);
                    world.rescue_tasks().await;
                }
                assert_eq!(world.task_status(&id).await, Status::Error);
            }
            _ => {
                if end == "cancelled while it runs" {
                    world.claim_one().await;
                }
                assert_eq!(world.cancel_task(&id).await, Ok(()));
            }
        }
        assert!(world.claim(10).await.is_empty(), "{end}");
    }
    world.request_new_run("shop/orders").await;
}

pub async fn racing_run_requests_create_one_run(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let racers: Vec<_> = (0..20)
        .map(|_| {
            let (store, now) = (Arc::clone(&world.store), world.now);
            let run = NewRun { pair: pair("shop/orders"), priority: None };
            tokio::spawn(
                async move { expect_ok(store.run(run, None, now).await).expect("the pair is there") },
            )
        })
        .collect();
    let mut answers = Vec::new();
    for racer in racers {
        answers.push(racer.await.expect("the racer ended well"));
    }
    assert_eq!(answers.iter().filter(|run| run.created).count(), 1);
    assert!(answers.iter().all(|run| run.task == answers[0].task));
    assert_eq!(world.list_tasks(&TaskFilter::default()).await.len(), 1);
    assert_eq!(world.run_all_ready().await.len(), 1);
}

pub async fn an_unknown_pair_is_refused(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    for name in ["shop/order", "shop/people", "nobody/orders", "index/record", "index/orders"] {
        refused(&world, name).await;
    }
    assert!(world.list_tasks(&TaskFilter::default()).await.is_empty());
    assert!(world.claim(10).await.is_empty());
}

pub async fn a_run_uses_its_own_priority_or_the_collections(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let own = Priority::try_from(7).expect("a priority");
    let run = NewRun { pair: pair("shop/orders"), priority: Some(own) };
    let answer = expect_ok(world.store.run(run, None, world.now).await).expect("the pair is there");
    assert_eq!(world.read_task(&answer.task).await.priority, own);
    let other = world.request_new_run("shop/orders_x").await;
    assert_eq!(world.read_task(&other).await.priority.get(), 500);
    assert_eq!(pair_names_of(&world.run_all_ready().await), ["shop/orders_x", "shop/orders"]);
}

pub async fn a_run_cannot_be_retried_while_another_is_unfinished(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let mut failed = Vec::new();
    for _ in 0..2 {
        failed.push(world.request_new_run("shop/orders").await);
        world.fail_permanently(&world.claim_one().await).await;
    }
    let active = world.request_new_run("shop/orders").await;
    let before = world.read_task(&failed[0]).await;
    assert_eq!(world.retry_task(&failed[0]).await, Err(Rejected::PairIsBusy));
    assert_eq!(world.read_task(&failed[0]).await, before);
    world.claim_one().await;
    assert_eq!(world.retry_task(&failed[0]).await, Err(Rejected::PairIsBusy), "nor while it runs");
    assert_eq!(world.cancel_task(&active).await, Ok(()));
    let mut seqs = Vec::new();
    for id in &failed {
        seqs.push(world.read_task(id).await.seq);
    }
    assert_eq!(world.retry_tasks(&seqs).await, [Ok(()), Err(Rejected::PairIsBusy)]);
    assert_eq!(world.request_run("shop/orders").await.task, failed[0], "it is the pair's task again");
    let again = world.claim_one().await;
    assert_eq!((again.id, again.attempt, again.late), (failed[0].clone(), 2, true));
}

async fn missing_then_adopted(world: &mut StoreFixture<'_>, id: &TaskId) {
    assert_eq!(world.task_status(id).await, Status::Missing);
    assert!(world.read_task(id).await.error.is_some(), "it says why it does not run");
    assert!(world.claim(10).await.is_empty());
    world.register(plan()).await;
    assert_eq!(world.rescue_tasks().await.missing, 0);
    assert!(world.claim(10).await.is_empty(), "coming back is not enough");
    assert_eq!(world.adopt_missing_tasks("shop").await, 1);
    let again = world.claim_one().await;
    assert_eq!((&again.id, again.late), (id, true));
    assert_eq!(world.succeed(&again).await.status, Status::Done);
}

pub async fn runs_of_an_undefined_source_are_missing_until_adopted(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    let id = world.request_new_run("shop/orders").await;
    world.request_new_run("crm/people").await;
    assert_eq!(world.undefine_handler("shop").await, 1);
    refused(&world, "shop/orders").await;
    assert_eq!(pair_names_of(&world.run_all_ready().await), ["crm/people"]);
    missing_then_adopted(&mut world, &id).await;
}

pub async fn runs_of_an_undefined_collection_are_missing_until_adopted(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    let id = world.request_new_run("shop/orders").await;
    world.request_new_run("shop/orders_x").await;
    world.register(plan().without_collection("shop/orders")).await;
    assert_eq!(world.rescue_tasks().await.missing, 1);
    refused(&world, "shop/orders").await;
    assert_eq!(pair_names_of(&world.run_all_ready().await), ["shop/orders_x"]);
    let mut world = world.reopen().await;
    missing_then_adopted(&mut world, &id).await;
}

/// What runs when the definition goes ends as it began.
pub async fn a_running_run_can_finish_after_its_source_is_undefined(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    world.request_new_run("shop/orders").await;
    let running = world.claim_one().await;
    assert_eq!(world.undefine_handler("shop").await, 0);
    assert_eq!(world.succeed(&running).await.status, Status::Done);
}

/// Whatever came in between, a pair never runs twice at a time.
pub async fn adoption_creates_no_second_run_of_a_pair(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    world.request_new_run("shop/orders").await;
    assert_eq!(world.undefine_handler("shop").await, 1);
    world.register(plan()).await;
    world.request_run("shop/orders").await;
    world.adopt_missing_tasks("shop").await;
    for _ in 0..3 {
        let claimed = world.claim(10).await;
        assert!(claimed.len() <= 1, "{:?}", pair_names_of(&claimed));
        for task in claimed {
            world.succeed(&task).await;
        }
        world.adopt_missing_tasks("shop").await;
    }
    world.request_new_run("shop/orders").await;
}

/// A source that changes hands keeps the task it has.
pub async fn a_pair_keeps_its_run_when_its_tenant_changes(harness: &dyn Harness) {
    let mut world =
        StoreFixture::new(harness, RegistrationBuilder::default().collection("shop/orders", 100)).await;
    let id = world.request_new_run("shop/orders").await;
    world.register(RegistrationBuilder::default().tenant_collection("elsewhere", "shop/orders", 100)).await;
    let run = world.request_run("shop/orders").await;
    assert_eq!((run.task, run.created), (id, false));
    assert_eq!(world.claim(10).await.len(), 1);
}

pub async fn runs_survive_a_restart(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let (queued, running) =
        (world.request_new_run("shop/orders").await, world.request_new_run("shop/orders_x").await);
    let claimed = world.claim_one().await;
    let before = world.list_tasks(&TaskFilter::default()).await;
    let world = world.reopen().await;
    assert_eq!(world.list_tasks(&TaskFilter::default()).await, before);
    assert_eq!(world.request_run("shop/orders").await.task, queued);
    assert_eq!(world.request_run("shop/orders_x").await.task, running);
    assert_eq!(world.succeed(&claimed).await.status, Status::Done);
    let next = world.claim_one().await;
    assert_eq!((next.id.clone(), next.run().pair.clone()), (queued, pair("shop/orders")));
}

/// Collections are told apart whole, never by how they begin.
pub async fn runs_are_found_by_source_and_collection(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let mut made = Vec::new();
    for name in ["shop/orders", "shop/orders_x", "crm/people"] {
        made.push(world.request_new_run(name).await);
        world.succeed(&world.claim_one().await).await;
    }
    made.push(world.request_new_run("shop/orders").await);
    let find = async |source: &str, collection: Option<&str>, statuses: &[Status]| {
        let (handler, collection) = (Some(handler_name(source)), collection.map(String::from));
        let filter = TaskFilter { handler, collection, statuses: statuses.to_vec(), ..TaskFilter::default() };
        let found = world.list_tasks(&filter).await;
        found
            .iter()
            .map(|task| made.iter().position(|id| *id == task.id).expect("made here"))
            .collect::<Vec<_>>()
    };
    assert_eq!(find("shop", None, &[]).await, [3, 1, 0]);
    assert_eq!(find("shop", Some("orders"), &[]).await, [3, 0]);
    assert_eq!(find("shop", Some("orders"), &[Status::Done]).await, [0]);
    assert_eq!(find("shop", Some("orders_x"), &[]).await, [1]);
    assert_eq!(find("shop", Some("order"), &[]).await, [0; 0]);
    assert_eq!(find("crm", Some("orders"), &[]).await, [0; 0]);
}

pub async fn a_run_emits_and_logs_like_any_other_task(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    world.request_new_run("shop/orders").await;
    let task = world.claim_one().await;
    let (emits, logs) = (vec![new_event("record").caused_by(&task)], vec![info_line(world.now, "one order")]);
    let finished =
        world.finish_attempt(Ending { emits, logs, ..attempt_ending(&task, success()) }).await.expect("ours");
    let emitted = &world.read_all_events().await[0];
    assert_eq!(emitted.id, finished.emitted[0].id);
    assert_eq!(emitted.cause.map(|cause| (cause.event, cause.task, cause.depth)), Some((None, task.seq, 1)));
    assert_eq!(world.log_messages(&task.id).await, ["one order"]);
    assert_eq!(event_ids_of(&world.run_all_ready().await), [emitted.id]);
}

pub async fn a_failed_run_is_retried(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    let id = world.request_new_run("shop/orders").await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(world.fail(&world.claim_one().await).await.status);
        assert!(world.claim(10).await.is_empty());
        world.advance_clock(RETRY_DELAY_SECS);
    }
    assert_eq!(statuses, [Status::New, Status::New, Status::Error]);
    let ends: Vec<_> = world.read_task(&id).await.attempts.iter().map(|attempt| attempt.end).collect();
    assert_eq!(ends, [AttemptEnd::Failed; 3]);
}

/// There is no event that could be forgotten: only the history's own retention takes a run away.
pub async fn runs_expire_by_task_history_retention_only(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    let old = world.request_new_run("shop/orders").await;
    world.fail_permanently(&world.claim_one().await).await;
    let waiting = world.request_new_run("crm/people").await;
    world.advance_clock(200_000);
    let (nothing, day) =
        (Retention { count: 0, age: secs(1) }, Retention { age: secs(86_400), ..KEEP_EVERYTHING });
    world.prune(nothing, KEEP_EVERYTHING).await;
    assert_eq!(world.retry_task(&old).await, Ok(()));
    world.fail_permanently(&world.claim_one_for_handler("shop").await).await;
    world.advance_clock(200_000);
    world.prune(nothing, day).await;
    assert!(expect_ok(world.store.task(&old).await).is_none());
    assert_eq!(world.task_status(&waiting).await, Status::New, "what has not ended is never pruned");
    world.request_new_run("shop/orders").await;
}
