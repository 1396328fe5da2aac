//! Runs a schedule on request.

use pointsman_core::fire::Makes;
use pointsman_core::store::{
    Added, Emission, Idempotency, NewOrder, NewRun, OrderBatch, OrderRefused, OrdersRefused, Refused,
    RunRefused, RunTask, Sequenced,
};
use pointsman_core::{EventId, NewEvent, ScheduleName};
use serde::Deserialize;

use crate::{EmitError, Engine};

/// The event, task or order that a schedule created when it was run on request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleRunResult {
    Event(EventId),
    Task(RunTask),
    /// An order, or why it could not be added: its chain is gone, or an order of that id is running.
    Order(Result<Added, OrderRefused>),
}

/// The recorded answer to a run. Its form tells what was created, because the schedule may have changed since.
#[derive(Deserialize)]
#[serde(untagged)]
enum RecordedScheduleRun {
    Events(Vec<Sequenced>),
    Orders(Vec<Added>),
    Task(RunTask),
}

impl RecordedScheduleRun {
    fn into_result(self) -> Option<ScheduleRunResult> {
        match self {
            Self::Events(events) => events.first().map(|event| ScheduleRunResult::Event(event.id)),
            Self::Orders(orders) => {
                orders.into_iter().next().map(|added| ScheduleRunResult::Order(Ok(added)))
            }
            Self::Task(task) => Some(ScheduleRunResult::Task(RunTask { repeated: true, ..task })),
        }
    }
}

impl Engine {
    /// Creates at once what a schedule creates at its planned times. The ledger has no row for it, because this is not
    /// a planned time, and a pause of the schedule does not apply. None: the schedule does not exist, or the collection
    /// that it runs is gone.
    pub async fn run_schedule(&self, name: &ScheduleName) -> Result<Option<ScheduleRunResult>, EmitError> {
        Ok(self.run_schedule_idempotent(name, None).await?.map(|(result, _)| result))
    }

    /// Runs a schedule under an idempotency key. The flag tells whether this repeats an earlier request: then nothing
    /// is created, and the result is that request's.
    pub async fn run_schedule_idempotent(
        &self,
        name: &ScheduleName,
        idempotency: Option<Idempotency>,
    ) -> Result<Option<(ScheduleRunResult, bool)>, EmitError> {
        let setup = self.setup();
        let Some(schedule) = setup.schedules.iter().find(|schedule| schedule.name == *name) else {
            return Ok(None);
        };
        match &schedule.action {
            Makes::Event(event) => {
                let mut event = NewEvent::clone(event);
                event.context.insert("schedule".into(), name.to_string());
                self.emit_scheduled_event(event, idempotency).await
            }
            Makes::Run(run) => self.run_scheduled_collection(run.clone(), idempotency).await,
            Makes::Order(order) => self.add_scheduled_order(NewOrder::clone(order), idempotency).await,
        }
    }

    /// The answer recorded for an earlier run of a schedule under this key; None if there is no key, or it is new.
    pub async fn find_recorded_schedule_run(
        &self,
        idempotency: Option<&Idempotency>,
    ) -> Result<Option<ScheduleRunResult>, EmitError> {
        let Some(used) = idempotency else { return Ok(None) };
        let recorded = self.store().recorded_answer(used.clone()).await.map_err(EmitError::Store)?;
        let Some(text) = recorded.map_err(EmitError::Refused)? else { return Ok(None) };
        let result = serde_json::from_str(&text).ok().and_then(RecordedScheduleRun::into_result);
        result.map(Some).ok_or_else(|| Refused::IdempotencyConflict(used.key.clone()).into())
    }

    async fn emit_scheduled_event(
        &self,
        event: NewEvent,
        idempotency: Option<Idempotency>,
    ) -> Result<Option<(ScheduleRunResult, bool)>, EmitError> {
        let receipt = self.emit(Emission { events: vec![event], idempotency }).await?;
        Ok(receipt.events.first().map(|event| (ScheduleRunResult::Event(event.id), receipt.repeated)))
    }

    async fn run_scheduled_collection(
        &self,
        run: NewRun,
        idempotency: Option<Idempotency>,
    ) -> Result<Option<(ScheduleRunResult, bool)>, EmitError> {
        match self.run_collection(run, idempotency).await? {
            Ok(result) => {
                let repeated = result.repeated;
                Ok(Some((ScheduleRunResult::Task(result), repeated)))
            }
            Err(RunRefused::NoSuchPair(_)) => Ok(None),
            Err(RunRefused::Idempotency(conflict)) => Err(conflict.into()),
        }
    }

    /// Adds the order of a schedule. A fixed order id may be reused once the last order of that id has ended.
    async fn add_scheduled_order(
        &self,
        order: NewOrder,
        idempotency: Option<Idempotency>,
    ) -> Result<Option<(ScheduleRunResult, bool)>, EmitError> {
        let batch = OrderBatch { orders: vec![order], reuse_ended_ids: true, idempotency };
        match self.add_orders(batch).await? {
            Ok(receipt) => {
                let added = receipt.orders.into_iter().next();
                Ok(added.map(|added| (ScheduleRunResult::Order(Ok(added)), receipt.repeated)))
            }
            Err(OrdersRefused::Order(_, refused)) => {
                Ok(Some((ScheduleRunResult::Order(Err(refused)), false)))
            }
            Err(OrdersRefused::Idempotency(conflict)) => Err(conflict.into()),
        }
    }
}
