//! Replaying history to a handler that was not there: what it would have been sent, once, late and at the lowest
//! priority.
//!
//! A handler knows the gaps: the stretches of the journal in which it was not defined. A replay works through them, a
//! piece at a time, and what it has been through is a gap no longer. So it goes on where it stopped, and makes none
//! twice.

use std::sync::Arc;

use pointsman_core::store::Replayed;
use pointsman_core::{EventId, HandlerName, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::{Fault, Result};
use crate::row::HandlerId;
use crate::tables::Tables;
use crate::writer::Txn;

/// So many events at most are looked at in one go.
const MAX_EVENTS_PER_REPLAY: usize = 1000;

/// Ids from the first to the last, both included; without a last one the handler is not there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct JournalGap(i64, Option<i64>);

impl<T: Tables> Txn<'_, T> {
    pub(crate) fn replay_gap(
        &mut self,
        handler: &HandlerName,
        from: EventId,
        now: Timestamp,
    ) -> Result<Replayed> {
        let Some(id) = self.state.find_handler(handler).filter(|h| h.is_defined).map(|h| h.id) else {
            return Ok(Replayed::default());
        };
        let mut gaps = self.read_gaps(id)?;
        let from = from.as_i64();
        let reaches = |gap: &JournalGap| gap.1.is_some_and(|last| last >= from);
        let Some(index) = gaps.iter().position(reaches) else { return Ok(Replayed::default()) };
        let JournalGap(first, last) = gaps.remove(index);
        let (begin, last) = (first.max(from), last.unwrap_or(i64::MAX));
        // What is forgotten may still be kept for other tasks.
        let remembered = begin.max(self.state.counters.expired_up_to.as_i64() + 1);
        let (from_id, to_id) = (EventId::from_i64(remembered), EventId::from_i64(last));
        let events = self.tables.list_events_between(from_id, to_id, MAX_EVENTS_PER_REPLAY)?;
        let reached = match events.last() {
            Some(event) if events.len() == MAX_EVENTS_PER_REPLAY => event.id.as_i64(),
            Some(_) | None => last,
        };
        let mut tasks = 0;
        for event in events {
            if !event.is_engine()
                && self.state.resolve_handlers(&event.kind).iter().any(|(handler, _)| *handler == id)
            {
                self.create_replay_task(id, &Arc::new(event), now)?;
                tasks += 1;
            }
        }
        let left = [JournalGap(first, Some(begin - 1)), JournalGap(reached + 1, Some(last))];
        for gap in left.into_iter().rev().filter(|gap| gap.1.is_some_and(|last| last >= gap.0)) {
            gaps.insert(index, gap);
        }
        self.write_gaps(id, &gaps)?;
        Ok(Replayed { tasks, more: gaps.iter().any(reaches) })
    }

    /// A handler came or went.
    pub(crate) fn record_presence(
        &mut self,
        handler: HandlerId,
        was_there: bool,
        is_there: bool,
    ) -> Result<()> {
        if was_there == is_there {
            return Ok(());
        }
        let head = self.state.ids.last().as_i64();
        let mut gaps = self.read_gaps(handler)?;
        match gaps.last_mut().filter(|gap| gap.1.is_none()) {
            Some(gap) if is_there => gap.1 = Some(head),
            Some(_) => {}
            None if is_there => gaps.push(JournalGap(0, Some(head))),
            None => gaps.push(JournalGap(head + 1, None)),
        }
        // What the journal has forgotten cannot be replayed.
        let forgotten = self.state.counters.expired_up_to.as_i64();
        gaps.retain(|gap| gap.1.is_none_or(|last| last > forgotten && last >= gap.0));
        self.write_gaps(handler, &gaps)
    }

    fn read_gaps(&self, handler: HandlerId) -> Result<Vec<JournalGap>> {
        let json = self.tables.read_handler_gaps(handler)?;
        serde_json::from_str(&json).map_err(|e| Fault::damaged(format!("a handler's gaps: {e}")))
    }

    fn write_gaps(&self, handler: HandlerId, gaps: &[JournalGap]) -> Result<()> {
        let json = serde_json::to_string(gaps).map_err(Fault::damaged)?;
        self.tables.write_handler_gaps(handler, &json)
    }
}
