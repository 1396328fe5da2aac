//! Carries out what the lifecycle decides: loads a task, asks [`transition`], writes what it says.

use std::borrow::Cow;
use std::sync::Arc;

use pointsman_core::task::lifecycle::{Effect, transition};
use pointsman_core::task::{AttemptEnd, Command, Life, QueueOf, Rejected, Run, State, Subject, TaskSeq};
use pointsman_core::{EventId, HandlerDef, Pair, Priority, Timestamp};

use crate::error::{Fault, Result};
use crate::lanes::TaskGrouping;
use crate::orders::step_end_of_command;
use crate::row::{ActiveTaskRow, ArchivedTaskRow, AttemptRow, GatedTask, QueueId, TaskPhase, WaitingTask};
use crate::tables::Tables;
use crate::task_events::EndedTask;
use crate::writer::Txn;
use crate::writer_state::{RegisteredHandler, RunningTask};

/// What an attempt left to be kept with the task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptOutput<'a> {
    pub(crate) error: Option<&'a str>,
    pub(crate) result: Option<&'a str>,
    /// What a failed attempt returned.
    pub(crate) return_code: i64,
}

impl Default for AttemptOutput<'_> {
    fn default() -> Self {
        Self { error: None, result: None, return_code: 1 }
    }
}

