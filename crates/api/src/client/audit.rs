//! Calls about the audit log.

use super::queries::QueryParameters;
use super::{Client, ClientResult};
use crate::AuditList;

impl Client {
    /// Lists the audit log, newest first; with `before`, only entries before that number.
    pub async fn list_audit_entries(
        &self,
        before: Option<i64>,
        limit: Option<u32>,
    ) -> ClientResult<AuditList> {
        let mut parameters = QueryParameters::default();
        parameters.add("before", &before);
        parameters.add("limit", &limit);
        self.send_for_json(self.build_get_request_with_parameters(&["api", "v1", "audit"], &parameters)?)
            .await
    }
}
