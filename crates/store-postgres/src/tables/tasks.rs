//! Tasks, unfinished and ended.

use pointsman_core::store::NodeId;
use pointsman_core::task::{LogLine, Task};
use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::commits::Change;
use pointsman_store::error::Result;
use pointsman_store::row::{AttemptRow, Gated, HandlerId, Head, Live, Past, Phase, QueueId, Waiting};

use super::PgTables;
use super::lanes::KNOWN;
use super::seen::{maybe_head, waiting_of};
use crate::link::params;
use crate::rows::{get, live_of, past_of, phase, time};
use crate::session::query;

impl PgTables {
    pub(super) fn find_task(&self, seq: TaskSeq) -> Result<Option<Live>> {
        let held = self.held.borrow().task(seq);
        match held {
            Some(known) => Ok(known),
            None => self.ask_one(query!("write/task", INT8), params![seq.0], |row| live_of(row, 0)),
        }
    }

    /// The lane of a task is written to.
    fn touch(&self, live: &Live) {
        if let Some(lane) = live.lane {
            self.touched.lane(lane);
        }
    }

    /// The same for a task of which only its number is known. Answers its lane.
    fn touch_standing(&self, seq: TaskSeq) -> Option<i64> {
        let lane = self.seen.borrow().lanes.lane_of(seq);
        match lane {
            Some(lane) => self.touched.lane(lane),
            None => self.touched.anything(),
        }
        lane
    }

    /// Something of a task has changed that its lane tells: it is fetched anew.
    fn unsettle(&self, seq: TaskSeq) {
        if let Some(lane) = self.touch_standing(seq) {
            self.seen.borrow_mut().lanes.unsettle(lane);
        }
    }

    pub(super) fn add_task(&self, live: &Live) {
        self.held.borrow_mut().insert_task(live);
        self.touch(live);
        self.seen.borrow_mut().lanes.stands(live);
    }

    pub(super) fn remove_task(&self, live: &Live) {
        self.held.borrow_mut().delete_task(live.seq);
        self.touch(live);
        self.seen.borrow_mut().lanes.left(live.seq);
    }

    pub(super) fn move_task(&self, seq: TaskSeq, phase: Phase, rank: i64) {
        self.held.borrow_mut().set_phase(seq, phase, rank);
        self.touch_standing(seq);
        self.seen.borrow_mut().lanes.changed(seq, phase);
    }

    pub(super) fn lock_task(&self, live: &Live) {
        self.held.borrow_mut().lock_task(live);
        self.touch(live);
        self.seen.borrow_mut().lanes.stands(live);
    }

    pub(super) fn change_task(&self, live: &Live) {
        self.held.borrow_mut().rewrite_task(live);
        self.touch(live);
        self.seen.borrow_mut().lanes.stands(live);
    }

    pub(super) fn track_task(&self, live: &Live) {
        self.held.borrow_mut().set_track(live);
        self.touch_standing(live.seq);
        self.touch(live);
        self.seen.borrow_mut().lanes.stands(live);
    }

    pub(super) fn crowd_task(&self, seq: TaskSeq, crowd: Option<i64>) {
        self.held.borrow_mut().set_crowd(seq, crowd);
        self.unsettle(seq);
    }

    pub(super) fn score_task(&self, seq: TaskSeq, score: i64) {
        self.held.borrow_mut().set_score(seq, score);
        self.unsettle(seq);
    }

    pub(super) fn lease_until(&self, seq: TaskSeq, until: Timestamp) -> Result<()> {
        self.ask(query!("write/set_until", INT8, INT8), params![seq.0, until.micros()]).map(drop)
    }

    pub(super) fn note_touched(&self, seq: TaskSeq) {
        self.changed(Change::Task(seq));
    }

    pub(super) fn first_in_lane(&self, lane: i64) -> Result<Option<Head>> {
        if let Some(known) = self.seen.borrow_mut().lanes.head(lane) {
            return Ok(known);
        }
        let query = query!("write/foresee_lanes", INT8_ARRAY, INT8);
        let heads = self.ask_all(query, params![vec![lane], KNOWN as i64], |row| maybe_head(row, 1))?;
        let heads: Vec<Head> = heads.into_iter().flatten().collect();
        let first = heads.first().cloned();
        self.seen.borrow_mut().lanes.fetched(lane, heads, KNOWN);
        Ok(first)
    }

    pub(super) fn all_in_lane(&self, lane: i64) -> Result<Vec<(TaskSeq, QueueId)>> {
        let pair = |row: &_| Ok((TaskSeq(get(row, 0)?), get(row, 1)?));
        self.ask_all(query!("write/in_lane", INT8), params![lane], pair)
    }