impl<'a> AttemptOutput<'a> {
    pub(crate) fn from_error(error: &'a str) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

impl<T: Tables> Txn<'_, T> {
    /// Does `command` to a task, wherever it is. A refusal changes nothing.
    pub(crate) fn apply_command(
        &mut self,
        seq: TaskSeq,
        command: Command,
        remains: AttemptOutput<'_>,
        now: Timestamp,
    ) -> Result<std::result::Result<Life, Rejected>> {
        match self.read_cached_or_active_task(seq)? {
            Some(live) => self.apply_command_to_active(live, command, remains, now),
            None => match self.tables.read_archived_task(seq)? {
                Some(past) => self.apply_command_to_archived(past, command, now),
                None => Ok(Err(Rejected::NoSuchTask)),
            },
        }
    }

    /// An unfinished task, as it is remembered or as it lies in the table.
    pub(crate) fn read_cached_or_active_task(&self, seq: TaskSeq) -> Result<Option<ActiveTaskRow>> {
        match self.state.running_tasks.get(&seq) {
            Some(running) => Ok(Some(running.row.clone())),
            None => self.tables.read_active_task(seq),
        }
    }

    pub(crate) fn apply_command_to_active(
        &mut self,
        live: ActiveTaskRow,
        command: Command,
        remains: AttemptOutput<'_>,
        now: Timestamp,
    ) -> Result<std::result::Result<Life, Rejected>> {
        let handler = self.state.handler(self.state.queue(live.queue)?.handler)?.clone();
        let live = if command == Command::Adopt { self.regroup_task(live, &handler)? } else { live };
        let def = self.effective_definition(&live, &handler)?;
        let (life, effects) = match transition(live.seq, live.life, command, &def, now) {
            Ok(outcome) => outcome,
            Err(rejected) => return Ok(Err(rejected)),
        };
        if effects.contains(&Effect::JoinLane) && self.is_pair_busy(&live)? {
            return Ok(Err(Rejected::PairIsBusy));
        }
        let (mut subject, order) = match self.state.running_tasks.remove(&live.seq) {
            Some(RunningTask { subject, order, .. }) => (Some(subject), order),
            None => {
                if live.phase == TaskPhase::Locked {
                    // Another node may remember it as running.
                    self.tables.invalidate_task_on_peers(live.seq);
                }
                (None, None)
            }
        };
        let phase = if effects.contains(&Effect::Archive) {
            // Its event may be kept for its sake alone, so that it is looked up before the task goes.
            let subject = match &mut subject {
                Some(subject) => subject,
                unknown => unknown.insert(self.read_subject(&live)?),
            };
            self.tables.delete_active_task(&live)?;
            self.tables.insert_archived_task(&ArchivedTaskRow::from_ended_task(
                &live, subject, life, now, remains,
            ))?;
            self.state.count_phase_change(live.queue, Some(live.phase), None)?;
            self.state.counters.archived_tasks += 1;
            None
        } else {
            let mut live = live.clone();
            if effects.contains(&Effect::JoinLane) {
                self.join_lane(&mut live);
            }
            Some(self.update_unfinished_task(live, life, remains.error, now)?)
        };
        for effect in effects {
            match effect {
                Effect::RecordAttempt(end) => self.record_attempt(&live, end, remains.error, now)?,
                Effect::OpenGate => {
                    if let Some(event) = live.event.filter(|_| live.sync) {
                        self.release_gated_tasks(event, now)?;
                    }
                }
                Effect::AdvanceLane => self.advance_lane(live.lane, now)?,
                Effect::Archive | Effect::Restore | Effect::JoinLane => {}
            }
        }
        self.release_capacity(&live, phase, &handler, now)?;
        self.record_step_end(&live, order, step_end_of_command(&live, command, &life, remains), now)?;
        let ended = EndedTask { row_before: &live, subject: subject.as_ref(), life: &life, output: remains };
        self.publish_attempt_end(ended, &handler, command, now)?;
        Ok(Ok(life))
    }

    /// The definition by which a task lives: a chain's node may say how its steps are set back.
    fn effective_definition<'h>(
        &self,
        live: &ActiveTaskRow,
        handler: &'h RegisteredHandler,
    ) -> Result<Cow<'h, HandlerDef>> {
        let setback = match live.order {
            Some(_) => self.state.chains.find_retry_override(&self.state.queue(live.queue)?.kind),
            None => None,
        };
        Ok(match setback {
            Some(retry) => Cow::Owned(HandlerDef { retry: retry.clone(), ..handler.def.clone() }),
            None => Cow::Borrowed(&handler.def),
        })
    }

    /// A task that was away comes back by the rules that its handler has now.
    fn regroup_task(
        &mut self,
        mut live: ActiveTaskRow,
        handler: &RegisteredHandler,
    ) -> Result<ActiveTaskRow> {
        if live.event.is_none() {
            return Ok(live);
        }
        let subject = self.read_subject(&live)?;
        let key = subject.key().map(|key| key.as_str());
        let object = self.read_object_number(subject.tenant(), key)?;
        let TaskGrouping { lane, concurrency_group: crowd, key_bucket: bucket } =
            TaskGrouping::for_object(self.state.salt, handler, object);
        (live.lane, live.concurrency_group, live.key_bucket) = (lane, crowd, bucket);
        live.life.laned = lane.is_some();
        self.tables.set_task_grouping(&live)?;
        Ok(live)
    }

    /// Lets others have the place that a task has left: of its object, and of its handler.
    fn release_capacity(
        &mut self,
        live: &ActiveTaskRow,
        phase: Option<TaskPhase>,
        handler: &RegisteredHandler,
        now: Timestamp,
    ) -> Result<()> {
        if let Some(crowd) = live.concurrency_group
            && live.phase.is_active()
            && !phase.is_some_and(TaskPhase::is_active)
        {
            self.advance_concurrency_group(crowd, live.queue, now)?;
        }
        let ran = live.phase == TaskPhase::Locked && phase != Some(TaskPhase::Locked);
        if ran && self.state.is_limited(handler.id)? {
            self.state.apply_limits(handler.id, now)?;
        }
        Ok(())
    }

    /// What an unfinished task is run for. An event is kept as long as its tasks are unfinished.
    pub(crate) fn read_subject(&self, live: &ActiveTaskRow) -> Result<Subject> {
        if let Some(order) = self.read_task_order(live)? {
            return self.step_run_of(live, &order).map(Subject::Step);
        }
        let Some(id) = live.event else { return self.source_run_of_queue(live.queue).map(Subject::Run) };
        if let Some(event) = self.state.recent_events.find(id) {
            return Ok(Subject::Event(event));
        }
        let event = self.tables.read_event(id)?;
        let event = event.ok_or_else(|| Fault::damaged(format!("task {} has lost its event", live.seq)))?;
        Ok(Subject::Event(Arc::new(event)))
    }

    fn source_run_of_queue(&self, queue: QueueId) -> Result<Run> {
        let queue = self.state.queue(queue)?;
        let collection = queue.collection().ok_or_else(|| Fault::damaged("a task without an event"))?;
        let source = self.state.handler(queue.handler)?.def.name.clone();
        let pair = Pair { source, collection: collection.clone() };
        Ok(Run { pair, tenant: queue.tenant.clone() })
    }

    /// Whether a source's task cannot come back because another of its pair is queued or running.
    fn is_pair_busy(&self, live: &ActiveTaskRow) -> Result<bool> {
        let queue = self.state.queue(live.queue)?;
        match queue.collection() {
            Some(collection) => Ok(self.find_pair_task(queue.handler, collection.as_str())?.is_some()),
            None => Ok(false),
        }
    }

    /// Puts a task at the end of its lane.
    fn join_lane(&mut self, live: &mut ActiveTaskRow) {
        if live.lane.is_some() {
            live.lane_position = Some(self.state.allocate_task_numbers(1).0);
        }
    }

    /// The only thing that can be done to an ended task is to run it again.
    fn apply_command_to_archived(
        &mut self,
        mut past: ArchivedTaskRow,
        command: Command,
        now: Timestamp,
    ) -> Result<std::result::Result<Life, Rejected>> {
        let queue = self.state.queue(past.queue)?.clone();
        let handler = self.state.handler(queue.handler)?.clone();
        let object = match (&queue.kind, &past.key) {
            (QueueOf::Events, Some(key)) => self.find_object_number(&queue.tenant, key)?,
            (QueueOf::Events, None) | (QueueOf::Collection(_) | QueueOf::Node { .. }, _) => None,
        };
        let track = match &queue.kind {
            QueueOf::Collection(collection) => {
                TaskGrouping::for_pair(self.state.salt, handler.id, collection.as_str())
            }
            QueueOf::Events => TaskGrouping::for_object(self.state.salt, &handler, object),
            QueueOf::Node { .. } if command == Command::Retry => return Ok(Err(Rejected::ResumeItsOrder)),
            QueueOf::Node { .. } => TaskGrouping::default(),
        };
        past.life.laned = track.lane.is_some();
        let (life, _) = match transition(past.seq, past.life, command, &handler.def, now) {
            Ok(outcome) => outcome,
            Err(rejected) => return Ok(Err(rejected)),
        };
        if let Some(event) = past.event {
            let is_deleted = past.key.is_some() && object.is_none();
            if is_deleted || self.tables.read_event(event)?.is_none() {
                return Ok(Err(Rejected::Forgotten));
            }
            if let Some(key) = past.key.as_deref().filter(|_| event <= self.state.counters.expired_up_to) {
                self.mark_object_in_use(&queue.tenant, key, now)?;
            }
        }
        let priority = Priority::try_from(past.priority).map_err(Fault::damaged)?;
        let mut live = ActiveTaskRow {
            seq: past.seq,
            queue: past.queue,
            event: past.event,
            order: None,
            phase: TaskPhase::Gated,
            lane: track.lane,
            lane_position: None,
            concurrency_group: track.concurrency_group,
            key_bucket: track.key_bucket,
            sync: past.sync,
            stage: past.stage,
            priority: past.priority,
            score: handler.def.limits.score(priority, past.created),
            rank: 0,
            prev_sent: past.prev_sent,
            planned: past.planned,
            created: past.created,
            started: past.started,
            error: past.error.clone(),
            life,
        };
        if self.is_pair_busy(&live)? {
            return Ok(Err(Rejected::PairIsBusy));
        }
        self.tables.delete_archived_task(past.seq)?;
        self.state.counters.archived_tasks -= 1;
        self.join_lane(&mut live);
        (live.phase, live.rank) = self.phase_of_new_task(&live, now, now)?;
        self.tables.insert_active_task(&live)?;
        self.state.count_phase_change(live.queue, None, Some(live.phase))?;
        Ok(Ok(life))
    }

    /// Writes the new state of a task that stays unfinished; answers its phase.
    fn update_unfinished_task(
        &mut self,
        mut live: ActiveTaskRow,
        life: Life,
        error: Option<&str>,
        now: Timestamp,
    ) -> Result<TaskPhase> {
        let before = live.phase;
        (live.phase, live.rank) = match life.state {
            State::New { due } => self.phase_of_new_task(&live, due, now)?,
            State::Scheduled => (TaskPhase::Scheduled, live.rank),
            State::Locked(_) => (TaskPhase::Locked, live.rank),
            State::Error { .. } => (TaskPhase::Halted, 0),
            State::Missing { .. } => (TaskPhase::Missing, 0),
            State::Done => return Err(Fault::damaged("a done task is history")),
        };
        // What was wrong before the task was lost says nothing of it once it is taken up again.
        let error = error.map(str::to_string).or(live.error.take());
        live.error = error.filter(|_| before != TaskPhase::Missing);
        live.lane_position = live.lane_position.filter(|_| life.ordered);
        live.life = life;
        live.started = live.lease().map(|lease| lease.since).or(live.started);
        self.tables.update_active_task(&live)?;
        self.state.count_phase_change(live.queue, Some(before), Some(live.phase))?;
        if live.phase == TaskPhase::Blocked {
            // Whoever steps back lets the first one go.
            self.advance_lane(live.lane_position.and(live.lane), now)?;
        }
        Ok(live.phase)
    }

    /// What a task that is `new` waits for, and its rank if it is ready.
    fn phase_of_new_task(
        &mut self,
        live: &ActiveTaskRow,
        due: Timestamp,
        now: Timestamp,
    ) -> Result<(TaskPhase, i64)> {
        // Only one that was away can find its event's gates closed again.
        let was_away = matches!(live.phase, TaskPhase::Missing | TaskPhase::Gated);
        if let Some(event) = live.event.filter(|_| was_away)
            && self.is_gated(event, live.stage)?
        {
            return Ok((TaskPhase::Gated, 0));
        }
        if let (Some(lane), Some(place)) = (live.lane, live.lane_position)
            && !self.is_lane_head(lane, place)?
        {
            return Ok((TaskPhase::Blocked, 0));
        }
        self.phase_when_unblocked(&WaitingTask::from_row(live, due), now)
    }

    /// Whether a synchronous task of the event comes before this stage and has not had its first attempt yet.
    fn is_gated(&self, event: EventId, stage: i64) -> Result<bool> {
        if stage == 0 {
            return Ok(false);
        }
        Ok(self.tables.find_unfinished_sync_task_before(event, stage, true)?.is_some())
    }

    /// Lets those of the event run that no synchronous task holds back any more.
    fn release_gated_tasks(&mut self, event: EventId, now: Timestamp) -> Result<()> {
        for GatedTask { task: waiting, lane, lane_position: place, stage } in
            self.tables.list_gated_tasks(event)?
        {
            if self.is_gated(event, stage)? {
                // Whoever holds this one back holds back all that come after it.
                break;
            }
            let first = match (lane, place) {
                (Some(lane), Some(place)) => self.is_lane_head(lane, place)?,
                _ => true,
            };
            if first {
                self.unblock_task(&waiting, TaskPhase::Gated, now)?;
            } else {
                self.tables.set_task_phase(waiting.seq, TaskPhase::Blocked, 0)?;
                self.state.count_phase_change(
                    waiting.queue,
                    Some(TaskPhase::Gated),
                    Some(TaskPhase::Blocked),
                )?;
            }
        }
        Ok(())
    }

    fn record_attempt(
        &mut self,
        live: &ActiveTaskRow,
        end: AttemptEnd,
        error: Option<&str>,
        now: Timestamp,
    ) -> Result<()> {
        if end == AttemptEnd::Succeeded {
            return Ok(());
        }
        let ActiveTaskRow { seq: task, started, life: Life { attempt: number, .. }, .. } = *live;
        let started = started.unwrap_or(now);
        self.tables.write_attempt(&AttemptRow { task, number, started, ended: now, end, error })
    }
}
