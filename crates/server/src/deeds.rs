//! Who changed what: every call that changes something writes down whose token it was.

use std::fmt::Display;

use pointsman_core::store::Deed;
use pointsman_engine::now;

use crate::app::Shared;
use crate::auth::Caller;

impl Shared {
    /// Writes down what a caller did. It has been done by then, and the answer must say so: a note that cannot be
    /// written is told to the log instead.
    pub(crate) async fn note(&self, caller: &Caller, action: &str, what: impl Display, detail: impl Display) {
        let deed = Deed {
            at: now(),
            by: caller.name.clone(),
            action: action.into(),
            what: what.to_string(),
            detail: detail.to_string(),
        };
        if let Err(error) = self.store().note(deed.clone()).await {
            let Deed { by, action, what, .. } = deed;
            tracing::warn!(%error, by, action, what, "what was done could not be written down");
        }
    }
}
