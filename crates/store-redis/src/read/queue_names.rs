//! Cache of queue names for listings.

use std::collections::HashMap;

use pointsman_core::task::QueueSubject;
use pointsman_core::{HandlerName, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::QueueId;

use crate::codec::decimal_field;
use crate::keys::Table;
use crate::overlay::{CacheFetch, TransactionOverlay};

/// Handler, tenant and kind of a queue.
#[derive(Clone, Debug)]
pub(super) struct QueueName {
    pub(super) handler: HandlerName,
    pub(super) tenant: Tenant,
    pub(super) of: QueueSubject,
}

#[derive(Debug, Default)]
pub(super) struct QueueNameCache(HashMap<QueueId, QueueName>);

impl QueueNameCache {
    /// Reads the uncached ones of these queues.
    pub(super) fn resolve(
        &mut self,
        overlay: &TransactionOverlay,
        queues: impl Iterator<Item = QueueId>,
    ) -> Result<()> {
        let mut unknown: Vec<QueueId> = queues.filter(|id| !self.0.contains_key(id)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        prefetch_queues_and_handlers(overlay, &unknown)?;
        for id in unknown {
            let (handler, queue) = overlay.read_queue_with_handler(id)?;
            self.0.insert(id, QueueName { handler, tenant: queue.tenant, of: queue.subject });
        }
        Ok(())
    }

    pub(super) fn get(&self, queue: QueueId) -> Result<&QueueName> {
        self.0.get(&queue).ok_or_else(|| Fault::damaged(format!("no queue {queue}")))
    }
}

/// Returns the rows to fetch for queues.
pub(super) fn queue_fetches(queues: &[QueueId]) -> Vec<CacheFetch> {
    let row = |id: &QueueId| {
        let field = decimal_field(*id);
        [CacheFetch::Row(Table::Queues, field.clone()), CacheFetch::Row(Table::QueueCounts, field)]
    };
    queues.iter().flat_map(row).collect()
}

/// Fetches these queues, and then their handlers.
pub(super) fn prefetch_queues_and_handlers(overlay: &TransactionOverlay, queues: &[QueueId]) -> Result<()> {
    overlay.fetch(queue_fetches(queues))?;
    let mut handlers = Vec::new();
    for id in queues {
        handlers.extend(overlay.read_queue(*id)?.map(|queue| queue.handler));
    }
    handlers.sort_unstable();
    handlers.dedup();
    let row = |id: i64| CacheFetch::Row(Table::Handlers, decimal_field(id));
    overlay.fetch(handlers.into_iter().map(row).collect())
}
