//! Schedules and their fires.

use std::collections::BTreeMap;
use std::ops::Bound;

use pointsman_core::fire::{Fire, FireOutcome, SkipReason};
use pointsman_core::{EventId, ScheduleName, TaskSeq, Timestamp};
use pointsman_store::error::TableResult;
use pointsman_store::row::{ScheduleRow, TaskPhase};
use pointsman_store::tables::ScheduleTable;

use super::RedisTables;
use crate::codec::{MemberBuilder, MemberOrField, RowDecoder, RowEncoder, decode_member_i64};
use crate::keys::{Index, Table};
use crate::overlay::ScanOrder;
use crate::rows;

/// A schedule as stored in its table: the row, and the last event that one of its fires created.
pub(crate) struct StoredSchedule {
    pub(crate) row: ScheduleRow,
    pub(crate) last_event: Option<EventId>,
}

impl StoredSchedule {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let ScheduleRow { expression, processed_up_to, next_catch_up, last_registered_at } = &self.row;
        RowEncoder::default()
            .text(expression)
            .varint(processed_up_to.micros())
            .optional_varint(next_catch_up.map(Timestamp::micros))
            .varint(last_registered_at.micros())
            .optional_varint(self.last_event.map(EventId::as_i64))
            .finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> TableResult<Self> {
        let mut row = RowDecoder::new(bytes);
        let schedule = ScheduleRow {
            expression: row.text()?.into(),
            processed_up_to: Timestamp::from_micros(row.varint()?),
            next_catch_up: row.optional_varint()?.map(Timestamp::from_micros),
            last_registered_at: Timestamp::from_micros(row.varint()?),
        };
        Ok(Self { row: schedule, last_event: row.optional_varint()?.map(EventId::from_i64) })
    }
}

impl ScheduleTable for RedisTables {
    fn list_schedules(&mut self) -> TableResult<BTreeMap<String, ScheduleRow>> {
        let rows = self.overlay.read_table(Table::Schedules)?;
        rows.iter()
            .map(|(name, row)| Ok((rows::decode_text(name)?, StoredSchedule::decode(row)?.row)))
            .collect()
    }

    fn start_schedule(&mut self, name: &ScheduleName, expression: &str, now: Timestamp) -> TableResult<()> {
        let last_event = self.read_schedule(name.as_str())?.and_then(|entry| entry.last_event);
        let row = ScheduleRow {
            expression: expression.into(),
            processed_up_to: now,
            next_catch_up: None,
            last_registered_at: now,
        };
        self.overlay.write_row(Table::Schedules, name.as_str(), StoredSchedule { row, last_event }.encode());
        Ok(())
    }

    fn record_schedules_registered(&mut self, names: &[String], now: Timestamp) -> TableResult<()> {
        names
            .iter()
            .try_for_each(|name| self.update_schedule(name, |entry| entry.row.last_registered_at = now))
    }

    fn delete_schedule(&mut self, name: &str) -> TableResult<()> {
        self.overlay.delete_row(Table::Schedules, name);
        Ok(())
    }

    fn read_fire(&mut self, schedule: &ScheduleName, planned: Timestamp) -> TableResult<Option<Fire>> {
        let row = self.overlay.read_row(Table::Fires(schedule.to_string()), planned.micros().to_string())?;
        row.map(|row| rows::decode_fire(&row)).transpose()
    }

    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire, needs_catch_up: bool) -> TableResult<()> {
        let name = schedule.to_string();
        if let Some(previous) = self.read_fire(schedule, fire.planned_at)? {
            self.overlay.remove_member(Index::FiresByAge, fire_age_member(&name, &previous));
        }
        self.write_fire_row(&name, fire)?;
        self.update_schedule(&name, |StoredSchedule { row, last_event }| {
            row.processed_up_to = row.processed_up_to.max(fire.planned_at);
            row.next_catch_up = row.next_catch_up.or(needs_catch_up.then_some(fire.planned_at));
            *last_event = fire.event_id.or(*last_event);
        })
    }

    /// Sets the next planned time to catch up: the first one after `up_to` that was skipped because a rule paused the schedule.
    fn advance_catch_up(&mut self, schedule: &ScheduleName, up_to: Timestamp) -> TableResult<()> {
        let after = MemberBuilder::from_i64(up_to.micros()).finish();
        let index = Index::FireTimes(schedule.to_string());
        let later = (Bound::Excluded(&*after), Bound::Unbounded);
        let mut next_catch_up = None;
        for member in self.overlay.read_members(&index, later, ScanOrder::Ascending, usize::MAX)? {
            let planned = Timestamp::from_micros(decode_member_i64(&member, 0)?);
            let fire = self.read_fire(schedule, planned)?;
            if fire.is_some_and(|fire| fire.outcome == FireOutcome::Skipped(SkipReason::PausedByRule)) {
                next_catch_up = Some(planned);
                break;
            }
        }
        self.update_schedule(schedule.as_str(), |entry| entry.row.next_catch_up = next_catch_up)
    }

    fn list_unfinished_tasks_of_last_event(&mut self, schedule: &ScheduleName) -> TableResult<Vec<TaskSeq>> {
        let last = self.read_schedule(schedule.as_str())?.and_then(|entry| entry.last_event);
        let event = last.map(|id| self.overlay.read_journaled_event(id)).transpose()?.flatten();
        let Some(event) = event else { return Ok(vec![]) };
        let tasks = self.overlay.read_active_tasks(event.task_seqs())?;
        let unfinished = tasks.iter().filter(|active| active.phase.code() <= TaskPhase::Locked.code());
        Ok(unfinished.map(|active| active.seq).collect())
    }
}

impl RedisTables {
    fn read_schedule(&mut self, name: &str) -> TableResult<Option<StoredSchedule>> {
        self.overlay.read_row(Table::Schedules, name)?.map(|row| StoredSchedule::decode(&row)).transpose()
    }

    fn update_schedule(&mut self, name: &str, change: impl FnOnce(&mut StoredSchedule)) -> TableResult<()> {
        let Some(mut entry) = self.read_schedule(name)? else { return Ok(()) };
        change(&mut entry);
        self.overlay.write_row(Table::Schedules, name, entry.encode());
        Ok(())
    }

    /// Writes a fire without changing its schedule.
    pub(crate) fn write_fire_row(&mut self, schedule: &str, fire: &Fire) -> TableResult<()> {
        let planned = fire.planned_at.micros();
        self.overlay.write_row(Table::Fires(schedule.into()), planned.to_string(), rows::encode_fire(fire)?);
        self.overlay.add_member(Index::FireTimes(schedule.into()), MemberBuilder::from_i64(planned).finish());
        self.overlay.add_member(Index::FiresByAge, fire_age_member(schedule, fire));
        Ok(())
    }
}

/// Returns the age index member of a fire: time, planned time and schedule.
pub(super) fn fire_age_member(schedule: &str, fire: &Fire) -> MemberOrField {
    MemberBuilder::from_i64(fire.recorded_at.micros())
        .push_i64(fire.planned_at.micros())
        .push_bytes(schedule.as_bytes())
        .finish()
}
