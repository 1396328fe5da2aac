//! What lies in Redis, found by the writer and by readers alike.

mod registry;
mod tasks;

pub(crate) use registry::{ChainEntry, HandlerEntry, number_of};
pub(crate) use tasks::bucket_number;

use pointsman_core::task::Realm;
use pointsman_core::{EventId, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::Object;

use crate::keys::{Table, object_field, object_name};
use crate::rows::{self, Journaled};
use crate::sight::{Question, Sight};

impl Sight {
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>> {
        self.row(Table::Texts, name)?.map(|bytes| rows::of_text(&bytes)).transpose()
    }

    /// A number that is kept under a name.
    pub(crate) fn number(&self, name: &str) -> Result<u64> {
        let text = self.text(name)?.ok_or_else(|| Fault::damaged(format!("no {name}")))?;
        text.parse().map_err(Fault::damaged)
    }

    pub(crate) fn realm(&self) -> Result<Realm> {
        self.number("realm").map(Realm)
    }

    pub(crate) fn journaled(&self, id: EventId) -> Result<Option<Journaled>> {
        self.event(id)?.map(|bytes| rows::unpack_event(id, &bytes)).transpose()
    }

    /// Whether nothing more need be asked for to know an object.
    pub(crate) fn knows_object(&self, tenant: &Tenant, key: &str) -> bool {
        self.is_there(&Table::Objects, &object_field(tenant, key))
    }

    /// What is remembered of an object. One that has had events before we came is known by its last one alone.
    pub(crate) fn object(&self, tenant: &Tenant, key: &str) -> Result<Option<Object>> {
        let field = object_field(tenant, key);
        if let Some(object) = self.if_there(&Table::Objects, &field, rows::unpack_object) {
            return object.map(Some);
        }
        self.look(object_questions(tenant, key).into())?;
        if let Some(object) = self.if_there(&Table::Objects, &field, rows::unpack_object) {
            return object.map(Some);
        }
        let name = object_name(tenant, key);
        let Some(last) = self.row(Table::LastIds, &name)? else { return Ok(None) };
        // What 001 keeps under this name may be of another tenant's object.
        if let Some((other, key)) = same_name(tenant, key)
            && self.row(Table::Objects, object_field(&other, &key))?.is_some()
        {
            return Ok(None);
        }
        // Others write there, too. What is no id tells nothing.
        let last = std::str::from_utf8(&last).ok().and_then(|last| last.parse().ok());
        Ok(last.map(|last| Object { number: 0, last, sent: vec![] }))
    }
}

/// The other object that has the same name in the keys of 001, if one can have it.
pub(crate) fn same_name(tenant: &Tenant, key: &str) -> Option<(Tenant, String)> {
    if !tenant.is_default() {
        return Some((Tenant::default(), object_name(tenant, key)));
    }
    let (other, key) = key.split_once('/')?;
    Some((Tenant::new(other).ok()?, key.into()))
}

/// What tells of an object.
pub(crate) fn object_questions(tenant: &Tenant, key: &str) -> [Question; 2] {
    [
        Question::Row(Table::Objects, object_field(tenant, key)),
        Question::Row(Table::LastIds, object_name(tenant, key).into_bytes().into()),
    ]
}
