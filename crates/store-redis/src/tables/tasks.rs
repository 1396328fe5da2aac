//! Active tasks and their index entries.

use std::ops::Bound;

use pointsman_core::store::NodeId;
use pointsman_core::task::{AttemptOutcome, TaskState};
use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::invalidation::Invalidation;
use pointsman_store::row::{
    ActiveTaskRow, HandlerId, LaneHead, QueueId, SyncGatedTask, TaskPhase, WaitingTask,
};

use super::RedisTables;
use crate::codec::{MemberBuilder, MemberOrField, decode_member_i64};
use crate::connection::{CommandArgs, to_arg};
use crate::keys::{Index, TASKS_PER_BUCKET, Table, task_bucket_and_field};
use crate::overlay::{ScanOrder, decode_list, decode_optional_bytes};
use crate::script;
use crate::{rows, task_indexes};

const ALL_MEMBERS: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

impl RedisTables {
    /// Replaces the row and the index entries of an active task; `None` before or after means that it is created or deleted.
    fn replace_task(&self, before: Option<&ActiveTaskRow>, after: Option<&ActiveTaskRow>) -> TableResult<()> {
        let old = before.map(task_indexes::active_task_entries).unwrap_or_default();
        let new = after.map(task_indexes::active_task_entries).unwrap_or_default();
        for (index, member) in old.iter().filter(|entry| !new.contains(entry)) {
            self.overlay.remove_member(index.clone(), member.clone());
        }
        for (index, member) in new.iter().filter(|entry| !old.contains(entry)) {
            self.overlay.add_member(index.clone(), member.clone());
        }
        match (after, before) {
            (Some(active), _) => {
                let (bucket, field) = task_bucket_and_field(active.seq);
                self.overlay.write_row(Table::ActiveTasks(bucket), field, rows::encode_active_task(active));
                self.write_active_source_task_keys(active)
            }
            (None, Some(active)) => {
                let (bucket, field) = task_bucket_and_field(active.seq);
                self.overlay.delete_row(Table::ActiveTasks(bucket), field);
                self.remove_inactive_task_from_priority_queue(active)
            }
            (None, None) => Ok(()),
        }
    }

    /// Changes an existing task.
    fn update_task(&self, seq: TaskSeq, change: impl FnOnce(&mut ActiveTaskRow)) -> TableResult<()> {
        let before = self
            .overlay
            .read_active_task(seq)?
            .ok_or_else(|| Fault::damaged(format!("no task {}", seq.0)))?;
        let mut after = before.clone();
        change(&mut after);
        self.replace_task(Some(&before), Some(&after))
    }

    pub(super) fn read_active_task(&self, seq: TaskSeq) -> TableResult<Option<ActiveTaskRow>> {
        self.overlay.read_active_task(seq)
    }

    pub(super) fn add_active_task(&self, active: &ActiveTaskRow) -> TableResult<()> {
        self.replace_task(None, Some(active))
    }

    pub(super) fn delete_active_task(&self, active: &ActiveTaskRow) -> TableResult<()> {
        let before = self.overlay.read_active_task(active.seq)?;
        self.replace_task(before.as_ref(), None)
    }

    pub(super) fn write_task_phase(&self, seq: TaskSeq, phase: TaskPhase, rank: i64) -> TableResult<()> {
        self.update_task(seq, |active| {
            let due = active.due_time();
            (active.phase, active.rank) = (phase, rank);
            active.lifecycle.state = match phase {
                TaskPhase::BlockedByTask | TaskPhase::SyncGated | TaskPhase::Delayed | TaskPhase::Ready => {
                    TaskState::New { due }
                }
                TaskPhase::Scheduled => TaskState::Scheduled,
                TaskPhase::Missing => TaskState::Missing { due },
                TaskPhase::Locked | TaskPhase::Halted => active.lifecycle.state,
            };
        })
    }

