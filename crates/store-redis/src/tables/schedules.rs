//! Schedules and their fires.

use std::collections::BTreeMap;
use std::ops::Bound;

use pointsman_core::fire::{Fire, FireOutcome};
use pointsman_core::{ScheduleName, Timestamp};
use pointsman_store::columns::{FireColumns, ScheduleProgressColumns};
use pointsman_store::error::TableResult;
use pointsman_store::row::ScheduleProgressRow;
use pointsman_store::tables::ScheduleTable;

use super::RedisTables;
use crate::cells::encode_row;
use crate::codec::{MemberBuilder, MemberOrField, decode_member_i64};
use crate::keys::{Index, Table};
use crate::overlay::{Bytes, ScanOrder};
use crate::rows::decode_row_at;

impl ScheduleTable for RedisTables {
    fn list_schedule_progress(&mut self) -> TableResult<BTreeMap<String, ScheduleProgressRow>> {
        let rows = self.overlay.read_table(Table::Schedules)?;
        rows.iter()
            .map(|(name, row)| Ok(decode_row_at::<ScheduleProgressColumns<'_>>(name, row)?.into_row()))
            .collect()
    }

    fn read_schedule_progress(&mut self, name: &str) -> TableResult<Option<ScheduleProgressRow>> {
        let row = self.overlay.read_row(Table::Schedules, name)?;
        let decode = |row: Bytes| {
            Ok(decode_row_at::<ScheduleProgressColumns<'_>>(name.as_bytes(), &row)?.into_row().1)
        };
        row.map(decode).transpose()
    }

    fn write_schedule_progress(&mut self, name: &str, schedule: &ScheduleProgressRow) -> TableResult<()> {
        self.overlay.write_row(
            Table::Schedules,
            name,
            encode_row(&ScheduleProgressColumns::from_row(name, schedule)),
        );
        Ok(())
    }

    fn delete_schedule_progress(&mut self, name: &str) -> TableResult<()> {
        self.overlay.delete_row(Table::Schedules, name);
        Ok(())
    }

    fn read_fire(&mut self, schedule: &ScheduleName, planned: Timestamp) -> TableResult<Option<Fire>> {
        self.overlay.read_fire(schedule.as_str(), planned.micros())
    }

    fn write_fire(&mut self, schedule: &ScheduleName, fire: &Fire) -> TableResult<()> {
        if let Some(previous) = self.read_fire(schedule, fire.planned_at)? {
            let (planned, at) = (previous.planned_at.micros(), previous.recorded_at.micros());
            self.overlay.remove_member(Index::FiresByAge, fire_age_member(schedule.as_str(), planned, at));
        }
        self.insert_fire(&FireColumns::from_fire(schedule.as_str(), fire)?);
        Ok(())
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
    pub(crate) fn insert_fire(&mut self, fire: &FireColumns<'_>) {
        let (schedule, planned) = (&*fire.schedule, fire.planned);
        self.overlay.write_row(Table::Fires(schedule.into()), planned.to_string(), encode_row(fire));
        self.overlay.add_member(Index::FireTimes(schedule.into()), MemberBuilder::from_i64(planned).finish());
        self.overlay.add_member(Index::FiresByAge, fire_age_member(schedule, planned, fire.at));
    }
}

/// Returns the age index member of a fire: time, planned time and schedule.
fn fire_age_member(schedule: &str, planned: i64, recorded_at: i64) -> MemberOrField {
    MemberBuilder::from_i64(recorded_at).push_i64(planned).push_bytes(schedule.as_bytes()).finish()
}
