//! Tables of objects: the last event of each, and the event at which retention last found it in use.
//!
//! A row contains this event, the retention check, and [`Index::ObjectsByRetentionCheck`] finds rows by it.

use std::collections::BTreeSet;
use std::ops::Bound;

use pointsman_core::{EventId, Tenant};
use pointsman_store::columns::ObjectColumns;
use pointsman_store::error::TableResult;
use pointsman_store::row::{IdleObject, ObjectRow};
use pointsman_store::tables::ObjectTable;

use super::RedisTables;
use crate::cells::encode_row;
use crate::codec::{MemberBuilder, MemberOrField, decode_member_i64};
use crate::connection::{CommandArgs, args};
use crate::keys::{Index, Table, object_field, object_name};
use crate::lookup::object_sharing_name;
use crate::overlay::{CacheFetch, ScanOrder, decode_integer};
use crate::{keys, rows};

impl ObjectTable for RedisTables {
    fn read_object(&mut self, tenant: &Tenant, key: &str) -> TableResult<Option<ObjectRow>> {
        self.overlay.read_object(tenant, key)
    }

    fn write_object(&mut self, tenant: &Tenant, key: &str, object: &ObjectRow) -> TableResult<()> {
        match self.overlay.read_row(Table::Objects, object_field(tenant, key))? {
            Some(row) => {
                let retention_check = rows::decode_object(tenant.as_str(), key, &row)?.checked;
                let retention_check = EventId::from_i64(retention_check);
                self.write_object_row(tenant, &ObjectColumns::from_row(tenant, key, object, retention_check));
            }
            None => {
                self.insert_object(tenant, &ObjectColumns::from_row(tenant, key, object, object.last_event))
            }
        }
        Ok(())
    }

    fn list_idle_objects(&mut self, up_to: EventId, limit: usize) -> TableResult<Vec<IdleObject>> {
        let end = MemberBuilder::from_i64(up_to.as_i64().saturating_add(1)).finish();
        let bounds = (Bound::Unbounded, Bound::Excluded(&*end));
        loop {
            let members = self.overlay.read_members(
                &Index::ObjectsByRetentionCheck,
                bounds,
                ScanOrder::Ascending,
                limit,
            )?;
            let is_last_page = members.len() < limit;
            let idle = self.read_idle_objects_of_members(members)?;
            if is_last_page || !idle.is_empty() {
                return self.set_has_outbox_events(idle);
            }
        }
    }

    fn mark_objects_in_use(&mut self, objects: &[(Tenant, String, EventId)]) -> TableResult<()> {
        let fields: Vec<MemberOrField> =
            objects.iter().map(|(tenant, key, _)| object_field(tenant, key)).collect();
        self.prefetch_object_rows(&fields)?;
        let mut checks = fields.iter().zip(objects.iter().map(|(.., retention_check)| *retention_check));
        checks.try_for_each(|(field, retention_check)| {
            self.set_retention_check_event(field, EventId::MAX, retention_check)
        })
    }

    fn mark_objects_of_events_in_use(
        &mut self,
        events: &[EventId],
        up_to: EventId,
        retention_check: EventId,
    ) -> TableResult<()> {
        self.overlay.fetch_into_cache(events.iter().map(|id| CacheFetch::Event(*id)).collect())?;
        let mut fields = BTreeSet::new();
        for id in events {
            let found = self.overlay.read_event(*id)?;
            fields.extend(found.and_then(|event| Some(object_field(&event.tenant, event.key?.as_str()))));
        }
        self.prefetch_object_rows(&fields)?;
        fields.iter().try_for_each(|field| self.set_retention_check_event(field, up_to, retention_check))
    }

    /// Deletes objects and their `OBJ:last.event.id`; this key stays if an object of another tenant has the same name.
    fn delete_objects(&mut self, objects: &[IdleObject]) -> TableResult<()> {
        let objects_sharing_name: Vec<Option<MemberOrField>> = objects
            .iter()
            .map(|idle| {
                object_sharing_name(&idle.tenant, &idle.key).map(|(tenant, key)| object_field(&tenant, &key))
            })
            .collect();
        self.prefetch_object_rows(objects_sharing_name.iter().flatten())?;
        for (IdleObject { tenant, key, .. }, other) in objects.iter().zip(objects_sharing_name) {
            let field = object_field(tenant, key);
            if let Some(row) = self.overlay.read_row(Table::Objects, &field)? {
                let retention_check = rows::decode_object(tenant.as_str(), key, &row)?.checked;
                self.overlay.remove_member(
                    Index::ObjectsByRetentionCheck,
                    retention_check_member(retention_check, &field),
                );
            }
            self.overlay.delete_row(Table::Objects, &field);
            let other =
                other.map(|field| self.overlay.read_row(Table::Objects, field)).transpose()?.flatten();
            if other.is_none() {
                self.overlay.delete_row(Table::LastEventIds, object_name(tenant, key));
            }
        }
        Ok(())
    }
}

