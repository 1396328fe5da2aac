//! Calls about events and objects.

use serde::Serialize;

use super::queries::QueryParameters;
use super::{Client, ClientResult, EventQuery, with_idempotency_key};
use crate::{EmitResponse, EventDetail, EventSeq, ObjectDetail};

impl Client {
    /// Emits one event, or a sequence of them, all or nothing. When this returns, they are durable.
    ///
    /// With an idempotency key the call may be repeated: a repeat emits nothing and returns the first response.
    pub async fn emit(
        &self,
        events: &impl Serialize,
        idempotency_key: Option<&str>,
    ) -> ClientResult<EmitResponse> {
        let request = self.build_post_request(&["api", "v1", "events"])?.json(events);
        self.send_for_json(with_idempotency_key(request, idempotency_key)).await
    }

    /// Reads a range of the journal. Waits as long as the query's own timeout says.
    pub async fn list_events(&self, query: &EventQuery) -> ClientResult<EventSeq> {
        let request =
            self.build_get_request_with_parameters(&["api", "v1", "events"], &query.to_parameters())?;
        match query.timeout {
            Some(_) => self.read_json(self.send(request).await?).await,
            None => self.send_for_json(request).await,
        }
    }

    /// Reads one event with its tasks, its cause and the events it caused.
    pub async fn read_event(&self, id: u64) -> ClientResult<EventDetail> {
        self.send_for_json(self.build_get_request(&["api", "v1", "events", &id.to_string()])?).await
    }

    /// Reads an object's events, newest first, and the state of its lanes.
    pub async fn read_object(&self, key: &str, tenant: Option<&str>) -> ClientResult<ObjectDetail> {
        let mut parameters = QueryParameters::default();
        parameters.add("tenant", &tenant);
        self.send_for_json(
            self.build_get_request_with_parameters(&["api", "v1", "objects", key], &parameters)?,
        )
        .await
    }
}
