//! Writes the events of a unit of work to the outbox.

use futures::future::try_join3;
use pointsman_core::{NewEvent, Timestamp};
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::session::{Session, query};

/// The receipts of a unit of work's events, valid once it commits.
#[derive(Debug, Default)]
pub(super) struct EmitReceipts {
    pub(super) receipts: Vec<Uuid>,
    /// The transaction id, if the transaction has written anything.
    pub(super) transaction_id: Option<String>,
}

/// Writes events to the outbox, in their order, and notifies the nodes if their drainers sleep.
pub(super) async fn write_to_outbox(session: &Session, events: &[NewEvent]) -> Result<EmitReceipts, Error> {
    let transaction_id = async {
        let rows = session.query(query!("unit_of_work/read_transaction_id"), &[]).await?;
        rows.first().map_or(Ok(None), |row| row.try_get(0))
    };
    if events.is_empty() {
        return Ok(EmitReceipts { receipts: vec![], transaction_id: transaction_id.await? });
    }
    let wake_nodes = async { session.query(query!("unit_of_work/notify_drainers"), &[]).await };
    // The statements are sent together, in this order.
    let (receipts, _, transaction_id) =
        try_join3(insert_events_into_outbox(session, events), wake_nodes, transaction_id).await?;
    Ok(EmitReceipts { receipts, transaction_id })
}

async fn insert_events_into_outbox(session: &Session, events: &[NewEvent]) -> Result<Vec<Uuid>, Error> {
    fn collect_column<'e, T>(events: &'e [NewEvent], read_field: impl Fn(&'e NewEvent) -> T) -> Vec<T> {
        events.iter().map(read_field).collect()
    }
    let contexts: Vec<Option<String>> = collect_column(events, encode_context);
    let query = query!(
        "unit_of_work/insert_outbox_events",
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
    let types = collect_column(events, |event| event.event_type.as_str());
    let keys = collect_column(events, |event| event.key.as_ref().map(|key| key.as_str()));
    let subs = collect_column(events, |event| event.sub_object.as_ref().map(|sub| sub.as_str()));
    let tenants = collect_column(events, |event| event.tenant.as_str());
    let values = collect_column(events, |event| event.value.as_str());
    let dues = collect_column(events, |event| event.due.map(Timestamp::micros));
    let priorities = collect_column(events, |event| i32::from(event.priority.get()));
    let cause_events =
        collect_column(events, |event| event.cause.and_then(|cause| cause.event).map(|id| id.as_i64()));
    let cause_tasks = collect_column(events, |event| event.cause.map(|cause| cause.task.0));
    let cause_depths = collect_column(events, |event| event.cause.map(|cause| i32::from(cause.depth)));
    let columns: [&(dyn ToSql + Sync); 11] = [
        &types,
        &keys,
        &subs,
        &tenants,
        &values,
        &contexts,
        &dues,
        &priorities,
        &cause_events,
        &cause_tasks,
        &cause_depths,
    ];
    let rows = session.query(query, &columns).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

/// Encodes the context of an event; none if it is empty.
fn encode_context(event: &NewEvent) -> Option<String> {
    // A map of strings always serializes.
    (!event.context.is_empty()).then(|| serde_json::to_string(&event.context).unwrap_or_default())
}
