//! Objects: the last event of each, and when retention last found it in use.

use pointsman_core::{EventId, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{IdleObject, Object};

use super::PgTables;
use super::seen::object_of;
use crate::link::params;
use crate::rows::get;
use crate::session::query;

/// Events that one transaction visits at most to find those that unfinished tasks need: the journal contains others until
/// their partition is dropped.
const VISITED: usize = 5000;

impl PgTables {
    pub(super) fn find_object(&self, tenant: &Tenant, key: &str) -> Result<Option<Object>> {
        let name = (tenant.clone(), key.to_string());
        if let Some(known) = self.seen.borrow().object(&name) {
            return Ok(known.cloned());
        }
        let asked = params![tenant.to_string(), key.to_string()];
        let found = self.ask_one(query!("write/object", TEXT, TEXT), asked, |row| object_of(row, 0))?;
        self.seen.borrow_mut().learn(name, found.clone());
        Ok(found)
    }

    pub(super) fn keep_object(&self, tenant: &Tenant, key: &str, object: &Object) {
        self.held.borrow_mut().put_object(tenant, key, object);
        self.touched.object(object.number);
        self.seen.borrow_mut().learn((tenant.clone(), key.into()), Some(object.clone()));
    }

    pub(super) fn find_idle_objects(&self, up_to: EventId, most: usize) -> Result<Vec<IdleObject>> {
        let asked = params![up_to.as_i64(), most as i64];
        self.ask_all(query!("write/idle_objects", INT8, INT8), asked, |row| {
            let tenant = Tenant::new(get::<&str>(row, 0)?).map_err(Fault::damaged)?;
            Ok(IdleObject { tenant, key: get(row, 1)?, object: object_of(row, 2)?, queued: false })
        })
    }

    /// No cache contains `checked`, so that no other node need be notified.
    pub(super) fn check_objects(&self, objects: &[(Tenant, String, EventId)]) -> Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        let tenants: Vec<String> = objects.iter().map(|(tenant, ..)| tenant.to_string()).collect();
        let keys: Vec<String> = objects.iter().map(|(_, key, _)| key.clone()).collect();
        let checked: Vec<i64> = objects.iter().map(|(.., checked)| checked.as_i64()).collect();
        let query = query!("write/set_objects_checked", TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY);
        self.ask(query, params![tenants, keys, checked]).map(drop)
    }

    pub(super) fn check_objects_of(
        &self,
        events: &[EventId],
        up_to: EventId,
        checked: EventId,
    ) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let events: Vec<i64> = events.iter().map(|event| event.as_i64()).collect();
        let asked = params![events, up_to.as_i64(), checked.as_i64()];
        self.ask(query!("write/keep_objects", INT8_ARRAY, INT8, INT8), asked).map(drop)
    }

    pub(super) fn remove_objects(&self, objects: &[IdleObject]) -> Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        let tenants: Vec<String> = objects.iter().map(|idle| idle.tenant.to_string()).collect();
        let keys: Vec<String> = objects.iter().map(|idle| idle.key.clone()).collect();
        self.ask(query!("write/delete_objects", TEXT_ARRAY, TEXT_ARRAY), params![tenants, keys])?;
        let mut seen = self.seen.borrow_mut();
        for idle in objects {
            self.touched.object(idle.object.number);
            seen.drop_cached_object((idle.tenant.clone(), idle.key.clone()));
        }
        Ok(())
    }

    pub(super) fn find_events_in_use(
        &self,
        after: EventId,
        up_to: EventId,
        most: usize,
    ) -> Result<(Vec<EventId>, Option<EventId>)> {
        let asked = params![after.as_i64(), up_to.as_i64(), VISITED as i64];
        let visited = self.ask_all(query!("write/events_in_use", INT8, INT8, INT8), asked, |row| {
            Ok((EventId::from_i64(get(row, 0)?), get::<bool>(row, 1)?))
        })?;
        let last = visited.last().filter(|_| visited.len() >= VISITED).map(|(id, _)| *id);
        let mut in_use: Vec<EventId> =
            visited.iter().filter(|(_, needed)| *needed).map(|(id, _)| *id).collect();
        let is_part = in_use.len() > most;
        in_use.truncate(most);
        let next = if is_part { in_use.last().copied() } else { last };
        Ok((in_use, next))
    }
}
