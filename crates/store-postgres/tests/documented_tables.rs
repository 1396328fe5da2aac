//! The documented tables: the view `events` shows every kind of task, and rules inserted into `scheduling_rules` in SQL
//! take effect.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod single_database;

use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_core::task::gates::GateKind;
use pointsman_store_conformance::fixture::*;
use single_database::SingleDatabase;
use uuid::Uuid;

/// A generous timeout; only a test that hangs reaches it.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Queries columns of the view `events`. In SQL, `since` converts a time to seconds since the start of the test.
fn query_events_view(database: &SingleDatabase, columns: &str) -> Vec<Vec<String>> {
    let start_seconds = START_TIME.micros() / 1_000_000;
    database.query(&format!(
        "CREATE OR REPLACE FUNCTION since(t timestamptz) RETURNS bigint LANGUAGE sql AS
             $$ SELECT extract(epoch FROM t)::bigint - {start_seconds} $$;
         SELECT {columns} FROM pointsman.events ORDER BY id"
    ))
}

fn test_registration() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .route("record", &["index"])
        .route("orphaned", &["removed_handler"])
        .collection("shop/orders", 100)
        .chain("/x/y", "a=first>b b=second>done done")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_view_follows_a_task_from_new_to_done() {
    let database = SingleDatabase::new();
    let mut fixture = StoreFixture::new(&database, test_registration()).await;
    let row = |database: &SingleDatabase| {
        let columns = "id, status, dequeued_by, space, name, value, retries, since(delay_until), modifier,
                       since(enqueued_at), since(last_processed_at)";
        query_events_view(database, columns).remove(0)
    };
    let expected = |status: &str, node: &str, retries: &str, due: &str, processed: &str| {
        let columns = ["1", status, node, "WORKER", "index", "[1]", retries, due, "_", "0", processed];
        columns.map(String::from).to_vec()
    };
    let node = fixture.node_id.to_string();
    fixture.emit(new_event("record").with_key("a").with_value("[1]")).await;
    assert_eq!(row(&database), expected("new", "-", "0", "0", "-"));
    fixture.schedule_tasks(1).await;
    assert_eq!(row(&database), expected("scheduled", "-", "0", "0", "-"));
    fixture.advance_clock(5);
    let task = fixture.claim_one().await;
    assert_eq!(row(&database), expected("locked", &node, "0", "0", "5"));
    fixture.advance_clock(1);
    fixture.fail(&task).await;
    let due = (6 + RETRY_DELAY_SECS).to_string();
    assert_eq!(row(&database), expected("new", "-", "1", &due, "5"), "the failed task waits for its retry");
    fixture.advance_clock(RETRY_DELAY_SECS);
    fixture.succeed(&fixture.claim_one().await).await;
    let rows_found = row(&database);
    assert_eq!((rows_found[1].as_str(), rows_found[6].as_str(), &rows_found[10]), ("done", "1", &due));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_view_shows_every_kind_of_task() {
    let database = SingleDatabase::new();
    let mut fixture = StoreFixture::new(&database, test_registration()).await;
    let delayed = fixture.seconds_from_now(3600);
    fixture.emit(new_event("record").with_key("later").due_at(delayed)).await;
    fixture.register_schedules(&[schedule_definition("nightly", "0 3 * * *")]).await;
    fixture.advance_clock(100);
    fixture
        .record_fire(
            FireRequestBuilder::emitting_event(new_event("record").with_key("cron"))
                .build("nightly", fixture.now),
        )
        .await;
    fixture.request_collection_run("shop/orders").await;
    fixture.add_order(new_order("/x/y,7").with_value("{\"n\":7}")).await;
    fixture.emit(new_event("orphaned").with_key("gone")).await;
    assert_eq!(fixture.undefine_handler_and_rescue("removed_handler").await, 1);
    let rows_found = query_events_view(&database, "status, space, name, value, modifier, since(delay_until)");
    let rows: Vec<Vec<&str>> =
        rows_found.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
    assert_eq!(
        rows,
        [
            ["new", "WORKER", "index", "null", "_", "3600"],
            ["new", "CRON", "index", "null", "0 3 * * *", "100"],
            ["new", "SYNC", "shop", "null", "_", "100"],
            ["new", "ORDER", "first", "{\"n\":7}", "_", "100"],
            ["missing", "WORKER", "removed_handler", "null", "_", "100"],
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_tasks_are_in_the_view_until_they_expire() {
    let database = SingleDatabase::new();
    let fixture = StoreFixture::new(&database, test_registration().halt_on_error("index")).await;
    let list_statuses = |database: &SingleDatabase| -> Vec<String> {
        let rows = query_events_view(database, "status");
        rows.into_iter().map(|mut row| row.remove(0)).collect()
    };
    fixture.emit(new_event("record").with_key("good")).await;
    fixture.succeed(&fixture.claim_one().await).await;
    fixture.emit(new_event("record").with_key("halts")).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    let cancelled = fixture.emit(new_event("record").with_key("cancelled")).await;
    fixture.cancel_task(&cancelled.tasks[0]).await.unwrap();
    assert_eq!(list_statuses(&database), ["done", "error", "error"]);
    let nothing = pointsman_core::journal::Retention { max_count: 0, max_age: Duration::ZERO };
    fixture.prune_events_and_tasks(KEEP_EVERYTHING, nothing).await;
    assert_eq!(list_statuses(&database), ["error"], "a halted task is unfinished, and does not expire");
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_have_distinct_uuids() {
    let database = SingleDatabase::new();
    let fixture = StoreFixture::new(&database, test_registration()).await;
    fixture.emit(new_event("record")).await;
    fixture.emit(new_event("record").for_tenant("shop")).await;
    fixture.emit(new_event("record").for_tenant("shop")).await;
    let rows_found = query_events_view(&database, "canvas_id, account_id");
    assert!(rows_found.iter().all(|row| row[0] == row[1]));
    assert!(rows_found[0][0] != rows_found[1][0] && rows_found[1][0] == rows_found[2][0]);
    let names =
        "SELECT t.name FROM pointsman.events e JOIN pointsman.tenant t USING (canvas_id) ORDER BY e.id";
    let named = database.query(names);
    assert_eq!(named, [["default"], ["shop"], ["shop"]]);
}

const INSERT_RULE_SQL: &str =
    "INSERT INTO pointsman.scheduling_rules (rule_type, canvas_id, handler_name, event_space) VALUES";

/// Polls until the condition holds.
async fn wait_until(description: &str, mut condition: impl AsyncFnMut() -> bool) {
    let polling = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, polling).await.unwrap_or_else(|_| panic!("timed out: {description}"));
}

/// True if a task of this handler, and of this tenant if one is given, can be claimed. Releases all claimed tasks.
async fn has_claimable_task(fixture: &StoreFixture<'_>, name: &str, of_tenant: Option<&str>) -> bool {
    let tasks = fixture.claim_for_handlers(&[name], 10).await;
    let mut found = false;
    for task in &tasks {
        found |= of_tenant.is_none_or(|name| task.event().tenant == tenant(name));
        fixture.release_task(task).await;
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_written_in_sql_take_effect_and_can_be_removed() {
    let database = SingleDatabase::new();
    let fixture = StoreFixture::new(&database, test_registration()).await;
    fixture.emit(new_event("record").with_key("a")).await;
    let shop_event = fixture.emit(new_event("record").with_key("b").for_tenant("shop")).await;
    fixture.request_collection_run("shop/orders").await;
    fixture.add_order(new_order("/x/y,7")).await;
    let shop =
        database.query("SELECT canvas_id FROM pointsman.tenant WHERE name = 'shop'").remove(0).remove(0);
    let nil = Uuid::nil().to_string();
    for (rule_type, canvas_id, name, event_space, handler, of_tenant) in [
        ("pause", &nil, "index", "WORKER", "index", None),
        ("block", &nil, "index", "WORKER", "index", None),
        ("pause", &shop, "index", "WORKER", "index", Some("shop")),
        ("pause", &nil, "shop/orders", "SYNC", "shop", None),
        ("block", &nil, "/x/y", "ORDER", "first", None),
    ] {
        assert!(has_claimable_task(&fixture, handler, of_tenant).await, "{name}: no rule applies yet");
        let values = format!("('{rule_type}', '{canvas_id}', '{name}', '{event_space}')");
        database.query(&format!("{INSERT_RULE_SQL} {values}"));
        wait_until(&format!("the rule {values} applies"), async || {
            !has_claimable_task(&fixture, handler, of_tenant).await
        })
        .await;
        if of_tenant.is_some() {
            assert!(
                has_claimable_task(&fixture, handler, None).await,
                "tasks of other tenants can be claimed"
            );
            assert!(
                fixture
                    .list_closed_gate_kinds(&shop_event.tasks[0])
                    .await
                    .contains(&GateKind::NoBlockingRule)
            );
        }
        database.query("DELETE FROM pointsman.scheduling_rules");
        wait_until(&format!("the rule {values} no longer applies"), async || {
            has_claimable_task(&fixture, handler, of_tenant).await
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_can_be_paused_in_sql() {
    let database = SingleDatabase::new();
    let fixture = StoreFixture::new(&database, test_registration()).await;
    assert!(!fixture.register_daily_schedule("nightly").await.paused);
    let nil = Uuid::nil();
    database.query(&format!("{INSERT_RULE_SQL} ('pause', '{nil}', 'nightly', 'CRON')"));
    wait_until("the schedule is paused", async || fixture.register_daily_schedule("nightly").await.paused)
        .await;
    database.query("DELETE FROM pointsman.scheduling_rules");
    wait_until("the schedule continues", async || !fixture.register_daily_schedule("nightly").await.paused)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_set_through_the_store_are_rows_of_scheduling_rules() {
    let database = SingleDatabase::new();
    let fixture = StoreFixture::new(&database, test_registration()).await;
    for name in ["index", "shop/orders", "@nightly", "/x/y"] {
        fixture.set_pause_rule(name).await;
    }
    let sql = "SELECT rule_type, canvas_id, handler_name, event_space, by, reason
               FROM pointsman.scheduling_rules r JOIN pointsman.rule_author n ON n.rule = r.id ORDER BY r.id";
    let nil = Uuid::nil().to_string();
    let row = |name: &str, space: &str| {
        ["pause", &nil, name, space, "ops", "maintenance"].map(String::from).to_vec()
    };
    let wanted =
        [row("index", "WORKER"), row("shop/orders", "SYNC"), row("nightly", "CRON"), row("/x/y", "ORDER")];
    assert_eq!(database.query(sql), wanted);
    for name in ["index", "shop/orders", "@nightly", "/x/y"] {
        assert!(fixture.lift_pause_rule(name).await);
    }
    assert!(database.query("SELECT FROM pointsman.scheduling_rules").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_with_unusual_names_times_and_numbers_do_not_break_the_store() {
    let database = SingleDatabase::new();
    let fixture = StoreFixture::new(&database, test_registration()).await;
    // Invalid names, and an invalid tenant.
    let (nil, invalid_tenant) = (Uuid::nil(), Uuid::from_u128(7));
    database.query(&format!("INSERT INTO pointsman.tenant VALUES ('no tenant', '{invalid_tenant}')"));
    database.query(&format!(
        "{INSERT_RULE_SQL} ('pause', '{invalid_tenant}', 'index', 'WORKER'), ('pause', '{nil}', '', 'WORKER'), ('block', '{nil}', 'a', 'SYNC'),
         ('block', '{nil}', repeat('x', 5000), 'ORDER')"
    ));
    let rows = [
        (-2_147_483_648, "infinity", Timestamp::MAX),
        (0, "-infinity", Timestamp::MIN),
        (5, "294276-12-31", Timestamp::MAX),
        (6, "4713-01-01 BC", Timestamp::MIN),
        (2_147_483_647, "9999-12-31T23:59:59.999999Z", Timestamp::MAX),
        (7, "1970-01-01T00:00:01Z", Timestamp::from_millis(1000)),
    ];
    for (id, at, _) in rows {
        let values = format!(
            "({id}, 'pause', '{}', 'h{}', 'WORKER', '{at}')",
            Uuid::nil(),
            i64::from(id).unsigned_abs()
        );
        database.query(&format!(
            "INSERT INTO pointsman.scheduling_rules (id, rule_type, canvas_id, handler_name, event_space, created_at)
             VALUES {values}"
        ));
    }
    let fixture = fixture.reopen().await;
    fixture.emit(new_event("record").with_key("a")).await;
    let mut since: Vec<_> =
        expect_ok(fixture.store.list_rules().await).into_iter().map(|rule| rule.since).collect();
    let mut wanted = rows.map(|(_, _, since)| since).to_vec();
    since.sort();
    wanted.sort();
    assert_eq!(since, wanted);
    // Rows that were inserted above have the next numbers of the sequence.
    for name in ["index", "shop/orders", "/x/y"] {
        fixture.set_pause_rule(name).await;
    }
    assert_eq!(expect_ok(fixture.store.list_rules().await).len(), rows.len() + 3);
}
