//! Copies objects. Their table has no order, so they are read in passes: each pass scans all objects, collects those
//! whose field has a certain hash, sorts them and returns them in pages. So each object is returned once, even if the
//! copy is interrupted and resumed.
//!
//! An object that had events before the store existed has only `OBJ:last.event.id`. These objects without a row follow
//! those with one. A name with a slash may mean two objects: one of the default tenant, and one of another tenant.

use std::collections::BTreeMap;
use std::ops::Bound;

use pointsman_core::{EventId, ObjectKey, Tenant};
use pointsman_store::columns::{Columns as _, ObjectColumns};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::store_copy::{CopyCursor, CopyPage, CopyRow, CursorValue};

use super::RedisStoreCopy;
use crate::cells::encode_row;
use crate::connection::{CommandArgs, args};
use crate::keys::{Table, object_field, parse_object_field};
use crate::overlay::{decode_list, decode_optional_bytes, decode_strings};
use crate::rows;

/// Number of objects that a pass is to collect, approximately.
const OBJECTS_PER_PASS: u64 = 100_000;
/// Number of rows that each HSCAN looks through.
const SCAN_PAGE_SIZE: &str = "1000";
const LAST_EVENT_ID_SUFFIX: &[u8] = b":last.event.id";
/// Sorts after all fields: no UTF-8 text begins with it.
const AFTER_ALL_FIELDS: &[u8] = &[0xff];

/// One of several scans of all objects: it collects those whose hash modulo the number of passes is its index. Passes
/// exist only while a store is read; the cursor of the copy contains the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ObjectScanPass {
    /// Whether it scans the objects without a row, which have only a last event id, and not those with a row.
    scans_objects_without_row: bool,
    index: u64,
    pass_count: u64,
}

