//! Reads of audit entries and fires.

use std::ops::Bound;

use pointsman_core::store::{AuditEntry, FirePage};
use pointsman_core::{ScheduleName, Timestamp};
use pointsman_store::columns::AuditEntryColumns;
use pointsman_store::error::TableResult;

use crate::cells::{LeadingCell, decode_row};
use crate::codec::{MemberBuilder, decode_member_i64, encode_decimal_field};
use crate::connection::args;
use crate::keys::{Index, Table};
use crate::lookup::parse_number;
use crate::overlay::{CacheFetch, ScanOrder, TransactionOverlay, decode_strings};
use crate::store_state::StoreState;

/// Lists audit entries, newest first.
pub(crate) fn list_audit_entries(
    overlay: &mut TransactionOverlay,
    before: Option<i64>,
    limit: usize,
) -> TableResult<Vec<(i64, AuditEntry)>> {
    let fields = decode_strings(
        overlay.connection.execute(args!["HKEYS", overlay.keys.table_key(&Table::AuditEntries)])?,
    )?;
    let mut numbers: Vec<i64> = fields.iter().map(|field| parse_number(field)).collect::<TableResult<_>>()?;
    numbers.retain(|number| before.is_none_or(|before| *number < before));
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers.truncate(limit);
    let fetch = |number: &i64| CacheFetch::Row(Table::AuditEntries, encode_decimal_field(*number));
    overlay.fetch_into_cache(numbers.iter().map(fetch).collect())?;
    let mut entries = Vec::with_capacity(numbers.len());
    for number in numbers {
        let row = overlay.read_row(Table::AuditEntries, number.to_string())?;
        if let Some(row) = row {
            let entry: AuditEntryColumns<'_> = decode_row(&[LeadingCell::Number(number)], &row)?;
            entries.push((number, entry.into_entry()));
        }
    }
    Ok(entries)
}

/// Lists the fires of a schedule, latest planned time first.
pub(crate) fn list_fires(
    overlay: &mut TransactionOverlay,
    store_state: &StoreState,
    schedule: &ScheduleName,
    before: Option<Timestamp>,
    limit: usize,
) -> TableResult<FirePage> {
    let before = before.map(|before| MemberBuilder::from_i64(before.micros()).finish());
    let upper = before.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let times = Index::FireTimes(schedule.to_string());
    let members = overlay.read_members(&times, (Bound::Unbounded, upper), ScanOrder::Descending, limit)?;
    let ledger = Table::Fires(schedule.to_string());
    let planned_times: Vec<i64> =
        members.iter().map(|member| decode_member_i64(member, 0)).collect::<TableResult<_>>()?;
    let fetch = |planned: &i64| CacheFetch::Row(ledger.clone(), encode_decimal_field(*planned));
    overlay.fetch_into_cache(planned_times.iter().map(fetch).collect())?;
    let mut fires = Vec::with_capacity(planned_times.len());
    for planned in planned_times {
        fires.extend(overlay.read_fire(schedule.as_str(), planned)?);
    }
    Ok(FirePage { fires, journal_range: store_state.journal_range() })
}
