//! SQLite: the only clock is the machine's own, which is compared with its monotonic clock and its uptime.

use super::fake_clock::{serve_with_clock_offset, set_fake_clock_offset};
use super::test_server::ServerFixture;
use super::*;

const SQLITE_STORE_CONFIG: &str = "store: sqlite:pointsman.db\n";

/// The pruner runs at least once while this many planned times fire.
const TICKS_UNTIL_PRUNED: u32 = 13;

#[test]
fn a_clock_step_that_is_undone_deletes_nothing_and_starts_nothing_early() {
    let mut pointsman = ServerFixture::new(&format!("{SQLITE_STORE_CONFIG}{CONFIG}"));
    let _node = serve_with_clock_offset(&mut pointsman, "+0s");
    let stored_data = StoredData::create(&pointsman);
    for (offset, while_it_lasts) in [("+50m", 3), ("+40d", TICKS_UNTIL_PRUNED), ("-26h", 3), ("+26h", 3)] {
        set_fake_clock_offset(&pointsman, offset);
        wait_for_ticks(&pointsman, while_it_lasts);
        stored_data.assert_intact(&pointsman);
        set_fake_clock_offset(&pointsman, "+0s");
        wait_for_ticks(&pointsman, 2);
        stored_data.assert_intact(&pointsman);
    }
    assert_each_tick_fired_once(&pointsman);
    let log = pointsman.read_server_log();
    let steps = logged_steps(&log);
    assert_eq!(log.lines().filter(|line| line.contains("was undone")).count(), steps.len(), "{log}");
    // libfaketime returns the real time to a thread that reads the clock while another thread is inside of one of its
    // functions. Such a reading undoes a step, and the next one repeats it.
    let mut distinct_steps = steps;
    distinct_steps.dedup();
    assert_eq!(distinct_steps, ["+3000.0", "+3456000.0", "-93600.0", "+93600.0"], "{log}");
    let clock = &pointsman.run_json(&["nodes"])["nodes"][0]["clock"];
    assert!(clock["last_step"]["by_ms"].is_i64() && clock["out_of_service"] == false, "{clock}");
    assert!(doctor_output(&pointsman).contains("was set by"));
}

#[test]
fn a_server_that_starts_with_a_wrong_clock_deletes_nothing_and_starts_nothing_early() {
    let mut pointsman = ServerFixture::new(&format!("{SQLITE_STORE_CONFIG}{CONFIG}"));
    let node = pointsman.serve();
    let stored_data = StoredData::create(&pointsman);
    assert!(node.stop().success());
    for (offset, while_it_runs) in [("+26h", 3), ("+40d", TICKS_UNTIL_PRUNED), ("-40d", 3)] {
        let node = serve_with_clock_offset(&mut pointsman, offset);
        wait_for_ticks(&pointsman, while_it_runs);
        stored_data.assert_intact(&pointsman);
        assert!(node.stop().success());
        assert!(
            pointsman.read_server_log().contains("this machine's clock stepped by"),
            "{}",
            pointsman.read_server_log()
        );
    }
    let _node = pointsman.serve();
    wait_for_ticks(&pointsman, 2);
    stored_data.assert_intact(&pointsman);
}

/// Returns the steps of the clock that a server has logged, in seconds.
fn logged_steps(log: &str) -> Vec<&str> {
    let step = |line| str::split_once(line, "this machine's clock stepped by ")?.1.split_once(" s;");
    log.lines().filter_map(step).map(|(seconds, _)| seconds).collect()
}
