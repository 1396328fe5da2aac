//! Objects: the last event of each, and when retention last found it in use.
//!
//! A row contains when the object was checked, and [`Index::ObjectsByCheck`] finds the rows by that. A node of an older
//! version writes rows without it: those are entered into the index when there are more rows than entries.

use std::collections::BTreeSet;
use std::ops::Bound;

use pointsman_core::{EventId, TaskSeq, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{IdleObject, ObjectRow};

use super::RedisTables;
use crate::codec::{Member, MemberBuilder, decode_member_i64};
use crate::connection::{CommandArgs, args};
use crate::keys::{Index, Table, object_field, object_name};
use crate::lookup::object_sharing_name;
use crate::overlay::{CacheFetch, ScanOrder, decode_integer, decode_list, decode_strings};
use crate::rows::JournaledEvent;
use crate::{keys, rows};

/// Rows that one transaction reads at most to enter them into the index.
const SCAN_COUNT: &str = "500";

impl RedisTables {
    pub(super) fn read_object(&self, tenant: &Tenant, key: &str) -> Result<Option<ObjectRow>> {
        self.overlay.read_object(tenant, key)
    }

    pub(super) fn write_object_keeping_check(
        &self,
        tenant: &Tenant,
        key: &str,
        object: &ObjectRow,
    ) -> Result<()> {
        let before = self.overlay.read_row(Table::Objects, object_field(tenant, key))?;
        let before = before.map(|row| rows::decode_object_check(&row)).transpose()?.flatten();
        match before {
            Some(checked) => self.write_object(tenant, key, object, checked),
            None => self.insert_object(tenant, key, object, object.last_event),
        }
        Ok(())
    }

    /// Writes an object that is not in the index yet.
    pub(crate) fn insert_object(&self, tenant: &Tenant, key: &str, object: &ObjectRow, checked: EventId) {
        self.overlay
            .add_member(Index::ObjectsByCheck, check_index_member(checked, &object_field(tenant, key)));
        self.write_object(tenant, key, object, checked);
    }

    fn write_object(&self, tenant: &Tenant, key: &str, object: &ObjectRow, checked: EventId) {
        self.overlay.write_row(
            Table::Objects,
            object_field(tenant, key),
            rows::encode_object(object, checked),
        );
        self.overlay.write_row(
            Table::LastEventIds,
            object_name(tenant, key),
            object.last_event.to_string().into_bytes(),
        );
    }

    pub(super) fn list_idle_objects(&self, up_to: EventId, most: usize) -> Result<Vec<IdleObject>> {
        self.index_unindexed_objects()?;
        let end = MemberBuilder::from_i64(up_to.as_i64().saturating_add(1)).finish();
        let bounds = (Bound::Unbounded, Bound::Excluded(&*end));
        loop {
            let members =
                self.overlay.read_members(&Index::ObjectsByCheck, bounds, ScanOrder::Ascending, most)?;
            let is_all = members.len() < most;
            let idle = self.resolve_idle_objects(members)?;
            if is_all || !idle.is_empty() {
                return self.read_queued_flags(idle);
            }
        }
    }

    /// The objects of these members. Removes members that no row agrees with.
    fn resolve_idle_objects(&self, members: Vec<Member>) -> Result<Vec<IdleObject>> {
        let fields = members
            .iter()
            .map(|member| CacheFetch::Row(Table::Objects, object_field_of_member(member).into()));
        self.overlay.fetch(fields.collect())?;
        let mut idle = Vec::with_capacity(members.len());
        for member in members {
            let field = object_field_of_member(&member);
            let row = self.overlay.read_row(Table::Objects, field)?;
            match row.map(|row| rows::decode_object_check(&row).map(|checked| (row, checked))).transpose()? {
                Some((row, Some(checked))) if checked.as_i64() == decode_member_i64(&member, 0)? => {
                    let (tenant, key) = keys::parse_object_field(field)?;
                    idle.push(IdleObject {
                        tenant,
                        key,
                        row: rows::decode_object(&row)?,
                        has_outbox_events: false,
                    });
                }
                Some(_) | None => self.overlay.remove_member(Index::ObjectsByCheck, member),
            }
        }
        Ok(idle)
    }

    /// Reads which of these have events in an outbox, or in flight.
    fn read_queued_flags(&self, mut idle: Vec<IdleObject>) -> Result<Vec<IdleObject>> {
        let outbox = |idle: &IdleObject| -> CommandArgs {
            let name = object_name(&idle.tenant, &idle.key);
            let key = |what| self.overlay.keys.object_key(name.as_bytes(), what);
            args!["EXISTS", key("events"), key("event.worker")]
        };
        if idle.is_empty() {
            return Ok(idle);
        }
        let commands: Vec<CommandArgs> = idle.iter().map(outbox).collect();
        for (idle, reply) in idle.iter_mut().zip(self.overlay.connection.execute_all(&commands)?) {
            idle.has_outbox_events = decode_integer(reply)? > 0;
        }
        Ok(idle)
    }

    pub(super) fn write_object_checks(&self, objects: &[(Tenant, String, EventId)]) -> Result<()> {
        let fields: Vec<Member> = objects.iter().map(|(tenant, key, _)| object_field(tenant, key)).collect();
        self.prefetch_object_rows(&fields)?;
        let mut checked = fields.iter().zip(objects.iter().map(|(.., checked)| *checked));
        checked.try_for_each(|(field, checked)| self.write_object_check(field, EventId::MAX, checked))
    }

    pub(super) fn write_object_checks_of_events(
        &self,
        events: &[EventId],
        up_to: EventId,
        checked: EventId,
    ) -> Result<()> {
        self.overlay.fetch(events.iter().map(|id| CacheFetch::Event(*id)).collect())?;
        let mut fields = BTreeSet::new();
        for id in events {
            let found = self.overlay.read_journaled_event(*id)?.map(|journaled| journaled.event);
            fields.extend(found.and_then(|event| Some(object_field(&event.tenant, event.key?.as_str()))));
        }
        self.prefetch_object_rows(&fields)?;
        fields.iter().try_for_each(|field| self.write_object_check(field, up_to, checked))
    }

    /// Reads rows of objects in one round trip.
    fn prefetch_object_rows<'f>(&self, fields: impl IntoIterator<Item = &'f Member>) -> Result<()> {
        let row = |field: &Member| CacheFetch::Row(Table::Objects, field.clone());
        self.overlay.fetch(fields.into_iter().map(row).collect())
    }

    /// Sets when an object was checked, unless that was after `up_to`.
    fn write_object_check(&self, field: &Member, up_to: EventId, checked: EventId) -> Result<()> {
        let Some(row) = self.overlay.read_row(Table::Objects, field)? else { return Ok(()) };
        let before = rows::decode_object_check(&row)?;
        if before.is_some_and(|before| before > up_to) {
            return Ok(());
        }
        if let Some(before) = before {
            self.overlay.remove_member(Index::ObjectsByCheck, check_index_member(before, field));
        }
        self.overlay.add_member(Index::ObjectsByCheck, check_index_member(checked, field));
        self.overlay.write_row(
            Table::Objects,
            field,
            rows::encode_object(&rows::decode_object(&row)?, checked),
        );
        Ok(())
    }

    /// Deletes objects with their `OBJ:last.event.id`, unless an object of another tenant has the same name there.
    pub(super) fn delete_object_rows(&self, objects: &[IdleObject]) -> Result<()> {
        let others: Vec<Option<Member>> = objects
            .iter()
            .map(|idle| {
                object_sharing_name(&idle.tenant, &idle.key).map(|(tenant, key)| object_field(&tenant, &key))
            })
            .collect();
        self.prefetch_object_rows(others.iter().flatten())?;
        for (IdleObject { tenant, key, .. }, other) in objects.iter().zip(others) {
            let field = object_field(tenant, key);
            let row = self.overlay.read_row(Table::Objects, &field)?;
            let checked = row.map(|row| rows::decode_object_check(&row)).transpose()?.flatten();
            if let Some(checked) = checked {
                self.overlay.remove_member(Index::ObjectsByCheck, check_index_member(checked, &field));
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

    pub(super) fn list_events_in_use(
        &self,
        after: EventId,
        up_to: EventId,
        most: usize,
    ) -> Result<(Vec<EventId>, Option<EventId>)> {
        let from = EventId::from_i64(after.as_i64() + 1);
        let rows = self.overlay.read_events(from, up_to, ScanOrder::Ascending, most)?;
        let next = rows.last().filter(|_| rows.len() >= most).map(|(id, _)| *id);
        let visited = rows.iter().map(|(id, row)| rows::decode_event(*id, row));
        let visited: Vec<JournaledEvent> = visited.collect::<Result<_>>()?;
        let own: Vec<TaskSeq> = visited.iter().flat_map(JournaledEvent::task_seqs).collect();
        self.overlay.prefetch_active_tasks(&own)?;
        let mut in_use = Vec::with_capacity(visited.len());
        for journaled in visited {
            if self.has_unfinished_tasks(&journaled)? {
                in_use.push(journaled.event.id);
            }
        }
        Ok((in_use, next))
    }

    /// Whether an event is stored for its tasks, late ones included.
    pub(super) fn has_unfinished_tasks(&self, journaled: &JournaledEvent) -> Result<bool> {
        if !self.overlay.read_active_tasks(journaled.task_seqs())?.is_empty() {
            return Ok(true);
        }
        let event = MemberBuilder::from_i64(journaled.event.id.as_i64()).finish();
        let late = self.overlay.read_task_seqs(&Index::LateTasks, &event, 1, usize::MAX)?;
        Ok(!self.overlay.read_active_tasks(late)?.is_empty())
    }

    /// Enters rows into the index that are not there, a part of them each time.
    fn index_unindexed_objects(&self) -> Result<()> {
        let (table, index) = (
            self.overlay.keys.table_key(&Table::Objects),
            self.overlay.keys.index_key(&Index::ObjectsByCheck),
        );
        let counts = self.overlay.connection.execute_all(&[args!["HLEN", &table], args!["ZCARD", index]])?;
        let counts: Vec<i64> = counts.into_iter().map(decode_integer).collect::<Result<_>>()?;
        if counts.first() <= counts.last() {
            return Ok(());
        }
        let cursor = self.object_index_cursor.get().to_string();
        let mut reply = decode_list(
            self.overlay.connection.execute(args!["HSCAN", &table, cursor, "COUNT", SCAN_COUNT])?,
        )?;
        let mut found = decode_strings(reply.pop().unwrap_or(redis::Value::Nil))?.into_iter();
        let mut unchecked = Vec::new();
        while let (Some(field), Some(row)) = (found.next(), found.next()) {
            match rows::decode_object_check(&row)? {
                Some(checked) => {
                    self.overlay.add_member(Index::ObjectsByCheck, check_index_member(checked, &field))
                }
                None => unchecked.push(Member::from_vec(field)),
            }
        }
        self.prefetch_object_rows(&unchecked)?;
        unchecked
            .iter()
            .try_for_each(|field| self.write_object_check(field, EventId::ZERO, EventId::ZERO))?;
        let next = decode_strings(redis::Value::Array(reply))?.pop().unwrap_or_default();
        self.object_index_cursor.set(rows::decode_text(&next)?.parse().map_err(Fault::damaged)?);
        Ok(())
    }
}

fn check_index_member(checked: EventId, field: &[u8]) -> Member {
    MemberBuilder::from_i64(checked.as_i64()).push_bytes(field).finish()
}

/// The field of an object in its table, from a member of the index.
fn object_field_of_member(member: &Member) -> &[u8] {
    member.get(8..).unwrap_or_default()
}
