//! Orders: each runs through a chain node by node, one task for each step.
//!
//! ```text
//!            ┌────────── next ───────────┐
//!   add ─▶ node ─▶ its task ─▶ succeeded ┤
//!            ▲         │                 └─▶ end node ─▶ finished, deleted
//!            │         ├─ failed, will retry ─▶ set back: the same task, later
//!            └ on_error┴─ failed for good ─▶ `on_error`, or suspended at its node
//! ```
//!
//! [`Order::apply`] alone decides how an order moves. It is a pure function of the order, the input, its chain and the
//! chain's settings; it returns the changed order and the effects to carry out in the same transaction.
//!
//! A suspended order has no task except a running one. Where a chain or a node is stopped, the tasks of its steps wait
//! in paused queues, so that the cost of stopping does not grow with the number of orders.

mod ended_order;
mod statistics;

pub use ended_order::{BadOrderOutcome, EndedOrder, OrderOutcome};
pub use statistics::OrderStatistics;

use crate::chain::{Chain, ChainNodeId, ChainNodeRole, ChainState, OrderKey};
use crate::engine_event::{EngineEvent, FileBasedChange, StepTransition};
use crate::task::TaskSeq;
use crate::{EventId, HandlerName, Json, Priority, TaskId, Tenant, Timestamp};

/// An unfinished order.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The order's chain and id.
    pub key: OrderKey,
    /// The order's tenant.
    pub tenant: Tenant,
    /// The node at which the order is.
    pub node: ChainNodeId,
    /// The value that the next step gets.
    pub value: Json,
    /// The priority of the order's tasks.
    pub priority: Priority,
    /// The order does not start before this time.
    pub planned_at: Option<Timestamp>,
    /// When the order was added.
    pub created_at: Timestamp,
    /// The event for which the order was created.
    pub origin: Option<OrderOrigin>,
    /// When the first step started; `None` if no step has.
    pub started_at: Option<Timestamp>,
    /// Whether the order is suspended: no step starts until a person resumes it.
    pub suspended: bool,
    /// The task of the step at the order's node, waiting or running.
    pub task_seq: Option<TaskSeq>,
    /// An attempt of the step is running.
    pub step_running: bool,
    /// The step at the order's node has succeeded, but the chain no longer has the node: the order moves to the next
    /// node once the chain has the order's node again.
    pub step_succeeded_at_removed_node: bool,
    /// The task whose failure or cancellation suspended the order.
    pub suspended_by_task_seq: Option<TaskSeq>,
    /// A failed step moved the order along an `on_error` link, and no person has moved the order since.
    pub took_on_error: bool,
}

/// The event that an order was created for; it is the cause of the events that the order's steps emit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderOrigin {
    /// The event.
    pub event_id: EventId,
    /// The length of the chain of causes before the event; 0 if nothing caused it.
    pub cause_depth: u16,
}

/// Something that happens to an order: an input of [`Order::apply`].
#[derive(Clone, Debug)]
pub enum OrderInput {
    /// The order was added, and [`EngineEvent::OrderAdded`] was published.
    Added,
    /// An attempt of the order's step starts.
    StepStarted {
        /// The task of the step.
        task: TaskId,
    },
    /// An attempt of the order's step has ended.
    StepEnded(StepOutcome),
    /// A person suspends the order.
    Suspend,
    /// A person resumes the order.
    Resume,
    /// The order's chain, the chain's settings, or the order's planned time has changed.
    Reevaluate,
    /// A person moves the order to another node. Not allowed while a step runs.
    MoveTo {
        /// The node to which the order moves.
        node: ChainNodeId,
    },
    /// A person removes the order.
    Remove,
}

/// How an attempt of a step ended.
#[derive(Clone, Debug, PartialEq)]
pub enum StepOutcome {
    /// The step succeeded.
    Success {
        /// The new value of the order, if the step returned one.
        value: Option<Json>,
    },
    /// The step failed for good.
    FailedForGood {
        /// The exit code of a command, the HTTP status, or what a worker reported.
        return_code: i64,
    },
    /// The step failed and will be retried.
    WillRetry,
    /// The step runs again without having failed: it was snoozed or released, or the node that ran it died.
    Unfinished,
    /// A person cancelled the task.
    Canceled {
        /// An attempt was running.
        was_running: bool,
    },
}

/// A write that [`Order::apply`] requires of the store, in the same transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderEffect {
    /// Publish an engine event.
    Publish(EngineEvent),
    /// Create the task of the order's step.
    CreateTask {
        /// The handler that runs the step.
        handler: HandlerName,
    },
    /// Keep the order's waiting task, or replace it if it is a task of another handler.
    KeepOrReplaceTask {
        /// The handler that runs the step.
        handler: HandlerName,
    },
    /// Cancel the order's previous task; the order no longer refers to it.
    CancelTask,
    /// Delete the order, and store its outcome.
    EndOrder(OrderOutcome),
}

