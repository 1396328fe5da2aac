//! Marks in a file, across the death of the process at every point.

use std::path::Path;

use pointsman::gate::rusqlite::Connection;
use pointsman::gate::{GateError, SqliteMarks};
use tempfile::TempDir;

use super::*;

/// A connection that does not wait for the disk: processes die here, machines do not.
fn connect(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;").unwrap();
    conn
}

/// A consumer that writes the payload of each event into a table, and counts its steps. At one of them it dies:
/// what it had in memory is gone.
struct Consumer {
    folder: TempDir,
    gate: Gate<u64, SqliteMarks>,
    rows: Connection,
    steps: usize,
    dies_at: usize,
    /// The mark commits with the row.
    together: bool,
}

/// The process died.
#[derive(Debug)]
struct Died;

impl Consumer {
    fn new(dies_at: usize, together: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (gate, rows) = Self::open(&folder);
        rows.execute_batch("CREATE TABLE handled (number INTEGER)").unwrap();
        Self { folder, gate, rows, steps: 0, dies_at, together }
    }

    fn open(folder: &TempDir) -> (Gate<u64, SqliteMarks>, Connection) {
        let path = folder.path().join("consumer.db");
        let marks = SqliteMarks::on(connect(&path), "test").unwrap();
        (Gate::new(marks).limits(roomy()), connect(&path))
    }

    fn step(&mut self) -> Result<(), Died> {
        self.steps += 1;
        if self.steps == self.dies_at { Err(Died) } else { Ok(()) }
    }

    fn arrive(&mut self, event: &Event) -> Result<(), Died> {
        let mut verdicts = vec![self.gate.arrive(event.clone(), now()).unwrap()];
        self.step()?;
        while let Some(verdict) = verdicts.pop() {
            let Verdict::Ready(event) = verdict else { continue };
            self.handle(&event)?;
            self.step()?;
            verdicts = self.gate.done(&event).unwrap();
            self.step()?;
        }
        Ok(())
    }

    fn handle(&mut self, event: &Event) -> Result<(), Died> {
        let tx = self.rows.transaction().unwrap();
        tx.execute("INSERT INTO handled VALUES (?1)", [event.payload as i64]).unwrap();
        if self.together {
            self.gate.mark_in(&tx, event).unwrap();
        }
        // Here too it may die: before the commit.
        self.steps += 1;
        if self.steps == self.dies_at {
            return Err(Died);
        }
        tx.commit().unwrap();
        Ok(())
    }

    /// Sends all events until none is missing, as a bus does that was told of none.
    fn run(&mut self, arrivals: &[Event]) {
        while arrivals.iter().try_for_each(|event| self.arrive(event)).is_err() {
            (self.gate, self.rows) = Self::open(&self.folder);
        }
    }

    fn handled(&self) -> Vec<u64> {
        let mut statement = self.rows.prepare("SELECT number FROM handled ORDER BY rowid").unwrap();
        let numbers = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
        numbers.map(|number| number.unwrap() as u64).collect()
    }
}

/// Runs every order of four events with a death at every step, and answers how many events were handled twice.
fn die_everywhere(together: bool) -> usize {
    let mut twice = 0;
    for keys in [["a", "a", "a", "a"], ["a", "a", "b", "a"], ["a", "b", "b", "a"]] {
        let history = history(&keys);
        for arrivals in arrangements(&history).into_iter().filter(|order| order.len() == 4) {
            for dies_at in 1.. {
                let mut consumer = Consumer::new(dies_at, together);
                consumer.run(&arrivals);
                let handled = consumer.handled();
                let mut once = handled.clone();
                once.dedup();
                twice += handled.len() - once.len();
                assert!(handled.len() <= 5, "one death makes one repeat at most: {handled:?}");
                for key in ["a", "b"] {
                    let of_key = history.iter().filter(|event| event.object == Some(object(key)));
                    let expected: Vec<u64> = of_key.map(|event| event.payload).collect();
                    let mut order = handled.clone();
                    order.retain(|number| expected.contains(number));
                    order.dedup();
                    assert_eq!(order, expected, "{arrivals:?}, died at {dies_at}");
                }
                if consumer.steps < dies_at {
                    break;
                }
            }
        }
    }
    twice
}

#[test]
fn what_was_handled_and_not_done_is_ready_again() {
    assert!(die_everywhere(false) > 0, "at least once");
}

#[test]
fn a_mark_that_commits_with_the_rows_makes_it_exactly_once() {
    assert_eq!(die_everywhere(true), 0);
}

#[test]
fn a_file_remembers_marks_skips_and_consumers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("marks.db");
    let open = |name: &str| Gate::new(SqliteMarks::open(&path, name).unwrap()).limits(roomy());
    let mut gate = open("one");
    let verdict = gate.arrive(event("a", 1, None), now()).unwrap();
    assert_eq!(handle(&mut gate, verdict), [1]);
    gate.skip(&object("b"), id(5)).unwrap();
    gate.skip(&object("a"), id(2)).unwrap();
    drop(gate);
    let mut gate = open("one");
    assert_eq!(gate.arrive(event("a", 1, None), now()).unwrap(), Verdict::Duplicate);
    assert_eq!(gate.arrive(event("b", 4, None), now()).unwrap(), Verdict::Duplicate, "skipped");
    let (fork, behind) = (event("a", 2, None), event("b", 5, 4));
    assert_eq!(gate.arrive(fork.clone(), now()).unwrap(), Verdict::Ready(fork), "that was skipped to");
    assert_eq!(gate.arrive(behind.clone(), now()).unwrap(), Verdict::Ready(behind));
    let mut other = open("two");
    assert!(matches!(other.arrive(event("a", 1, None), now()).unwrap(), Verdict::Ready(_)));
}

#[test]
fn a_rollback_takes_the_mark_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("marks.db");
    let mut gate = Gate::new(SqliteMarks::open(&path, "one").unwrap());
    let mut rows = Connection::open(&path).unwrap();
    let (first, second) = (event("a", 1, None), event("a", 2, 1));
    let tx = rows.transaction().unwrap();
    assert_eq!(gate.mark_in(&tx, &first), Err(GateError::NotInHand { id: id(1) }));
    gate.arrive(first.clone(), now()).unwrap();
    gate.mark_in(&tx, &first).unwrap();
    tx.rollback().unwrap();
    gate.release(&first).unwrap();
    assert_eq!(gate.arrive(first.clone(), now()).unwrap(), Verdict::Ready(first.clone()));
    let tx = rows.transaction().unwrap();
    gate.mark_in(&tx, &first).unwrap();
    tx.commit().unwrap();
    assert_eq!(gate.arrive(second.clone(), now()).unwrap(), Verdict::Wait, "the first is in hand until done");
    assert_eq!(gate.done(&first).unwrap(), [Verdict::Ready(second)]);
}

#[test]
fn what_is_no_database_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("marks.db");
    std::fs::write(&path, "this is a text, and a rather long one for what it says".repeat(40)).unwrap();
    let refused = SqliteMarks::open(&path, "one").unwrap_err().to_string();
    assert!(refused.contains("not a database"), "{refused}");
}
