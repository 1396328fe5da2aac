//! Rows as they are stored: which part of a row is in its key, which in its bytes, and which in another table.

use pointsman_core::{EventId, TaskSeq};
use pointsman_store::columns::{
    ActiveTaskColumns, ArchivedTaskColumns, AttemptColumns, CellType, Column, Columns, EventColumns,
    HandlerColumns, ObjectColumns, QueueColumns,
};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::QueueCounts;
use serde::Serialize;
use serde::de::DeserializeOwned;
use smallvec::{SmallVec, smallvec};

use crate::cells::{
    LeadingCell, RowReader, decode_row, decode_row_for_scripts, encode_columns, encode_row_for_scripts,
    split_first_number,
};
use crate::codec::RowEncoder;

/// Number of a queue's columns before its counts.
const QUEUE_COLUMNS_BEFORE_COUNTS: usize = 4;
/// The counts of a queue that has none stored.
const ZERO_QUEUE_COUNTS: &[u8] = &[0; 6];
/// Number of a handler's columns before its limiter state and its missed event ranges.
const HANDLER_COLUMNS_BEFORE_STATE: usize = 4;
/// An empty limiter state, and empty missed event ranges.
const EMPTY_HANDLER_STATE: &[u8] = &[0; 2];

pub(crate) fn encode_json(value: &impl Serialize) -> TableResult<Vec<u8>> {
    serde_json::to_vec(value).map_err(Fault::damaged)
}

pub(crate) fn decode_json<T: DeserializeOwned>(bytes: &[u8]) -> TableResult<T> {
    serde_json::from_slice(bytes).map_err(Fault::damaged)
}

pub(crate) fn decode_text(bytes: &[u8]) -> TableResult<String> {
    String::from_utf8(bytes.to_vec()).map_err(Fault::damaged)
}

/// Encodes a key that consists of texts as the field of its row.
pub(crate) fn encode_key_field(texts: &[&str]) -> Vec<u8> {
    texts.join("\0").into_bytes()
}

/// Decodes the cells of a key from a field: a number, or texts with a zero byte between them.
pub(crate) fn decode_key_field<'f>(
    key_columns: &[Column],
    field: &'f [u8],
) -> TableResult<SmallVec<[LeadingCell<'f>; 4]>> {
    let text = std::str::from_utf8(field).map_err(Fault::damaged)?;
    if key_columns.first().is_some_and(|column| column.cell_type == CellType::Int8) {
        return Ok(smallvec![LeadingCell::Number(text.parse().map_err(Fault::damaged)?)]);
    }
    let mut texts = text.splitn(key_columns.len(), '\0').map(LeadingCell::Text);
    Ok(key_columns.iter().map(|_| texts.next().unwrap_or(LeadingCell::Null)).collect())
}

/// Decodes a row whose field is its key.
pub(crate) fn decode_row_at<'b, C: Columns<'b>>(field: &'b [u8], bytes: &'b [u8]) -> TableResult<C> {
    decode_row(&decode_key_field(C::COLUMNS.split_at(C::KEY_LENGTH).0, field)?, bytes)
}

/// Encodes an event. The first eight bytes are `prev`, which `object_events.lua` reads.
pub(crate) fn encode_event(event: &EventColumns<'_>) -> Vec<u8> {
    encode_row_for_scripts(event)
}

pub(crate) fn decode_event(id: EventId, bytes: &[u8]) -> TableResult<EventColumns<'_>> {
    decode_row_for_scripts(id.as_i64(), bytes)
}

/// Encodes an active task. The first eight bytes are the id of its event, which `ready_tasks.lua` reads.
pub(crate) fn encode_active_task(active: &ActiveTaskColumns<'_>) -> Vec<u8> {
    encode_row_for_scripts(active)
}

pub(crate) fn decode_active_task(seq: TaskSeq, bytes: &[u8]) -> TableResult<ActiveTaskColumns<'_>> {
    decode_row_for_scripts(seq.0, bytes)
}

/// Decodes only the id of the event of an active task.
pub(crate) fn decode_active_task_event_id(bytes: &[u8]) -> TableResult<Option<EventId>> {
    Ok(split_first_number(bytes)?.0.map(EventId::from_i64))
}

pub(crate) fn decode_archived_task(seq: TaskSeq, bytes: &[u8]) -> TableResult<ArchivedTaskColumns<'_>> {
    decode_row(&[LeadingCell::Number(seq.0)], bytes)
}

pub(crate) fn decode_attempt(task: TaskSeq, number: i64, bytes: &[u8]) -> TableResult<AttemptColumns<'_>> {
    decode_row(&[LeadingCell::Number(task.0), LeadingCell::Number(number)], bytes)
}

pub(crate) fn decode_object<'b>(
    tenant: &'b str,
    key: &'b str,
    bytes: &'b [u8],
) -> TableResult<ObjectColumns<'b>> {
    decode_row(&[LeadingCell::Text(tenant), LeadingCell::Text(key)], bytes)
}

/// Encodes a queue without its counts, which are in a table of their own because each transaction writes them.
pub(crate) fn encode_queue(queue: &QueueColumns<'_>) -> Vec<u8> {
    encode_columns(queue, QueueColumns::KEY_LENGTH..QUEUE_COLUMNS_BEFORE_COUNTS)
}

/// Encodes the counts of a queue: its last columns.
pub(crate) fn encode_queue_counts(counts: &QueueCounts) -> Vec<u8> {
    let QueueCounts { ready, waiting, scheduled, running, halted, missing } = *counts;
    let counts = [ready, waiting, scheduled, running, halted, missing];
    counts.into_iter().fold(RowEncoder::default(), RowEncoder::push_varint).finish()
}

