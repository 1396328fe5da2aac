//! The result of a claim of this node. Every claimed task is started or released, even if a service panics in between:
//! otherwise the store would keep the task locked for a node that lives and does not run it.

use std::sync::Arc;

use pointsman_core::Timestamp;
use pointsman_core::store::{ClaimResult, ClaimedTask};

use crate::attempt;
use crate::attempt_ending::{EndedAttempt, build_finished_attempt, released_outcome};
use crate::claimed_task_summary::ClaimedTaskSummary;
use crate::log_writer::LogQuota;
use crate::node::Node;
use crate::slots::ReservedSlots;
use crate::start_gate::PauseVersion;

/// The result of a claim, whose tasks are to be started. Dropping it releases those that were not started.
pub(crate) struct UnstartedClaim {
    node: Arc<Node>,
    /// The claimed tasks in reverse order, so that the first is taken from the end.
    tasks_in_reverse_order: Vec<ClaimedTask>,
    /// Whether more tasks are ready than this claim could take.
    pub(crate) has_more_ready_tasks: bool,
    /// The number of tasks that were created together with this claim and found no slot.
    pub(crate) new_task_count_without_slot: usize,
    /// When the next waiting task is due, or a limit admits the next one.
    pub(crate) next_claim_due_at: Option<Timestamp>,
}

impl UnstartedClaim {
    pub(crate) fn new(node: &Arc<Node>, result: ClaimResult) -> Self {
        let ClaimResult {
            tasks: mut unstarted_tasks,
            has_more,
            new_task_count_without_slot,
            next_task_due_at: next_due,
        } = result;
        unstarted_tasks.reverse();
        Self {
            node: node.clone(),
            tasks_in_reverse_order: unstarted_tasks,
            has_more_ready_tasks: has_more,
            new_task_count_without_slot,
            next_claim_due_at: next_due,
        }
    }

    pub(crate) fn has_tasks(&self) -> bool {
        !self.tasks_in_reverse_order.is_empty()
    }

    /// Starts the tasks, each in one of the reserved slots.
    pub(crate) fn start_tasks(mut self, reserved_slots: &mut ReservedSlots, pause_version: PauseVersion) {
        while let Some(task) = self.tasks_in_reverse_order.pop() {
            attempt::start_attempt(&self.node, task, reserved_slots.take_slot(), pause_version);
            self.node.slots.record_attempt_started();
        }
    }
}

impl Drop for UnstartedClaim {
    fn drop(&mut self) {
        for task in self.tasks_in_reverse_order.drain(..) {
            let task = ClaimedTaskSummary::from_claimed_task(&task);
            let finished_attempt = build_finished_attempt(&task, released_outcome(), LogQuota::default());
            // The worker is gone only when the node has stopped, and then leaving the store releases the tasks.
            let _ =
                self.node.ended_attempt_sender.send(EndedAttempt { task_summary: task, finished_attempt });
        }
    }
}
