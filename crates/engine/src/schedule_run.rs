//! Runs a schedule on request.

use pointsman_core::fire::FireAction;
use pointsman_core::store::{
    AddedOrder, CollectionRunError, CollectionRunReceipt, EmitBatch, EmittedEventReceipt, IdempotencyError,
    IdempotencyKey, NewCollectionRun, NewOrder, OrderBatch, OrderBatchError, OrderError,
};
use pointsman_core::{EventId, NewEvent, ScheduleName};
use serde::Deserialize;

use crate::{EmitError, Engine};

/// The event, task or order that a schedule created when it was run on request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleRunResult {
    /// The schedule emitted this event.
    Event(EventId),
    /// The schedule ran a collection: its created task, or the task that was already queued or running.
    Task(CollectionRunReceipt),
    /// The schedule added this order, or could not: the chain does not exist, or an order of that id is running.
    Order(Result<AddedOrder, OrderError>),
}

/// The recorded response to an earlier run. Its JSON form shows whether it created an event, an order or a task; the
/// schedule may have changed since.
#[derive(Deserialize)]
#[serde(untagged)]
enum RecordedScheduleRun {
    Events(Vec<EmittedEventReceipt>),
    Orders(Vec<AddedOrder>),
    Task(CollectionRunReceipt),
}

impl RecordedScheduleRun {
    fn into_result(self) -> Option<ScheduleRunResult> {
        match self {
            Self::Events(events) => events.first().map(|event| ScheduleRunResult::Event(event.id)),
            Self::Orders(orders) => {
                orders.into_iter().next().map(|added| ScheduleRunResult::Order(Ok(added)))
            }
            Self::Task(task) => {
                Some(ScheduleRunResult::Task(CollectionRunReceipt { repeated: true, ..task }))
            }
        }
    }
}

impl Engine {
    /// Creates at once what a schedule creates at its planned times. The ledger has no row for it, because this is not
    /// a planned time, and a pause of the schedule does not apply. `None` if the schedule or the
    /// collection that it runs does not exist.
    pub async fn run_schedule(&self, name: &ScheduleName) -> Result<Option<ScheduleRunResult>, EmitError> {
        Ok(self.run_schedule_idempotent(name, None).await?.map(|(result, _)| result))
    }

    /// Runs a schedule under an idempotency key. The flag is true if this repeats an earlier request: then nothing
    /// is created, and the result is that of the earlier request.
    pub async fn run_schedule_idempotent(
        &self,
        name: &ScheduleName,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Option<(ScheduleRunResult, bool)>, EmitError> {
        let setup = self.current_setup();
        let Some(schedule) = setup.schedules.iter().find(|schedule| schedule.name == *name) else {
            return Ok(None);
        };
        match &schedule.action {
            FireAction::EmitEvent(event) => {
                let mut event = NewEvent::clone(event);
                event.context.insert("schedule".into(), name.to_string());
                self.emit_event_of_schedule(event, idempotency).await
            }
            FireAction::RunCollection(run) => self.run_collection_of_schedule(run.clone(), idempotency).await,
            FireAction::AddOrder(order) => {
                self.add_order_of_schedule(NewOrder::clone(order), idempotency).await
            }
        }
    }

    /// Finds the response to an earlier run of a schedule under this key; `None` without a key or for a new key.
    pub async fn find_recorded_schedule_run(
        &self,
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<Option<ScheduleRunResult>, EmitError> {
        let Some(key) = idempotency else { return Ok(None) };
        let recorded = self.store().find_idempotent_response(key.clone()).await.map_err(EmitError::Store)?;
        let Some(response) = recorded.map_err(EmitError::IdempotencyKeyConflict)? else { return Ok(None) };
        let result = serde_json::from_str(&response).ok().and_then(RecordedScheduleRun::into_result);
        result.map(Some).ok_or_else(|| IdempotencyError::Conflict(key.key.clone()).into())
    }

    async fn emit_event_of_schedule(
        &self,
        event: NewEvent,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Option<(ScheduleRunResult, bool)>, EmitError> {
        let receipt = self.emit(EmitBatch { events: vec![event], idempotency_key: idempotency }).await?;
        Ok(receipt.events.first().map(|event| (ScheduleRunResult::Event(event.id), receipt.repeated)))
    }

    async fn run_collection_of_schedule(
        &self,
        run: NewCollectionRun,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Option<(ScheduleRunResult, bool)>, EmitError> {
        match self.run_collection(run, idempotency).await? {
            Ok(result) => {
                let repeated = result.repeated;
                Ok(Some((ScheduleRunResult::Task(result), repeated)))
            }
            Err(CollectionRunError::NoSuchCollection(_)) => Ok(None),
            Err(CollectionRunError::Idempotency(conflict)) => Err(conflict.into()),
        }
    }

    /// Adds the order of a schedule. A fixed order id may be reused once the last order of that id has ended.
    async fn add_order_of_schedule(
        &self,
        order: NewOrder,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Option<(ScheduleRunResult, bool)>, EmitError> {
        let batch = OrderBatch { orders: vec![order], reuse_ended_ids: true, idempotency_key: idempotency };
        match self.add_orders(batch).await? {
            Ok(receipt) => {
                let added = receipt.orders.into_iter().next();
                Ok(added.map(|added| (ScheduleRunResult::Order(Ok(added)), receipt.repeated)))
            }
            Err(OrderBatchError::OrderRefused(_, refused)) => {
                Ok(Some((ScheduleRunResult::Order(Err(refused)), false)))
            }
            Err(OrderBatchError::Idempotency(conflict)) => Err(conflict.into()),
        }
    }
}
