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

mod attempts_and_logs;
mod cells;
mod columns;
mod journal;
mod key_scan;
mod objects;
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

use self::journal::ExpiredEventCounts;
use self::objects::CollectedPartition;
use crate::connect::Endpoint;
use crate::connection::{BlockingConnection, CommandArgs};
use crate::error::{self, OpenError};
use crate::keys::Keys;
use crate::outbox::orphaned::{self, ObjectNames};
use crate::overlay::{TransactionOverlay, decode_integer, decode_optional_bytes};
use crate::reader::{decode_store_state, read_store_state_command};
use crate::store_state::StoreState;
use crate::tables::RedisTables;
use crate::{check_layout, initial_texts};

/// So many objects are named in a message.
const MAX_LISTED_OBJECTS: usize = 3;

/// A store on Redis that no node works on.
pub struct RedisStoreCopy {
    tables: RedisTables,
    /// The last commit when it was opened, or by which it wrote last.
    last_commit: Point,
    cached_counts: CachedCounts,
    /// Objects that were read ahead.
    read_ahead: Option<CollectedPartition>,
    /// What the keys of other stores begin with that lie among ours.
    other_prefixes: OnceCell<CommandArgs>,
}

/// What is found only by looking through much. It holds until something is written.
#[derive(Debug, Default)]
struct CachedCounts {
    rows_by_section: HashMap<Section, u64>,
    expired_events: Option<ExpiredEventCounts>,
    external_objects: Option<u64>,
}

/// What a Redis is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyRole {
    Source,
    Target,
}

impl RedisStoreCopy {
    /// A store to be moved, which no node works on.
    pub fn source(url: &str) -> std::result::Result<Self, NotReady<OpenError>> {
        Self::open(url, CopyRole::Source)
    }

    /// A place to move to, where no node works either. A store is laid out if there is none.
    pub fn target(url: &str) -> std::result::Result<Self, NotReady<OpenError>> {
        Self::open(url, CopyRole::Target)
    }

    fn open(url: &str, role: CopyRole) -> std::result::Result<Self, NotReady<OpenError>> {
        let endpoint = Arc::new(Endpoint::parse(url)?);
        let (at, place) = (endpoint.to_string(), endpoint.display_location());
        let failed = |fault: Fault| error::open_error_from_fault(&place, fault);
        let tables =
            RedisTables::new(BlockingConnection::new(endpoint.clone()), Keys::new(endpoint.prefix()));
        let (last_commit, cached_counts, other_prefixes) =
            (Point::default(), CachedCounts::default(), OnceCell::new());
        let mut store = Self { tables, last_commit, cached_counts, read_ahead: None, other_prefixes };
        if store.is_store_missing().map_err(failed)? {
            if role == CopyRole::Source {
                return Err(NotReady::NoStore(at));
            }
            if let Some(key) = store.find_foreign_key().map_err(failed)? {
                return Err(OpenError::ForeignKey { address: place, key }.into());
            }
            store.tables.create_store(&initial_texts()).map_err(failed)?;
        }
        check_layout(&store.tables, &place)?;
        let nodes = store.list_live_nodes().map_err(failed)?;
        if !nodes.is_empty() {
            return Err(NotReady::InUse { at, nodes: nodes.join(", ") });
        }
        store.last_commit = store.read_store_state().map_err(failed)?.commit_version;
        let events = if role == CopyRole::Source { store.count_outbox_events().map_err(failed)? } else { 0 };
        if events > 0 {
            let events = format!("{events} event{}", if events == 1 { "" } else { "s" });
            let strays = store.find_orphaned_objects().map_err(failed)?;
            if strays.is_empty() {
                return Err(NotReady::Undrained { at, events });
            }
            let command =
                orphaned::enqueue_objects_command(&endpoint.redis_cli_blocking(), store.keys(), &strays);
            return Err(NotReady::Stray { at, events, objects: list_object_names(&strays), command });
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
    fn sum_replies(&self, commands: &[CommandArgs]) -> Result<u64> {
        let answers =
            if commands.is_empty() { vec![] } else { self.overlay().connection.execute_all(commands)? };
        let mut sum = 0;
        for answer in answers {
            sum += decode_integer(answer)?.unsigned_abs();
        }
        Ok(sum)
    }

    fn is_store_missing(&self) -> Result<bool> {
        Ok(decode_optional_bytes(self.execute(read_store_state_command(self.overlay()))?)?.is_none())
    }

    /// Reads the store state.
    fn read_store_state(&self) -> Result<StoreState> {
        decode_store_state(self.execute(read_store_state_command(self.overlay()))?)
    }

    /// The first that is asked once both stores are open: the other may have been laid out beside this one meanwhile.
    fn read_copy_note(&mut self) -> Result<Option<String>> {
        self.other_prefixes = OnceCell::new();
        self.overlay().clear();
        self.overlay().read_text(NOTE)
    }

    fn is_still_unchanged(&self) -> Result<bool> {
        Ok(self.read_store_state()?.commit_version == self.last_commit && self.count_outbox_events()? == 0)
    }
}

/// The names of objects, of which only the first are told.
fn list_object_names(objects: &ObjectNames) -> String {
    let names: Vec<_> =
        objects.iter().take(MAX_LISTED_OBJECTS).map(|name| String::from_utf8_lossy(name)).collect();
    match objects.len().saturating_sub(MAX_LISTED_OBJECTS) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// What a fault means to whoever moves.
fn to_store_error(fault: Fault) -> StoreError {
    error::store_error_from_fault(&fault)
}

impl Movable for RedisStoreCopy {
    fn count(&mut self, section: Section) -> store::Result<Option<u64>> {
        self.count_rows(section).map_err(to_store_error)
    }

    fn read(&mut self, section: Section, after: Option<&Place>) -> store::Result<Page> {
        self.read_rows(section, after).map_err(to_store_error)
    }

    fn waiting(&mut self) -> store::Result<u64> {
        self.count_outbox_events().map_err(to_store_error)
    }

    fn set_aside(&mut self) -> store::Result<u64> {
        self.count_set_aside().map_err(to_store_error)
    }

    fn is_unchanged(&mut self) -> store::Result<bool> {
        self.is_still_unchanged().map_err(to_store_error)
    }

    fn note(&mut self) -> store::Result<Option<String>> {
        self.read_copy_note().map_err(to_store_error)
    }

    fn write(&mut self, section: Section, rows: Vec<Row>, note: &str) -> store::Result<bool> {
        self.write_page(section, rows, note).map_err(to_store_error)
    }

    fn finish(&mut self) -> store::Result<bool> {
        self.finish_copy().map_err(to_store_error)
    }
}

impl std::fmt::Debug for RedisStoreCopy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedisStoreCopy")
    }
}
