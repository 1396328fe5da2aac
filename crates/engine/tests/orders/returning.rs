//! What steps return, however large: it becomes the order's value, and may be as large as one.

use std::time::Duration;

use pointsman_core::Status;
use pointsman_core::chain::Action;
use pointsman_core::store::Claimed;
use pointsman_core::wire::{MAX_RESULT, MAX_VALUE};
use pointsman_engine::{PullRequest, Runner};

use super::server::{answer, handler, server};
use super::*;

/// A text whose JSON has so many bytes.
fn text_of(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

/// A command that returns such a text.
fn commanded(bytes: usize) -> Arc<CommandHandler> {
    let letters = bytes - 2;
    shell(&format!(
        r#"{{ printf '{{"result":"'; head -c {letters} /dev/zero | tr '\0' x; printf '"}}\n'; }} >>"$POINTSMAN_EFFECTS""#
    ))
}

/// A target that does.
async fn answered(bytes: usize) -> Arc<dyn Runner> {
    let body = format!(r#"{{"result":{}}}"#, text_of(bytes));
    let (url, _) = server(move || answer(200, &[("content-type", "application/json")], &body)).await;
    Arc::new(handler(url))
}

/// Gives a worker its step.
async fn pull(engine: &Engine) -> Claimed {
    let request = PullRequest {
        handlers: [name("far")].into(),
        max: 1,
        wait: TEST_TIMEOUT,
        lease: Duration::from_secs(60),
        tenant: None,
    };
    engine.pull_tasks(request).await.unwrap().remove(0)
}

/// A worker elsewhere that does, once.
async fn pulled(engine: &Engine, bytes: usize) {
    let task = pull(engine).await;
    engine.end_leased_task(&task.id, task.fence, returns(&text_of(bytes))).await.unwrap().unwrap();
}

/// Handlers of every kind that return so many bytes, each in a chain of its own.
async fn house(bytes: usize) -> TestEngineBuilder {
    let alone =
        |name: &str| chain(&format!("/{name}"), vec![step(name, "last"), step("last", "end"), end("end")]);
    TestEngineBuilder::default()
        .runner("command", Some(commanded(bytes)), |_| {})
        .runner("http", Some(answered(bytes).await), |_| {})
        .handler("function", move |_| async move { returns(&text_of(bytes)) })
        .pulled("far")
        .handler("last", |_| async { AttemptOutcome::done() })
        .chain(alone("command"))
        .chain(alone("http"))
        .chain(alone("function"))
        .chain(alone("far"))
}

const KINDS: [&str; 4] = ["command", "http", "function", "far"];

#[tokio::test]
async fn a_step_returns_as_much_as_a_value_holds() {
    for bytes in [200_000, MAX_VALUE] {
        let store = store();
        let engine = house(bytes).await.start(&store).await;
        // Seen before the last step.
        for kind in KINDS {
            let path = key(&format!("/{kind},1")).chain;
            engine.set_chain_node_action(&path, &node("last"), Action::Stop).await.unwrap().unwrap();
            let order = add(&engine, &format!("/{kind},1"), "1").await;
            if kind == "far" {
                pulled(&engine, bytes).await;
            }
            told(&engine, &order, "OrderNodeChanged").await;
            let (view, _) = engine.find_order(&Tenant::default(), &order).await.unwrap().unwrap();
            assert_eq!(view.order.value.as_str().len(), bytes, "{kind}");
        }
        engine.stop(TEST_TIMEOUT).await;
    }
}

#[tokio::test]
async fn a_byte_more_fails_the_step_for_good() {
    let bytes = MAX_VALUE + 1;
    let store = store();
    let engine = house(bytes).await.start(&store).await;
    let mut watcher = TaskWatcher::of(&engine);
    for kind in KINDS {
        let order = add(&engine, &format!("/{kind},1"), "1").await;
        if kind == "far" {
            pulled(&engine, bytes).await;
        }
        let ended = watcher.ended(1).await.remove(0);
        let said = format!("a result has at most {MAX_VALUE} bytes, this one has {bytes}");
        assert_eq!((ended.error, ended.attempt), (Some(said), 1), "{kind}");
        told(&engine, &order, "OrderSuspended").await;
        let (view, _) = engine.find_order(&Tenant::default(), &order).await.unwrap().unwrap();
        assert_eq!((view.order.value.as_str(), view.order.node.as_str()), ("1", kind));
    }
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn what_is_no_step_returns_less() {
    for (bytes, status) in [(MAX_RESULT, Status::Done), (MAX_RESULT + 1, Status::Error)] {
        let store = store();
        let engine = house(bytes)
            .await
            .route("a", "command")
            .route("a", "http")
            .route("a", "function")
            .start(&store)
            .await;
        let mut watcher = TaskWatcher::of(&engine);
        emit(&engine, vec![event("a", "x")]).await;
        assert!(watcher.ended(3).await.iter().all(|change| change.status == status), "{bytes}");
        engine.stop(TEST_TIMEOUT).await;
    }
}

/// A node that knows of a lease from the store alone takes the same from its worker.
#[tokio::test]
async fn a_step_is_ended_at_another_node() {
    let store = store();
    let mut house =
        TestEngineBuilder::default().pulled("far").chain(chain("/far", vec![step("far", "end"), end("end")]));
    house.setup.chain_routes.bind(kind("made"), key("/far,1").chain);
    let setup = house.setup.clone();
    let engine = house.start(&store).await;
    let made = emit(&engine, vec![event("made", "x")]).await.events[0].id;
    let task = pull(&engine).await;
    let other = TestEngineBuilder { setup, ..TestEngineBuilder::default() }.start(&store).await;
    let held = other.find_leased_task(&task.id, task.fence).await.unwrap().unwrap();
    assert_eq!(held.max_result, MAX_VALUE);
    let outcome = AttemptOutcome { emits: vec![event("b", "x")], ..returns(&text_of(200_000)) };
    other.end_leased_task(&task.id, task.fence, outcome).await.unwrap().unwrap();
    told(&engine, &key(&format!("/far,{made}")), "OrderFinished").await;
    let cause = emitted(&engine).await.last().unwrap().cause.unwrap();
    assert_eq!((cause.event, cause.depth), (Some(made), 1), "the event that made the order");
    other.stop(TEST_TIMEOUT).await;
    engine.stop(TEST_TIMEOUT).await;
}
