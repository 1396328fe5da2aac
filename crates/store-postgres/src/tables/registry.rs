//! Tables of queues, handlers, rules, nodes and audit entries.

use std::collections::BTreeMap;

use pointsman_core::limit::LimiterAndBreakerState;
use pointsman_core::store::{AuditEntry, NodeCapabilities, NodeId, NodeView};
use pointsman_core::task::{QueueSubject, TaskIdNamespace};
use pointsman_core::{HandlerDef, Rule, RuleKind, RuleScope, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::invalidation::Invalidation;
use pointsman_store::row::{HandlerId, HandlerRow, QueueCounts, QueueId, QueueRow, RankRange};
use tokio_postgres::Row;

use super::PgTables;
use super::columns::replace_nul_chars;
use crate::documented_tables::{canvas_id_of_tenant, event_space_of_rule};
use crate::rows::{read_column, read_key_bucket, read_optional_task_seq};
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

/// Names of the texts in `pointsman.meta` that belong to the registry, as handlers and chains do.
const REGISTRY_NAMED_TEXTS: [&str; 3] = ["routes", "tenants", "chain_routes"];

impl PgTables {
    pub(super) fn find_task_id_namespace(&self) -> TableResult<TaskIdNamespace> {
        if let Some(task_id_namespace) = self.task_id_namespace.get() {
            return Ok(task_id_namespace);
        }
        let task_id_namespace = TaskIdNamespace(self.read_named_number("task_id_namespace")? as u64);
        self.task_id_namespace.set(Some(task_id_namespace));
        Ok(task_id_namespace)
    }

    pub(super) fn find_salt(&self) -> TableResult<u64> {
        Ok(self.read_named_number("salt")? as u64)
    }

    fn read_named_number(&self, name: &str) -> TableResult<i64> {
        let text =
            self.find_named_text(name)?.ok_or_else(|| Fault::damaged(format!("there is no {name}")))?;
        text.parse().map_err(Fault::damaged)
    }

    pub(super) fn find_named_text(&self, name: &str) -> TableResult<Option<String>> {
        self.query_optional(query!("write/text", TEXT), params![name.to_string()], |row| read_column(row, 0))
    }

    pub(super) fn upsert_named_text(&self, name: &str, text: &str) {
        if REGISTRY_NAMED_TEXTS.contains(&name) {
            self.mark_registry_changed();
        }
        let params = params![name.to_string(), text.to_string()];
        self.add_to_batch(SqlCommand::Query(query!("write/upsert_text", TEXT, TEXT), params));
    }

    pub(super) fn list_queues(&self) -> TableResult<Vec<QueueRow>> {
        self.query_all(query!("write/queues"), vec![], decode_queue_row)
    }

    pub(super) fn list_queues_by_id(&self, ids: Vec<QueueId>) -> TableResult<Vec<QueueRow>> {
        match ids.is_empty() {
            true => Ok(vec![]),
            false => self.query_all(query!("write/queues_by_id", INT8_ARRAY), params![ids], decode_queue_row),
        }
    }

    pub(super) fn create_queue(
        &self,
        handler: HandlerId,
        tenant: &Tenant,
        subject: &QueueSubject,
    ) -> TableResult<QueueId> {
        let params =
            params![handler, tenant.to_string(), subject.to_text(), canvas_id_of_tenant(Some(tenant))];
        let query = query!("write/insert_queue", INT8, TEXT, TEXT, UUID);
        let id = self.query_optional(query, params, |row| read_column(row, 0))?;
        let id = id.ok_or_else(|| Fault::damaged("a queue without a number"))?;
        self.record_invalidation(Invalidation::Queue(id));
        Ok(id)
    }

    pub(super) fn write_queue_counts(&self, counts: &[(QueueId, QueueCounts)]) -> TableResult<()> {
        let column = |read_count: fn(&QueueCounts) -> i64| {
            counts.iter().map(|(_, c)| read_count(c)).collect::<Vec<i64>>()
        };
        let ids: Vec<i64> = counts.iter().map(|(id, _)| *id).collect();
        ids.iter().for_each(|id| self.record_invalidation(Invalidation::Queue(*id)));
        let params = params![
            ids,
            column(|c| c.ready),
            column(|c| c.waiting),
            column(|c| c.scheduled),
            column(|c| c.running),
            column(|c| c.halted),
            column(|c| c.missing),
        ];
        let query = query!(
            "write/set_queue_counts",
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY,
            INT8_ARRAY
        );
        self.add_to_batch(SqlCommand::Query(query, params));
        Ok(())
    }

    pub(super) fn find_queue_head(&self, queue: QueueId) -> TableResult<Option<(i64, TaskSeq)>> {
        let decode_head = |row: &Row| Ok((read_column(row, 0)?, TaskSeq(read_column(row, 1)?)));
        self.query_optional(query!("write/first_ready_task", INT8), params![queue], decode_head)
    }

    pub(super) fn list_rank_ranges(&self, queue: QueueId) -> TableResult<Vec<RankRange>> {
        let decode_rank_range = |row: &Row| {
            Ok((read_column(row, 0)?, read_key_bucket(row, 1)?, read_column(row, 2)?, read_column(row, 3)?))
        };
        self.query_all(query!("write/ranks", INT8), params![queue], decode_rank_range)
    }

    pub(super) fn list_handlers(&self) -> TableResult<Vec<HandlerRow>> {
        self.query_all(query!("write/handlers"), vec![], |row| {
            Ok(HandlerRow {
                id: read_column(row, 0)?,
                def: serde_json::from_str(read_column(row, 1)?).map_err(Fault::damaged)?,
                is_defined: read_column(row, 2)?,
                limiter_state: decode_limiter_state(read_column(row, 3)?)?,
            })
        })
    }

    pub(super) fn set_defined_handlers(&self, handlers: &[HandlerDef]) -> TableResult<()> {
        self.mark_registry_changed();
        self.add_to_batch(SqlCommand::Query(query!("write/undefine_handlers"), vec![]));
        for def in handlers {
            let json = serde_json::to_string(def).map_err(Fault::damaged)?;
            let params = params![def.name.to_string(), json];
            self.add_to_batch(SqlCommand::Query(query!("write/upsert_handler", TEXT, TEXT), params));
        }
        Ok(())
    }

    pub(super) fn write_limiter_state(
        &self,
        handler: HandlerId,
        limiter_state: &LimiterAndBreakerState,
    ) -> TableResult<()> {
        self.record_invalidation(Invalidation::Limiter(handler));
        let json = serde_json::to_string(limiter_state).map_err(Fault::damaged)?;
        self.add_to_batch(SqlCommand::Query(
            query!("write/set_limiter_state", INT8, TEXT),
            params![handler, json],
        ));
        Ok(())
    }

    pub(super) fn list_limiter_states(
        &self,
        ids: Vec<HandlerId>,
    ) -> TableResult<Vec<(HandlerId, LimiterAndBreakerState)>> {
        let decode_state =
            |row: &Row| Ok((read_column(row, 0)?, decode_limiter_state(read_column(row, 1)?)?));
        match ids.is_empty() {
            true => Ok(vec![]),
            false => self.query_all(query!("write/limiter_states", INT8_ARRAY), params![ids], decode_state),
        }
    }

    pub(super) fn read_missed_event_ranges_json(&self, handler: HandlerId) -> TableResult<String> {
        let gaps = self.query_optional(query!("write/handler_gaps", INT8), params![handler], |row| {
            read_column(row, 0)
        })?;
        gaps.ok_or_else(|| Fault::damaged(format!("no handler {handler}")))
    }

    pub(super) fn write_missed_event_ranges_json(&self, handler: HandlerId, gaps: &str) {
        let params = params![handler, gaps.to_string()];
        self.add_to_batch(SqlCommand::Query(query!("write/set_handler_gaps", INT8, TEXT), params));
    }

    pub(super) fn list_configured_object_digests(&self) -> TableResult<BTreeMap<String, String>> {
        let digests = self.query_all(query!("write/file_digests"), vec![], |row| {
            Ok((read_column(row, 0)?, read_column(row, 1)?))
        })?;
        Ok(digests.into_iter().collect())
    }

    pub(super) fn write_configured_object_digest(&self, key: &str, digest: &str) {
        let params = params![key.to_string(), digest.to_string()];
        self.add_to_batch(SqlCommand::Query(query!("write/upsert_file_digest", TEXT, TEXT), params));
    }

    pub(super) fn delete_configured_object_digest(&self, key: &str) {
        self.add_to_batch(SqlCommand::Query(
            query!("write/delete_file_digest", TEXT),
            params![key.to_string()],
        ));
    }

    pub(super) fn list_rules(&self) -> TableResult<Vec<Rule>> {
        let rows = self.query_rows(query!("write/rules"), vec![])?;
        crate::documented_tables::decode_rules(&rows)
    }

    pub(super) fn write_rule(&self, rule: &Rule) {
        self.mark_registry_changed();
        let query = query!("write/upsert_rule", TEXT, UUID, TEXT, TEXT, TEXT, INT8, TEXT, TEXT);
        let params = params![
            rule.kind.as_str(),
            canvas_id_of_tenant(rule.tenant.as_ref()),
            rule.tenant.as_ref().map(Tenant::to_string),
            rule.scope.name(),
            event_space_of_rule(&rule.scope),
            rule.since.micros(),
            replace_nul_chars(rule.set_by.clone()),
            replace_nul_chars(rule.reason.clone()),
        ];
        self.add_to_batch(SqlCommand::Query(query, params));
    }

    pub(super) fn delete_rule(&self, kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) {
        self.mark_registry_changed();
        let params =
            params![kind.as_str(), canvas_id_of_tenant(tenant), scope.name(), event_space_of_rule(scope)];
        self.add_to_batch(SqlCommand::Query(query!("write/delete_rule", TEXT, UUID, TEXT, TEXT), params));
    }

    pub(super) fn list_nodes(&self) -> TableResult<Vec<NodeView>> {
        let commands = self.take_batch_commands()?;
        self.connection.send_commands(&commands)?;
        self.connection.run_on_session(|session| Box::pin(crate::read::list_nodes(session)))
    }

    pub(super) fn list_live_nodes(&self) -> TableResult<Vec<NodeId>> {
        self.query_all(query!("write/live_nodes"), vec![], |row| read_column(row, 0))
    }

    pub(super) fn insert_node(&self, name: &str, now: Timestamp) -> TableResult<NodeId> {
        self.mark_registry_changed();
        self.caller_time.record_reported_time(now);
        let params = params![replace_nul_chars(name.into()), now.micros()];
        let id =
            self.query_optional(query!("write/insert_node", TEXT, INT8), params, |row| read_column(row, 0))?;
        id.ok_or_else(|| Fault::damaged("a node without a number"))
    }

    pub(super) fn write_node_capabilities(
        &self,
        node: NodeId,
        capabilities: &NodeCapabilities,
    ) -> TableResult<()> {
        let json = serde_json::to_string(capabilities).map_err(Fault::damaged)?;
        self.add_to_batch(SqlCommand::Query(
            query!("write/set_node_capabilities", INT8, TEXT),
            params![node, json],
        ));
        Ok(())
    }

    pub(super) fn record_node_heartbeat(&self, node: NodeId, now: Timestamp) -> TableResult<bool> {
        self.caller_time.record_reported_time(now);
        let params = params![node, now.micros()];
        let found = self.query_optional(query!("write/record_heartbeat", INT8, INT8), params, |row| {
            read_optional_task_seq(row, 0)
        })?;
        Ok(found.is_some())
    }

    pub(super) fn mark_node_gone(&self, node: NodeId) {
        self.mark_registry_changed();
        self.add_to_batch(SqlCommand::Query(query!("write/set_node_gone", INT8), params![node]));
    }

    pub(super) fn list_nodes_silent_since(&self, before: Timestamp) -> TableResult<Vec<NodeId>> {
        self.query_all(query!("write/silent_nodes", INT8), params![before.micros()], |row| {
            read_column(row, 0)
        })
    }

    pub(super) fn insert_audit_entry(&self, entry: &AuditEntry) {
        let AuditEntry { at, actor, action, target, detail } = entry.clone();
        let params = params![
            at.micros(),
            replace_nul_chars(actor),
            replace_nul_chars(action),
            replace_nul_chars(target),
            replace_nul_chars(detail)
        ];
        self.add_to_batch(SqlCommand::Query(
            query!("write/insert_audit_entry", INT8, TEXT, TEXT, TEXT, TEXT),
            params,
        ));
    }
}

fn decode_queue_row(row: &Row) -> TableResult<QueueRow> {
    Ok(QueueRow {
        id: read_column(row, 0)?,
        handler: read_column(row, 1)?,
        tenant: Tenant::new(read_column::<&str>(row, 2)?).map_err(Fault::damaged)?,
        subject: QueueSubject::from_text(read_column(row, 3)?).map_err(Fault::damaged)?,
        counts: QueueCounts {
            ready: read_column(row, 4)?,
            waiting: read_column(row, 5)?,
            scheduled: read_column(row, 6)?,
            running: read_column(row, 7)?,
            halted: read_column(row, 8)?,
            missing: read_column(row, 9)?,
        },
    })
}

fn decode_limiter_state(json: &str) -> TableResult<LimiterAndBreakerState> {
    match json {
        "" => Ok(LimiterAndBreakerState::default()),
        json => serde_json::from_str(json).map_err(Fault::damaged),
    }
}
