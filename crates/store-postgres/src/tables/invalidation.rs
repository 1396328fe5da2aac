//! Invalidation records: a compact list of the objects that a commit wrote, for the caches of other nodes. It contains
//! the new state of an object if the object itself was written, and its lanes that are empty now. Peers drop everything
//! else that they have cached of these objects.

use std::cell::RefCell;
use std::collections::BTreeMap;

use pointsman_core::EventId;
use pointsman_store::object_of_lane;
use pointsman_store::row::{HandlerId, ObjectRow};

use super::cache::TransactionCache;

/// Larger records are not published, because a row must fit into a page; peers then drop their whole cache.
const MAX_RECORD_BYTES: usize = 6_000;

/// Collects the objects, and lanes without an object, that a transaction writes.
#[derive(Debug, Default)]
pub(crate) struct InvalidationBuilder {
    /// Object number to whether the object itself was written. None if there are no peers, or if a write cannot be
    /// assigned to an object.
    written_objects: RefCell<Option<BTreeMap<i64, bool>>>,
}

/// The invalidation of an object, or of a lane without an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObjectInvalidation {
    pub(crate) object_number: i64,
    pub(crate) object_change: ObjectChange,
    /// Handlers whose lane of this object is empty.
    pub(crate) empty_lanes: Vec<HandlerId>,
}

/// The change of an object itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ObjectChange {
    /// It was not written.
    #[default]
    Unchanged,
    Written(ObjectRow),
    /// It was written, but its new state is not in the record.
    Unknown,
}

impl ObjectChange {
    fn code(&self) -> u64 {
        match self {
            Self::Unchanged => 0,
            Self::Written(_) => 1,
            Self::Unknown => 2,
        }
    }
}

impl InvalidationBuilder {
    /// Starts collecting for a transaction if there are peers.
    pub(crate) fn begin_transaction(&self, has_peers: bool) {
        self.written_objects.replace(has_peers.then(BTreeMap::new));
    }

    pub(crate) fn add_object(&self, number: i64) {
        if let Some(numbers) = &mut *self.written_objects.borrow_mut() {
            numbers.insert(number, true);
        }
    }

    pub(crate) fn add_lane(&self, lane: i64) {
        if let Some(numbers) = &mut *self.written_objects.borrow_mut() {
            numbers.entry(object_of_lane(lane).unwrap_or(lane)).or_insert(false);
        }
    }

    /// Gives up collecting: a task was written whose lane is unknown.
    pub(crate) fn mark_incomplete(&self) {
        self.written_objects.replace(None);
    }

    /// Encodes the record; none if it is too large. `cache` has the new state of the objects.
    pub(crate) fn encode_record(&self, cache: &TransactionCache) -> Option<Vec<u8>> {
        let numbers = self.written_objects.take()?;
        let to_invalidation = |(number, written): (i64, bool)| ObjectInvalidation {
            object_number: number,
            object_change: match cache.find_object_by_number(number) {
                _ if !written => ObjectChange::Unchanged,
                Some(object) => ObjectChange::Written(object.clone()),
                None => ObjectChange::Unknown,
            },
            empty_lanes: cache.lanes.list_handlers_with_empty_lane(number),
        };
        let mut encoder =
            InvalidationEncoder { bytes: vec![FORMAT_VERSION], ..InvalidationEncoder::default() };
        // Reserve space for a minimal entry of each following object.
        let mut left = numbers.len();
        for invalidation in numbers.into_iter().map(to_invalidation) {
            left -= 1;
            let byte_limit =
                MAX_RECORD_BYTES.saturating_sub(encoder.bytes.len() + left * RESERVED_BYTES_PER_OBJECT);
            encoder.push_within_limit(&invalidation, byte_limit);
        }
        (encoder.bytes.len() <= MAX_RECORD_BYTES).then_some(encoder.bytes)
    }
}

/// Most objects need at most this many bytes for their number and a header.
const RESERVED_BYTES_PER_OBJECT: usize = 4;

/// First byte of a record: its format version.
const FORMAT_VERSION: u8 = 1;

