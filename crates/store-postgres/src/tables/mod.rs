//! The tables, as one transaction of the writer sees them.
//!
//! Over the wire every question costs a way there and back, so that as few as possible are asked: what a transaction
//! will look at is fetched when it begins (`seen.rs`), what it writes is held back and goes together with the next
//! question or with the commit (`held.rs`). A question that a table must answer takes along all that is held back.

mod columns;
mod ended_orders;
mod events;
mod forgetting;
mod held;
mod lanes;
mod objects;
mod orders;
mod registry;
mod schedules;
mod seen;
mod sequencer;
mod tasks;
mod touched;
mod trait_impl;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use pointsman_core::task::Realm;
use pointsman_store::clock::CallerTime;
use pointsman_store::commits::{Change, Point, told};
use pointsman_store::error::Result;
use pointsman_store::tables::{Changes, Counters, Foreseen, Memory};
use tokio_postgres::Row;

use crate::error::is_broken;
use crate::link::{Link, Param, Piece, params};
use crate::pool::Pool;
use crate::session::{Query, query};
use held::Held;
use seen::Seen;
use sequencer::{Sequencer, Told};
use touched::Touched;

/// So many rows lie in a slice of the journal or of the history, unless the text `slice` says otherwise.
pub(crate) const SLICE: i64 = 250_000;

/// What the writer sees of the database.
pub struct PgTables {
    link: Link,
    held: RefCell<Held>,
    seen: RefCell<Seen>,
    time: Arc<CallerTime>,
    /// What was seen is as the last transaction left it, which is the one that is remembered.
    known: Cell<bool>,
    /// Others wrote in one of the last transactions, so many ago less than [`COMPANY`]; they are told what is touched.
    company: Cell<u32>,
    touched: Touched,
    sequencer: RefCell<Sequencer>,
    /// What this transaction changes that others may remember otherwise.
    changes: RefCell<Vec<Change>>,
    /// Handlers, chains, rules or nodes have changed in this transaction.
    registry_changed: Cell<bool>,
    /// The commit that the memory beside the tables is of, and the version of the registry.
    remembered: Cell<Option<(Point, i64)>>,
    realm: Cell<Option<Realm>>,
    slice: Cell<i64>,
    /// Numbers and ids of the events with which slices of the journal begin, and up to where slices were then.
    slices: RefCell<(i64, Vec<(i64, i64)>)>,
}

/// So many transactions after another node wrote, it is taken to be there still.
const COMPANY: u32 = 64;

/// The settings, for a connection or for a transaction.
macro_rules! settings {
    ($set:literal, $local:literal) => {
        concat!(
            $set,
            " idle_in_transaction_session_timeout = '10s'; ",
            $set,
            " lock_timeout = '15s'; ",
            $set,
            " client_connection_check_interval = '2s'; ",
            $set,
            " jit = off; ",
            $set,
            " enable_seqscan = off; ",
            $set,
            " enable_bitmapscan = off; ",
            $set,
            " enable_hashjoin = off; ",
            $set,
            " enable_mergejoin = off; ",
            $set,
            " enable_sort = off; ",
            $set,
            " max_parallel_workers_per_gather = 0; ",
            "SELECT set_config('synchronous_commit', 'on', ",
            $local,
            ") WHERE current_setting('synchronous_commit') IN ('off', 'local')"
        )
    };
}

/// What a transaction begins with, whatever the server's default: each statement sees what was committed before it, and so
/// all that others have written until the lock was got.
macro_rules! begin {
    () => {
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
    };
}
const BEGIN: &str = begin!();
/// The same where the settings of the connection are another's: see [`SETTINGS`].
const BEGIN_POOLED: &str = concat!(begin!(), "; ", settings!("SET LOCAL", "true"));
/// A node that is stopped in the middle of a transaction must not keep the others waiting for long. The queue's tables
/// fill and empty faster than statistics follow, so that the planner is told: by the index. A commit is durable when it is
/// answered, whatever the server's default.
const SETTINGS: &str = concat!(settings!("SET", "false"), "; SET plan_cache_mode = force_generic_plan");

impl PgTables {
    pub(crate) fn new(pool: Pool, time: Arc<CallerTime>) -> std::io::Result<Self> {
        Ok(Self {
            link: Link::new(pool)?,
            held: RefCell::default(),
            seen: RefCell::default(),
            time,
            known: Cell::default(),
            company: Cell::default(),
            touched: Touched::default(),
            sequencer: RefCell::default(),
            changes: RefCell::default(),
            registry_changed: Cell::default(),
            remembered: Cell::default(),
            realm: Cell::default(),
            slice: Cell::new(SLICE),
            slices: RefCell::default(),
        })
    }

