//! SQLite: the only clock is the machine's own, which is compared with its monotonic clock and its uptime.

use super::faked::{serve_off, set_clock};
use super::node::Place;
use super::*;

const STORE: &str = "store: sqlite:pointsman.db\n";

/// The pruner runs at least once while this many planned times fire.
const A_WHILE: u32 = 13;

#[test]
fn a_step_that_is_undone_deletes_nothing_and_starts_nothing_early() {
    let mut place = Place::new(&format!("{STORE}{CONFIG}"));
    let _node = serve_off(&mut place, "+0s");
    let kept = Kept::store(&place);
    for (offset, while_it_lasts) in [("+50m", 3), ("+40d", A_WHILE), ("-26h", 3), ("+26h", 3)] {
        set_clock(&place, offset);
        ticks(&place, while_it_lasts);
        kept.check(&place);
        set_clock(&place, "+0s");
        ticks(&place, 2);
        kept.check(&place);
    }
    check_ticks(&place);
    let log = place.log();
    let about = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    assert_eq!((about("this machine's clock stepped by"), about("was undone")), (4, 4), "{log}");
    let clock = &place.json(&["nodes"])["nodes"][0]["clock"];
    assert!(clock["last_step"]["by_ms"].is_i64() && clock["out_of_service"] == false, "{clock}");
    assert!(doctor(&place).contains("was set by"));
}

#[test]
fn a_server_that_starts_with_a_wrong_clock_deletes_nothing_and_starts_nothing_early() {
    let mut place = Place::new(&format!("{STORE}{CONFIG}"));
    let node = place.serve();
    let kept = Kept::store(&place);
    assert!(node.stop().success());
    for (offset, while_it_runs) in [("+26h", 3), ("+40d", A_WHILE), ("-40d", 3)] {
        let node = serve_off(&mut place, offset);
        ticks(&place, while_it_runs);
        kept.check(&place);
        assert!(node.stop().success());
        assert!(place.log().contains("this machine's clock stepped by"), "{}", place.log());
    }
    let _node = place.serve();
    ticks(&place, 2);
    kept.check(&place);
}