impl Order {
    /// Applies an input: returns the changed order and the effects. `chain`: None if it is no longer defined.
    pub fn apply(
        mut self,
        input: OrderInput,
        chain: Option<&Chain>,
        state: &ChainState,
        now: Timestamp,
    ) -> (Self, Vec<OrderEffect>) {
        let mut effects = Vec::new();
        let order = self.key.clone();
        match input {
            OrderInput::Added => {
                self.process_current_node(chain, state, &mut effects);
            }
            OrderInput::StepStarted { task } => {
                self.step_running = true;
                let node = self.node.clone();
                if self.started_at.is_none() {
                    self.started_at = Some(now);
                    let (order, node, task) = (order.clone(), node.clone(), task.clone());
                    effects.push(OrderEffect::Publish(EngineEvent::OrderStarted { order, node, task }));
                }
                effects.push(OrderEffect::Publish(EngineEvent::OrderStepStarted { order, node, task }));
            }
            OrderInput::StepEnded(outcome) => {
                self.step_running = false;
                self.handle_step_outcome(outcome, chain, state, &mut effects);
            }
            OrderInput::Suspend => {
                self.suspend(&mut effects);
                self.cancel_waiting_task(&mut effects);
            }
            OrderInput::Resume => {
                if self.suspended {
                    self.suspended = false;
                    self.suspended_by_task_seq = None;
                    effects.push(OrderEffect::Publish(EngineEvent::OrderResumed { order }));
                    self.process_current_node(chain, state, &mut effects);
                }
            }
            OrderInput::Reevaluate => self.process_current_node(chain, state, &mut effects),
            OrderInput::MoveTo { node } => {
                (self.step_succeeded_at_removed_node, self.suspended_by_task_seq, self.took_on_error) =
                    (false, None, false);
                self.cancel_waiting_task(&mut effects);
                self.move_to_node(node, &mut effects);
                self.process_current_node(chain, state, &mut effects);
            }
            OrderInput::Remove => {
                effects.extend(self.task_seq.take().map(|_| OrderEffect::CancelTask));
                effects.push(self.removal_event_effect());
                effects.push(OrderEffect::EndOrder(OrderOutcome::Removed));
            }
        }
        (self, effects)
    }

    fn handle_step_outcome(
        &mut self,
        outcome: StepOutcome,
        chain: Option<&Chain>,
        state: &ChainState,
        effects: &mut Vec<OrderEffect>,
    ) {
        let order = self.key.clone();
        let step_ended_effect = |transition| {
            OrderEffect::Publish(EngineEvent::OrderStepEnded { order: order.clone(), transition })
        };
        match outcome {
            StepOutcome::Unfinished => {
                effects.push(step_ended_effect(StepTransition::Keep));
                self.rerun_step(chain, state, effects);
            }
            StepOutcome::WillRetry => {
                effects.push(step_ended_effect(StepTransition::Keep));
                let (order, node) = (order.clone(), self.node.clone());
                effects.push(OrderEffect::Publish(EngineEvent::OrderSetBack { order, node }));
                self.rerun_step(chain, state, effects);
            }
            StepOutcome::Success { value } => {
                self.task_seq = None;
                self.value = value.unwrap_or_else(|| self.value.clone());
                effects.push(step_ended_effect(StepTransition::Success));
                self.step_succeeded_at_removed_node = true;
                self.move_to_next_node(chain, state, effects);
            }
            StepOutcome::FailedForGood { return_code } => {
                let task = self.task_seq.take();
                effects.push(step_ended_effect(StepTransition::Error { return_code }));
                let on_error = self.current_node_role(chain).and_then(|role| match role {
                    ChainNodeRole::Step(step) => step.on_error.clone(),
                    ChainNodeRole::End => None,
                });
                match on_error {
                    Some(to) => {
                        self.took_on_error = true;
                        self.move_to_node(to, effects);
                        self.process_current_node(chain, state, effects);
                    }
                    None => {
                        self.suspended_by_task_seq = task;
                        self.suspend(effects);
                    }
                }
            }
            StepOutcome::Canceled { was_running } => {
                self.suspended_by_task_seq = self.task_seq.take();
                if was_running {
                    effects.push(step_ended_effect(StepTransition::Error { return_code: 1 }));
                }
                self.suspend(effects);
            }
        }
    }

