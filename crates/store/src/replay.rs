//! Replays the journal to a handler that was not defined at the time: creates the tasks it would have got, once, out
//! of order and at the lowest priority.
//!
//! For each handler, the missed ranges are stored: the ranges of the journal during which it was not defined. A replay
//! works through them in batches and removes what it has replayed, so it continues where it stopped and creates no
//! task twice.

use std::sync::Arc;

use pointsman_core::store::ReplayReport;
use pointsman_core::{EventId, HandlerName, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::{Fault, TableResult};
use crate::row::HandlerId;
use crate::tables::Tables;
use crate::writer::Txn;

/// Most events that one replay transaction reads.
const MAX_EVENTS_PER_REPLAY: usize = 1000;

/// A range of event ids, first and last inclusive. Without a last id, the handler is not defined now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MissedEventRange(i64, Option<i64>);

impl<T: Tables> Txn<'_, T> {
    /// Replays a batch of events from the handler's first missed range that has ended and contains events from `from`
    /// on.
    pub(crate) fn replay_missed_events(
        &mut self,
        handler: &HandlerName,
        from: EventId,
        now: Timestamp,
    ) -> TableResult<ReplayReport> {
        let Some(id) = self.state.find_handler(handler).filter(|h| h.is_defined).map(|h| h.id) else {
            return Ok(ReplayReport::default());
        };
        let mut gaps = self.read_missed_event_ranges(id)?;
        let from = from.as_i64();
        let reaches = |gap: &MissedEventRange| gap.1.is_some_and(|last| last >= from);
        let Some(index) = gaps.iter().position(reaches) else { return Ok(ReplayReport::default()) };
        let MissedEventRange(first, last) = gaps.remove(index);
        let (replayed_from, last) = (first.max(from), last.unwrap_or(i64::MAX));
        // Expired events may still be stored for other tasks.
        let first_stored = replayed_from.max(self.state.counters.expired_up_to.as_i64() + 1);
        let (from_id, to_id) = (EventId::from_i64(first_stored), EventId::from_i64(last));
        let events = self.tables.list_events_between(from_id, to_id, MAX_EVENTS_PER_REPLAY)?;
        let replayed_up_to = match events.last() {
            Some(event) if events.len() == MAX_EVENTS_PER_REPLAY => event.id.as_i64(),
            Some(_) | None => last,
        };
        let mut created_tasks = 0;
        for event in events {
            if !event.is_engine_event()
                && self
                    .state
                    .find_handlers_of_event_type(&event.event_type)
                    .iter()
                    .any(|(handler, _)| *handler == id)
            {
                self.create_replay_task(id, &Arc::new(event), now)?;
                created_tasks += 1;
            }
        }
        let remaining = [
            MissedEventRange(first, Some(replayed_from - 1)),
            MissedEventRange(replayed_up_to + 1, Some(last)),
        ];
        for gap in remaining.into_iter().rev().filter(|gap| gap.1.is_some_and(|last| last >= gap.0)) {
            gaps.insert(index, gap);
        }
        self.write_missed_event_ranges(id, &gaps)?;
        Ok(ReplayReport { created_task_count: created_tasks, has_more: gaps.iter().any(reaches) })
    }

    /// Ends the current missed range of a handler that has become defined, or begins one for a handler that no longer
    /// is.
    pub(crate) fn update_missed_event_ranges(
        &mut self,
        handler: HandlerId,
        was_defined: bool,
        is_defined: bool,
    ) -> TableResult<()> {
        if was_defined == is_defined {
            return Ok(());
        }
        let head = self.state.event_id_generator.last_id().as_i64();
        let mut gaps = self.read_missed_event_ranges(handler)?;
        match gaps.last_mut().filter(|gap| gap.1.is_none()) {
            Some(gap) if is_defined => gap.1 = Some(head),
            Some(_) => {}
            None if is_defined => gaps.push(MissedEventRange(0, Some(head))),
            None => gaps.push(MissedEventRange(head + 1, None)),
        }
        // Expired events cannot be replayed.
        let low_water_mark = self.state.counters.expired_up_to.as_i64();
        gaps.retain(|gap| gap.1.is_none_or(|last| last > low_water_mark && last >= gap.0));
        self.write_missed_event_ranges(handler, &gaps)
    }

    fn read_missed_event_ranges(&mut self, handler: HandlerId) -> TableResult<Vec<MissedEventRange>> {
        let json = self.tables.read_missed_event_ranges_json(handler)?;
        serde_json::from_str(&json)
            .map_err(|e| Fault::undecodable("the ranges of events that a handler missed", e))
    }

    fn write_missed_event_ranges(
        &mut self,
        handler: HandlerId,
        gaps: &[MissedEventRange],
    ) -> TableResult<()> {
        let json = serde_json::to_string(gaps).map_err(Fault::damaged)?;
        self.tables.write_missed_event_ranges_json(handler, &json)
    }
}