/// Decodes a queue from its row and that of its counts.
pub(crate) fn decode_queue<'b>(
    id: i64,
    bytes: &'b [u8],
    counts: Option<&'b [u8]>,
) -> TableResult<QueueColumns<'b>> {
    let key = [LeadingCell::Number(id)];
    let counts = counts.unwrap_or(ZERO_QUEUE_COUNTS);
    Columns::read_cells(&mut RowReader::new(&key, bytes).followed_by(counts))
}

/// Encodes a handler without its limiter state and its missed event ranges, which are in tables of their own because they are
/// written more often.
pub(crate) fn encode_handler(handler: &HandlerColumns<'_>) -> Vec<u8> {
    encode_columns(handler, HandlerColumns::KEY_LENGTH..HANDLER_COLUMNS_BEFORE_STATE)
}

/// Decodes a handler, with an empty limiter state and empty missed event ranges.
pub(crate) fn decode_handler(id: i64, bytes: &[u8]) -> TableResult<HandlerColumns<'_>> {
    let key = [LeadingCell::Number(id)];
    Columns::read_cells(&mut RowReader::new(&key, bytes).followed_by(EMPTY_HANDLER_STATE))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use pointsman_store::columns::{AuditEntryColumns, EndedOrderColumns, RuleColumns};

    use super::*;
    use crate::cells::encode_row;

    #[test]
    fn a_queue_is_read_from_its_row_and_its_counts() {
        let counts = QueueCounts { ready: 1, waiting: 2, scheduled: 3, running: 4, halted: 5, missing: -6 };
        let queue = QueueColumns {
            id: 9,
            handler: 3,
            tenant: "shop".into(),
            collection: "".into(),
            ready: 1,
            waiting: 2,
            scheduled: 3,
            running: 4,
            halted: 5,
            missing: -6,
        };
        let (row, counts) = (encode_queue(&queue), encode_queue_counts(&counts));
        assert_eq!(decode_queue(9, &row, Some(&counts)).unwrap(), queue);
        let without_counts = decode_queue(9, &row, None).unwrap().into_row().unwrap();
        assert_eq!((without_counts.handler, without_counts.counts), (3, QueueCounts::default()));
    }

    #[test]
    fn a_handler_is_read_without_the_columns_of_other_tables() {
        let handler = HandlerColumns {
            id: 1,
            name: "index".into(),
            def: "{}".into(),
            defined: true,
            limiter_state: "".into(),
            gaps: "".into(),
        };
        let stored =
            HandlerColumns { limiter_state: "{\"a\": 1}".into(), gaps: "[]".into(), ..handler.clone() };
        assert_eq!(decode_handler(1, &encode_handler(&stored)).unwrap(), handler);
    }

    #[test]
    fn an_active_task_is_read_as_written_and_begins_with_its_event() {
        let task = |event| ActiveTaskColumns {
            seq: 7,
            event,
            queue: 3,
            order_number: None,
            phase: 5,
            lane: Some(12),
            lane_position: None,
            concurrency_group: None,
            key_bucket: Some(9),
            sync: true,
            stage: 1,
            priority: -5,
            score: 8,
            rank: 2,
            due: 100,
            attempt: 4,
            retries: 3,
            crashes: 1,
            late: true,
            node: Some(5),
            fence: Some(6),
            leased_until: None,
            started: Some(200),
            prev_sent: Some(60),
            planned: None,
            created: 100,
            reason: None,
            error: Some("é".into()),
        };
        for event in [None, Some(70)] {
            let row = encode_active_task(&task(event));
            assert_eq!(row.first_chunk(), Some(&event.unwrap_or(0).to_be_bytes()));
            assert_eq!(decode_active_task(TaskSeq(7), &row).unwrap(), task(event));
        }
    }

    #[test]
    fn a_field_contains_the_whole_key() {
        let rule = RuleColumns {
            kind: "pause".into(),
            space: "chain".into(),
            name: "/daily".into(),
            tenant: "".into(),
            by: "ops".into(),
            reason: "".into(),
            since: 1,
        };
        let field = encode_key_field(&["pause", "chain", "/daily", ""]);
        assert_eq!(decode_row_at::<RuleColumns<'_>>(&field, &encode_row(&rule)).unwrap(), rule);
        let entry = AuditEntryColumns {
            n: 12,
            at: 1,
            by: "".into(),
            action: "".into(),
            what: "".into(),
            detail: "".into(),
        };
        assert_eq!(decode_row_at::<AuditEntryColumns<'_>>(b"12", &encode_row(&entry)).unwrap(), entry);
        assert!(decode_row_at::<AuditEntryColumns<'_>>(b"x", &encode_row(&entry)).is_err());
        assert!(decode_row_at::<EndedOrderColumns<'_>>(b"without-tenant", &[0; 9]).is_err());
    }

    #[test]
    fn columns_in_other_tables_are_the_last_ones() {
        let names = |columns: &'static [Column], from| {
            columns.split_at(from).1.iter().map(|column| column.name).collect::<HashSet<_>>()
        };
        assert_eq!(
            names(HandlerColumns::COLUMNS, HANDLER_COLUMNS_BEFORE_STATE),
            HashSet::from(["limiter_state", "gaps"])
        );
        assert_eq!(names(QueueColumns::COLUMNS, QUEUE_COLUMNS_BEFORE_COUNTS).len(), ZERO_QUEUE_COUNTS.len());
    }
}
