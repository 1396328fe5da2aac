//! Clusters: nodes use the clock of the database server.

use pointsman_core::Timestamp;
use pointsman_testing::{shared_postgres, shared_redis, unique_key_prefix};
use serde_json::Value;

use super::fake_clock::{send_get, serve_with_clock_offset, set_fake_clock_offset};
use super::test_server::{ServerFixture, wait_until};
use super::*;

/// Runs each of these tests on every kind of store that nodes can share: PostgreSQL and Redis.
macro_rules! on_each_shared_store {
    ($($test:ident),+ $(,)?) => {
        mod on_postgres { $(
            #[test]
            fn $test() {
                super::$test(&super::shared_postgres().unwrap().create_database().unwrap());
            }
        )+ }
        mod on_redis { $(
            #[test]
            fn $test() {
                super::$test(&super::shared_redis().unwrap().url_with_prefix(&super::unique_key_prefix()));
            }
        )+ }
    };
}

on_each_shared_store! {
    nodes_whose_clocks_are_off_delete_nothing_and_start_nothing_early,
    a_clock_that_steps_takes_its_node_out_of_service_until_it_agrees,
}

const CLOCK_OFFSETS: [&str; 4] = ["+26h", "+40d", "-26h", "-40d"];

fn list_nodes(pointsman: &ServerFixture) -> Vec<Value> {
    pointsman.run_json(&["nodes"])["nodes"].as_array().unwrap().clone()
}

fn parse_node_time(node: &Value, member: &str) -> Timestamp {
    node[member].as_str().unwrap().parse().unwrap()
}

/// Checks that the server is not ready, refuses events, and says why.
fn assert_out_of_service(pointsman: &ServerFixture) {
    let (status, response) = send_get(pointsman, "/readyz");
    assert_eq!(status, 503, "{response}");
    assert!(
        response.contains("out of service") && response.to_lowercase().contains("retry-after"),
        "{response}"
    );
    let refused = pointsman.run_command(&["emit", "record"]);
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(75), "{stderr}");
    assert!(stderr.contains("its clock is") && stderr.contains("nothing was stored"), "{stderr}");
}

fn nodes_whose_clocks_are_off_delete_nothing_and_start_nothing_early(store: &str) {
    let config = format!("store: '{store}'\n{CONFIG}");
    let mut right = ServerFixture::new(&config);
    let _right = right.serve();
    let stored_data = StoredData::create(&right);
    let mut wrong = CLOCK_OFFSETS.map(|_| ServerFixture::new(&config).with_token(right.token()));
    let _wrong: Vec<_> = wrong
        .iter_mut()
        .zip(CLOCK_OFFSETS)
        .map(|(pointsman, offset)| serve_with_clock_offset(pointsman, offset))
        .collect();
    wrong.iter().for_each(assert_out_of_service);
    let records: Vec<String> = (0..10).map(|_| first_task_id(&right.run_json(&["emit", "record"]))).collect();

    wait_until("every node has had time to prune", || {
        let lived = |node: &Value| {
            parse_node_time(node, "last_heartbeat_at").duration_since(parse_node_time(node, "joined_at"))
                > NODE_HAS_PRUNED_AFTER
        };
        let nodes = list_nodes(&right);
        nodes.len() == 1 + CLOCK_OFFSETS.len() && nodes.iter().all(lived)
    });
    stored_data.assert_intact(&right);
    assert_each_tick_fired_once(&right);
    let nodes = list_nodes(&right);
    assert!(nodes.iter().all(|node| node["alive"] == true), "no node was given up: {nodes:?}");
    let off = nodes.iter().filter(|node| node["clock"]["out_of_service"] == true);
    assert_eq!(off.count(), CLOCK_OFFSETS.len(), "{nodes:?}");
    let true_time = |node: &Value| {
        real_time_now().duration_since(parse_node_time(node, "last_heartbeat_at")) < NODE_HAS_PRUNED_AFTER
            && parse_node_time(node, "last_heartbeat_at") <= real_time_now()
    };
    assert!(nodes.iter().all(true_time), "{nodes:?}");
    for task in records {
        wait_until("the task has run", || right.run_json(&["tasks", "show", &task])["status"] == "SUCCESS");
    }
    for pointsman in &wrong {
        assert!(!pointsman.file_path("ran").exists(), "a node that is out of service runs nothing");
        assert!(
            pointsman.read_server_log().contains("the node is out of service until they agree"),
            "{}",
            pointsman.read_server_log()
        );
    }
    let doctor = doctor_output(&right);
    assert!(doctor.contains("node clocks") && doctor.contains("out of service"), "{doctor}");
}

fn a_clock_that_steps_takes_its_node_out_of_service_until_it_agrees(store: &str) {
    let mut pointsman = ServerFixture::new(&format!("store: '{store}'\n{CONFIG}"));
    let _node = serve_with_clock_offset(&mut pointsman, "+0s");
    let stored_data = StoredData::create(&pointsman);
    for offset in ["+40d", "-26h", "+50m", "-40d"] {
        let soon = first_task_id(&pointsman.run_json(&["emit", "record", "--delay", "2s"]));
        set_fake_clock_offset(&pointsman, offset);
        wait_until("the node is out of service", || send_get(&pointsman, "/readyz").0 == 503);
        assert_out_of_service(&pointsman);
        wait_until("the clock step is reported", || {
            let clock = &list_nodes(&pointsman)[0]["clock"];
            clock["out_of_service"] == true && clock["last_step"]["by_ms"].is_i64()
        });
        set_fake_clock_offset(&pointsman, "+0s");
        wait_until("the node is ready", || send_get(&pointsman, "/readyz").0 == 200);
        wait_until("the delayed task has run", || {
            pointsman.run_json(&["tasks", "show", &soon])["status"] == "SUCCESS"
        });
        stored_data.assert_intact(&pointsman);
    }
    wait_for_ticks(&pointsman, 3);
    stored_data.assert_intact(&pointsman);
    assert_each_tick_fired_once(&pointsman);
    let log = pointsman.read_server_log();
    let count_lines = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    assert_eq!(
        (
            count_lines("the node is out of service until they agree"),
            count_lines("the node is back in service")
        ),
        (4, 4),
        "{log}"
    );
}
