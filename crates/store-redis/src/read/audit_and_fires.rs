//! Reads of audit entries and fires.

use std::ops::Bound;

use pointsman_core::store::{AuditEntry, FirePage};
use pointsman_core::{ScheduleName, Timestamp};
use pointsman_store::error::TableResult;

use crate::codec::{MemberBuilder, decode_member_i64, encode_decimal_field};
use crate::connection::args;
use crate::keys::{Index, Table};
use crate::lookup::parse_number;
use crate::overlay::{CacheFetch, ScanOrder, TransactionOverlay, decode_strings};
use crate::rows;
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
        entries
            .extend(row.map(|row| rows::decode_audit_entry(&row)).transpose()?.map(|entry| (number, entry)));
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
    let fields = members.iter().map(|member| decode_member_i64(member, 0).map(|planned| planned.to_string()));
    let fields: Vec<String> = fields.collect::<TableResult<_>>()?;
    let fetch = |field: &String| CacheFetch::Row(ledger.clone(), field.clone().into_bytes().into());
    overlay.fetch_into_cache(fields.iter().map(fetch).collect())?;
    let mut fires = Vec::with_capacity(fields.len());
    for field in fields {
        let row = overlay.read_row(ledger.clone(), field)?;
        fires.extend(row.map(|row| rows::decode_fire(&row)).transpose()?);
    }
    Ok(FirePage { fires, journal_range: store_state.journal_range() })
}
