//! The events of a unit of work on their way into the outbox.

use futures::future::try_join3;
use pointsman_core::{NewEvent, Timestamp};
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::session::{Session, query};

/// What a unit of work leaves behind if it is committed.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) receipts: Vec<Uuid>,
    /// The number of its transaction, if that has changed anything.
    pub(super) number: Option<String>,
}

/// Leaves events in the outbox, in their order.
pub(super) async fn leave(session: &Session, events: &[NewEvent]) -> Result<Left, Error> {
    let number = async {
        let rows = session.query(query!("unit/transaction"), &[]).await?;
        rows.first().map_or(Ok(None), |row| row.try_get(0))
    };
    if events.is_empty() {
        return Ok(Left { receipts: vec![], number: number.await? });
    }
    let ring = async { session.query(query!("unit/ring"), &[]).await };
    // They are on the way together, in this order.
    let (receipts, _, number) = try_join3(emit(session, events), ring, number).await?;
    Ok(Left { receipts, number })
}

async fn emit(session: &Session, events: &[NewEvent]) -> Result<Vec<Uuid>, Error> {
    fn column<'e, T>(events: &'e [NewEvent], of: impl Fn(&'e NewEvent) -> T) -> Vec<T> {
        events.iter().map(of).collect()
    }
    let contexts: Vec<Option<String>> = column(events, context);
    let statement = query!(
        "unit/emit",
        TEXT_ARRAY,
        TEXT_ARRAY,
        TEXT_ARRAY,
        TEXT_ARRAY,
        TEXT_ARRAY,
        TEXT_ARRAY,
        INT8_ARRAY,
        INT4_ARRAY,
        INT8_ARRAY,
        INT8_ARRAY,
        INT4_ARRAY
    );
    let types = column(events, |event| event.kind.as_str());
    let keys = column(events, |event| event.key.as_ref().map(|key| key.as_str()));
    let subs = column(events, |event| event.sub.as_ref().map(|sub| sub.as_str()));
    let tenants = column(events, |event| event.tenant.as_str());
    let values = column(events, |event| event.value.as_str());
    let dues = column(events, |event| event.due.map(Timestamp::micros));
    let priorities = column(events, |event| i32::from(event.priority.get()));
    let causes = column(events, |event| event.cause.and_then(|cause| cause.event).map(|id| id.as_i64()));
    let tasks = column(events, |event| event.cause.map(|cause| cause.task.0));
    let depths = column(events, |event| event.cause.map(|cause| i32::from(cause.depth)));
    let columns: [&(dyn ToSql + Sync); 11] =
        [&types, &keys, &subs, &tenants, &values, &contexts, &dues, &priorities, &causes, &tasks, &depths];
    let rows = session.query(statement, &columns).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

fn context(event: &NewEvent) -> Option<String> {
    // A map of strings can always be written.
    (!event.context.is_empty()).then(|| serde_json::to_string(&event.context).unwrap_or_default())
}
