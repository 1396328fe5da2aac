//! Queues.

use std::borrow::Cow;

use pointsman_core::Tenant;
use pointsman_core::task::QueueSubject;

use super::columns;
use crate::error::{Fault, TableResult};
use crate::row::{QueueCounts, QueueRow};

columns! {
    /// The columns of a queue: its handler, tenant and subject, and the number of its tasks in each group of phases.
    QueueColumns<'a> key(id) {
        id: i64,
        handler: i64,
        tenant: Cow<'a, str>,
        /// The queue's subject, as [`QueueSubject::to_text`] returns it.
        collection: Cow<'a, str>,
        ready: i64,
        waiting: i64,
        scheduled: i64,
        running: i64,
        halted: i64,
        missing: i64,
    }
}

impl<'a> QueueColumns<'a> {
    pub fn from_row(row: &'a QueueRow) -> Self {
        let QueueCounts { ready, waiting, scheduled, running, halted, missing } = row.counts;
        Self {
            id: row.id,
            handler: row.handler,
            tenant: row.tenant.as_str().into(),
            collection: row.subject.to_text().into(),
            ready,
            waiting,
            scheduled,
            running,
            halted,
            missing,
        }
    }

    pub fn into_row(self) -> TableResult<QueueRow> {
        let Self { ready, waiting, scheduled, running, halted, missing, .. } = self;
        Ok(QueueRow {
            id: self.id,
            handler: self.handler,
            tenant: Tenant::new(self.tenant).map_err(Fault::damaged)?,
            subject: QueueSubject::from_text(&self.collection).map_err(Fault::damaged)?,
            counts: QueueCounts { ready, waiting, scheduled, running, halted, missing },
        })
    }
}
