//! Positions in a file, across a crash of the process at every step.

use std::path::Path;

use pointsman::gate::rusqlite::Connection;
use pointsman::gate::{GateError, SqlitePositions};
use tempfile::TempDir;

use super::*;

/// A connection without disk syncs: the tests simulate crashes of the process, not of the machine.
fn open_connection_without_syncs(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;").unwrap();
    conn
}

/// A consumer that writes the payload of each event into a table, and counts its steps. At one of them it crashes and
/// loses its memory.
struct CrashingConsumer {
    folder: TempDir,
    gate: Gate<u64, SqlitePositions>,
    row_connection: Connection,
    step_count: usize,
    crash_step: usize,
    /// Whether the position commits in the transaction of the row.
    commits_position_with_row: bool,
}

/// The consumer crashed at the chosen step.
#[derive(Debug)]
struct SimulatedCrash;

impl CrashingConsumer {
    fn new(crash_step: usize, commits_position_with_row: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (gate, row_connection) = Self::open_gate_and_row_connection(&folder);
        row_connection.execute_batch("CREATE TABLE handled (number INTEGER)").unwrap();
        Self { folder, gate, row_connection, step_count: 0, crash_step, commits_position_with_row }
    }

    fn open_gate_and_row_connection(folder: &TempDir) -> (Gate<u64, SqlitePositions>, Connection) {
        let path = folder.path().join("consumer.db");
        let positions =
            SqlitePositions::with_connection(open_connection_without_syncs(&path), "test").unwrap();
        (Gate::new(positions).with_limits(ample_limits()), open_connection_without_syncs(&path))
    }

    /// Counts a step; an error at the step at which the consumer is to crash.
    fn count_step_and_crash_at_chosen_step(&mut self) -> Result<(), SimulatedCrash> {
        self.step_count += 1;
        if self.step_count == self.crash_step { Err(SimulatedCrash) } else { Ok(()) }
    }

    fn receive(&mut self, event: &NumberedEvent) -> Result<(), SimulatedCrash> {
        let mut decisions = vec![self.gate.receive(event.clone(), now()).unwrap()];
        self.count_step_and_crash_at_chosen_step()?;
        while let Some(decision) = decisions.pop() {
            let GateDecision::Ready(event) = decision else { continue };
            self.write_row(&event)?;
            self.count_step_and_crash_at_chosen_step()?;
            decisions = self.gate.mark_done(&event).unwrap();
            self.count_step_and_crash_at_chosen_step()?;
        }
        Ok(())
    }

    fn write_row(&mut self, event: &NumberedEvent) -> Result<(), SimulatedCrash> {
        let tx = self.row_connection.transaction().unwrap();
        tx.execute("INSERT INTO handled VALUES (?1)", [event.payload as i64]).unwrap();
        if self.commits_position_with_row {
            self.gate.write_position_in_transaction(&tx, event).unwrap();
        }
        // The consumer may also crash here, before the commit.
        self.step_count += 1;
        if self.step_count == self.crash_step {
            return Err(SimulatedCrash);
        }
        tx.commit().unwrap();
        Ok(())
    }

    /// Receives all events, again from the first after each crash: a bus resends what was not acknowledged.
    fn receive_all(&mut self, arrivals: &[NumberedEvent]) {
        while arrivals.iter().try_for_each(|event| self.receive(event)).is_err() {
            (self.gate, self.row_connection) = Self::open_gate_and_row_connection(&self.folder);
        }
    }

    fn read_handled_numbers(&self) -> Vec<u64> {
        let mut statement = self.row_connection.prepare("SELECT number FROM handled ORDER BY rowid").unwrap();
        let numbers = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
        numbers.map(|number| number.unwrap() as u64).collect()
    }
}