    /// Asks a question, taking along all that is held back.
    pub(crate) fn ask(&self, query: &'static Query, params: Vec<Param>) -> Result<Vec<Row>> {
        let mut pieces = self.release()?;
        pieces.push(Piece::Statement(query, params));
        Ok(self.link.send(&pieces)?.pop().unwrap_or_default())
    }

    /// The one row of an answer, if there is one.
    fn ask_one<R>(
        &self,
        query: &'static Query,
        params: Vec<Param>,
        read: impl FnOnce(&Row) -> Result<R>,
    ) -> Result<Option<R>> {
        self.ask(query, params)?.first().map(read).transpose()
    }

    fn ask_all<R>(
        &self,
        query: &'static Query,
        params: Vec<Param>,
        read: impl Fn(&Row) -> Result<R>,
    ) -> Result<Vec<R>> {
        self.ask(query, params)?.iter().map(read).collect()
    }

    /// The statements for all that is held back.
    fn release(&self) -> Result<Vec<Piece>> {
        let (events, past) = {
            let held = self.held.borrow();
            (held.last_number(), held.has_past())
        };
        self.make_room(events, past)?;
        let era = self.sequencer.borrow().archived;
        Ok(self.held.borrow_mut().release(era))
    }

    /// Sees to it that there are slices for what is about to be written: events up to this number, and ended tasks.
    fn make_room(&self, events: Option<i64>, past: bool) -> Result<()> {
        loop {
            let (journal_to, history_to, archived) = {
                let sequencer = self.sequencer.borrow();
                (sequencer.journal_to, sequencer.history_to, sequencer.archived)
            };
            if events.is_some_and(|last| last >= journal_to) {
                self.add_slice("journal", journal_to)?;
                self.sequencer.borrow_mut().journal_to += self.slice.get();
            } else if past && archived >= history_to {
                for table in ["history", "attempt", "log"] {
                    self.add_slice(table, history_to)?;
                }
                self.sequencer.borrow_mut().history_to += self.slice.get();
            } else {
                return Ok(());
            }
        }
    }

    fn add_slice(&self, table: &'static str, from: i64) -> Result<()> {
        let query = query!("write/add_slice", TEXT, INT8, INT8);
        self.link.send(&[Piece::Statement(query, params![table, from, from + self.slice.get()])]).map(drop)
    }

    /// Opens the connection, and reads how far everything has come.
    pub(crate) fn open(&self) -> Result<()> {
        self.connect()?;
        let rows = self.ask(query!("write/versions", INT8), params![i64::MAX])?;
        self.sequencer.replace(Told::read(&rows)?.1);
        if let Some(rows) =
            self.find_text("slice")?.and_then(|text| text.parse().ok()).filter(|rows| *rows > 0)
        {
            self.slice.set(rows);
        }
        Ok(())
    }

    pub(crate) fn begin(&self, foreseen: Foreseen) -> Result<Memory> {
        self.held.borrow_mut().clear();
        self.changes.borrow_mut().clear();
        self.registry_changed.set(false);
        let kept = self.known.replace(false) && self.seen.borrow().has_room();
        let (asked, known) = match kept {
            true => self.seen.borrow().part(foreseen),
            false => (foreseen, Foreseen::default()),
        };
        let answers = match self.lock(&asked) {
            Ok(answers) => answers,
            // The connection died while nobody used it. Nothing has been done yet: another may serve.
            Err(fault) if is_broken(&fault) => {
                self.link.cut();
                self.lock(&asked)?
            }
            Err(fault) => return Err(fault),
        };
        // The words that begin the transaction and take the turn answer nothing.
        let mut answers = answers.into_iter().skip(2);
        let versions = answers.next().unwrap_or_default();
        let (told, sequencer) = Told::read(&versions)?;
        self.sequencer.replace(sequencer);
        let objects = self.sequencer.borrow().counters.objects;
        let before = self.remembered.get();
        let memory = self.memory(&told)?;
        self.company.set(match memory {
            Memory::Current => self.company.get().saturating_sub(1),
            Memory::Behind(_) | Memory::Unknown => COMPANY,
        });
        self.touched.begin(self.company.get() > 0);
        let touched = before.filter(|_| kept).and_then(|(point, _)| told.touched_since(point));
        {
            let mut seen = self.seen.borrow_mut();
            match touched {
                Some(touched) => seen.hear(touched),
                None => *seen = Seen::default(),
            }
            seen.begin(objects);
            seen.take(asked, answers)?;
        }
        self.look_ahead(known)?;
        Ok(memory)
    }

