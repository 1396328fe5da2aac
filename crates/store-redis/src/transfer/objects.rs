//! Objects. They lie in a hash, which is in no order; so they are read in parts, by a hash of their own: all of a part are
//! collected and sorted, and handed out. However often that is broken off, whatever the server does meanwhile, each comes
//! once.
//!
//! An object that has had events before there was a store here is known only by `OBJ:last.event.id`. Those come after the
//! others. A name with a slash may be that of two: of the default tenant's object, and of another tenant's.

use std::collections::BTreeMap;
use std::ops::Bound;

use pointsman_core::{EventId, ObjectKey, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::Object;
use pointsman_store::transfer::{Cell, Page, Place, Row};

use super::RedisMove;
use super::cells::row;
use crate::connection::{CommandArgs, args};
use crate::keys::{Table, object_field, parse_object_field};
use crate::overlay::{decode_list, decode_optional_bytes, decode_strings};
use crate::rows;

/// So many objects are meant to be in a part.
const PART: u64 = 100_000;
/// So many are asked for at a time.
const PIECE: &str = "1000";
const LAST: &[u8] = b":last.event.id";
/// No text begins so.
const BEHIND_ALL: &[u8] = &[0xff];

/// A part of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// Of those that are known by their last event alone.
    heard: bool,
    number: u64,
    of: u64,
}