/// Runs every order of four events with a crash at every step, and returns how many events were handled twice.
fn count_repeats_with_a_crash_at_every_step(commits_position_with_row: bool) -> usize {
    let mut repeat_count = 0;
    for keys in [["a", "a", "a", "a"], ["a", "a", "b", "a"], ["a", "b", "b", "a"]] {
        let history = build_history(&keys);
        for arrivals in ordered_subsets(&history).into_iter().filter(|order| order.len() == 4) {
            for crash_step in 1.. {
                let mut consumer = CrashingConsumer::new(crash_step, commits_position_with_row);
                consumer.receive_all(&arrivals);
                let handled = consumer.read_handled_numbers();
                let mut distinct = handled.clone();
                distinct.dedup();
                repeat_count += handled.len() - distinct.len();
                assert!(handled.len() <= 5, "one crash causes at most one repeat: {handled:?}");
                for key in ["a", "b"] {
                    let events_of_key = history.iter().filter(|event| event.object == Some(object_key(key)));
                    let expected: Vec<u64> = events_of_key.map(|event| event.payload).collect();
                    let mut order = handled.clone();
                    order.retain(|number| expected.contains(number));
                    order.dedup();
                    assert_eq!(order, expected, "{arrivals:?}, crash at step {crash_step}");
                }
                if consumer.step_count < crash_step {
                    break;
                }
            }
        }
    }
    repeat_count
}

#[test]
fn event_handled_but_not_marked_done_before_a_crash_is_ready_again() {
    assert!(count_repeats_with_a_crash_at_every_step(false) > 0, "at least once");
}

#[test]
fn position_committed_with_the_row_makes_handling_exactly_once() {
    assert_eq!(count_repeats_with_a_crash_at_every_step(true), 0);
}

#[test]
fn positions_in_a_file_survive_a_restart_per_consumer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("positions.db");
    let open =
        |name: &str| Gate::new(SqlitePositions::open(&path, name).unwrap()).with_limits(ample_limits());
    let mut gate = open("one");
    let decision = gate.receive(numbered_event("a", 1, None), now()).unwrap();
    assert_eq!(handle_ready_events(&mut gate, decision), [1]);
    gate.skip_to(&object_key("b"), event_id(5)).unwrap();
    gate.skip_to(&object_key("a"), event_id(2)).unwrap();
    drop(gate);
    let mut gate = open("one");
    assert_eq!(gate.receive(numbered_event("a", 1, None), now()).unwrap(), GateDecision::Duplicate);
    assert_eq!(
        gate.receive(numbered_event("b", 4, None), now()).unwrap(),
        GateDecision::Duplicate,
        "skipped"
    );
    let (fork, after_skip) = (numbered_event("a", 2, None), numbered_event("b", 5, 4));
    assert_eq!(gate.receive(fork.clone(), now()).unwrap(), GateDecision::Ready(fork), "that was skipped to");
    assert_eq!(gate.receive(after_skip.clone(), now()).unwrap(), GateDecision::Ready(after_skip));
    let mut other = open("two");
    assert!(matches!(other.receive(numbered_event("a", 1, None), now()).unwrap(), GateDecision::Ready(_)));
}

#[test]
fn rollback_of_the_transaction_undoes_the_position() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("positions.db");
    let mut gate = Gate::new(SqlitePositions::open(&path, "one").unwrap());
    let mut rows = Connection::open(&path).unwrap();
    let (first, second) = (numbered_event("a", 1, None), numbered_event("a", 2, 1));
    let tx = rows.transaction().unwrap();
    assert_eq!(
        gate.write_position_in_transaction(&tx, &first),
        Err(GateError::NotInProgress { id: event_id(1) })
    );
    gate.receive(first.clone(), now()).unwrap();
    gate.write_position_in_transaction(&tx, &first).unwrap();
    tx.rollback().unwrap();
    gate.release(&first).unwrap();
    assert_eq!(gate.receive(first.clone(), now()).unwrap(), GateDecision::Ready(first.clone()));
    let tx = rows.transaction().unwrap();
    gate.write_position_in_transaction(&tx, &first).unwrap();
    tx.commit().unwrap();
    assert_eq!(
        gate.receive(second.clone(), now()).unwrap(),
        GateDecision::Wait,
        "the first is in progress until it is marked done"
    );
    assert_eq!(gate.mark_done(&first).unwrap(), [GateDecision::Ready(second)]);
}

#[test]
fn file_that_is_not_a_database_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("positions.db");
    std::fs::write(&path, "this is a text file and not a database, repeated often".repeat(40)).unwrap();
    let refused = SqlitePositions::open(&path, "one").unwrap_err().to_string();
    assert!(refused.contains("not a database"), "{refused}");
}
