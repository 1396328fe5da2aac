//! Redis as source or target of a store copy.
//!
//! A page is written in a normal transaction together with the progress, through the tables, so that
//! all indexes and documented keys exist as if a node had written them. Reads follow the indexes that
//! the tables maintain, in chunks. There are no snapshots: the last commit version shows whether a peer has written.
//!
//! - `read.rs` reads small tables and index ranges, `journal.rs` events, `tasks.rs` tasks, `attempts_and_logs.rs` attempts
//!   and logs, `objects.rs` objects; `write.rs` writes all of them.
//! - `key_scan.rs` scans for outboxes, live nodes and keys of other stores.

mod attempts_and_logs;
mod journal;
mod key_scan;
mod objects;
mod read;
mod tasks;
mod write;

use std::collections::HashMap;
use std::sync::Arc;

use pointsman_core::store::StoreResult;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::invalidation::CommitVersion;
use pointsman_store::store_copy::{
    COPY_PROGRESS_TEXT_NAME, CopyCursor, CopyEndpoint, CopyEndpointError, CopyPage, CopyRow, TableKind,
};
use redis::Value;

use self::journal::ExpiredEventCounts;
use self::objects::CollectedScanPass;
use crate::connect::Endpoint;
use crate::connection::{BlockingConnection, CommandArgs};
use crate::error::{self, OpenError};
use crate::keys::Keys;
use crate::outbox::orphaned_objects::{self, ObjectNames};
use crate::overlay::{TransactionOverlay, decode_integer, decode_optional_bytes};
use crate::reader::{decode_store_state, read_store_state_command};
use crate::store_state::StoreState;
use crate::tables::RedisTables;
use crate::{check_layout, check_layout_if_stored, initial_texts};

/// Maximum number of objects named in a message.
const MAX_LISTED_OBJECTS: usize = 3;

/// A store on Redis that is copied, while no node uses it.
pub struct RedisStoreCopy {
    tables: RedisTables,
    /// The last commit when the store was opened, or the last one of this copy.
    last_commit_version: CommitVersion,
    cached_counts: CachedCounts,
    /// The last pass over the objects and what it collected: the next page usually continues in it.
    collected_pass: Option<CollectedScanPass>,
    /// Prefixes of other stores whose keys also begin with the prefix of this one.
    other_prefixes: Option<CommandArgs>,
}

/// Expensive counts, cached until something is written.
#[derive(Debug, Default)]
struct CachedCounts {
    rows_by_table: HashMap<TableKind, u64>,
    expired_events: Option<ExpiredEventCounts>,
    objects_without_row: Option<u64>,
}

/// Role of the store in the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyRole {
    Source,
    Target,
}

impl RedisStoreCopy {
    /// Opens a store as the source; no node may use it.
    pub fn open_source(url: &str) -> Result<Self, CopyEndpointError<OpenError>> {
        Self::open(url, CopyRole::Source)
    }

    /// Opens a store as the target, and creates it if there is none; no node may use it.
    pub fn open_target(url: &str) -> Result<Self, CopyEndpointError<OpenError>> {
        Self::open(url, CopyRole::Target)
    }

    fn open(url: &str, role: CopyRole) -> Result<Self, CopyEndpointError<OpenError>> {
        let endpoint = Arc::new(Endpoint::parse(url)?);
        let (at, location) = (endpoint.to_string(), endpoint.display_location());
        let to_open_error = |fault: Fault| error::open_error_from_fault(&location, fault);
        let tables =
            RedisTables::new(BlockingConnection::new(endpoint.clone()), Keys::new(endpoint.key_prefix()));
        let mut store = Self {
            tables,
            last_commit_version: CommitVersion::default(),
            cached_counts: CachedCounts::default(),
            collected_pass: None,
            other_prefixes: None,
        };
        if store.is_store_missing().map_err(to_open_error)? {
            check_layout_if_stored(&mut store.tables, &location)?;
            if role == CopyRole::Source {
                return Err(CopyEndpointError::NoStore(at));
            }
            if let Some(key) = store.find_key_named_like_store_key().map_err(to_open_error)? {
                return Err(OpenError::KeyOfAnotherApplication { address: location, key }.into());
            }
            store.tables.create_store(&initial_texts()).map_err(to_open_error)?;
        }
        check_layout(&mut store.tables, &location)?;
        let nodes = store.list_live_node_names().map_err(to_open_error)?;
        if !nodes.is_empty() {
            return Err(CopyEndpointError::InUse { at, nodes: nodes.join(", ") });
        }
        store.last_commit_version = store.read_store_state().map_err(to_open_error)?.commit_version;
        let events = if role == CopyRole::Source {
            store.count_pending_outbox_events().map_err(to_open_error)?
        } else {
            0
        };
        if events > 0 {
            let events = format!("{events} event{}", if events == 1 { "" } else { "s" });
            let orphaned_objects = store.find_orphaned_objects().map_err(to_open_error)?;
            if orphaned_objects.is_empty() {
                return Err(CopyEndpointError::OutboxNotEmpty { at, events });
            }
            let command = orphaned_objects::enqueue_objects_command(
                &endpoint.redis_cli_command_blocking(),
                store.keys(),
                &orphaned_objects,
            );
            return Err(CopyEndpointError::ObjectsMissingFromOutboxList {
                at,
                events,
                objects: format_object_names(&orphaned_objects),
                command,
            });
        }
        Ok(store)
    }