    pub(super) fn crowd_active(&self, crowd: i64, most: usize) -> Result<Vec<TaskSeq>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.ask_all(query!("write/active_in_crowd", INT8, INT8), params![crowd, most], seq)
    }

    pub(super) fn crowd_blocked(&self, crowd: i64) -> Result<Option<Waiting>> {
        self.ask_one(query!("write/blocked_in_crowd", INT8), params![crowd], |row| waiting_of(row, 0))
    }

    pub(super) fn best_of(&self, shares: &[(QueueId, i64)]) -> Result<Vec<Live>> {
        if shares.is_empty() {
            return Ok(vec![]);
        }
        let (queues, shares): (Vec<i64>, Vec<i64>) = shares.iter().copied().unzip();
        let query = query!("write/ready", INT8_ARRAY, INT8_ARRAY);
        self.ask_all(query, params![queues, shares], |row| live_of(row, 0))
    }

    pub(super) fn all_scheduled(&self) -> Result<Vec<Live>> {
        self.ask_all(query!("write/scheduled"), vec![], |row| live_of(row, 0))
    }

    pub(super) fn fallen_due(&self, now: Timestamp, most: usize) -> Result<Vec<Waiting>> {
        let asked = params![now.micros(), most as i64];
        self.ask_all(query!("write/due", INT8, INT8), asked, |row| waiting_of(row, 0))
    }

    pub(super) fn first_due(&self) -> Result<Option<Timestamp>> {
        self.ask_one(query!("write/earliest_due"), vec![], |row| time(row, 0))
    }

    pub(super) fn gated_of(&self, event: EventId) -> Result<Vec<Gated>> {
        self.ask_all(query!("write/gated", INT8), params![event.as_i64()], |row| {
            Ok(Gated {
                waiting: waiting_of(row, 0)?,
                lane: get(row, 6)?,
                place: get(row, 7)?,
                stage: get(row, 8)?,
            })
        })
    }

    pub(super) fn sync_ahead(&self, event: EventId, stage: i64, fresh: bool) -> Result<Option<TaskSeq>> {
        let asked = params![event.as_i64(), stage, fresh];
        self.ask_one(query!("write/sync_before", INT8, INT8, BOOL), asked, seq)
    }

    pub(super) fn locked_by(&self, node: NodeId) -> Result<Vec<Live>> {
        self.ask_all(query!("write/held_by", INT8), params![node], |row| live_of(row, 0))
    }

    pub(super) fn leases_over(&self, since: Timestamp, now: Timestamp) -> Result<Vec<Live>> {
        let asked = params![now.micros(), since.micros()];
        self.ask_all(query!("write/run_out", INT8, INT8), asked, |row| live_of(row, 0))
    }

    pub(super) fn of_phases(&self, queue: QueueId, phases: &[Phase], most: usize) -> Result<Vec<TaskSeq>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        match phases {
            [Phase::Scheduled] => {
                return self.ask_all(query!("write/scheduled_of", INT8, INT8), params![queue, most], seq);
            }
            [Phase::Missing] => {
                return self.ask_all(query!("write/missing_of", INT8, INT8), params![queue, most], seq);
            }
            _ => {}
        }
        let codes: Vec<i16> = phases.iter().map(|phase| phase.code() as i16).collect();
        let asked = params![queue, codes, most];
        self.ask_all(query!("write/in_phases", INT8, INT2_ARRAY, INT8), asked, seq)
    }

    pub(super) fn some_runners(&self, handler: HandlerId, most: usize) -> Result<Vec<TaskSeq>> {
        self.ask_all(query!("write/runners", INT8, INT8), params![handler, most as i64], seq)
    }

    pub(super) fn all_to_score(&self, queue: QueueId) -> Result<Vec<(TaskSeq, i64, Timestamp)>> {
        let row = |row: &_| Ok((TaskSeq(get(row, 0)?), get(row, 1)?, time(row, 2)?));
        self.ask_all(query!("write/to_score", INT8), params![queue], row)
    }

    pub(super) fn all_to_regroup(&self, queue: QueueId) -> Result<Vec<(Waiting, Phase, String)>> {
        let row = |row: &_| Ok((waiting_of(row, 0)?, phase(row, 6)?, get(row, 7)?));
        self.ask_all(query!("write/to_regroup", INT8), params![queue], row)
    }

    pub(super) fn count_before(&self, live: &Live, most: u64) -> Result<u64> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let asked = params![live.queue, live.score, live.rank, live.seq.0, most];
        let query = query!("write/ready_before", INT8, INT8, INT8, INT8, INT8);
        let counted = self.ask_one(query, asked, |row| get::<i64>(row, 0))?;
        Ok(counted.unwrap_or(0).max(0) as u64)
    }

    pub(super) fn find_ended(&self, seq: TaskSeq) -> Result<Option<Past>> {
        if let Some(past) = self.held.borrow().ended(seq) {
            return Ok(Some(past.clone()));
        }
        let hidden = self.sequencer.borrow().hidden;
        self.ask_one(query!("write/ended", INT8, INT8), params![seq.0, hidden], |row| past_of(row, 0))
    }

    pub(super) fn add_ended(&self, past: &Past) {
        let n = {
            let mut sequencer = self.sequencer.borrow_mut();
            sequencer.archived += 1;
            sequencer.archived
        };
        self.held.borrow_mut().insert_ended(n, past);
    }

    pub(super) fn add_attempt(&self, attempt: &AttemptRow<'_>) {
        self.held.borrow_mut().put_attempt(attempt);
    }

    pub(super) fn add_lines(&self, task: TaskSeq, lines: Vec<LogLine>) {
        self.held.borrow_mut().add_lines(task, lines);
    }

    pub(super) fn remove_ended(&self, seq: TaskSeq) -> Result<()> {
        if self.held.borrow_mut().delete_ended(seq) {
            return Ok(());
        }
        self.ask(query!("write/delete_ended", INT8), params![seq.0]).map(drop)
    }

    /// A task as its readers see it.
    pub(super) fn read_task(&self, seq: TaskSeq) -> Result<Option<Task>> {
        let pieces = self.release()?;
        self.link.send(&pieces)?;
        self.link.with(|session| Box::pin(crate::read::whole_task(session, seq)))
    }
}

fn seq(row: &tokio_postgres::Row) -> Result<TaskSeq> {
    get(row, 0).map(TaskSeq)
}