    /// Runs the step again, as the chain is defined now. If the order is suspended, cancels the task instead, because a
    /// suspended order has no waiting task.
    fn rerun_step(&mut self, chain: Option<&Chain>, state: &ChainState, effects: &mut Vec<OrderEffect>) {
        match self.suspended {
            true => self.cancel_waiting_task(effects),
            false => self.process_current_node(chain, state, effects),
        }
    }

    fn suspend(&mut self, effects: &mut Vec<OrderEffect>) {
        if !std::mem::replace(&mut self.suspended, true) {
            effects.push(OrderEffect::Publish(EngineEvent::OrderSuspended { order: self.key.clone() }));
        }
    }

    /// Moves to the next node after a successful step, if the chain still has the current node. A suspended order moves
    /// too, and then waits at the next node.
    fn move_to_next_node(
        &mut self,
        chain: Option<&Chain>,
        state: &ChainState,
        effects: &mut Vec<OrderEffect>,
    ) {
        let Some(role) = self.current_node_role(chain) else { return };
        self.step_succeeded_at_removed_node = false;
        if let ChainNodeRole::Step(step) = role {
            self.move_to_node(step.next.clone(), effects);
        }
        self.process_current_node(chain, state, effects);
    }

    /// Cancels the order's task unless it is running.
    fn cancel_waiting_task(&mut self, effects: &mut Vec<OrderEffect>) {
        if !self.step_running {
            effects.extend(self.task_seq.take().map(|_| OrderEffect::CancelTask));
        }
    }

    fn move_to_node(&mut self, to: ChainNodeId, effects: &mut Vec<OrderEffect>) {
        let from = std::mem::replace(&mut self.node, to);
        let (order, node) = (self.key.clone(), self.node.clone());
        effects.push(OrderEffect::Publish(EngineEvent::OrderNodeChanged { order, node, from_node: from }));
    }

    /// Starts the step of the current node, skips nodes, or finishes the order.
    fn process_current_node(
        &mut self,
        chain: Option<&Chain>,
        state: &ChainState,
        effects: &mut Vec<OrderEffect>,
    ) {
        if self.step_succeeded_at_removed_node {
            return self.move_to_next_node(chain, state, effects);
        }
        if self.suspended || self.step_running {
            return;
        }
        // If the chain no longer has the node, the order waits until the chain has it again. The order also waits if
        // the nodes that it would skip form a cycle.
        let Some(skipped_to) =
            chain.and_then(|chain| find_nodes_reached_by_skipping(chain, state, &self.node))
        else {
            return self.cancel_waiting_task(effects);
        };
        for to in skipped_to {
            self.cancel_waiting_task(effects);
            self.move_to_node(to, effects);
        }
        match self.current_node_role(chain) {
            None => {}
            Some(ChainNodeRole::End) => {
                // The order has a task here if the node was a step before the chain changed.
                self.cancel_waiting_task(effects);
                let (order, node) = (self.key.clone(), self.node.clone());
                effects.push(OrderEffect::Publish(EngineEvent::OrderFinished { order, node }));
                effects.push(self.removal_event_effect());
                effects.push(OrderEffect::EndOrder(match self.took_on_error {
                    true => OrderOutcome::Failed,
                    false => OrderOutcome::Finished,
                }));
            }
            Some(ChainNodeRole::Step(step)) => {
                let handler = step.handler.clone();
                effects.push(match self.task_seq {
                    Some(_) => OrderEffect::KeepOrReplaceTask { handler },
                    None => OrderEffect::CreateTask { handler },
                });
            }
        }
    }

    fn current_node_role<'c>(&self, chain: Option<&'c Chain>) -> Option<&'c ChainNodeRole> {
        chain?.find_node(&self.node).map(|node| &node.role)
    }

    fn removal_event_effect(&self) -> OrderEffect {
        let key = format!("Order:{}", self.key);
        OrderEffect::Publish(EngineEvent::FileBasedChanged { change: FileBasedChange::Removed, key })
    }
}

/// The nodes through which an order moves when it skips nodes from `from` on; None if the skipped nodes form a cycle,
/// or the chain has no node `from`.
fn find_nodes_reached_by_skipping(
    chain: &Chain,
    state: &ChainState,
    from: &ChainNodeId,
) -> Option<Vec<ChainNodeId>> {
    let (mut current, mut moved_to) = (chain.find_node(from)?, Vec::new());
    while let ChainNodeRole::Step(step) = &current.role
        && state.skips_node(&current.id)
    {
        current = chain.find_node(&step.next)?;
        if current.id == *from || moved_to.contains(&current.id) {
            return None;
        }
        moved_to.push(current.id.clone());
    }
    Some(moved_to)
}

#[cfg(test)]
mod tests;