/// The objects that a pass has collected: their rows by field.
#[derive(Debug)]
pub(super) struct CollectedScanPass {
    pass: ObjectScanPass,
    objects: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl ObjectScanPass {
    fn first(scans_objects_without_row: bool, object_count: u64) -> Self {
        Self {
            scans_objects_without_row,
            index: 0,
            pass_count: object_count.div_ceil(OBJECTS_PER_PASS).max(1),
        }
    }

    /// Decodes the cursor of a page: the pass, and the last returned field.
    fn from_cursor(cursor: &CopyCursor) -> TableResult<(Self, Vec<u8>)> {
        let [
            CursorValue::Number(scans_objects_without_row),
            CursorValue::Number(index),
            CursorValue::Number(pass_count),
            CursorValue::Bytes(field),
        ] = cursor.as_slice()
        else {
            return Err(Fault::damaged("a copy cursor among objects"));
        };
        let pass = Self {
            scans_objects_without_row: *scans_objects_without_row == 1,
            index: index.unsigned_abs(),
            pass_count: pass_count.unsigned_abs().max(1),
        };
        Ok((pass, field.clone()))
    }

    fn to_cursor(self, field: &[u8]) -> CopyCursor {
        vec![
            CursorValue::Number(self.scans_objects_without_row.into()),
            CursorValue::Number(self.index.cast_signed()),
            CursorValue::Number(self.pass_count.cast_signed()),
            CursorValue::Bytes(field.to_vec()),
        ]
    }

    fn collects(self, field: &[u8]) -> bool {
        fnv1a(field) % self.pass_count == self.index
    }
}

/// FNV-1a hash. It must not change, because another process may resume a copy.
fn fnv1a(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

impl RedisStoreCopy {
    pub(super) fn count_objects(&mut self) -> TableResult<u64> {
        Ok(self.count_object_rows()? + self.count_objects_without_row()?)
    }

    fn count_object_rows(&mut self) -> TableResult<u64> {
        self.sum_replies(&[args!["HLEN", self.keys().table_key(&Table::Objects)]])
    }

    fn count_objects_without_row(&mut self) -> TableResult<u64> {
        if let Some(count) = self.cached_counts.objects_without_row {
            return Ok(count);
        }
        let mut count = 0;
        self.for_each_object_without_row(&mut |_, _| {
            count += 1;
            Ok(())
        })?;
        self.cached_counts.objects_without_row = Some(count);
        Ok(count)
    }

    pub(super) fn read_page_of_objects(&mut self, after: Option<&CopyCursor>) -> TableResult<CopyPage> {
        let (mut pass, mut after) = match after {
            Some(cursor) => ObjectScanPass::from_cursor(cursor).map(|(pass, field)| (pass, Some(field)))?,
            None => (ObjectScanPass::first(false, self.count_object_rows()?), None),
        };
        let mut page = CopyPage::default();
        loop {
            let collected = match self.collected_pass.take().filter(|collected| collected.pass == pass) {
                Some(collected) => collected,
                None => self.collect_objects_of_pass(pass)?,
            };
            let start = after.take().map_or(Bound::Unbounded, Bound::Excluded);
            for (field, row) in collected.objects.range::<Vec<u8>, _>((start, Bound::Unbounded)) {
                page.push_row(pass.to_cursor(field), decode_object(field, row)?);
                if page.is_full() {
                    self.collected_pass = Some(collected);
                    return Ok(page);
                }
            }
            pass = match (pass.index + 1 < pass.pass_count, pass.scans_objects_without_row) {
                (true, _) => ObjectScanPass { index: pass.index + 1, ..pass },
                (false, false) => ObjectScanPass::first(true, self.count_objects_without_row()?),
                (false, true) => {
                    // With this cursor the next call does not scan all objects again.
                    page.next_cursor = pass.to_cursor(AFTER_ALL_FIELDS);
                    self.collected_pass = Some(collected);
                    return Ok(page);
                }
            };
        }
    }

    fn collect_objects_of_pass(&mut self, pass: ObjectScanPass) -> TableResult<CollectedScanPass> {
        let mut objects = BTreeMap::new();
        let mut visit = |field: Vec<u8>, row: Vec<u8>| {
            if pass.collects(&field) {
                objects.insert(field, row);
            }
            Ok(())
        };
        match pass.scans_objects_without_row {
            false => self.for_each_object_row(&mut visit)?,
            true => self.for_each_object_without_row(&mut visit)?,
        }
        Ok(CollectedScanPass { pass, objects })
    }

    /// Calls `visit` with all objects that have a row in the table. An object may occur twice.
    fn for_each_object_row(
        &mut self,
        visit: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> TableResult<()>,
    ) -> TableResult<()> {
        let mut cursor = b"0".to_vec();
        loop {
            let mut reply = decode_list(self.execute(args![
                "HSCAN",
                self.keys().table_key(&Table::Objects),
                cursor,
                "COUNT",
                SCAN_PAGE_SIZE
            ])?)?;
            let mut found = decode_strings(reply.pop().unwrap_or(redis::Value::Nil))?.into_iter();
            while let (Some(field), Some(row)) = (found.next(), found.next()) {
                visit(field, row)?;
            }
            cursor = decode_strings(redis::Value::Array(reply))?.pop().unwrap_or_else(|| b"0".to_vec());
            if cursor == b"0" {
                return Ok(());
            }
        }
    }

    /// Calls `visit` with all objects that have a last event id and no row, and with a row that contains this id. An
    /// object may occur twice.
    fn for_each_object_without_row(
        &mut self,
        visit: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> TableResult<()>,
    ) -> TableResult<()> {
        self.for_each_key_of_this_store("*:last.event.id", Some("string"), &mut |store, keys| {
            let candidate_fields: Vec<CommandArgs> =
                keys.iter().map(|key| store.candidate_object_fields_of_key(key)).collect();
            let mut commands = vec![[&args!["MGET"], &keys[..]].concat()];
            let objects = args!["HMGET", store.keys().table_key(&Table::Objects)];
            let named = candidate_fields.iter().filter(|fields| !fields.is_empty());
            commands.extend(named.map(|fields| [&objects, &fields[..]].concat()));
            let mut replies = store.overlay().connection.execute_all(&commands)?.into_iter();
            let ids = decode_list(replies.next().unwrap_or(redis::Value::Nil))?;
            for (fields, id) in candidate_fields.into_iter().zip(ids).filter(|(fields, _)| !fields.is_empty())
            {
                let stored_rows = decode_list(replies.next().unwrap_or(redis::Value::Nil))?;
                let has_row = stored_rows.iter().any(|row| *row != redis::Value::Nil);
                let id =
                    decode_optional_bytes(id)?.and_then(|id| std::str::from_utf8(&id).ok()?.parse().ok());
                // A key with an invalid id does not belong to an object.
                let Some(last) = id.filter(|_| !has_row) else { continue };
                let row = encode_row(&ObjectColumns {
                    tenant: "".into(),
                    key: "".into(),
                    number: 0,
                    last_event: EventId::as_i64(last),
                    last_sent: [].as_slice().into(),
                    checked: 0,
                });
                fields.into_iter().try_for_each(|field| visit(field, row.clone()))?;
            }
            Ok(())
        })
    }

    /// Returns the fields of the objects that a last event id key may belong to.
    fn candidate_object_fields_of_key(&self, key: &[u8]) -> CommandArgs {
        let name = self.keys().without_prefix(key).and_then(|name| name.strip_suffix(LAST_EVENT_ID_SUFFIX));
        let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else { return vec![] };
        let default_tenant_object = Some((Tenant::default(), name));
        let other_tenant_object =
            name.split_once('/').and_then(|(tenant, key)| Some((Tenant::new(tenant).ok()?, key)));
        let other_tenant_object = other_tenant_object.filter(|(tenant, _)| !tenant.is_default());
        let objects = default_tenant_object.into_iter().chain(other_tenant_object);
        let objects = objects.filter(|(_, key)| ObjectKey::new(key).is_ok());
        objects.map(|(tenant, key)| object_field(&tenant, key).into_vec()).collect()
    }
}

fn decode_object(field: &[u8], row: &[u8]) -> TableResult<CopyRow> {
    let (tenant, key) = parse_object_field(field)?;
    Ok(rows::decode_object(tenant.as_str(), &key, row)?.into_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_collected_in_one_of_similarly_large_passes() {
        let fields: Vec<Vec<u8>> = (0..10_000).map(|n| format!("/order:{n}").into_bytes()).collect();
        let pass = ObjectScanPass::first(false, 7 * OBJECTS_PER_PASS);
        assert_eq!((pass.pass_count, ObjectScanPass::first(true, 0).pass_count), (7, 1));
        let sizes: Vec<usize> = (0..pass.pass_count)
            .map(|index| {
                fields.iter().filter(|field| ObjectScanPass { index, ..pass }.collects(field)).count()
            })
            .collect();
        assert_eq!(sizes.iter().sum::<usize>(), fields.len());
        assert!(sizes.iter().all(|size| (1000..2000).contains(size)), "{sizes:?}");
    }

    #[test]
    fn pass_cursors_decode_to_the_same() {
        let pass = ObjectScanPass { scans_objects_without_row: true, index: 3, pass_count: 9 };
        assert_eq!(ObjectScanPass::from_cursor(&pass.to_cursor(b"/a")).unwrap(), (pass, b"/a".to_vec()));
        assert!(ObjectScanPass::from_cursor(&vec![CursorValue::Number(1)]).is_err());
    }
}
