//! What people did, and what became of planned times.

use std::ops::Bound;

use pointsman_core::store::{Deed, FirePage};
use pointsman_core::{ScheduleName, Timestamp};
use pointsman_store::error::Result;

use crate::codec::{Ordered, digits, ordered};
use crate::keys::{Index, Table};
use crate::link::words;
use crate::lookup::number_of;
use crate::rows;
use crate::sight::{Question, Sight, Way, strings};
use crate::standing::Standing;

/// The newest first.
pub(crate) fn deeds(sight: &Sight, before: Option<i64>, limit: usize) -> Result<Vec<(i64, Deed)>> {
    let fields = strings(sight.link.ask(words!["HKEYS", sight.keys.table(&Table::Deeds)])?)?;
    let mut numbers: Vec<i64> = fields.iter().map(|field| number_of(field)).collect::<Result<_>>()?;
    numbers.retain(|n| before.is_none_or(|before| *n < before));
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers.truncate(limit);
    let row = |n: &i64| Question::Row(Table::Deeds, digits(*n));
    sight.look(numbers.iter().map(row).collect())?;
    let mut deeds = Vec::with_capacity(numbers.len());
    for n in numbers {
        let row = sight.row(Table::Deeds, n.to_string())?;
        deeds.extend(row.map(|row| rows::unpack_deed(&row)).transpose()?.map(|deed| (n, deed)));
    }
    Ok(deeds)
}

/// The latest first.
pub(crate) fn fires(
    sight: &Sight,
    standing: &Standing,
    schedule: &ScheduleName,
    before: Option<Timestamp>,
    limit: usize,
) -> Result<FirePage> {
    let before = before.map(|before| Ordered::of(before.micros()).done());
    let upper = before.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let times = Index::FireTimes(schedule.to_string());
    let members = sight.members(&times, (Bound::Unbounded, upper), Way::Down, limit)?;
    let ledger = Table::Fires(schedule.to_string());
    let fields = members.iter().map(|member| ordered(member, 0).map(|planned| planned.to_string()));
    let fields: Vec<String> = fields.collect::<Result<_>>()?;
    let row = |field: &String| Question::Row(ledger.clone(), field.clone().into_bytes().into());
    sight.look(fields.iter().map(row).collect())?;
    let mut fires = Vec::with_capacity(fields.len());
    for field in fields {
        let row = sight.row(ledger.clone(), field)?;
        fires.extend(row.map(|row| rows::unpack_fire(&row)).transpose()?);
    }
    Ok(FirePage { fires, extent: standing.extent() })
}
