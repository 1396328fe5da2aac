//! Orders: what travels a chain, node by node, a task a step.
//!
//! ```text
//!            ┌────────── next ───────────┐
//!   add ─▶ node ─▶ its task ─▶ succeeded ┤
//!            ▲         │                 └─▶ an end ─▶ finished, gone
//!            │         ├─ failed, again ─▶ set back: the same task, later
//!            └ on_error┴─ failed for good ─▶ `on_error`, or suspended where it stands
//! ```
//!
//! [`Order::input`] is the only place that decides. It is pure: the order, what happened, its chain and how that is
//! set go in; the order as it then is and the effects to be carried out in the same transaction come out.
//!
//! A suspended order has no task but one that runs. Where a chain or a node is stopped, the tasks of its steps wait in
//! queues that are held, so that stopping costs nothing that grows with the number of orders.

mod ended;
mod statistics;

pub use ended::{BadOutcome, EndedOrder, OrderOutcome};
pub use statistics::OrderStatistics;

use crate::chain::{Chain, ChainState, NodeId, OrderKey, Role};
use crate::engine_event::{EngineEvent, FileChange, Transition};
use crate::task::TaskSeq;
use crate::{EventId, HandlerName, Json, Priority, TaskId, Tenant, Timestamp};

/// An order on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    pub key: OrderKey,
    pub tenant: Tenant,
    pub node: NodeId,
    pub value: Json,
    pub priority: Priority,
    /// It does not begin before this.
    pub planned: Option<Timestamp>,
    pub created: Timestamp,
    /// The event that it was made for.
    pub origin: Option<Origin>,
    pub started: Option<Timestamp>,
    pub suspended: bool,
    /// The task of the step it stands before or in.
    pub task: Option<TaskSeq>,
    /// An attempt of the step runs.
    pub running: bool,
    /// The step at its node has succeeded, but the node is gone: where it leads is not known until it is there again.
    pub stepped: bool,
    /// The task that suspended it by its end.
    pub halted_by: Option<TaskSeq>,
    /// A failed step led it along an `on_error`, and nobody has moved it since.
    pub took_on_error: bool,
}

/// An event that made an order: what the order's steps emit is caused by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub event: EventId,
    /// How many emits lie between it and an event that nothing caused.
    pub depth: u16,
}

/// Something that happened to an order.
#[derive(Clone, Debug)]
pub enum Input {
    /// It was added, and that was told ([`EngineEvent::OrderAdded`]).
    Added,
    /// An attempt of its step begins.
    StepStarted {
        task: TaskId,
    },
    /// An attempt of its step has ended.
    StepEnded(StepEnd),
    Suspend,
    Resume,
    /// Its chain, how that is set, or when it is to begin is not what it was.
    Changed,
    /// A person puts it at another node. Not while a step runs.
    Moved {
        to: NodeId,
    },
    Remove,
}

/// How an attempt of a step ended.
#[derive(Clone, Debug, PartialEq)]
pub enum StepEnd {
    /// The step may have changed the order's value.
    Success { value: Option<Json> },
    /// It failed for good.
    Error { return_code: i64 },
    /// It failed and is tried again later.
    SetBack,
    /// It is run again without having failed: snoozed, given back, or its node died.
    Keep,
    /// A person ended the task.
    Canceled { running: bool },
}

/// What is to be done in the same transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Tell(EngineEvent),
    /// Make the task of its step.
    Begin {
        handler: HandlerName,
    },
    /// It has a task that waits, which should be this handler's.
    Stay {
        handler: HandlerName,
    },
    /// End the task it had. The order has done with it already.
    Cancel,
    /// It has ended: delete it, and remember how it ended.
    End(OrderOutcome),
}

impl Order {
    /// How the order goes on. `chain`: None if there is no such chain any more.
    pub fn input(
        mut self,
        input: Input,
        chain: Option<&Chain>,
        state: &ChainState,
        now: Timestamp,
    ) -> (Self, Vec<Effect>) {
        let mut effects = Vec::new();
        let order = self.key.clone();
        match input {
            Input::Added => {
                self.arrive(chain, state, &mut effects);
            }
            Input::StepStarted { task } => {
                self.running = true;
                let node = self.node.clone();
                if self.started.is_none() {
                    self.started = Some(now);
                    let (order, node, task) = (order.clone(), node.clone(), task.clone());
                    effects.push(Effect::Tell(EngineEvent::OrderStarted { order, node, task }));
                }
                effects.push(Effect::Tell(EngineEvent::OrderStepStarted { order, node, task }));
            }
            Input::StepEnded(end) => {
                self.running = false;
                self.step_ended(end, chain, state, &mut effects);
            }
            Input::Suspend => {
                self.suspend(&mut effects);
                self.drop_waiting(&mut effects);
            }
            Input::Resume => {
                if self.suspended {
                    self.suspended = false;
                    self.halted_by = None;
                    effects.push(Effect::Tell(EngineEvent::OrderResumed { order }));
                    self.arrive(chain, state, &mut effects);
                }
            }
            Input::Changed => self.arrive(chain, state, &mut effects),
            Input::Moved { to } => {
                (self.stepped, self.halted_by, self.took_on_error) = (false, None, false);
                self.drop_waiting(&mut effects);
                self.go(to, &mut effects);
                self.arrive(chain, state, &mut effects);
            }
            Input::Remove => {
                effects.extend(self.task.take().map(|_| Effect::Cancel));
                effects.push(self.vanish());
                effects.push(Effect::End(OrderOutcome::Removed));
            }
        }
        (self, effects)
    }