    fn overlay(&mut self) -> &mut TransactionOverlay {
        &mut self.tables.overlay
    }

    fn keys(&self) -> &Keys {
        &self.tables.overlay.keys
    }

    fn execute(&mut self, args: CommandArgs) -> TableResult<Value> {
        self.overlay().connection.execute(args)
    }

    /// Runs commands and returns the sum of their integer replies.
    fn sum_replies(&mut self, commands: &[CommandArgs]) -> TableResult<u64> {
        let replies =
            if commands.is_empty() { vec![] } else { self.overlay().connection.execute_all(commands)? };
        let mut sum = 0;
        for reply in replies {
            sum += decode_integer(reply)?.unsigned_abs();
        }
        Ok(sum)
    }

    fn is_store_missing(&mut self) -> TableResult<bool> {
        Ok(decode_optional_bytes(self.execute(read_store_state_command(self.keys()))?)?.is_none())
    }

    /// Reads the store state.
    fn read_store_state(&mut self) -> TableResult<StoreState> {
        decode_store_state(self.execute(read_store_state_command(self.keys()))?)
    }

    /// Reads the progress of an unfinished copy. This is the first call after both stores were opened, so the prefixes of
    /// other stores are read again afterwards.
    fn read_progress(&mut self) -> TableResult<Option<String>> {
        self.other_prefixes = None;
        self.overlay().clear();
        self.overlay().read_named_text(COPY_PROGRESS_TEXT_NAME)
    }

    /// Returns whether neither a node has committed nor a producer has pushed events since the store was opened.
    fn is_still_unchanged(&mut self) -> TableResult<bool> {
        Ok(self.read_store_state()?.commit_version == self.last_commit_version
            && self.count_pending_outbox_events()? == 0)
    }
}

/// Formats the names of objects, of which only the first are listed.
fn format_object_names(objects: &ObjectNames) -> String {
    let names: Vec<_> =
        objects.iter().take(MAX_LISTED_OBJECTS).map(|name| String::from_utf8_lossy(name)).collect();
    match objects.len().saturating_sub(MAX_LISTED_OBJECTS) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

impl CopyEndpoint for RedisStoreCopy {
    fn count_rows(&mut self, table_kind: TableKind) -> StoreResult<Option<u64>> {
        self.count_rows(table_kind).map_err(error::store_error_from_fault)
    }

    fn read_page(&mut self, table_kind: TableKind, after: Option<&CopyCursor>) -> StoreResult<CopyPage> {
        self.read_table_page(table_kind, after).map_err(error::store_error_from_fault)
    }

    fn count_outbox_events(&mut self) -> StoreResult<u64> {
        self.count_pending_outbox_events().map_err(error::store_error_from_fault)
    }

    fn count_set_aside_entries(&mut self) -> StoreResult<u64> {
        self.count_set_aside().map_err(error::store_error_from_fault)
    }

    fn is_unchanged_since_open(&mut self) -> StoreResult<bool> {
        self.is_still_unchanged().map_err(error::store_error_from_fault)
    }

    fn read_copy_progress(&mut self) -> StoreResult<Option<String>> {
        self.read_progress().map_err(error::store_error_from_fault)
    }

    fn write_rows_and_progress(
        &mut self,
        table_kind: TableKind,
        rows: Vec<CopyRow>,
        note: &str,
    ) -> StoreResult<bool> {
        self.write_page(table_kind, rows, note).map_err(error::store_error_from_fault)
    }

    fn finish_copy(&mut self) -> StoreResult<bool> {
        self.finish_copy().map_err(error::store_error_from_fault)
    }
}

impl std::fmt::Debug for RedisStoreCopy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedisStoreCopy")
    }
}