    /// Fetches what is not known yet, at the beginning of a transaction.
    pub(crate) fn look_ahead(&self, foreseen: Foreseen) -> Result<()> {
        let (asked, _) = self.seen.borrow().part(foreseen);
        let pieces = Seen::pieces(&asked);
        if pieces.is_empty() {
            return Ok(());
        }
        let answers = self.link.send(&pieces)?;
        self.seen.borrow_mut().take(asked, answers.into_iter())
    }

    fn connect(&self) -> Result<()> {
        if !self.link.open()? {
            return Ok(());
        }
        // Another server may answer now, which has not all that the first one had.
        self.remembered.set(None);
        match self.link.is_pooled() {
            true => Ok(()),
            false => self.link.send(&[Piece::Word(SETTINGS)]).map(drop),
        }
    }

    /// Begins a transaction with the right to write, and fetches what it will look at.
    fn lock(&self, foreseen: &Foreseen) -> Result<Vec<Vec<Row>>> {
        self.connect()?;
        let word = if self.link.is_pooled() { BEGIN_POOLED } else { BEGIN };
        let version = self.remembered.get().map_or(i64::MAX, |(point, _)| point.version);
        let mut pieces = vec![
            Piece::Word(word),
            Piece::Statement(query!("write/take_turn"), vec![]),
            Piece::Statement(query!("write/versions", INT8), params![version]),
        ];
        pieces.extend(Seen::pieces(foreseen));
        self.link.send(&pieces)
    }

    /// How the memory beside the tables stands to what they hold.
    fn memory(&self, told: &Told) -> Result<Memory> {
        let (point, registry, changes) = {
            let sequencer = self.sequencer.borrow();
            let remembered = self.remembered.get();
            let changes = match remembered {
                Some((point, registry)) if registry == sequencer.registry => told.changed_since(point),
                Some(_) | None => None,
            };
            (sequencer.point, sequencer.registry, changes)
        };
        let before = self.remembered.replace(Some((point, registry)));
        match changes {
            Some(_) if before.is_some_and(|(before, _)| before == point) => Ok(Memory::Current),
            Some(changes) => self.catch_up(changes).map(Memory::Behind),
            None => Ok(Memory::Unknown),
        }
    }

    fn catch_up(&self, changes: Vec<Change>) -> Result<Changes> {
        let (mut queues, mut paces, mut tasks, mut all) = (vec![], vec![], vec![], false);
        for change in changes {
            match change {
                Change::Queue(id) => queues.push(id),
                Change::Pace(id) => paces.push(id),
                Change::Task(seq) => tasks.push(seq),
                Change::AllQueues => all = true,
            }
        }
        let sequencer = self.sequencer.borrow().clone();
        Ok(Changes {
            counters: sequencer.counters,
            queues: if all { self.all_queues()? } else { self.queues_of(queues)? },
            paces: self.paces_of(paces)?,
            tasks,
        })
    }

    pub(crate) fn commit(&self) -> Result<()> {
        if self.registry_changed.get() {
            self.sequencer.borrow_mut().registry += 1;
        }
        let changes = self.changes.take();
        let touched = self.touched.told(&self.seen.borrow());
        let mut pieces = self.release()?;
        let kept = {
            let mut sequencer = self.sequencer.borrow_mut();
            sequencer.point = sequencer.point.next();
            (sequencer.point, sequencer.registry)
        };
        pieces.push(Piece::Statement(
            query!(
                "write/add_version",
                INT8,
                INT8,
                INT8_ARRAY,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                INT8,
                BYTEA,
                INT8
            ),
            self.sequencer.borrow().params(told(changes), touched),
        ));
        pieces.push(Piece::Word("COMMIT"));
        self.link.send(&pieces)?;
        self.remembered.set(Some(kept));
        self.known.set(true);
        Ok(())
    }

    /// A connection that is in the middle of something is not used again.
    pub(crate) fn roll_back(&self) {
        self.held.borrow_mut().clear();
        self.remembered.set(None);
        self.link.cut();
    }

    pub(crate) fn rows(&self) -> u64 {
        self.held.borrow().rows
    }

    /// Holds a statement back whose answer nobody waits for.
    fn hold(&self, piece: Piece) {
        self.held.borrow_mut().hold(piece);
    }

    fn changed(&self, change: Change) {
        self.changes.borrow_mut().push(change);
    }

    fn registry_changes(&self) {
        self.registry_changed.set(true);
    }

    fn note_counters(&self, counters: &Counters) {
        self.sequencer.borrow_mut().counters = *counters;
    }
}

impl std::fmt::Debug for PgTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PgTables")
    }
}
