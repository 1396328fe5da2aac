//! Invalidation records: a record lists the objects that a commit wrote, for the caches of other nodes. It contains the
//! new state of an object if the object itself was written, and its lanes that are empty now. Peers drop everything
//! else that they have cached of these objects.

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
    /// For each object number, whether the object itself was written, not only one of its lanes. None if there are no
    /// peers, or if a write cannot be assigned to an object.
    written_objects: Option<BTreeMap<i64, bool>>,
}

/// The invalidation of an object, or of a lane without an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObjectInvalidation {
    pub(crate) object_number: i64,
    pub(crate) object_change: ObjectChange,
    /// Handlers whose lane of this object is empty.
    pub(crate) handlers_with_empty_lane: Vec<HandlerId>,
}

/// The change of an object itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ObjectChange {
    /// The object itself was not written.
    #[default]
    Unchanged,
    Written(ObjectRow),
    /// The object was written, but its new state is not in the record.
    Unknown,
}

impl ObjectChange {
    /// Encodes the variant; the new state of a written object follows separately.
    fn encode_variant(&self) -> u64 {
        match self {
            Self::Unchanged => 0,
            Self::Written(_) => 1,
            Self::Unknown => 2,
        }
    }
}

impl InvalidationBuilder {
    /// Starts collecting for a transaction, if there are peers.
    pub(crate) fn start_collecting(&mut self, has_peers: bool) {
        self.written_objects = has_peers.then(BTreeMap::new);
    }

    /// Adds an object that was written itself.
    pub(crate) fn add_written_object(&mut self, number: i64) {
        if let Some(written_objects) = &mut self.written_objects {
            written_objects.insert(number, true);
        }
    }

    /// Adds the object of a lane whose tasks have changed, or the lane if it has no object.
    pub(crate) fn add_changed_lane(&mut self, lane: i64) {
        if let Some(written_objects) = &mut self.written_objects {
            written_objects.entry(object_of_lane(lane).unwrap_or(lane)).or_insert(false);
        }
    }

    /// Discards the collected objects, because a task was written whose lane is unknown. Peers then drop their whole cache.
    pub(crate) fn mark_incomplete(&mut self) {
        self.written_objects = None;
    }

    /// Encodes the record; none if nothing was collected, or if it would be too large. `cache` has the new state of the
    /// objects.
    pub(crate) fn encode_record(&mut self, cache: &TransactionCache) -> Option<Vec<u8>> {
        let written_objects = self.written_objects.take()?;
        let to_invalidation = |(number, written): (i64, bool)| ObjectInvalidation {
            object_number: number,
            object_change: match cache.find_object_by_number(number) {
                _ if !written => ObjectChange::Unchanged,
                Some(object) => ObjectChange::Written(object.clone()),
                None => ObjectChange::Unknown,
            },
            handlers_with_empty_lane: cache.lanes.list_handlers_with_empty_lane(number),
        };
        let mut encoder =
            InvalidationEncoder { bytes: vec![FORMAT_VERSION], ..InvalidationEncoder::default() };
        // Reserve space for a minimal entry of each following object.
        let mut remaining = written_objects.len();
        for invalidation in written_objects.into_iter().map(to_invalidation) {
            remaining -= 1;
            let byte_limit =
                MAX_RECORD_BYTES.saturating_sub(encoder.bytes.len() + remaining * RESERVED_BYTES_PER_OBJECT);
            encoder.push_within_limit(&invalidation, byte_limit);
        }
        (encoder.bytes.len() <= MAX_RECORD_BYTES).then_some(encoder.bytes)
    }
}

/// Number of bytes that most objects need for their number and a header.
const RESERVED_BYTES_PER_OBJECT: usize = 4;

/// First byte of a record: its format version.
const FORMAT_VERSION: u8 = 1;

/// Encodes object numbers and event ids as differences from the previous one, in varints of seven bits a byte, lowest
/// first.
#[derive(Default)]
struct InvalidationEncoder {
    bytes: Vec<u8>,
    previous_object_number: i64,
    previous_last_event: i64,
}

impl InvalidationEncoder {
    /// Encodes an invalidation; only the object number and whether the object was written, if the rest does not fit
    /// into `byte_limit`.
    fn push_within_limit(&mut self, invalidation: &ObjectInvalidation, byte_limit: usize) {
        self.push_varint(invalidation.object_number.wrapping_sub(self.previous_object_number) as u64);
        self.previous_object_number = invalidation.object_number;
        let (start, previous_last_event) = (self.bytes.len(), self.previous_last_event);
        self.push_change_and_empty_lanes(invalidation);
        if self.bytes.len() - start > byte_limit {
            self.bytes.truncate(start);
            self.previous_last_event = previous_last_event;
            self.push_varint(
                if invalidation.object_change == ObjectChange::Unchanged {
                    ObjectChange::Unchanged
                } else {
                    ObjectChange::Unknown
                }
                .encode_variant(),
            );
        }
    }

    /// Encodes everything except the object number.
    fn push_change_and_empty_lanes(&mut self, invalidation: &ObjectInvalidation) {
        self.push_varint(
            (invalidation.handlers_with_empty_lane.len() as u64) << 2
                | invalidation.object_change.encode_variant(),
        );
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
        invalidation.handlers_with_empty_lane.iter().for_each(|handler| self.push_signed(*handler));
    }

