//! Tables of texts, queues, handlers, rules, nodes, audit entries and digests of configuration files.

use std::collections::BTreeMap;
use std::ops::Bound;

use pointsman_core::limit::LimiterAndBreakerState;
use pointsman_core::store::{AuditEntry, NodeCapabilities, NodeId, NodeView};
use pointsman_core::task::{QueueSubject, TaskIdNamespace};
use pointsman_core::{HandlerDef, Rule, RuleKind, RuleScope, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::TableResult;
use pointsman_store::invalidation::Invalidation;
use pointsman_store::row::{HandlerId, HandlerRow, QueueCounts, QueueId, QueueRow, RankRange};

use super::RedisTables;
use crate::SALT_TEXT_NAME;
use crate::codec::decode_member_i64;
use crate::keys::{Index, Table};
use crate::lookup::StoredHandler;
use crate::overlay::ScanOrder;
use crate::rows;

/// Names of the texts that are part of the registry: when one changes, peers read the registry again.
const REGISTRY_TEXT_NAMES: [&str; 3] = ["routes", "tenants", "chain_routes"];

const ALL_MEMBERS: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

impl RedisTables {
    pub(super) fn read_task_id_namespace(&self) -> TableResult<TaskIdNamespace> {
        self.overlay.read_task_id_namespace()
    }

    pub(super) fn read_hash_salt(&self) -> TableResult<u64> {
        self.overlay.read_named_number(SALT_TEXT_NAME)
    }

    pub(super) fn read_named_text(&self, name: &str) -> TableResult<Option<String>> {
        self.overlay.read_named_text(name)
    }

    pub(super) fn write_named_text(&self, name: &str, text: &str) -> TableResult<()> {
        if REGISTRY_TEXT_NAMES.contains(&name) {
            self.mark_registry_changed();
        }
        self.overlay.write_row(Table::NamedTexts, name, text.into());
        Ok(())
    }

    // --- queues --------------------------------------------------------------------------------------------------

    pub(super) fn list_queues(&self) -> TableResult<Vec<QueueRow>> {
        self.overlay.read_queues()
    }

    pub(super) fn create_queue(
        &self,
        handler: HandlerId,
        tenant: &Tenant,
        subject: &QueueSubject,
    ) -> TableResult<QueueId> {
        let id = self.assign_next_number(|store_state| &mut store_state.last_queue_id);
        self.overlay.write_row(Table::Queues, id.to_string(), rows::encode_queue(handler, tenant, subject));
        self.record_invalidation(Invalidation::Queue(id));
        Ok(id)
    }

    pub(super) fn write_queue_counts(&self, counts: &[(QueueId, QueueCounts)]) -> TableResult<()> {
        for (id, counts) in counts {
            self.overlay.write_row(Table::QueueCounts, id.to_string(), rows::encode_queue_counts(counts));
            self.record_invalidation(Invalidation::Queue(*id));
        }
        Ok(())
    }

    pub(super) fn read_queue_head(&self, queue: QueueId) -> TableResult<Option<(i64, TaskSeq)>> {
        let first =
            self.overlay.read_members(&Index::ReadyTasks(queue), ALL_MEMBERS, ScanOrder::Ascending, 1)?;
        first
            .first()
            .map(|member| Ok((-decode_member_i64(member, 0)?, TaskSeq(decode_member_i64(member, 2)?))))
            .transpose()
    }

    pub(super) fn read_rank_ranges(&self, queue: QueueId) -> TableResult<Vec<RankRange>> {
        let mut ranks: BTreeMap<(i64, Option<u16>), (i64, i64)> = BTreeMap::new();
        for member in self.overlay.read_members(
            &Index::ReadyTasks(queue),
            ALL_MEMBERS,
            ScanOrder::Ascending,
            usize::MAX,
        )? {
            let (score, rank) = (-decode_member_i64(&member, 0)?, decode_member_i64(&member, 1)?);
            let bucket = member.last_chunk().map(|bytes| u16::from_be_bytes(*bytes));
            let bucket = bucket.filter(|bucket| *bucket != u16::MAX);
            let (lowest, highest) = ranks.entry((score, bucket)).or_insert((rank, rank));
            (*lowest, *highest) = ((*lowest).min(rank), (*highest).max(rank));
        }
        Ok(ranks
            .into_iter()
            .map(|((score, bucket), (lowest, highest))| (score, bucket, lowest, highest))
            .collect())
    }

    // --- handlers ------------------------------------------------------------------------------------------------

    pub(super) fn list_handlers(&self) -> TableResult<Vec<HandlerRow>> {
        self.overlay.read_handlers()
    }

    /// Stores these handlers as defined, and all others as not defined any more.
    pub(super) fn set_defined_handlers(&self, handlers: &[HandlerDef]) -> TableResult<()> {
        let stored = self.overlay.read_handlers()?;
        let mut last_id = stored.len() as HandlerId;
        for row in stored.iter().filter(|row| !handlers.iter().any(|def| def.name == row.def.name)) {
            let entry = StoredHandler { def: row.def.clone(), is_defined: false };
            self.overlay.write_row(Table::Handlers, row.id.to_string(), rows::encode_json(&entry)?);
        }
        for def in handlers {
            let id = match stored.iter().find(|row| row.def.name == def.name) {
                Some(row) => row.id,
                None => {
                    last_id += 1;
                    last_id
                }
            };
            let entry = StoredHandler { def: def.clone(), is_defined: true };
            self.overlay.write_row(Table::Handlers, id.to_string(), rows::encode_json(&entry)?);
        }
        self.mark_registry_changed();
        Ok(())
    }

    pub(super) fn write_rate_limiter(
        &self,
        handler: HandlerId,
        state: &LimiterAndBreakerState,
    ) -> TableResult<()> {
        self.overlay.write_row(Table::RateLimiters, handler.to_string(), rows::encode_json(state)?);
        self.record_invalidation(Invalidation::Limiter(handler));
        Ok(())
    }

    pub(super) fn read_missed_event_ranges_json(&self, handler: HandlerId) -> TableResult<String> {
        let row = self.overlay.read_row(Table::HandlerGaps, handler.to_string())?;
        row.map_or(Ok("[]".into()), |row| rows::decode_text(&row))
    }

    pub(super) fn write_missed_event_ranges_json(&self, handler: HandlerId, gaps: &str) -> TableResult<()> {
        self.overlay.write_row(Table::HandlerGaps, handler.to_string(), gaps.into());
        Ok(())
    }

    pub(super) fn list_configured_object_digests(&self) -> TableResult<BTreeMap<String, String>> {
        let rows = self.overlay.read_table(Table::FileDigests)?;
        rows.iter().map(|(key, digest)| Ok((rows::decode_text(key)?, rows::decode_text(digest)?))).collect()
    }

    pub(super) fn write_configured_object_digest(&self, key: &str, digest: &str) -> TableResult<()> {
        self.overlay.write_row(Table::FileDigests, key, digest.into());
        Ok(())
    }

    pub(super) fn delete_configured_object_digest(&self, key: &str) -> TableResult<()> {
        self.overlay.delete_row(Table::FileDigests, key);
        Ok(())
    }

    // --- rules ---------------------------------------------------------------------------------------------------

    pub(super) fn list_rules(&self) -> TableResult<Vec<Rule>> {
        self.overlay.read_rules()
    }

    pub(super) fn write_rule(&self, rule: &Rule) -> TableResult<()> {
        let field = rule_field(rule.kind, &rule.scope, rule.tenant.as_ref());
        self.overlay.write_row(Table::Rules, field, rows::encode_json(rule)?);
        self.mark_registry_changed();
        Ok(())
    }

    pub(super) fn delete_rule_row(
        &self,
        kind: RuleKind,
        scope: &RuleScope,
        tenant: Option<&Tenant>,
    ) -> TableResult<()> {
        self.overlay.delete_row(Table::Rules, rule_field(kind, scope, tenant));
        self.mark_registry_changed();
        Ok(())
    }

    // --- nodes and audit entries ---------------------------------------------------------------------------------

    pub(super) fn list_nodes(&self) -> TableResult<Vec<NodeView>> {
        self.overlay.read_recent_nodes()
    }

    pub(super) fn list_live_node_ids(&self) -> TableResult<Vec<NodeId>> {
        let nodes = self.overlay.read_all_nodes(false)?;
        Ok(nodes.iter().filter(|node| !node.has_left_or_died).map(|node| node.id).collect())
    }

    pub(super) fn add_node_row(&self, name: &str, now: Timestamp) -> TableResult<NodeId> {
        let id = self.assign_next_number(|store_state| &mut store_state.last_node_id);
        self.caller_time.record_reported_time(now);
        let capabilities = NodeCapabilities::default();
        let node = NodeView {
            id,
            name: name.into(),
            joined_at: now,
            last_heartbeat_at: now,
            has_left_or_died: false,
            capabilities,
            running_task_count: 0,
        };
        self.write_node(&node)?;
        self.mark_registry_changed();
        Ok(id)
    }

    fn write_node(&self, node: &NodeView) -> TableResult<()> {
        self.overlay.write_row(Table::Nodes, node.id.to_string(), rows::encode_node(node)?);
        Ok(())
    }

    /// Changes a stored node; returns whether it was present (not gone) before.
    fn update_node(&self, id: NodeId, change: impl FnOnce(&mut NodeView)) -> TableResult<bool> {
        let Some(row) = self.overlay.read_row(Table::Nodes, id.to_string())? else { return Ok(false) };
        let mut node = rows::decode_node(id, &row, 0)?;
        let was_present = !node.has_left_or_died;
        change(&mut node);
        self.write_node(&node)?;
        Ok(was_present)
    }

    pub(super) fn write_node_capabilities(
        &self,
        node: NodeId,
        capabilities: &NodeCapabilities,
    ) -> TableResult<()> {
        self.update_node(node, |node| node.capabilities = capabilities.clone()).map(drop)
    }

    pub(super) fn record_node_heartbeat(&self, node: NodeId, now: Timestamp) -> TableResult<bool> {
        self.caller_time.record_reported_time(now);
        self.update_node(node, |node| {
            if !node.has_left_or_died {
                node.last_heartbeat_at = now;
            }
        })
    }

    pub(super) fn mark_node_gone(&self, node: NodeId) -> TableResult<()> {
        self.update_node(node, |node| node.has_left_or_died = true)?;
        self.mark_registry_changed();
        Ok(())
    }

    pub(super) fn list_silent_nodes(&self, before: Timestamp) -> TableResult<Vec<NodeId>> {
        let nodes = self.overlay.read_all_nodes(false)?;
        let silent = nodes.iter().filter(|node| !node.has_left_or_died && node.last_heartbeat_at < before);
        Ok(silent.map(|node| node.id).collect())
    }

    pub(super) fn add_audit_entry(&self, entry: &AuditEntry) -> TableResult<()> {
        let number = self.assign_next_number(|store_state| &mut store_state.last_audit_entry_number);
        self.overlay.write_row(Table::AuditEntries, number.to_string(), rows::encode_audit_entry(entry));
        Ok(())
    }
}

/// Returns the field of a rule: kind, scope and tenant are unique together.
fn rule_field(kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) -> Vec<u8> {
    let tenant = tenant.map_or("", |tenant| tenant.as_str());
    [kind.as_str(), scope.kind_name(), &scope.name(), tenant].join("\0").into_bytes()
}
