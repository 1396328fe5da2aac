//! Schedules and their fires.

use std::collections::BTreeMap;
use std::ops::Bound;

use pointsman_core::fire::{Fire, FireOutcome};
use pointsman_core::{ScheduleName, Timestamp};
use pointsman_store::error::TableResult;
use pointsman_store::row::ScheduleRow;
use pointsman_store::tables::ScheduleTable;

use super::RedisTables;
use crate::codec::{MemberBuilder, MemberOrField, decode_member_i64};
use crate::keys::{Index, Table};
use crate::overlay::ScanOrder;
use crate::rows;

impl ScheduleTable for RedisTables {
    fn list_schedules(&mut self) -> TableResult<BTreeMap<String, ScheduleRow>> {
        let rows = self.overlay.read_table(Table::Schedules)?;
        rows.iter().map(|(name, row)| Ok((rows::decode_text(name)?, rows::decode_schedule(row)?))).collect()
    }

    fn read_schedule(&mut self, name: &str) -> TableResult<Option<ScheduleRow>> {
        self.overlay.read_row(Table::Schedules, name)?.map(|row| rows::decode_schedule(&row)).transpose()
    }

    fn write_schedule(&mut self, name: &str, schedule: &ScheduleRow) -> TableResult<()> {
        self.overlay.write_row(Table::Schedules, name, rows::encode_schedule(schedule));
        Ok(())
    }

    fn delete_schedule(&mut self, name: &str) -> TableResult<()> {
        self.overlay.delete_row(Table::Schedules, name);
        Ok(())
    }

    fn read_fire(&mut self, schedule: &ScheduleName, planned: Timestamp) -> TableResult<Option<Fire>> {
        let row = self.overlay.read_row(Table::Fires(schedule.to_string()), planned.micros().to_string())?;
        row.map(|row| rows::decode_fire(&row)).transpose()
    }

    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire) -> TableResult<()> {
        if let Some(previous) = self.read_fire(schedule, fire.planned_at)? {
            self.overlay.remove_member(Index::FiresByAge, fire_age_member(schedule.as_str(), &previous));
        }
        self.insert_fire(schedule.as_str(), fire)
    }

    fn find_planned_time_with_outcome(
        &mut self,
        schedule: &ScheduleName,
        after: Timestamp,
        outcome: &FireOutcome,
    ) -> TableResult<Option<Timestamp>> {
        let after = MemberBuilder::from_i64(after.micros()).finish();
        let index = Index::FireTimes(schedule.to_string());
        let later = (Bound::Excluded(&*after), Bound::Unbounded);
        for member in self.overlay.read_members(&index, later, ScanOrder::Ascending, usize::MAX)? {
            let planned = Timestamp::from_micros(decode_member_i64(&member, 0)?);
            if self.read_fire(schedule, planned)?.is_some_and(|fire| fire.outcome == *outcome) {
                return Ok(Some(planned));
            }
        }
        Ok(None)
    }
}

impl RedisTables {
    /// Inserts the row of a planned time, which must not exist yet.
    pub(crate) fn insert_fire(&mut self, schedule: &str, fire: &Fire) -> TableResult<()> {
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
