//! Copies objects. Their table has no order, so they are read in partitions by a hash of their field: each partition is
//! collected, sorted and returned in pages. Even after interruptions each object is returned
//! once.
//!
//! An object that had events before the store existed has only `OBJ:last.event.id`. Those external objects follow the
//! stored ones. A name with a slash may mean two objects: one of the default tenant, and one of another tenant.

use std::collections::BTreeMap;
use std::ops::Bound;

use pointsman_core::{EventId, ObjectKey, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::ObjectRow;
use pointsman_store::store_copy::{CopyCursor, CopyPage, CopyRow, CopyValue};

use super::RedisStoreCopy;
use super::cells::copy_row;
use crate::connection::{CommandArgs, args};
use crate::keys::{Table, object_field, parse_object_field};
use crate::overlay::{decode_list, decode_optional_bytes, decode_strings};
use crate::rows;

/// Target number of objects per partition.
const OBJECTS_PER_PARTITION: u64 = 100_000;
/// COUNT of each HSCAN.
const SCAN_COUNT: &str = "1000";
const LAST_EVENT_ID_SUFFIX: &[u8] = b":last.event.id";
/// Sorts after all fields: no UTF-8 text begins with it.
const AFTER_ALL_FIELDS: &[u8] = &[0xff];

/// A partition of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ObjectPartition {
    /// Partition of external objects, which have only a last event id.
    is_external: bool,
    number: u64,
    partition_count: u64,
}

