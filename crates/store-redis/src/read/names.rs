//! The names of queues, each looked up once, however many tasks are looked at.

use std::collections::HashMap;

use pointsman_core::task::QueueOf;
use pointsman_core::{HandlerName, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::QueueId;

use crate::codec::digits;
use crate::keys::Table;
use crate::sight::{Question, Sight};

/// What a queue is called.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) handler: HandlerName,
    pub(super) tenant: Tenant,
    pub(super) of: QueueOf,
}

#[derive(Debug, Default)]
pub(super) struct Names(HashMap<QueueId, Name>);

impl Names {
    /// Sees to it that these are known.
    pub(super) fn learn(&mut self, sight: &Sight, queues: impl Iterator<Item = QueueId>) -> Result<()> {
        let mut unknown: Vec<QueueId> = queues.filter(|id| !self.0.contains_key(id)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        foresee(sight, &unknown)?;
        for id in unknown {
            let (handler, queue) = sight.queue_names(id)?;
            self.0.insert(id, Name { handler, tenant: queue.tenant, of: queue.of });
        }
        Ok(())
    }

    pub(super) fn get(&self, queue: QueueId) -> Result<&Name> {
        self.0.get(&queue).ok_or_else(|| Fault::damaged(format!("no queue {queue}")))
    }
}

/// What is to be looked at of queues.
pub(super) fn questions(queues: &[QueueId]) -> Vec<Question> {
    let row = |id: &QueueId| {
        let field = digits(*id);
        [Question::Row(Table::Queues, field.clone()), Question::Row(Table::Counts, field)]
    };
    queues.iter().flat_map(row).collect()
}

/// Looks at these queues, and then at their handlers.
pub(super) fn foresee(sight: &Sight, queues: &[QueueId]) -> Result<()> {
    sight.look(questions(queues))?;
    let mut handlers = Vec::new();
    for id in queues {
        handlers.extend(sight.queue_row(*id)?.map(|queue| queue.handler));
    }
    handlers.sort_unstable();
    handlers.dedup();
    let row = |id: i64| Question::Row(Table::Handlers, digits(id));
    sight.look(handlers.into_iter().map(row).collect())
}
