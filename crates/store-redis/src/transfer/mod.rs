//! Redis as something that is moved, or moved to.
//!
//! A page is a transaction like any other, with the note how far the move has come: what it writes the tables write, so that
//! all indexes and all keys of the documents are there as if a node had written them. Reading goes along the indexes that
//! the tables keep, in pieces. There are no snapshots: whether somebody has written meanwhile is told by the last commit.
//!
//! - `cells.rs` and `columns.rs` are how rows go from store to store.
//! - `read.rs` reads what is small or lies in an order, `journal.rs` events, `tasks.rs` tasks, `of_tasks.rs` their attempts
//!   and logs, `objects.rs` objects; `write.rs` writes all of it.
//! - `around.rs` looks for what lies beside: outboxes, nodes that live, keys of others.

mod around;
mod cells;
mod columns;
mod journal;
mod objects;
mod of_tasks;
mod read;
mod tasks;
mod write;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use pointsman_core::store::{self, StoreError};
use pointsman_store::commits::Point;
use pointsman_store::error::{Fault, Result};
use pointsman_store::transfer::{Movable, NOTE, NotReady, Page, Place, Row, Section};
use redis::Value;

use self::journal::Old;
use self::objects::Shelf;
use crate::connect::Endpoint;
use crate::connection::{BlockingConnection, CommandArgs};
use crate::error::{self, OpenError};
use crate::keys::Keys;
use crate::outbox::stray::{self, Objects};
use crate::overlay::{TransactionOverlay, decode_integer, decode_optional_bytes};
use crate::reader::{decode_store_state, read_store_state_command};
use crate::store_state::StoreState;
use crate::tables::RedisTables;
use crate::{check_layout, first_texts};

/// So many objects are named in a message.
const NAMED: usize = 3;

/// A store on Redis that no node works on.
pub struct RedisMove {
    tables: RedisTables,
    /// The last commit when it was opened, or by which it wrote last.
    point: Point,
    seen: Seen,
    /// Objects that were read ahead.
    shelf: Option<Shelf>,
    /// What the keys of other stores begin with that lie among ours.
    others: OnceCell<CommandArgs>,
}

/// What is found only by looking through much. It holds until something is written.
#[derive(Debug, Default)]
struct Seen {
    counts: HashMap<Section, u64>,
    old: Option<Old>,
    heard: Option<u64>,
}

/// What a Redis is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum As {
    Source,
    Target,
}

impl RedisMove {
    /// A store to be moved, which no node works on.
    pub fn source(url: &str) -> std::result::Result<Self, NotReady<OpenError>> {
        Self::open(url, As::Source)
    }

    /// A place to move to, where no node works either. A store is laid out if there is none.
    pub fn target(url: &str) -> std::result::Result<Self, NotReady<OpenError>> {
        Self::open(url, As::Target)
    }

    fn open(url: &str, part: As) -> std::result::Result<Self, NotReady<OpenError>> {
        let endpoint = Arc::new(Endpoint::parse(url)?);
        let (at, place) = (endpoint.to_string(), endpoint.place());
        let failed = |fault: Fault| error::unopened(&place, fault);
        let tables =
            RedisTables::new(BlockingConnection::new(endpoint.clone()), Keys::new(endpoint.prefix()));
        let (point, seen, others) = (Point::default(), Seen::default(), OnceCell::new());
        let mut store = Self { tables, point, seen, shelf: None, others };
        if store.is_absent().map_err(failed)? {
            if part == As::Source {
                return Err(NotReady::NoStore(at));
            }
            if let Some(key) = store.strange_key().map_err(failed)? {
                return Err(OpenError::NotOurs { at: place, key }.into());
            }
            store.tables.create_store(&first_texts()).map_err(failed)?;
        }
        check_layout(&store.tables, &place)?;
        let nodes = store.living().map_err(failed)?;
        if !nodes.is_empty() {
            return Err(NotReady::InUse { at, nodes: nodes.join(", ") });
        }
        store.point = store.store_state().map_err(failed)?.commit_version;
        let events = if part == As::Source { store.count_waiting().map_err(failed)? } else { 0 };
        if events > 0 {
            let events = format!("{events} event{}", if events == 1 { "" } else { "s" });
            let strays = store.strays().map_err(failed)?;
            if strays.is_empty() {
                return Err(NotReady::Undrained { at, events });
            }
            let command = stray::put_in_line(&endpoint.redis_cli_blocking(), store.keys(), &strays);
            return Err(NotReady::Stray { at, events, objects: named(&strays), command });
        }
        Ok(store)
    }

    fn overlay(&self) -> &TransactionOverlay {
        &self.tables.overlay
    }

    fn keys(&self) -> &Keys {
        &self.tables.overlay.keys
    }

    fn execute(&self, args: CommandArgs) -> Result<Value> {
        self.overlay().connection.execute(args)
    }

    /// Asks for numbers, and adds them up.
    fn sum(&self, commands: &[CommandArgs]) -> Result<u64> {
        let answers =
            if commands.is_empty() { vec![] } else { self.overlay().connection.execute_all(commands)? };
        let mut sum = 0;
        for answer in answers {
            sum += decode_integer(answer)?.unsigned_abs();
        }
        Ok(sum)
    }

    fn is_absent(&self) -> Result<bool> {
        Ok(decode_optional_bytes(self.execute(read_store_state_command(self.overlay()))?)?.is_none())
    }

    /// How far everything has come.
    fn store_state(&self) -> Result<StoreState> {
        decode_store_state(self.execute(read_store_state_command(self.overlay()))?)
    }

    /// The first that is asked once both stores are open: the other may have been laid out beside this one meanwhile.
    fn find_note(&mut self) -> Result<Option<String>> {
        self.others = OnceCell::new();
        self.overlay().clear();
        self.overlay().read_text(NOTE)
    }

    fn has_not_changed(&self) -> Result<bool> {
        Ok(self.store_state()?.commit_version == self.point && self.count_waiting()? == 0)
    }
}

/// The names of objects, of which only the first are told.
fn named(objects: &Objects) -> String {
    let names: Vec<_> = objects.iter().take(NAMED).map(|name| String::from_utf8_lossy(name)).collect();
    match objects.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// What a fault means to whoever moves.
fn explain(fault: Fault) -> StoreError {
    error::explain(&fault)
}

impl Movable for RedisMove {
    fn count(&mut self, section: Section) -> store::Result<Option<u64>> {
        self.count_rows(section).map_err(explain)
    }

    fn read(&mut self, section: Section, after: Option<&Place>) -> store::Result<Page> {
        self.read_rows(section, after).map_err(explain)
    }

    fn waiting(&mut self) -> store::Result<u64> {
        self.count_waiting().map_err(explain)
    }

    fn set_aside(&mut self) -> store::Result<u64> {
        self.count_set_aside().map_err(explain)
    }

    fn is_unchanged(&mut self) -> store::Result<bool> {
        self.has_not_changed().map_err(explain)
    }

    fn note(&mut self) -> store::Result<Option<String>> {
        self.find_note().map_err(explain)
    }

    fn write(&mut self, section: Section, rows: Vec<Row>, note: &str) -> store::Result<bool> {
        self.write_page(section, rows, note).map_err(explain)
    }

    fn finish(&mut self) -> store::Result<bool> {
        self.end().map_err(explain)
    }
}

impl std::fmt::Debug for RedisMove {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedisMove")
    }
}