impl RedisTables {
    /// Writes an object and adds it to the index of retention checks, where it must not be yet.
    pub(crate) fn insert_object(&mut self, tenant: &Tenant, object: &ObjectColumns<'_>) {
        self.overlay.add_member(
            Index::ObjectsByRetentionCheck,
            retention_check_member(object.checked, &object_field(tenant, &object.key)),
        );
        self.write_object_row(tenant, object);
    }

    fn write_object_row(&mut self, tenant: &Tenant, object: &ObjectColumns<'_>) {
        self.overlay.write_row(Table::Objects, object_field(tenant, &object.key), encode_row(object));
        self.overlay.write_row(
            Table::LastEventIds,
            object_name(tenant, &object.key),
            EventId::from_i64(object.last_event).to_string().into_bytes(),
        );
    }

    /// Reads the objects of index members. Removes members whose row has another retention check, or none.
    fn read_idle_objects_of_members(&mut self, members: Vec<MemberOrField>) -> TableResult<Vec<IdleObject>> {
        let fields = members
            .iter()
            .map(|member| CacheFetch::Row(Table::Objects, object_field_of_check_member(member).into()));
        self.overlay.fetch_into_cache(fields.collect())?;
        let mut idle = Vec::with_capacity(members.len());
        for member in members {
            let field = object_field_of_check_member(&member);
            let (tenant, key) = keys::parse_object_field(field)?;
            let row = self.overlay.read_row(Table::Objects, field)?;
            let object =
                row.as_ref().map(|row| rows::decode_object(tenant.as_str(), &key, row)).transpose()?;
            match object {
                Some(object) if object.checked == decode_member_i64(&member, 0)? => {
                    let row = object.into_row();
                    idle.push(IdleObject { tenant, key, row, has_outbox_events: false });
                }
                Some(_) | None => self.overlay.remove_member(Index::ObjectsByRetentionCheck, member),
            }
        }
        Ok(idle)
    }

    /// Sets `has_outbox_events` of objects with events in an outbox, or with an owner that may have one in flight.
    fn set_has_outbox_events(&mut self, mut idle: Vec<IdleObject>) -> TableResult<Vec<IdleObject>> {
        let exists_command = |idle: &IdleObject| -> CommandArgs {
            let name = object_name(&idle.tenant, &idle.key);
            let key = |suffix| self.overlay.keys.redis_key_of_object(name.as_bytes(), suffix);
            args!["EXISTS", key("events"), key("event.worker")]
        };
        if idle.is_empty() {
            return Ok(idle);
        }
        let commands: Vec<CommandArgs> = idle.iter().map(exists_command).collect();
        for (idle, reply) in idle.iter_mut().zip(self.overlay.connection.execute_all(&commands)?) {
            idle.has_outbox_events = decode_integer(reply)? > 0;
        }
        Ok(idle)
    }

    /// Fetches rows of objects into the cache in one round trip.
    fn prefetch_object_rows<'f>(
        &mut self,
        fields: impl IntoIterator<Item = &'f MemberOrField>,
    ) -> TableResult<()> {
        let fetch = |field: &MemberOrField| CacheFetch::Row(Table::Objects, field.clone());
        self.overlay.fetch_into_cache(fields.into_iter().map(fetch).collect())
    }

    /// Sets the retention check of an object, unless its previous one is after `up_to`.
    fn set_retention_check_event(
        &mut self,
        field: &MemberOrField,
        up_to: EventId,
        retention_check: EventId,
    ) -> TableResult<()> {
        let Some(row) = self.overlay.read_row(Table::Objects, field)? else { return Ok(()) };
        let (tenant, key) = keys::parse_object_field(field)?;
        let object = rows::decode_object(tenant.as_str(), &key, &row)?;
        if object.checked > up_to.as_i64() {
            return Ok(());
        }
        self.overlay
            .remove_member(Index::ObjectsByRetentionCheck, retention_check_member(object.checked, field));
        let object = ObjectColumns { checked: retention_check.as_i64(), ..object };
        self.overlay
            .add_member(Index::ObjectsByRetentionCheck, retention_check_member(object.checked, field));
        self.overlay.write_row(Table::Objects, field, encode_row(&object));
        Ok(())
    }
}

fn retention_check_member(retention_check: i64, field: &[u8]) -> MemberOrField {
    MemberBuilder::from_i64(retention_check).push_bytes(field).finish()
}

/// Returns the field of the object in an index member.
fn object_field_of_check_member(member: &MemberOrField) -> &[u8] {
    member.get(8..).unwrap_or_default()
}
