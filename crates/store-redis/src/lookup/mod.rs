//! Reads rows through the overlay and decodes them, for the writer and for readers.

mod registry;
mod tasks;

pub(crate) use registry::parse_number;
pub(crate) use tasks::bucket_of_task;

use pointsman_core::task::TaskIdNamespace;
use pointsman_core::{Event, EventId, TaskSeq, Tenant};
use pointsman_store::columns::ObjectColumns;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::ObjectRow;

use crate::TASK_ID_NAMESPACE_TEXT_NAME;
use crate::keys::{Table, object_field, object_name};
use crate::overlay::{CacheFetch, TransactionOverlay};
use crate::rows;

impl TransactionOverlay {
    pub(crate) fn read_named_text(&mut self, name: &str) -> TableResult<Option<String>> {
        self.read_row(Table::NamedTexts, name)?.map(|bytes| rows::decode_text(&bytes)).transpose()
    }

    /// Reads a named text that is a number.
    pub(crate) fn read_named_number(&mut self, name: &str) -> TableResult<u64> {
        let text = self.read_named_text(name)?.ok_or_else(|| Fault::damaged(format!("no {name}")))?;
        text.parse().map_err(Fault::damaged)
    }

    pub(crate) fn read_task_id_namespace(&mut self) -> TableResult<TaskIdNamespace> {
        self.read_named_number(TASK_ID_NAMESPACE_TEXT_NAME).map(TaskIdNamespace)
    }

    pub(crate) fn read_event(&mut self, id: EventId) -> TableResult<Option<Event>> {
        let row = self.read_encoded_event(id)?;
        row.map(|row| rows::decode_event(id, &row)?.into_event()).transpose()
    }

    /// Lists the tasks that were created with an event, whether or not they still exist.
    pub(crate) fn list_tasks_created_with_event(&mut self, id: EventId) -> TableResult<Vec<TaskSeq>> {
        match self.read_encoded_event(id)? {
            Some(row) => Ok(rows::decode_event(id, &row)?.task_seqs().collect()),
            None => Ok(vec![]),
        }
    }

    /// Returns whether an object is cached.
    pub(crate) fn is_object_cached(&self, tenant: &Tenant, key: &str) -> bool {
        self.has_cached_row(&Table::Objects, &object_field(tenant, key))
    }

    /// Reads an object. An object that had events before the store existed has only its last event id.
    pub(crate) fn read_object(&mut self, tenant: &Tenant, key: &str) -> TableResult<Option<ObjectRow>> {
        let field = object_field(tenant, key);
        let decode = |row: &[u8]| rows::decode_object(tenant.as_str(), key, row).map(ObjectColumns::into_row);
        if let Some(object) = self.with_cached_row(&Table::Objects, &field, decode) {
            return object.map(Some);
        }
        self.fetch_into_cache(object_fetches(tenant, key).into())?;
        if let Some(object) = self.with_cached_row(&Table::Objects, &field, decode) {
            return object.map(Some);
        }
        let name = object_name(tenant, key);
        let Some(last) = self.read_row(Table::LastEventIds, &name)? else { return Ok(None) };
        // The key of document 001 with this name may belong to another tenant's object.
        if let Some((other, key)) = object_sharing_name(tenant, key)
            && self.read_row(Table::Objects, object_field(&other, &key))?.is_some()
        {
            return Ok(None);
        }
        // Other applications write this key, too. An invalid id is ignored.
        let last = std::str::from_utf8(&last).ok().and_then(|last| last.parse().ok());
        Ok(last.map(|last| ObjectRow { number: 0, last_event: last, last_sent_events: vec![] }))
    }
}

/// Returns the other object whose keys of document 001 would have the same names, if one is possible: the object `a/1` of
/// the default tenant and the object `1` of tenant `a` share theirs.
pub(crate) fn object_sharing_name(tenant: &Tenant, key: &str) -> Option<(Tenant, String)> {
    if !tenant.is_default() {
        return Some((Tenant::default(), object_name(tenant, key)));
    }
    let (other, key) = key.split_once('/')?;
    Some((Tenant::new(other).ok()?, key.into()))
}

/// Returns the rows that reading an object needs: its row and its last event id.
pub(crate) fn object_fetches(tenant: &Tenant, key: &str) -> [CacheFetch; 2] {
    [
        CacheFetch::Row(Table::Objects, object_field(tenant, key)),
        CacheFetch::Row(Table::LastEventIds, object_name(tenant, key).into_bytes().into()),
    ]
}
