//! Nodes.

use pointsman_core::Timestamp;
use pointsman_core::store::{NodeCapabilities, NodeId, NodeView};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::store_copy::replace_nul;
use pointsman_store::tables::NodeTable;

use super::PgTables;
use crate::rows::read_column;
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

impl NodeTable for PgTables {
    fn list_nodes(&mut self) -> TableResult<Vec<NodeView>> {
        let commands = self.take_batch_commands()?;
        self.connection.send_commands(&commands)?;
        self.connection.run_on_session(|session| Box::pin(crate::read::list_nodes(session)))
    }

    fn list_live_nodes(&mut self) -> TableResult<Vec<NodeId>> {
        self.query_and_decode_rows(query!("node/list_live_nodes"), vec![], |row| read_column(row, 0))
    }

    fn insert_node(&mut self, name: &str, now: Timestamp) -> TableResult<NodeId> {
        self.mark_registry_changed();
        self.caller_time.record_reported_time(now);
        let params = params![replace_nul(name).into_owned(), now.micros()];
        let id = self.query_and_decode_first(query!("node/insert_node", TEXT, INT8), params, |row| {
            read_column(row, 0)
        })?;
        id.ok_or_else(|| Fault::damaged("a node without a number"))
    }

    fn write_node_capabilities(&mut self, node: NodeId, capabilities: &NodeCapabilities) -> TableResult<()> {
        let json = serde_json::to_string(capabilities).map_err(Fault::damaged)?;
        self.add_to_batch(SqlCommand::Query(
            query!("node/write_node_capabilities", INT8, TEXT),
            params![node, json],
        ));
        Ok(())
    }

    fn record_node_heartbeat(&mut self, node: NodeId, now: Timestamp) -> TableResult<bool> {
        self.caller_time.record_reported_time(now);
        let params = params![node, now.micros()];
        let found =
            self.query_and_decode_first(query!("node/record_node_heartbeat", INT8, INT8), params, |row| {
                read_column::<i64>(row, 0)
            })?;
        Ok(found.is_some())
    }

    fn mark_node_gone(&mut self, node: NodeId) -> TableResult<()> {
        self.mark_registry_changed();
        self.add_to_batch(SqlCommand::Query(query!("node/mark_node_gone", INT8), params![node]));
        Ok(())
    }

    fn list_nodes_silent_since(&mut self, before: Timestamp) -> TableResult<Vec<NodeId>> {
        self.query_and_decode_rows(
            query!("node/list_nodes_silent_since", INT8),
            params![before.micros()],
            |row| read_column(row, 0),
        )
    }
}
