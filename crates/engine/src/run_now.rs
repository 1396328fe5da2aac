//! A schedule run at a person's word.

use pointsman_core::fire::Makes;
use pointsman_core::store::{Added, Emission, NewOrder, OrderRefused, RunTask};
use pointsman_core::{EventId, ScheduleName};

use crate::{EmitError, Engine};

/// What a schedule made when it was run by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RanNow {
    Event(EventId),
    Task(RunTask),
    /// An order, unless it could not be added: its chain is gone, or has one of that id already.
    Order(Result<Added, OrderRefused>),
}

impl Engine {
    /// Makes at once what a schedule makes at its planned times. The ledger does not tell of it, for this is no
    /// planned time; nor does a rule on the schedule keep it back. None: no such schedule is set up, or the
    /// collection that it runs is gone.
    pub async fn run_schedule(&self, name: &ScheduleName) -> Result<Option<RanNow>, EmitError> {
        let setup = self.setup();
        let Some(schedule) = setup.schedules.iter().find(|schedule| schedule.name == *name) else {
            return Ok(None);
        };
        match &schedule.makes {
            Makes::Event(event) => {
                let mut event = event.clone();
                event.context.insert("schedule".into(), name.to_string());
                let receipt = self.emit(Emission { events: vec![*event], idempotency: None }).await?;
                Ok(receipt.events.first().map(|event| RanNow::Event(event.id)))
            }
            Makes::Run(run) => Ok(self.run(run.clone()).await?.ok().map(RanNow::Task)),
            Makes::Order(order) => {
                let added = self.add_orders(vec![NewOrder::clone(order)]).await?;
                Ok(match added {
                    Ok(added) => added.into_iter().next().map(|added| RanNow::Order(Ok(added))),
                    Err((_, refused)) => Some(RanNow::Order(Err(refused))),
                })
            }
        }
    }
}