    pub(super) fn write_task_lock(&self, locked: &ActiveTaskRow) -> TableResult<()> {
        self.update_task(locked.seq, |active| {
            active.phase = locked.phase;
            active.started_at = locked.started_at;
            active.lifecycle.state = locked.lifecycle.state;
            active.lifecycle.attempt = locked.lifecycle.attempt;
        })
    }

    pub(super) fn write_task_changes(&self, changed: &ActiveTaskRow) -> TableResult<()> {
        self.update_task(changed.seq, |active| {
            active.phase = changed.phase;
            active.lane_position = changed.lane_position;
            active.rank = changed.rank;
            active.started_at = changed.started_at;
            active.error = changed.error.clone();
            active.lifecycle = changed.lifecycle;
        })
    }

    pub(super) fn write_task_grouping(&self, grouped: &ActiveTaskRow) -> TableResult<()> {
        self.update_task(grouped.seq, |active| {
            (active.lane, active.concurrency_group, active.key_bucket) =
                (grouped.lane, grouped.concurrency_group, grouped.key_bucket);
        })
    }

    pub(super) fn write_concurrency_group(&self, seq: TaskSeq, group: Option<i64>) -> TableResult<()> {
        self.update_task(seq, |active| active.concurrency_group = group)
    }

    pub(super) fn write_task_score(&self, seq: TaskSeq, score: i64) -> TableResult<()> {
        self.update_task(seq, |active| active.score = score)
    }

    pub(super) fn set_lease_end(&self, seq: TaskSeq, until: Timestamp) -> TableResult<()> {
        self.update_task(seq, |active| {
            if let TaskState::Locked(lease) = &mut active.lifecycle.state
                && lease.until.is_some()
            {
                lease.until = Some(until);
            }
        })
    }

    pub(super) fn record_task_invalidation(&self, seq: TaskSeq) {
        self.record_invalidation(Invalidation::Task(seq));
    }

    pub(super) fn read_lane_head(&self, lane: i64) -> TableResult<Option<LaneHead>> {
        if self.is_lane_of_new_object(lane) {
            self.overlay.assume_lane_was_empty(lane)?;
        }
        let Some((lane_position, seq)) = self.overlay.read_lane_head(lane)? else { return Ok(None) };
        let active = self
            .overlay
            .read_active_task(seq)?
            .ok_or_else(|| Fault::damaged(format!("no task {} of a lane", seq.0)))?;
        Ok(Some(LaneHead {
            lane_position,
            phase: active.phase,
            task: WaitingTask::from_row(&active, active.due_time()),
        }))
    }

    /// Returns whether the object of a lane is new in this transaction, so that its lanes were empty.
    fn is_lane_of_new_object(&self, lane: i64) -> bool {
        let last_object = self.store_state_at_begin.borrow().counters.last_object;
        pointsman_store::object_of_lane(lane).is_some_and(|object| object > last_object)
    }

    pub(super) fn list_lane_tasks(&self, lane: i64) -> TableResult<Vec<(TaskSeq, QueueId)>> {
        let seqs = self.overlay.read_task_seqs_from_index(
            &Index::LanePositions,
            &MemberBuilder::from_i64(lane).finish(),
            2,
            usize::MAX,
        )?;
        Ok(self.overlay.read_active_tasks(seqs)?.iter().map(|active| (active.seq, active.queue)).collect())
    }

    pub(super) fn list_counted_tasks_of_concurrency_group(
        &self,
        group: i64,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        self.overlay.read_task_seqs_from_index(
            &Index::ConcurrencyGroups,
            &MemberBuilder::from_i64(group).push_i64(0).finish(),
            2,
            limit,
        )
    }

    pub(super) fn find_oldest_blocked_in_concurrency_group(
        &self,
        group: i64,
    ) -> TableResult<Option<WaitingTask>> {
        let blocked = self.overlay.read_task_seqs_from_index(
            &Index::ConcurrencyGroups,
            &MemberBuilder::from_i64(group).push_i64(1).finish(),
            2,
            1,
        )?;
        Ok(self
            .overlay
            .read_active_tasks(blocked)?
            .first()
            .map(|active| WaitingTask::from_row(active, active.due_time())))
    }

