//! Objects: the last event of each, and when retention last found it in use.
//!
//! A row contains when the object was checked, and [`Index::ObjectsByCheck`] finds the rows by that. A node of an older
//! version writes rows without it: those are entered into the index when there are more rows than entries.

use std::collections::BTreeSet;
use std::ops::Bound;

use pointsman_core::{EventId, TaskSeq, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{IdleObject, Object};

use super::RedisTables;
use crate::codec::{Member, Ordered, ordered};
use crate::keys::{Index, Table, object_field, object_name};
use crate::link::{Words, words};
use crate::lookup::same_name;
use crate::rows::Journaled;
use crate::sight::{Question, Way, int_of, list, strings};
use crate::{keys, rows};

/// Rows that one transaction reads at most to enter them into the index.
const SCANNED: &str = "500";

impl RedisTables {
    pub(super) fn find_object(&self, tenant: &Tenant, key: &str) -> Result<Option<Object>> {
        self.sight.object(tenant, key)
    }

    pub(super) fn keep_object(&self, tenant: &Tenant, key: &str, object: &Object) -> Result<()> {
        let before = self.sight.row(Table::Objects, object_field(tenant, key))?;
        let before = before.map(|row| rows::unpack_checked(&row)).transpose()?.flatten();
        match before {
            Some(checked) => self.write_object(tenant, key, object, checked),
            None => self.add_object(tenant, key, object, object.last),
        }
        Ok(())
    }

    /// Writes an object that is not in the index yet.
    pub(crate) fn add_object(&self, tenant: &Tenant, key: &str, object: &Object, checked: EventId) {
        self.sight.add(Index::ObjectsByCheck, index_member(checked, &object_field(tenant, key)));
        self.write_object(tenant, key, object, checked);
    }

    fn write_object(&self, tenant: &Tenant, key: &str, object: &Object, checked: EventId) {
        self.sight.put(Table::Objects, object_field(tenant, key), rows::pack_object(object, checked));
        self.sight.put(Table::LastIds, object_name(tenant, key), object.last.to_string().into_bytes());
    }

    pub(super) fn find_idle_objects(&self, up_to: EventId, most: usize) -> Result<Vec<IdleObject>> {
        self.index_objects()?;
        let end = Ordered::of(up_to.as_i64().saturating_add(1)).done();
        let bounds = (Bound::Unbounded, Bound::Excluded(&*end));
        loop {
            let members = self.sight.members(&Index::ObjectsByCheck, bounds, Way::Up, most)?;
            let is_all = members.len() < most;
            let idle = self.idle_among(members)?;
            if is_all || !idle.is_empty() {
                return self.with_queued(idle);
            }
        }
    }

    /// The objects of these members. Removes members that no row agrees with.
    fn idle_among(&self, members: Vec<Member>) -> Result<Vec<IdleObject>> {
        let fields = members.iter().map(|member| Question::Row(Table::Objects, field_of(member).into()));
        self.sight.look(fields.collect())?;
        let mut idle = Vec::with_capacity(members.len());
        for member in members {
            let field = field_of(&member);
            let row = self.sight.row(Table::Objects, field)?;
            match row.map(|row| rows::unpack_checked(&row).map(|checked| (row, checked))).transpose()? {
                Some((row, Some(checked))) if checked.as_i64() == ordered(&member, 0)? => {
                    let (tenant, key) = keys::name_in_field(field)?;
                    idle.push(IdleObject { tenant, key, object: rows::unpack_object(&row)?, queued: false });
                }
                Some(_) | None => self.sight.remove(Index::ObjectsByCheck, member),
            }
        }
        Ok(idle)
    }

    /// Reads which of these have events in an outbox, or in flight.
    fn with_queued(&self, mut idle: Vec<IdleObject>) -> Result<Vec<IdleObject>> {
        let outbox = |idle: &IdleObject| -> Words {
            let name = object_name(&idle.tenant, &idle.key);
            let key = |what| self.sight.keys.of_object(name.as_bytes(), what);
            words!["EXISTS", key("events"), key("event.worker")]
        };
        if idle.is_empty() {
            return Ok(idle);
        }
        let questions: Vec<Words> = idle.iter().map(outbox).collect();
        for (idle, answer) in idle.iter_mut().zip(self.sight.link.send(&questions)?) {
            idle.queued = int_of(answer)? > 0;
        }
        Ok(idle)
    }

    pub(super) fn check_objects(&self, objects: &[(Tenant, String, EventId)]) -> Result<()> {
        let fields: Vec<Member> = objects.iter().map(|(tenant, key, _)| object_field(tenant, key)).collect();
        self.fetch_rows(&fields)?;
        let mut checked = fields.iter().zip(objects.iter().map(|(.., checked)| *checked));
        checked.try_for_each(|(field, checked)| self.check_object(field, EventId::MAX, checked))
    }

    pub(super) fn check_objects_of(
        &self,
        events: &[EventId],
        up_to: EventId,
        checked: EventId,
    ) -> Result<()> {
        self.sight.look(events.iter().map(|id| Question::Event(*id)).collect())?;
        let mut fields = BTreeSet::new();
        for id in events {
            let found = self.sight.journaled(*id)?.map(|journaled| journaled.event);
            fields.extend(found.and_then(|event| Some(object_field(&event.tenant, event.key?.as_str()))));
        }
        self.fetch_rows(&fields)?;
        fields.iter().try_for_each(|field| self.check_object(field, up_to, checked))
    }

    /// Reads rows of objects in one round trip.
    fn fetch_rows<'f>(&self, fields: impl IntoIterator<Item = &'f Member>) -> Result<()> {
        let row = |field: &Member| Question::Row(Table::Objects, field.clone());
        self.sight.look(fields.into_iter().map(row).collect())
    }

    /// Sets when an object was checked, unless that was after `up_to`.
    fn check_object(&self, field: &Member, up_to: EventId, checked: EventId) -> Result<()> {
        let Some(row) = self.sight.row(Table::Objects, field)? else { return Ok(()) };
        let before = rows::unpack_checked(&row)?;
        if before.is_some_and(|before| before > up_to) {
            return Ok(());
        }
        if let Some(before) = before {
            self.sight.remove(Index::ObjectsByCheck, index_member(before, field));
        }
        self.sight.add(Index::ObjectsByCheck, index_member(checked, field));
        self.sight.put(Table::Objects, field, rows::pack_object(&rows::unpack_object(&row)?, checked));
        Ok(())
    }

    /// Deletes objects with their `OBJ:last.event.id`, unless an object of another tenant has the same name there.
    pub(super) fn remove_objects(&self, objects: &[IdleObject]) -> Result<()> {
        let others: Vec<Option<Member>> = objects
            .iter()
            .map(|idle| same_name(&idle.tenant, &idle.key).map(|(tenant, key)| object_field(&tenant, &key)))
            .collect();
        self.fetch_rows(others.iter().flatten())?;
        for (IdleObject { tenant, key, .. }, other) in objects.iter().zip(others) {
            let field = object_field(tenant, key);
            let row = self.sight.row(Table::Objects, &field)?;
            let checked = row.map(|row| rows::unpack_checked(&row)).transpose()?.flatten();
            if let Some(checked) = checked {
                self.sight.remove(Index::ObjectsByCheck, index_member(checked, &field));
            }
            self.sight.delete(Table::Objects, &field);
            let other = other.map(|field| self.sight.row(Table::Objects, field)).transpose()?.flatten();
            if other.is_none() {
                self.sight.delete(Table::LastIds, object_name(tenant, key));
            }
        }
        Ok(())
    }

    pub(super) fn find_events_in_use(
        &self,
        after: EventId,
        up_to: EventId,
        most: usize,
    ) -> Result<(Vec<EventId>, Option<EventId>)> {
        let from = EventId::from_i64(after.as_i64() + 1);
        let rows = self.sight.events(from, up_to, Way::Up, most)?;
        let next = rows.last().filter(|_| rows.len() >= most).map(|(id, _)| *id);
        let visited = rows.iter().map(|(id, row)| rows::unpack_event(*id, row));
        let visited: Vec<Journaled> = visited.collect::<Result<_>>()?;
        let own: Vec<TaskSeq> = visited.iter().flat_map(Journaled::own_tasks).collect();
        self.sight.foresee_tasks(&own)?;
        let mut in_use = Vec::with_capacity(visited.len());
        for journaled in visited {
            if self.has_unfinished_tasks(&journaled)? {
                in_use.push(journaled.event.id);
            }
        }
        Ok((in_use, next))
    }

    /// Whether an event is stored for its tasks, late ones included.
    pub(super) fn has_unfinished_tasks(&self, journaled: &Journaled) -> Result<bool> {
        if !self.sight.tasks(journaled.own_tasks())?.is_empty() {
            return Ok(true);
        }
        let event = Ordered::of(journaled.event.id.as_i64()).done();
        let late = self.sight.seqs_in(&Index::Late, &event, 1, usize::MAX)?;
        Ok(!self.sight.tasks(late)?.is_empty())
    }

    /// Enters rows into the index that are not there, a part of them each time.
    fn index_objects(&self) -> Result<()> {
        let (table, index) =
            (self.sight.keys.table(&Table::Objects), self.sight.keys.index(&Index::ObjectsByCheck));
        let counts = self.sight.link.send(&[words!["HLEN", &table], words!["ZCARD", index]])?;
        let counts: Vec<i64> = counts.into_iter().map(int_of).collect::<Result<_>>()?;
        if counts.first() <= counts.last() {
            return Ok(());
        }
        let cursor = self.object_scan.get().to_string();
        let mut answer = list(self.sight.link.ask(words!["HSCAN", &table, cursor, "COUNT", SCANNED])?)?;
        let mut found = strings(answer.pop().unwrap_or(redis::Value::Nil))?.into_iter();
        let mut unchecked = Vec::new();
        while let (Some(field), Some(row)) = (found.next(), found.next()) {
            match rows::unpack_checked(&row)? {
                Some(checked) => self.sight.add(Index::ObjectsByCheck, index_member(checked, &field)),
                None => unchecked.push(Member::from_vec(field)),
            }
        }
        self.fetch_rows(&unchecked)?;
        unchecked.iter().try_for_each(|field| self.check_object(field, EventId::ZERO, EventId::ZERO))?;
        let next = strings(redis::Value::Array(answer))?.pop().unwrap_or_default();
        self.object_scan.set(rows::of_text(&next)?.parse().map_err(Fault::damaged)?);
        Ok(())
    }
}

fn index_member(checked: EventId, field: &[u8]) -> Member {
    Ordered::of(checked.as_i64()).and_bytes(field).done()
}

/// The field of an object in its table, from a member of the index.
fn field_of(member: &Member) -> &[u8] {
    member.get(8..).unwrap_or_default()
}