/// A part that was collected: objects by field.
#[derive(Debug)]
pub(super) struct Shelf {
    part: Part,
    objects: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Part {
    fn first(heard: bool, objects: u64) -> Self {
        Self { heard, number: 0, of: objects.div_ceil(PART).max(1) }
    }

    /// Where a page begins, and behind which object.
    fn read(place: &Place) -> Result<(Self, Vec<u8>)> {
        let [Cell::Number(heard), Cell::Number(number), Cell::Number(of), Cell::Bytes(field)] =
            place.as_slice()
        else {
            return Err(Fault::damaged("a place among objects"));
        };
        let part = Self { heard: *heard == 1, number: number.unsigned_abs(), of: of.unsigned_abs().max(1) };
        Ok((part, field.clone()))
    }

    fn place(self, field: &[u8]) -> Place {
        row![self.heard, self.number.cast_signed(), self.of.cast_signed(), field.to_vec()]
    }

    fn has(self, field: &[u8]) -> bool {
        hash(field) % self.of == self.number
    }
}

/// FNV-1a: it must be the same whoever goes on with a move.
fn hash(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

impl RedisMove {
    pub(super) fn count_objects(&mut self) -> Result<u64> {
        Ok(self.count_kept()? + self.count_heard()?)
    }

    fn count_kept(&self) -> Result<u64> {
        self.sum(&[args!["HLEN", self.keys().table_key(&Table::Objects)]])
    }

    fn count_heard(&mut self) -> Result<u64> {
        if let Some(heard) = self.seen.heard {
            return Ok(heard);
        }
        let mut heard = 0;
        self.each_heard(&mut |_, _| {
            heard += 1;
            Ok(())
        })?;
        self.seen.heard = Some(heard);
        Ok(heard)
    }

    pub(super) fn read_objects(&mut self, after: Option<&Place>) -> Result<Page> {
        let (mut part, mut after) = match after {
            Some(place) => Part::read(place).map(|(part, field)| (part, Some(field)))?,
            None => (Part::first(false, self.count_kept()?), None),
        };
        let mut page = Page::default();
        loop {
            let shelf = match self.shelf.take().filter(|shelf| shelf.part == part) {
                Some(shelf) => shelf,
                None => self.collect(part)?,
            };
            let behind = after.take().map_or(Bound::Unbounded, Bound::Excluded);
            for (field, packed) in shelf.objects.range::<Vec<u8>, _>((behind, Bound::Unbounded)) {
                page.push(part.place(field), row_of_object(field, packed)?);
                if page.is_full() {
                    self.shelf = Some(shelf);
                    return Ok(page);
                }
            }
            part = match (part.number + 1 < part.of, part.heard) {
                (true, _) => Part { number: part.number + 1, ..part },
                (false, false) => Part::first(true, self.count_heard()?),
                (false, true) => {
                    // Whoever asks once more need not have anything collected again.
                    page.place = part.place(BEHIND_ALL);
                    self.shelf = Some(shelf);
                    return Ok(page);
                }
            };
        }
    }

    fn collect(&self, part: Part) -> Result<Shelf> {
        let mut objects = BTreeMap::new();
        let mut take = |field: Vec<u8>, packed: Vec<u8>| {
            if part.has(&field) {
                objects.insert(field, packed);
            }
            Ok(())
        };
        match part.heard {
            false => self.each_kept(&mut take)?,
            true => self.each_heard(&mut take)?,
        }
        Ok(Shelf { part, objects })
    }

    /// Hands out all that lie in the hash. One may come twice.
    fn each_kept(&self, take: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Result<()>) -> Result<()> {
        let mut cursor = b"0".to_vec();
        loop {
            let mut answer = decode_list(self.execute(args![
                "HSCAN",
                self.keys().table_key(&Table::Objects),
                cursor,
                "COUNT",
                PIECE
            ])?)?;
            let mut found = decode_strings(answer.pop().unwrap_or(redis::Value::Nil))?.into_iter();
            while let (Some(field), Some(packed)) = (found.next(), found.next()) {
                take(field, packed)?;
            }
            cursor = decode_strings(redis::Value::Array(answer))?.pop().unwrap_or_else(|| b"0".to_vec());
            if cursor == b"0" {
                return Ok(());
            }
        }
    }

    /// Hands out all that are known by their last event alone. One may come twice.
    fn each_heard(&self, take: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Result<()>) -> Result<()> {
        self.each_key("*:last.event.id", Some("string"), &mut |keys| {
            let readings: Vec<CommandArgs> = keys.iter().map(|key| self.readings(key)).collect();
            let mut commands = vec![[&args!["MGET"], &keys[..]].concat()];
            let objects = args!["HMGET", self.keys().table_key(&Table::Objects)];
            let named = readings.iter().filter(|fields| !fields.is_empty());
            commands.extend(named.map(|fields| [&objects, &fields[..]].concat()));
            let mut answers = self.overlay().connection.execute_all(&commands)?.into_iter();
            let ids = decode_list(answers.next().unwrap_or(redis::Value::Nil))?;
            for (fields, id) in readings.into_iter().zip(ids).filter(|(fields, _)| !fields.is_empty()) {
                let kept = decode_list(answers.next().unwrap_or(redis::Value::Nil))?;
                let known = kept.iter().any(|row| *row != redis::Value::Nil);
                let id =
                    decode_optional_bytes(id)?.and_then(|id| std::str::from_utf8(&id).ok()?.parse().ok());
                // What is no id tells nothing of an object.
                let Some(last) = id.filter(|_| !known) else { continue };
                let packed = rows::encode_object(&Object { number: 0, last, sent: vec![] }, EventId::ZERO);
                fields.into_iter().try_for_each(|field| take(field, packed.clone()))?;
            }
            Ok(())
        })
    }

    /// The objects that a key may tell the last event of.
    fn readings(&self, key: &[u8]) -> CommandArgs {
        let name = self.keys().without_prefix(key).and_then(|name| name.strip_suffix(LAST));
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

fn row_of_object(field: &[u8], packed: &[u8]) -> Result<Row> {
    let (tenant, key) = parse_object_field(field)?;
    let object = rows::decode_object(packed)?;
    let (last, checked): (EventId, EventId) =
        (object.last, rows::decode_object_check(packed)?.unwrap_or(EventId::ZERO));
    Ok(row![tenant.to_string(), key, object.number, last, object.encode_sent(), checked])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_in_one_part_and_parts_are_of_one_size() {
        let fields: Vec<Vec<u8>> = (0..10_000).map(|n| format!("/order:{n}").into_bytes()).collect();
        let part = Part::first(false, 7 * PART);
        assert_eq!((part.of, Part::first(true, 0).of), (7, 1));
        let sizes: Vec<usize> = (0..part.of)
            .map(|number| fields.iter().filter(|field| Part { number, ..part }.has(field)).count())
            .collect();
        assert_eq!(sizes.iter().sum::<usize>(), fields.len());
        assert!(sizes.iter().all(|size| (1000..2000).contains(size)), "{sizes:?}");
    }

    #[test]
    fn places_read_back() {
        let part = Part { heard: true, number: 3, of: 9 };
        assert_eq!(Part::read(&part.place(b"/a")).unwrap(), (part, b"/a".to_vec()));
        assert!(Part::read(&vec![Cell::Number(1)]).is_err());
    }
}