    /// Reads the first ready tasks of each queue with their events.
    pub(super) fn list_first_ready_tasks_of_queues(
        &self,
        shares: &[(QueueId, i64)],
    ) -> TableResult<Vec<ActiveTaskRow>> {
        let requested: Vec<(Index, usize)> = shares
            .iter()
            .map(|(queue, share)| (Index::ReadyTasks(*queue), (*share).max(0) as usize))
            .collect();
        let found = decode_list(self.overlay.connection.execute(self.ready_tasks_command(&requested))?)?;
        let mut ready = Vec::new();
        for ((index, limit), found) in requested.iter().zip(found) {
            let mut members = Vec::new();
            let mut parts = decode_list(found)?.into_iter();
            while let (Some(member), Some(task), Some(event)) = (parts.next(), parts.next(), parts.next()) {
                let Some(member) = decode_optional_bytes(member)? else { continue };
                self.cache_task_and_event(
                    TaskSeq(decode_member_i64(&member, 2)?),
                    decode_optional_bytes(task)?,
                    decode_optional_bytes(event)?,
                )?;
                members.push(MemberOrField::from_slice(&member));
            }
            for member in self.overlay.merge_pending_members(index, ScanOrder::Ascending, *limit, members) {
                ready.extend(self.overlay.read_active_task(TaskSeq(decode_member_i64(&member, 2)?))?);
            }
        }
        Ok(ready)
    }

    fn ready_tasks_command(&self, requested: &[(Index, usize)]) -> CommandArgs {
        let keys = &self.overlay.keys;
        let mut key_args = vec![keys.journal_key(), keys.with_prefix("pointsman:active-tasks:")];
        let mut arguments = vec![to_arg(TASKS_PER_BUCKET.to_string())];
        for (index, limit) in requested {
            key_args.push(keys.index_key(index));
            arguments.push(to_arg((limit + self.overlay.count_pending_removals(index)).to_string()));
        }
        script::READY_TASKS.call_command(key_args, arguments)
    }

    /// Caches a task and its event that a script returned.
    fn cache_task_and_event(
        &self,
        seq: TaskSeq,
        task: Option<crate::overlay::Bytes>,
        event: Option<crate::overlay::Bytes>,
    ) -> TableResult<()> {
        let Some(task) = task else { return Ok(()) };
        if let Some((value, id)) = event.zip(rows::decode_active_task_event_id(&task)?) {
            self.overlay.cache_event(id, value);
        }
        let (bucket, field) = task_bucket_and_field(seq);
        self.overlay.cache_row(&Table::ActiveTasks(bucket), field, task);
        Ok(())
    }

    /// Lists scheduled tasks by score, rank and age.
    pub(super) fn list_scheduled_tasks(&self) -> TableResult<Vec<ActiveTaskRow>> {
        let mut scheduled = self.overlay.read_active_tasks(self.overlay.read_task_seqs_from_index(
            &Index::TasksInScheduledPhase,
            &[],
            0,
            usize::MAX,
        )?)?;
        scheduled.sort_by_key(|active| (std::cmp::Reverse(active.score), active.rank, active.seq));
        Ok(scheduled)
    }

    pub(super) fn list_due_tasks(&self, now: Timestamp, limit: usize) -> TableResult<Vec<WaitingTask>> {
        let end = MemberBuilder::from_i64(now.micros()).push_i64(i64::MAX).finish();
        let due = self.overlay.read_members(
            &Index::DueTasks,
            (Bound::Unbounded, Bound::Included(&end)),
            ScanOrder::Ascending,
            limit,
        )?;
        let seqs: Vec<TaskSeq> =
            due.iter().map(|member| decode_member_i64(member, 1).map(TaskSeq)).collect::<TableResult<_>>()?;
        Ok(self
            .overlay
            .read_active_tasks(seqs)?
            .iter()
            .map(|active| WaitingTask::from_row(active, active.due_time()))
            .collect())
    }

