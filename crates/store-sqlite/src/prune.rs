//! Forgetting: old events for observers, old tasks from the history.
//!
//! The journal has one low-water mark. Observers see nothing at or below it; the rows go when no unfinished
//! task needs them. Work is done in pieces, so that nobody who emits waits long behind a sweep.

use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_core::store::Pruned;
use pointsman_core::{EventId, Timestamp};
use rusqlite::OptionalExtension;

use crate::append::MARK_EVERY;
use crate::error::Result;
use crate::state::put_meta;
use crate::writer::Txn;

/// So many rows at most are looked at in one transaction: whoever emits meanwhile waits for it.
const PIECE: i64 = 500;
/// Beyond so many rows no further task goes in the same transaction: a task may have a long log.
const ROWS: usize = 5_000;
/// How long the answer to an idempotency key is remembered.
const REMEMBER_ANSWERS: Duration = Duration::from_secs(24 * 3600);

impl Txn<'_> {
    pub(crate) fn prune(&mut self, journal: Retention, history: Retention, now: Timestamp) -> Result<Pruned> {
        self.forget(journal, now)?;
        let (events, more_events) = self.drop_events()?;
        let (tasks, more_tasks) = self.drop_history(history, now)?;
        let more_answers = self.drop_answers(now)?;
        let more_records = self.drop_records(now.minus(history.age))?;
        Ok(Pruned { events, tasks, more: more_events || more_tasks || more_answers || more_records })
    }

    /// Moves the low-water mark.
    fn forget(&mut self, retention: Retention, now: Timestamp) -> Result<()> {
        let by_age = EventId::from_i64(now.minus(retention.age).millis().max(0).saturating_mul(1000));
        let mut mark = by_age.min(self.state.ids.last());
        let surplus = self.state.journaled - i64::try_from(retention.count).unwrap_or(i64::MAX);
        if surplus >= MARK_EVERY {
            let sql = "SELECT id FROM pointsman_mark WHERE n <= ?1 ORDER BY n DESC LIMIT 1";
            let by_count: Option<i64> =
                self.conn.prepare_cached(sql)?.query_row([surplus], |r| r.get(0)).optional()?;
            mark = mark.max(by_count.map_or(EventId::ZERO, EventId::from_i64));
        }
        let mark = self.last_event_up_to(mark)?;
        if mark > self.state.forgotten {
            self.state.forgotten = mark;
            put_meta(self.conn, "forgotten", mark.as_i64())?;
        }
        Ok(())
    }

    /// The mark lies on an event, so that a cursor behind which nothing was forgotten is not torn.
    fn last_event_up_to(&self, id: EventId) -> Result<EventId> {
        let mut last =
            self.conn.prepare_cached("SELECT coalesce(max(id), 0) FROM pointsman_journal WHERE id <= ?1")?;
        Ok(EventId::from_i64(last.query_row([id.as_i64()], |r| r.get(0))?))
    }

    /// Removes forgotten events that no unfinished task needs. `dropped` remembers how far the sweep came, so
    /// that events kept for their tasks are not looked at over and over in one round.
    fn drop_events(&mut self) -> Result<(u64, bool)> {
        let sql = "SELECT id, EXISTS (SELECT 1 FROM pointsman_task
                                      WHERE seq >= first_task AND seq < first_task + tasks)
                              OR EXISTS (SELECT 1 FROM pointsman_task WHERE late = 1 AND event = pointsman_journal.id)
                   FROM pointsman_journal WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3";
        let from = self.state.swept;
        let rows: Vec<(i64, bool)> = {
            let mut statement = self.conn.prepare_cached(sql)?;
            let range = (from.as_i64(), self.state.forgotten.as_i64(), PIECE);
            let rows = statement.query_map(range, |r| Ok((r.get(0)?, r.get(1)?)))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        let more = rows.len() as i64 == PIECE;
        self.state.swept = match rows.last() {
            Some((id, _)) if more => EventId::from_i64(*id),
            Some(_) | None => EventId::ZERO,
        };
        let mut dropped = 0;
        let mut delete = self.conn.prepare_cached("DELETE FROM pointsman_journal WHERE id = ?1")?;
        for (id, _) in rows.iter().filter(|(_, needed)| !needed) {
            dropped += delete.execute([id])? as u64;
        }
        // One mark stays behind: it says how many events there were before it.
        let sql = "DELETE FROM pointsman_mark WHERE n < (SELECT max(n) FROM pointsman_mark WHERE id <= ?1)";
        self.conn.prepare_cached(sql)?.execute([self.state.forgotten.as_i64()])?;
        Ok((dropped, more))
    }

    /// Removes ended tasks that are too many or too old, with their attempts and logs.
    fn drop_history(&mut self, retention: Retention, now: Timestamp) -> Result<(u64, bool)> {
        let surplus = self.state.ended - i64::try_from(retention.count).unwrap_or(i64::MAX);
        let mut seqs = Vec::new();
        if surplus > 0 {
            let mut statement =
                self.conn.prepare_cached("SELECT seq FROM pointsman_history ORDER BY seq LIMIT ?1")?;
            let rows = statement.query_map([surplus.min(PIECE)], |r| r.get(0))?;
            seqs = rows.collect::<rusqlite::Result<_>>()?;
        }
        if (seqs.len() as i64) < PIECE {
            self.ended_before(now.minus(retention.age), &mut seqs)?;
        }
        let more = seqs.len() as i64 >= PIECE;
        let (gone, cut_short) = self.drop_tasks(&seqs)?;
        self.state.ended -= gone as i64;
        if gone > 0 {
            // Should the newest task be among those that went, its number must not be given out again.
            put_meta(self.conn, "task_floor", self.state.last_task())?;
        }
        Ok((gone, more || cut_short))
    }

    /// Removes these, and stops where their logs make it too many rows; answers how many went.
    fn drop_tasks(&mut self, seqs: &[i64]) -> Result<(u64, bool)> {
        let (mut gone, mut rows) = (0, 0);
        for seq in seqs {
            if rows >= ROWS {
                return Ok((gone, true));
            }
            for sql in [
                "DELETE FROM pointsman_attempt WHERE task = ?1",
                "DELETE FROM pointsman_log WHERE task = ?1",
                "DELETE FROM pointsman_history WHERE seq = ?1",
            ] {
                rows += self.conn.prepare_cached(sql)?.execute([seq])?;
            }
            gone += 1;
        }
        Ok((gone, false))
    }

    /// Adds the tasks that ended before `cutoff`. Their events were journaled before it too, so that only the
    /// oldest rows need to be looked at. Ids tell when, and not the clock: they ascend even if it ran ahead once.
    fn ended_before(&self, cutoff: Timestamp, seqs: &mut Vec<i64>) -> Result<()> {
        let after = seqs.last().copied().unwrap_or(0);
        let sql = "SELECT seq, event, finished, created FROM pointsman_history WHERE seq > ?1 ORDER BY seq";
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([after])?;
        let mut looked_at = 0;
        while let Some(row) = rows.next()? {
            looked_at += 1;
            let journaled = match row.get::<_, Option<i64>>(1)? {
                Some(event) => EventId::from_i64(event).timestamp(),
                None => Timestamp::from_micros(row.get(3)?),
            };
            if journaled >= cutoff || seqs.len() as i64 >= PIECE || looked_at > ROWS {
                break;
            }
            if row.get::<_, i64>(2)? < cutoff.micros() {
                seqs.push(row.get(0)?);
            }
        }
        Ok(())
    }

    fn drop_answers(&mut self, now: Timestamp) -> Result<bool> {
        let sql = "DELETE FROM pointsman_idempotency WHERE n IN
                     (SELECT n FROM pointsman_idempotency ORDER BY n LIMIT ?2) AND at < ?1";
        let gone = self.conn.prepare_cached(sql)?.execute((now.minus(REMEMBER_ANSWERS).micros(), PIECE))?;
        Ok(gone as i64 == PIECE)
    }

    /// Old rows of the fire ledger, nodes that went long ago, and old deeds. All are written in the order of time.
    fn drop_records(&mut self, cutoff: Timestamp) -> Result<bool> {
        let mut more = false;
        for sql in [
            "DELETE FROM pointsman_fire WHERE n IN (SELECT n FROM pointsman_fire ORDER BY n LIMIT ?2) AND at < ?1",
            "DELETE FROM pointsman_node WHERE gone = 1 AND heard < ?1 AND id IN
               (SELECT id FROM pointsman_node ORDER BY id LIMIT ?2)",
            "DELETE FROM pointsman_deed WHERE n IN (SELECT n FROM pointsman_deed ORDER BY n LIMIT ?2) AND at < ?1",
        ] {
            let gone = self.conn.prepare_cached(sql)?.execute((cutoff.micros(), PIECE))?;
            more |= gone as i64 == PIECE;
        }
        Ok(more)
    }
}