    fn push_varint(&mut self, mut rest: u64) {
        while rest >= 0x80 {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    /// Encodes a signed number in zigzag order: 0, -1, 1, -2, ….
    fn push_signed(&mut self, number: i64) {
        self.push_varint(((number << 1) ^ (number >> 63)) as u64);
    }
}

/// Decodes a record; none if it is malformed.
pub(crate) fn decode_record(bytes: &[u8]) -> Option<Vec<ObjectInvalidation>> {
    let (mut decoder, mut invalidations) =
        (InvalidationDecoder(bytes.strip_prefix(&[FORMAT_VERSION])?), Vec::new());
    let (mut number, mut last_event) = (0_i64, 0_i64);
    while !decoder.0.is_empty() {
        number = number.wrapping_add(decoder.read_varint()? as i64);
        let header = decoder.read_varint()?;
        let object_change = match header & 3 {
            0 => ObjectChange::Unchanged,
            1 => {
                last_event = last_event.wrapping_add(decoder.read_signed()?);
                let last_sent_events = decoder.read_list(|decoder| {
                    Some((
                        decoder.read_signed()?,
                        EventId::from_i64(last_event.wrapping_add(decoder.read_signed()?)),
                    ))
                })?;
                ObjectChange::Written(ObjectRow {
                    number,
                    last_event: EventId::from_i64(last_event),
                    last_sent_events,
                })
            }
            2 => ObjectChange::Unknown,
            _ => return None,
        };
        let handlers_with_empty_lane =
            (0..header >> 2).map(|_| decoder.read_signed()).collect::<Option<_>>()?;
        invalidations.push(ObjectInvalidation {
            object_number: number,
            object_change,
            handlers_with_empty_lane,
        });
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
        let mut builder = InvalidationBuilder::default();
        builder.start_collecting(true);
        let lanes = [i64::MIN + 7, -3, (5 << 20) + 1, (5 << 20) + 2, (70_000 << 20) + 9];
        lanes.into_iter().for_each(|lane| builder.add_changed_lane(lane));
        [i64::MAX, 1, 5].into_iter().for_each(|number| builder.add_written_object(number));
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
                handlers_with_empty_lane: vec![]
            }
        );
        assert_eq!(
            decoded(3),
            ObjectInvalidation {
                object_number: 5,
                object_change: ObjectChange::Written(object_row(5, 8)),
                handlers_with_empty_lane: vec![2]
            }
        );
        assert_eq!(
            decoded(4),
            ObjectInvalidation { object_number: 70_000, ..ObjectInvalidation::default() },
            "the object itself was not written"
        );
        let unknown = ObjectInvalidation {
            object_number: i64::MAX,
            object_change: ObjectChange::Unknown,
            handlers_with_empty_lane: vec![],
        };
        assert_eq!(decoded(5), unknown, "the object is not cached");
        assert!(encoded.len() < 80, "{} bytes", encoded.len());
        assert_eq!(decode_record(&encoded[..encoded.len() - 1]), None, "the record is truncated");
        assert_eq!(decode_record(&[&[FORMAT_VERSION], &[0xFF; 40][..]].concat()), None);
        assert_eq!(decode_record(&encoded[1..]), None, "the record has another format version");
    }

    #[test]
    fn objects_beyond_the_size_limit_are_encoded_without_their_values() {
        let mut builder = InvalidationBuilder::default();
        builder.start_collecting(true);
        (1..=1_000).for_each(|number| builder.add_written_object(number));
        let encoded = builder
            .encode_record(&cache_with_objects((1..=1_000).map(|number| object_row(number, number * 1_000))))
            .unwrap();
        let invalidations = decode_record(&encoded).unwrap();
        assert!(encoded.len() <= MAX_RECORD_BYTES && invalidations.len() == 1_000);
        let mut written_count = 0;
        for (invalidation, number) in invalidations.into_iter().zip(1..) {
            if invalidation.object_change != ObjectChange::Unknown {
                assert_eq!(
                    invalidation.object_change,
                    ObjectChange::Written(object_row(number, number * 1_000))
                );
                written_count += 1;
            }
        }
        assert!((200..900).contains(&written_count), "{written_count}");
    }

    #[test]
    fn oversized_or_incomplete_invalidation_records_are_not_encoded() {
        let (mut builder, empty_cache) = (InvalidationBuilder::default(), TransactionCache::default());
        builder.start_collecting(true);
        (0..2_000).for_each(|number| builder.add_written_object(number * 1_000_000));
        assert_eq!(builder.encode_record(&empty_cache), None);
        builder.start_collecting(true);
        assert_eq!(builder.encode_record(&empty_cache).as_deref().and_then(decode_record), Some(vec![]));
        builder.start_collecting(true);
        builder.mark_incomplete();
        builder.add_written_object(1);
        assert_eq!(builder.encode_record(&empty_cache), None);
        builder.start_collecting(false);
        builder.add_written_object(1);
        assert_eq!(builder.encode_record(&empty_cache), None, "there are no peers");
    }
}