/// Encodes numbers as differences, in varints of seven bits a byte, lowest first.
#[derive(Default)]
struct InvalidationEncoder {
    bytes: Vec<u8>,
    previous_number: i64,
    previous_last_event: i64,
}

impl InvalidationEncoder {
    /// Encodes an invalidation; without the new state if that does not fit into `byte_limit`.
    fn push_within_limit(&mut self, invalidation: &ObjectInvalidation, byte_limit: usize) {
        self.push_varint(invalidation.object_number.wrapping_sub(self.previous_number) as u64);
        self.previous_number = invalidation.object_number;
        let (before, last) = (self.bytes.len(), self.previous_last_event);
        self.push(invalidation);
        if self.bytes.len() - before > byte_limit {
            self.bytes.truncate(before);
            self.previous_last_event = last;
            self.push_varint(
                if invalidation.object_change == ObjectChange::Unchanged {
                    ObjectChange::Unchanged
                } else {
                    ObjectChange::Unknown
                }
                .code(),
            );
        }
    }

    fn push(&mut self, invalidation: &ObjectInvalidation) {
        self.push_varint((invalidation.empty_lanes.len() as u64) << 2 | invalidation.object_change.code());
        if let ObjectChange::Written(object) = &invalidation.object_change {
            let last = object.last_event.as_i64();
            self.push_signed(last.wrapping_sub(self.previous_last_event));
            self.previous_last_event = last;
            self.push_varint(object.last_sent_events.len() as u64);
            for (handler, id) in &object.last_sent_events {
                self.push_signed(*handler);
                self.push_signed(id.as_i64().wrapping_sub(last));
            }
        }
        invalidation.empty_lanes.iter().for_each(|handler| self.push_signed(*handler));
    }