    fn step_ended(
        &mut self,
        end: StepEnd,
        chain: Option<&Chain>,
        state: &ChainState,
        effects: &mut Vec<Effect>,
    ) {
        let order = self.key.clone();
        let ended =
            |transition| Effect::Tell(EngineEvent::OrderStepEnded { order: order.clone(), transition });
        match end {
            StepEnd::Keep => {
                effects.push(ended(Transition::Keep));
                self.stay(chain, state, effects);
            }
            StepEnd::SetBack => {
                effects.push(ended(Transition::Keep));
                let (order, node) = (order.clone(), self.node.clone());
                effects.push(Effect::Tell(EngineEvent::OrderSetBack { order, node }));
                self.stay(chain, state, effects);
            }
            StepEnd::Success { value } => {
                self.task = None;
                self.value = value.unwrap_or_else(|| self.value.clone());
                effects.push(ended(Transition::Success));
                self.stepped = true;
                self.go_on(chain, state, effects);
            }
            StepEnd::Error { return_code } => {
                let task = self.task.take();
                effects.push(ended(Transition::Error { return_code }));
                let on_error = self.role(chain).and_then(|role| match role {
                    Role::Step(step) => step.on_error.clone(),
                    Role::End => None,
                });
                match on_error {
                    Some(to) => {
                        self.took_on_error = true;
                        self.go(to, effects);
                        self.arrive(chain, state, effects);
                    }
                    None => {
                        self.halted_by = task;
                        self.suspend(effects);
                    }
                }
            }
            StepEnd::Canceled { running } => {
                self.halted_by = self.task.take();
                if running {
                    effects.push(ended(Transition::Error { return_code: 1 }));
                }
                self.suspend(effects);
            }
        }
    }

    /// A step is run again, by what the chain is now; a suspended order has no task that waits.
    fn stay(&mut self, chain: Option<&Chain>, state: &ChainState, effects: &mut Vec<Effect>) {
        match self.suspended {
            true => self.drop_waiting(effects),
            false => self.arrive(chain, state, effects),
        }
    }

    fn suspend(&mut self, effects: &mut Vec<Effect>) {
        if !std::mem::replace(&mut self.suspended, true) {
            effects.push(Effect::Tell(EngineEvent::OrderSuspended { order: self.key.clone() }));
        }
    }

    /// Goes where the step that has succeeded leads to. That is done even if the order is suspended, which then waits at
    /// the node it has come to.
    fn go_on(&mut self, chain: Option<&Chain>, state: &ChainState, effects: &mut Vec<Effect>) {
        let Some(role) = self.role(chain) else { return };
        self.stepped = false;
        if let Role::Step(step) = role {
            self.go(step.next.clone(), effects);
        }
        self.arrive(chain, state, effects);
    }

    /// A task that runs is let end.
    fn drop_waiting(&mut self, effects: &mut Vec<Effect>) {
        if !self.running {
            effects.extend(self.task.take().map(|_| Effect::Cancel));
        }
    }

    fn go(&mut self, to: NodeId, effects: &mut Vec<Effect>) {
        let from = std::mem::replace(&mut self.node, to);
        let (order, node) = (self.key.clone(), self.node.clone());
        effects.push(Effect::Tell(EngineEvent::OrderNodeChanged { order, node, from }));
    }

    /// Does what is to be done where the order stands now.
    fn arrive(&mut self, chain: Option<&Chain>, state: &ChainState, effects: &mut Vec<Effect>) {
        if self.stepped {
            return self.go_on(chain, state, effects);
        }
        if self.suspended || self.running {
            return;
        }
        // A node that is gone leads nowhere: the order waits there until the chain has it again. Where nodes that are
        // passed lead in a circle, it rests as well.
        let Some(way) = chain.and_then(|chain| passed(chain, state, &self.node)) else {
            return self.drop_waiting(effects);
        };
        for to in way {
            self.drop_waiting(effects);
            self.go(to, effects);
        }
        match self.role(chain) {
            None => {}
            Some(Role::End) => {
                // It was a step until the chain changed.
                self.drop_waiting(effects);
                let (order, node) = (self.key.clone(), self.node.clone());
                effects.push(Effect::Tell(EngineEvent::OrderFinished { order, node }));
                effects.push(self.vanish());
                effects.push(Effect::End(match self.took_on_error {
                    true => OrderOutcome::Failed,
                    false => OrderOutcome::Finished,
                }));
            }
            Some(Role::Step(step)) => {
                let handler = step.handler.clone();
                effects.push(match self.task {
                    Some(_) => Effect::Stay { handler },
                    None => Effect::Begin { handler },
                });
            }
        }
    }

    fn role<'c>(&self, chain: Option<&'c Chain>) -> Option<&'c Role> {
        chain?.node(&self.node).map(|node| &node.role)
    }

    fn vanish(&self) -> Effect {
        let key = format!("Order:{}", self.key);
        Effect::Tell(EngineEvent::FileBased { change: FileChange::Removed, key })
    }
}

/// The nodes to which an order is passed on from `from`, in turn; None if it can come to no rest, or `from` is gone.
fn passed(chain: &Chain, state: &ChainState, from: &NodeId) -> Option<Vec<NodeId>> {
    let (mut at, mut way) = (chain.node(from)?, Vec::new());
    while let Role::Step(step) = &at.role
        && state.passes(&at.id)
    {
        at = chain.node(&step.next)?;
        if at.id == *from || way.contains(&at.id) {
            return None;
        }
        way.push(at.id.clone());
    }
    Some(way)
}

#[cfg(test)]
mod tests;