    pub(super) fn read_earliest_due_time(&self) -> TableResult<Option<Timestamp>> {
        let first = self.overlay.read_members(&Index::DueTasks, ALL_MEMBERS, ScanOrder::Ascending, 1)?;
        first.first().map(|member| decode_member_i64(member, 0).map(Timestamp::from_micros)).transpose()
    }

    pub(super) fn list_sync_gated_tasks(&self, event: EventId) -> TableResult<Vec<SyncGatedTask>> {
        let seqs = self.overlay.read_task_seqs_from_index(
            &Index::GatedTasks,
            &MemberBuilder::from_i64(event.as_i64()).finish(),
            2,
            usize::MAX,
        )?;
        let to_gated_task = |active: &ActiveTaskRow| {
            let ActiveTaskRow { lane, lane_position, sync_stage, .. } = *active;
            SyncGatedTask {
                task: WaitingTask::from_row(active, active.due_time()),
                lane,
                lane_position,
                sync_stage,
            }
        };
        Ok(self.overlay.read_active_tasks(seqs)?.iter().map(to_gated_task).collect())
    }

    /// Finds the first unfinished synchronous task of an event in an earlier stage. Task numbers of an event ascend with their
    /// stages, so the first match is the earliest.
    pub(super) fn find_unfinished_sync_task_before_stage(
        &self,
        event: EventId,
        sync_stage: i64,
        only_untried: bool,
    ) -> TableResult<Option<TaskSeq>> {
        let Some(journaled) = self.overlay.read_journaled_event(event)? else { return Ok(None) };
        for active in self.overlay.read_active_tasks(journaled.task_seqs())? {
            let is_earlier = active.is_sync
                && active.sync_stage < sync_stage
                && active.phase.code() <= TaskPhase::Locked.code();
            if is_earlier
                && (!only_untried
                    || (!active.lifecycle.out_of_order && self.has_no_finished_attempt(active.seq)?))
            {
                return Ok(Some(active.seq));
            }
        }
        Ok(None)
    }

    /// Returns whether no attempt of a task has ended otherwise than by a release.
    fn has_no_finished_attempt(&self, seq: TaskSeq) -> TableResult<bool> {
        Ok(self.overlay.read_attempts(seq)?.iter().all(|attempt| attempt.outcome == AttemptOutcome::Released))
    }

    pub(super) fn list_tasks_locked_by_node(&self, node: NodeId) -> TableResult<Vec<ActiveTaskRow>> {
        self.overlay.read_active_tasks(self.overlay.read_task_seqs_from_index(
            &Index::LockedTasks(node),
            &[],
            0,
            usize::MAX,
        )?)
    }

    pub(super) fn list_expired_worker_leases(
        &self,
        since: Timestamp,
        now: Timestamp,
    ) -> TableResult<Vec<ActiveTaskRow>> {
        let end = MemberBuilder::from_i64(now.micros()).finish();
        let bounds = (Bound::Unbounded, Bound::Excluded(&*end));
        let members =
            self.overlay.read_members(&Index::LeaseExpiries, bounds, ScanOrder::Ascending, usize::MAX)?;
        let seqs: Vec<TaskSeq> = members
            .iter()
            .map(|member| decode_member_i64(member, 1).map(TaskSeq))
            .collect::<TableResult<_>>()?;
        let mut locked = self.overlay.read_active_tasks(seqs)?;
        locked.retain(|active| active.started_at.is_some_and(|started| started >= since));
        Ok(locked)
    }

    /// Lists at most `limit` tasks of a queue in a phase; all of them if the phase is `Locked`.
    fn list_tasks_in_phase(
        &self,
        queue: QueueId,
        phase: TaskPhase,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        match phase {
            TaskPhase::Ready => {
                self.overlay.read_task_seqs_from_index(&Index::ReadyTasks(queue), &[], 2, limit)
            }
            TaskPhase::Locked => {
                let mut locked = Vec::new();
                for node in self.overlay.list_possible_lock_owner_ids()? {
                    let locked_tasks = self.list_tasks_locked_by_node(node)?;
                    locked.extend(
                        locked_tasks.iter().filter(|active| active.queue == queue).map(|active| active.seq),
                    );
                }
                Ok(locked)
            }
            TaskPhase::BlockedByTask
            | TaskPhase::SyncGated
            | TaskPhase::Delayed
            | TaskPhase::Scheduled
            | TaskPhase::Halted
            | TaskPhase::Missing => {
                self.overlay.read_task_seqs_from_index(&Index::tasks_in_phase(queue, phase), &[], 0, limit)
            }
        }
    }