    fn push_varint(&mut self, mut rest: u64) {
        while rest >= 0x80 {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    fn push_signed(&mut self, number: i64) {
        self.push_varint(((number << 1) ^ (number >> 63)) as u64);
    }
}

/// Decodes a record; none if it is malformed.
pub(crate) fn decode_record(bytes: &[u8]) -> Option<Vec<ObjectInvalidation>> {
    let (mut decoder, mut invalidations) =
        (InvalidationDecoder(bytes.strip_prefix(&[FORMAT_VERSION])?), Vec::new());
    let (mut number, mut last) = (0_i64, 0_i64);
    while !decoder.0.is_empty() {
        number = number.wrapping_add(decoder.read_varint()? as i64);
        let header = decoder.read_varint()?;
        let object = match header & 3 {
            0 => ObjectChange::Unchanged,
            1 => {
                last = last.wrapping_add(decoder.read_signed()?);
                let sent = decoder.read_list(|decoder| {
                    Some((
                        decoder.read_signed()?,
                        EventId::from_i64(last.wrapping_add(decoder.read_signed()?)),
                    ))
                })?;
                ObjectChange::Written(ObjectRow {
                    number,
                    last_event: EventId::from_i64(last),
                    last_sent_events: sent,
                })
            }
            2 => ObjectChange::Unknown,
            _ => return None,
        };
        let empty_lanes = (0..header >> 2).map(|_| decoder.read_signed()).collect::<Option<_>>()?;
        invalidations.push(ObjectInvalidation { object_number: number, object_change: object, empty_lanes });
    }
    Some(invalidations)
}

struct InvalidationDecoder<'a>(&'a [u8]);

impl InvalidationDecoder<'_> {
    fn read_varint(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7F).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
    }

    fn read_signed(&mut self) -> Option<i64> {
        let number = self.read_varint()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn read_list<T>(&mut self, mut read_item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.read_varint()?).map(|_| read_item(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::Tenant;
    use pointsman_store::lane_number;

    use super::*;

    fn object_row(number: i64, last: i64) -> ObjectRow {
        let id = EventId::from_i64;
        ObjectRow {
            number,
            last_event: id(last),
            last_sent_events: vec![(3, id(last)), (70_000, id(last - 5))],
        }
    }

    fn cache_with_objects(objects: impl IntoIterator<Item = ObjectRow>) -> TransactionCache {
        let mut cache = TransactionCache::default();
        for object in objects {
            let name = (Tenant::default(), format!("object:{}", object.number));
            cache.insert_object(name, Some(object));
        }
        cache
    }

    fn object_numbers(invalidations: &[ObjectInvalidation]) -> Vec<i64> {
        invalidations.iter().map(|invalidation| invalidation.object_number).collect()
    }

    #[test]
    fn an_encoded_invalidation_record_is_decoded_unchanged() {
        let builder = InvalidationBuilder::default();
        builder.begin_transaction(true);
        let lanes = [i64::MIN + 7, -3, (5 << 20) + 1, (5 << 20) + 2, (70_000 << 20) + 9];
        lanes.into_iter().for_each(|lane| builder.add_lane(lane));
        [i64::MAX, 1, 5].into_iter().for_each(|number| builder.add_object(number));
        let mut cache =
            cache_with_objects([object_row(1, i64::MAX), object_row(5, 8), object_row(70_000, 9)]);
        cache.lanes.insert_lane(lane_number(5, 2), vec![], 2);
        let encoded = builder.encode_record(&cache).unwrap();
        let invalidations = decode_record(&encoded).unwrap();
        assert_eq!(object_numbers(&invalidations), [i64::MIN + 7, -3, 1, 5, 70_000, i64::MAX]);
        let decoded = |index: usize| invalidations[index].clone();
        assert_eq!(
            decoded(2),
            ObjectInvalidation {
                object_number: 1,
                object_change: ObjectChange::Written(object_row(1, i64::MAX)),
                empty_lanes: vec![]
            }
        );
        assert_eq!(
            decoded(3),
            ObjectInvalidation {
                object_number: 5,
                object_change: ObjectChange::Written(object_row(5, 8)),
                empty_lanes: vec![2]
            }
        );
        assert_eq!(
            decoded(4),
            ObjectInvalidation { object_number: 70_000, ..ObjectInvalidation::default() },
            "it was not written itself"
        );
        let unknown = ObjectInvalidation {
            object_number: i64::MAX,
            object_change: ObjectChange::Unknown,
            empty_lanes: vec![],
        };
        assert_eq!(decoded(5), unknown, "nothing is known of it");
        assert!(encoded.len() < 80, "{} bytes", encoded.len());
        assert_eq!(decode_record(&encoded[..encoded.len() - 1]), None, "it is cut off");
        assert_eq!(decode_record(&[&[FORMAT_VERSION], &[0xFF; 40][..]].concat()), None);
        assert_eq!(decode_record(&encoded[1..]), None, "that is another format");
    }

    #[test]
    fn objects_beyond_the_size_limit_are_encoded_without_their_values() {
        let builder = InvalidationBuilder::default();
        builder.begin_transaction(true);
        (1..=1_000).for_each(|number| builder.add_object(number));
        let encoded = builder
            .encode_record(&cache_with_objects((1..=1_000).map(|number| object_row(number, number * 1_000))))
            .unwrap();
        let invalidations = decode_record(&encoded).unwrap();
        assert!(encoded.len() <= MAX_RECORD_BYTES && invalidations.len() == 1_000);
        let mut written = 0;
        for (invalidation, number) in invalidations.into_iter().zip(1..) {
            if invalidation.object_change != ObjectChange::Unknown {
                assert_eq!(
                    invalidation.object_change,
                    ObjectChange::Written(object_row(number, number * 1_000))
                );
                written += 1;
            }
        }
        assert!((200..900).contains(&written), "{written}");
    }

    #[test]
    fn oversized_or_unknown_invalidations_are_not_encoded() {
        let (builder, empty_cache) = (InvalidationBuilder::default(), TransactionCache::default());
        builder.begin_transaction(true);
        (0..2_000).for_each(|number| builder.add_object(number * 1_000_000));
        assert_eq!(builder.encode_record(&empty_cache), None);
        builder.begin_transaction(true);
        assert_eq!(builder.encode_record(&empty_cache).as_deref().and_then(decode_record), Some(vec![]));
        builder.begin_transaction(true);
        builder.mark_incomplete();
        builder.add_object(1);
        assert_eq!(builder.encode_record(&empty_cache), None);
        builder.begin_transaction(false);
        builder.add_object(1);
        assert_eq!(builder.encode_record(&empty_cache), None, "nobody is there");
    }
}