/// A collected partition: objects by field.
#[derive(Debug)]
pub(super) struct CollectedPartition {
    partition: ObjectPartition,
    objects: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl ObjectPartition {
    fn first(is_external: bool, objects: u64) -> Self {
        Self { is_external, number: 0, partition_count: objects.div_ceil(OBJECTS_PER_PARTITION).max(1) }
    }

    /// Decodes the position of a page: the partition, and the last returned field.
    fn from_position(cursor: &CopyCursor) -> Result<(Self, Vec<u8>)> {
        let [
            CopyValue::Number(heard),
            CopyValue::Number(number),
            CopyValue::Number(of),
            CopyValue::Bytes(field),
        ] = cursor.as_slice()
        else {
            return Err(Fault::damaged("a copy cursor among objects"));
        };
        let part = Self {
            is_external: *heard == 1,
            number: number.unsigned_abs(),
            partition_count: of.unsigned_abs().max(1),
        };
        Ok((part, field.clone()))
    }

    fn position(self, field: &[u8]) -> CopyCursor {
        copy_row![
            self.is_external,
            self.number.cast_signed(),
            self.partition_count.cast_signed(),
            field.to_vec()
        ]
    }

    fn contains(self, field: &[u8]) -> bool {
        fnv1a(field) % self.partition_count == self.number
    }
}

/// FNV-1a: must be stable, because another process may resume a copy.
fn fnv1a(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

impl RedisStoreCopy {
    pub(super) fn count_objects(&mut self) -> Result<u64> {
        Ok(self.count_stored_objects()? + self.count_external_objects()?)
    }

    fn count_stored_objects(&self) -> Result<u64> {
        self.sum_replies(&[args!["HLEN", self.keys().table_key(&Table::Objects)]])
    }

    fn count_external_objects(&mut self) -> Result<u64> {
        if let Some(heard) = self.cached_counts.external_objects {
            return Ok(heard);
        }
        let mut heard = 0;
        self.for_each_external_object(&mut |_, _| {
            heard += 1;
            Ok(())
        })?;
        self.cached_counts.external_objects = Some(heard);
        Ok(heard)
    }

    pub(super) fn read_objects(&mut self, after: Option<&CopyCursor>) -> Result<CopyPage> {
        let (mut part, mut after) = match after {
            Some(cursor) => {
                ObjectPartition::from_position(cursor).map(|(part, field)| (part, Some(field)))?
            }
            None => (ObjectPartition::first(false, self.count_stored_objects()?), None),
        };
        let mut page = CopyPage::default();
        loop {
            let loaded = match self.read_ahead.take().filter(|loaded| loaded.partition == part) {
                Some(loaded) => loaded,
                None => self.collect_partition(part)?,
            };
            let start = after.take().map_or(Bound::Unbounded, Bound::Excluded);
            for (field, packed) in loaded.objects.range::<Vec<u8>, _>((start, Bound::Unbounded)) {
                page.push_row(part.position(field), encode_object_row(field, packed)?);
                if page.is_full() {
                    self.read_ahead = Some(loaded);
                    return Ok(page);
                }
            }
            part = match (part.number + 1 < part.partition_count, part.is_external) {
                (true, _) => ObjectPartition { number: part.number + 1, ..part },
                (false, false) => ObjectPartition::first(true, self.count_external_objects()?),
                (false, true) => {
                    // The next call must not collect anything again.
                    page.next_cursor = part.position(AFTER_ALL_FIELDS);
                    self.read_ahead = Some(loaded);
                    return Ok(page);
                }
            };
        }
    }

    fn collect_partition(&self, part: ObjectPartition) -> Result<CollectedPartition> {
        let mut objects = BTreeMap::new();
        let mut take = |field: Vec<u8>, packed: Vec<u8>| {
            if part.contains(&field) {
                objects.insert(field, packed);
            }
            Ok(())
        };
        match part.is_external {
            false => self.for_each_stored_object(&mut take)?,
            true => self.for_each_external_object(&mut take)?,
        }
        Ok(CollectedPartition { partition: part, objects })
    }

    /// Calls `take` with all stored objects. One may occur twice.
    fn for_each_stored_object(&self, take: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Result<()>) -> Result<()> {
        let mut cursor = b"0".to_vec();
        loop {
            let mut reply = decode_list(self.execute(args![
                "HSCAN",
                self.keys().table_key(&Table::Objects),
                cursor,
                "COUNT",
                SCAN_COUNT
            ])?)?;
            let mut found = decode_strings(reply.pop().unwrap_or(redis::Value::Nil))?.into_iter();
            while let (Some(field), Some(packed)) = (found.next(), found.next()) {
                take(field, packed)?;
            }
            cursor = decode_strings(redis::Value::Array(reply))?.pop().unwrap_or_else(|| b"0".to_vec());
            if cursor == b"0" {
                return Ok(());
            }
        }
    }

    /// Calls `take` with all external objects. One may occur twice.
    fn for_each_external_object(&self, take: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Result<()>) -> Result<()> {
        self.for_each_key("*:last.event.id", Some("string"), &mut |keys| {
            let readings: Vec<CommandArgs> = keys.iter().map(|key| self.object_fields_of_key(key)).collect();
            let mut commands = vec![[&args!["MGET"], &keys[..]].concat()];
            let objects = args!["HMGET", self.keys().table_key(&Table::Objects)];
            let named = readings.iter().filter(|fields| !fields.is_empty());
            commands.extend(named.map(|fields| [&objects, &fields[..]].concat()));
            let mut replies = self.overlay().connection.execute_all(&commands)?.into_iter();
            let ids = decode_list(replies.next().unwrap_or(redis::Value::Nil))?;
            for (fields, id) in readings.into_iter().zip(ids).filter(|(fields, _)| !fields.is_empty()) {
                let kept = decode_list(replies.next().unwrap_or(redis::Value::Nil))?;
                let has_row = kept.iter().any(|row| *row != redis::Value::Nil);
                let id =
                    decode_optional_bytes(id)?.and_then(|id| std::str::from_utf8(&id).ok()?.parse().ok());
                // An invalid id is no object.
                let Some(last) = id.filter(|_| !has_row) else { continue };
                let packed = rows::encode_object(
                    &ObjectRow { number: 0, last_event: last, last_sent_events: vec![] },
                    EventId::ZERO,
                );
                fields.into_iter().try_for_each(|field| take(field, packed.clone()))?;
            }
            Ok(())
        })
    }

    /// Returns the fields of the objects that a last event id key may belong to.
    fn object_fields_of_key(&self, key: &[u8]) -> CommandArgs {
        let name = self.keys().without_prefix(key).and_then(|name| name.strip_suffix(LAST_EVENT_ID_SUFFIX));
        let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else { return vec![] };
        let of_default = Some((Tenant::default(), name));
        let of_another =
            name.split_once('/').and_then(|(tenant, key)| Some((Tenant::new(tenant).ok()?, key)));
        let of_another = of_another.filter(|(tenant, _)| !tenant.is_default());
        let objects = of_default.into_iter().chain(of_another);
        let objects = objects.filter(|(_, key)| ObjectKey::new(key).is_ok());
        objects.map(|(tenant, key)| object_field(&tenant, key).into_vec()).collect()
    }
}

fn encode_object_row(field: &[u8], packed: &[u8]) -> Result<CopyRow> {
    let (tenant, key) = parse_object_field(field)?;
    let object = rows::decode_object(packed)?;
    let (last, checked): (EventId, EventId) =
        (object.last_event, rows::decode_object_check(packed)?.unwrap_or(EventId::ZERO));
    Ok(copy_row![tenant.to_string(), key, object.number, last, object.encode_last_sent(), checked])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_in_one_partition_of_similar_size() {
        let fields: Vec<Vec<u8>> = (0..10_000).map(|n| format!("/order:{n}").into_bytes()).collect();
        let part = ObjectPartition::first(false, 7 * OBJECTS_PER_PARTITION);
        assert_eq!((part.partition_count, ObjectPartition::first(true, 0).partition_count), (7, 1));
        let sizes: Vec<usize> = (0..part.partition_count)
            .map(|number| {
                fields.iter().filter(|field| ObjectPartition { number, ..part }.contains(field)).count()
            })
            .collect();
        assert_eq!(sizes.iter().sum::<usize>(), fields.len());
        assert!(sizes.iter().all(|size| (1000..2000).contains(size)), "{sizes:?}");
    }

    #[test]
    fn partition_positions_decode_to_the_same() {
        let part = ObjectPartition { is_external: true, number: 3, partition_count: 9 };
        assert_eq!(ObjectPartition::from_position(&part.position(b"/a")).unwrap(), (part, b"/a".to_vec()));
        assert!(ObjectPartition::from_position(&vec![CopyValue::Number(1)]).is_err());
    }
}