    pub(super) fn list_tasks_in_phases(
        &self,
        queue: QueueId,
        phases: &[TaskPhase],
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        let mut found = Vec::new();
        for phase in phases {
            found.append(&mut self.list_tasks_in_phase(queue, *phase, limit)?);
        }
        found.sort_unstable();
        found.truncate(limit);
        Ok(found)
    }

    pub(super) fn list_running_tasks_of_handler(
        &self,
        handler: HandlerId,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        let mut running = Vec::new();
        for node in self.overlay.list_possible_lock_owner_ids()? {
            for active in self.list_tasks_locked_by_node(node)? {
                if self.overlay.read_queue(active.queue)?.is_some_and(|queue| queue.handler == handler) {
                    running.push(active.seq);
                }
                if running.len() >= limit {
                    return Ok(running);
                }
            }
        }
        Ok(running)
    }

    /// Lists all active tasks of a queue by age.
    fn list_active_tasks_of_queue(&self, queue: QueueId) -> TableResult<Vec<ActiveTaskRow>> {
        const ALL_PHASES: [TaskPhase; 8] = [
            TaskPhase::BlockedByTask,
            TaskPhase::SyncGated,
            TaskPhase::Delayed,
            TaskPhase::Ready,
            TaskPhase::Scheduled,
            TaskPhase::Locked,
            TaskPhase::Halted,
            TaskPhase::Missing,
        ];
        self.overlay.read_active_tasks(self.list_tasks_in_phases(queue, &ALL_PHASES, usize::MAX)?)
    }

    pub(super) fn list_tasks_to_rescore(
        &self,
        queue: QueueId,
    ) -> TableResult<Vec<(TaskSeq, i64, Timestamp)>> {
        Ok(self
            .list_active_tasks_of_queue(queue)?
            .iter()
            .map(|active| (active.seq, active.priority, active.created_at))
            .collect())
    }

    pub(super) fn list_tasks_to_regroup(
        &self,
        queue: QueueId,
    ) -> TableResult<Vec<(WaitingTask, TaskPhase, String)>> {
        let has_no_lane =
            |active: &ActiveTaskRow| active.phase.code() <= TaskPhase::Locked.code() && active.lane.is_none();
        let tasks: Vec<ActiveTaskRow> =
            self.list_active_tasks_of_queue(queue)?.into_iter().filter(has_no_lane).collect();
        let events: Vec<EventId> = tasks.iter().filter_map(|active| active.event).collect();
        self.prefetch_events(&events)?;
        let mut found = Vec::new();
        for active in tasks {
            let event = active.event.map(|id| self.overlay.read_journaled_event(id)).transpose()?.flatten();
            if let Some(key) = event.and_then(|found| found.event.key) {
                found.push((
                    WaitingTask::from_row(&active, active.due_time()),
                    active.phase,
                    key.to_string(),
                ));
            }
        }
        found.sort_by_key(|(waiting, phase, _)| (phase.code() < TaskPhase::Scheduled.code(), waiting.seq));
        Ok(found)
    }

    pub(super) fn count_ready_tasks_before(&self, active: &ActiveTaskRow, limit: u64) -> TableResult<u64> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let member = task_indexes::ready_task_member(active);
        let upper = match active.phase {
            TaskPhase::Ready => Bound::Excluded(&*member),
            _ => Bound::Unbounded,
        };
        let index = Index::ReadyTasks(active.queue);
        Ok(self.overlay.read_members(&index, (Bound::Unbounded, upper), ScanOrder::Ascending, limit)?.len()
            as u64)
    }
}
