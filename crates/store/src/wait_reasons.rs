//! Collects the facts that explain why a task waits. The core interprets them.

use pointsman_core::task::gates::{Gate, GateInputs, MAX_COUNTED_TASKS_AHEAD, evaluate_gates};
use pointsman_core::task::{Task, TaskId, TaskSeq, TaskStatus};
use pointsman_core::{HandlerName, Timestamp};

use crate::error::TableResult;
use crate::row::{ActiveTaskRow, HandlerId, TaskPhase};
use crate::tables::{Tables, decode_task_seq};
use crate::writer::Txn;

/// Most running tasks that are listed for a limit that they use up.
const MAX_LISTED_BLOCKING_TASKS: usize = 10;

impl<T: Tables> Txn<'_, T> {
    /// Explains why a task waits, gate by gate; an ended task has no gates. `None` if there is no such task.
    pub(crate) fn explain_waiting(&mut self, id: &TaskId, now: Timestamp) -> TableResult<Option<Vec<Gate>>> {
        let Some(task) = self.find_task_by_id(id)? else { return Ok(None) };
        let Some(task_row) = self.tables.read_active_task(task.seq)? else { return Ok(Some(vec![])) };
        Ok(Some(evaluate_gates(&self.collect_gate_inputs(&task_row, &task.handler)?, now)))
    }

    /// Returns the task with this public id. All parts of the id must match, not only its uuid.
    pub(crate) fn find_task_by_id(&mut self, id: &TaskId) -> TableResult<Option<Task>> {
        let Some(seq) = decode_task_seq(self.state.task_id_namespace, id) else { return Ok(None) };
        Ok(self.tables.read_task_with_attempts(seq)?.filter(|task| task.id == *id))
    }

    fn collect_gate_inputs(
        &mut self,
        task_row: &ActiveTaskRow,
        handler_name: &HandlerName,
    ) -> TableResult<GateInputs> {
        let handler_id = self.state.queue(task_row.queue)?.handler;
        let blocking_sync_task = self.find_blocking_sync_task(task_row)?;
        let blocking_lane_task = self.find_lane_head_ahead_of_task(task_row)?;
        let some_running_tasks = self.list_running_task_ids(handler_id)?;
        let tasks_that_fill_key_limit = self.list_tasks_that_fill_key_limit(task_row)?;
        let capable_node_names = self.list_capable_nodes(handler_name)?;
        let task_count_ahead_in_queue = self.count_tasks_ahead(task_row)?;
        let queue = self.state.queue(task_row.queue)?;
        let handler = self.state.handler(handler_id)?;
        let limiter = self.state.limiter(handler_id)?;
        let applies =
            |rule: &&pointsman_core::Rule| rule.applies_to_queue(handler_name, &queue.subject, &queue.tenant);
        Ok(GateInputs {
            task_state: task_row.lifecycle.state,
            handler: handler_name.clone(),
            is_handler_defined: queue.is_defined,
            is_pull_handler: handler.def.pull,
            blocking_sync_task,
            blocking_lane_task,
            order_blocked_because: self.state.chains.describe_chain_or_node_stop(&queue.subject),
            blocking_rules: self.state.rules.iter().filter(applies).cloned().collect(),
            limits: handler.def.limits.clone(),
            limiter: limiter.state,
            running_task_count: u32::try_from(limiter.running_count).unwrap_or(0),
            some_running_tasks,
            tasks_that_fill_key_limit,
            capable_node_names,
            last_pull_worker_claim_at: self.state.last_pull_times.get(&handler_id).copied(),
            task_count_ahead_in_queue,
        })
    }

    /// Lists some tasks that use up the limit of a blocked task's concurrency group.
    fn list_tasks_that_fill_key_limit(&mut self, task_row: &ActiveTaskRow) -> TableResult<Vec<TaskId>> {
        let concurrency_group =
            match task_row.concurrency_group.filter(|_| task_row.phase == TaskPhase::BlockedByTask) {
                Some(concurrency_group) => self.read_concurrency_group(concurrency_group, task_row.queue)?.0,
                None => vec![],
            };
        let seqs = concurrency_group.into_iter().take(MAX_LISTED_BLOCKING_TASKS);
        seqs.filter_map(|seq| self.read_task_id(seq).transpose()).collect()
    }

    fn read_task_id(&mut self, seq: TaskSeq) -> TableResult<Option<TaskId>> {
        Ok(self.tables.read_task_with_attempts(seq)?.map(|task| task.id))
    }

    fn read_task_id_and_status(&mut self, seq: Option<TaskSeq>) -> TableResult<Option<(TaskId, TaskStatus)>> {
        let Some(seq) = seq else { return Ok(None) };
        let task = self.tables.read_task_with_attempts(seq)?;
        Ok(task.map(|task| (task.id, task.lifecycle.state.status())))
    }

    /// Returns the synchronous task of the same event that a gated task waits for.
    fn find_blocking_sync_task(
        &mut self,
        task_row: &ActiveTaskRow,
    ) -> TableResult<Option<(TaskId, TaskStatus)>> {
        let Some(event) = task_row.event.filter(|_| task_row.phase == TaskPhase::SyncGated) else {
            return Ok(None);
        };
        let sync_tasks = self.list_unfinished_sync_tasks(event)?;
        let first = sync_tasks.first().filter(|first| first.sync_stage < task_row.sync_stage);
        self.read_task_id_and_status(first.map(|sync_task| sync_task.seq))
    }

    /// Returns the head of a task's lane, if it is ahead of the task.
    fn find_lane_head_ahead_of_task(
        &mut self,
        task_row: &ActiveTaskRow,
    ) -> TableResult<Option<(TaskId, TaskStatus)>> {
        let (Some(lane), Some(lane_position)) = (task_row.lane, task_row.lane_position) else {
            return Ok(None);
        };
        let head = self.tables.read_lane_head(lane)?.filter(|head| head.lane_position < lane_position);
        let seq = head.map(|head| head.task.seq);
        self.read_task_id_and_status(seq)
    }

    /// Lists some running tasks of a handler.
    fn list_running_task_ids(&mut self, handler: HandlerId) -> TableResult<Vec<TaskId>> {
        let seqs = self.tables.list_running_tasks_of_handler(handler, MAX_LISTED_BLOCKING_TASKS)?;
        seqs.into_iter().filter_map(|seq| self.read_task_id(seq).transpose()).collect()
    }

    fn list_capable_nodes(&mut self, handler: &HandlerName) -> TableResult<Vec<String>> {
        let live_nodes =
            self.tables.list_nodes()?.into_iter().filter(|node| self.state.live_nodes.contains(&node.id));
        let capable_nodes = live_nodes.filter(|node| node.capabilities.handlers.contains(handler));
        Ok(capable_nodes.map(|node| node.name).collect())
    }

    /// Counts the tasks that run before a ready task: in its queue, or for a source, in all sources of the tenant.
    fn count_tasks_ahead(&mut self, task_row: &ActiveTaskRow) -> TableResult<u64> {
        if task_row.phase != TaskPhase::Ready {
            return Ok(0);
        }
        if self.state.queue(task_row.queue)?.collection().is_some() {
            return Ok(self
                .state
                .count_collection_tasks_before(task_row.queue)?
                .min(MAX_COUNTED_TASKS_AHEAD));
        }
        self.tables.count_ready_tasks_before(task_row, MAX_COUNTED_TASKS_AHEAD)
    }
}
