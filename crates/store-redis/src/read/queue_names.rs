//! Cache of queue names for listings.

use std::collections::HashMap;

use pointsman_core::task::QueueSubject;
use pointsman_core::{HandlerName, Tenant};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::QueueId;

use crate::codec::encode_decimal_field;
use crate::keys::Table;
use crate::overlay::{CacheFetch, TransactionOverlay};

/// Names that identify a queue for people: handler, tenant and subject.
#[derive(Clone, Debug)]
pub(super) struct QueueName {
    pub(super) handler: HandlerName,
    pub(super) tenant: Tenant,
    pub(super) subject: QueueSubject,
}

#[derive(Debug, Default)]
pub(super) struct QueueNameCache(HashMap<QueueId, QueueName>);

impl QueueNameCache {
    /// Reads those of these queues that are not cached, and caches their names.
    pub(super) fn cache_missing_names(
        &mut self,
        overlay: &mut TransactionOverlay,
        queues: impl Iterator<Item = QueueId>,
    ) -> TableResult<()> {
        let mut uncached: Vec<QueueId> = queues.filter(|id| !self.0.contains_key(id)).collect();
        uncached.sort_unstable();
        uncached.dedup();
        prefetch_queues_and_handlers(overlay, &uncached)?;
        for id in uncached {
            let (handler, queue) = overlay.read_queue_with_handler(id)?;
            self.0.insert(id, QueueName { handler, tenant: queue.tenant, subject: queue.subject });
        }
        Ok(())
    }

    pub(super) fn get(&self, queue: QueueId) -> TableResult<&QueueName> {
        self.0.get(&queue).ok_or_else(|| Fault::damaged(format!("no queue {queue}")))
    }
}

/// Returns the rows that reading queues needs: those of the queues and of their counts.
pub(super) fn queue_fetches(queues: &[QueueId]) -> Vec<CacheFetch> {
    let fetches = |id: &QueueId| {
        let field = encode_decimal_field(*id);
        [CacheFetch::Row(Table::Queues, field.clone()), CacheFetch::Row(Table::QueueCounts, field)]
    };
    queues.iter().flat_map(fetches).collect()
}

/// Fetches these queues, and then their handlers.
pub(super) fn prefetch_queues_and_handlers(
    overlay: &mut TransactionOverlay,
    queues: &[QueueId],
) -> TableResult<()> {
    overlay.fetch_into_cache(queue_fetches(queues))?;
    let mut handlers = Vec::new();
    for id in queues {
        handlers.extend(overlay.read_queue(*id)?.map(|queue| queue.handler));
    }
    handlers.sort_unstable();
    handlers.dedup();
    let fetch = |id: i64| CacheFetch::Row(Table::Handlers, encode_decimal_field(id));
    overlay.fetch_into_cache(handlers.into_iter().map(fetch).collect())
}
