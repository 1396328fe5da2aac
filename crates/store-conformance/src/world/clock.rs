//! Planned times, as the clock settles them.

use pointsman_core::NewEvent;
use pointsman_core::fire::{Fire, Makes, Overlap, Punctual, Settle};
use pointsman_core::store::{Firing, NewOrder, NewRun, Plan as Planned, Standing};

use super::*;

/// A schedule that is set up. The expression is nothing but a text to the store.
pub fn planned(name: &str, expression: &str) -> Planned {
    Planned { name: schedule(name), expression: expression.into() }
}

/// What a schedule fires: how, and what to do about what has not ended.
#[derive(Clone, Debug)]
pub struct Fires {
    pub makes: Makes,
    pub when: Punctual,
    pub overlap: Overlap,
}

impl Fires {
    /// An event, on time, whatever has not ended.
    pub fn event(event: NewEvent) -> Self {
        Self { makes: Makes::Event(Box::new(event)), when: Punctual::OnTime, overlap: Overlap::Queue }
    }

    /// A run of `source/collection`.
    pub fn run(name: &str) -> Self {
        let run = NewRun { pair: pair(name), priority: None };
        Self { makes: Makes::Run(run), when: Punctual::OnTime, overlap: Overlap::Queue }
    }

    pub fn order(order: NewOrder) -> Self {
        Self { makes: Makes::Order(Box::new(order)), when: Punctual::OnTime, overlap: Overlap::Queue }
    }

    pub fn when(self, when: Punctual) -> Self {
        Self { when, ..self }
    }

    pub fn overlap(self, overlap: Overlap) -> Self {
        Self { overlap, ..self }
    }

    /// For this schedule at this time.
    pub fn at(self, name: &str, planned: Timestamp) -> Firing {
        let Self { mut makes, when, overlap } = self;
        if let Makes::Event(event) = &mut makes {
            event.planned = Some(planned);
        }
        Firing { schedule: schedule(name), planned, settle: Settle::Fire { makes, when, overlap } }
    }
}

/// A time that the policy lets go.
pub fn let_go(name: &str, planned: Timestamp) -> Firing {
    Firing { schedule: schedule(name), planned, settle: Settle::Skip }
}

impl World<'_> {
    pub async fn plan_schedules(&self, plans: &[Planned]) -> Vec<Standing> {
        must(self.store.plan(plans.to_vec(), self.now).await)
    }

    /// Where a schedule stands that is the only one.
    pub async fn standing(&self, name: &str) -> Standing {
        self.plan_schedules(&[planned(name, "daily")]).await.remove(0)
    }

    pub async fn settle(&self, firing: Firing) -> (Fire, bool) {
        self.settle_all(vec![firing]).await.remove(0)
    }

    pub async fn settle_all(&self, firings: Vec<Firing>) -> Vec<(Fire, bool)> {
        must(self.store.settle(firings, self.now).await)
    }
}
