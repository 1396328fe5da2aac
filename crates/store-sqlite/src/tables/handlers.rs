//! Handlers.

use pointsman_core::HandlerDef;
use pointsman_core::limit::LimiterAndBreakerState;
use pointsman_store::row::{HandlerId, HandlerRow};
use pointsman_store::tables::HandlerTable;

use super::SqliteTables;
use super::queries::{query_all, read_text};
use crate::error::{Fault, TableResult};

impl HandlerTable for SqliteTables {
    fn list_handlers(&mut self) -> TableResult<Vec<HandlerRow>> {
        let sql = "SELECT id, def, defined, limiter_state FROM pointsman_handler ORDER BY id";
        query_all(&self.conn, sql, [], |row| {
            let def = serde_json::from_str(read_text(row, 1)?);
            let limiter_state = match read_text(row, 3)? {
                "" => Ok(LimiterAndBreakerState::default()),
                json => serde_json::from_str(json),
            };
            Ok(HandlerRow {
                id: row.get(0)?,
                def: def.map_err(|e| Fault::undecodable("the definition of a handler", e))?,
                is_defined: row.get(2)?,
                limiter_state: limiter_state
                    .map_err(|e| Fault::undecodable("the limiter state of a handler", e))?,
            })
        })
    }

    fn set_defined_handlers(&mut self, handlers: &[HandlerDef]) -> TableResult<()> {
        self.conn.execute("UPDATE pointsman_handler SET defined = 0", [])?;
        let sql = "INSERT INTO pointsman_handler (name, def, defined) VALUES (?1, ?2, 1)
                   ON CONFLICT (name) DO UPDATE SET def = ?2, defined = 1";
        for def in handlers {
            let json = serde_json::to_string(def).map_err(Fault::damaged)?;
            self.conn.prepare_cached(sql)?.execute((def.name.as_str(), json))?;
        }
        Ok(())
    }

    fn write_limiter_state(
        &mut self,
        handler: HandlerId,
        limiter_state: &LimiterAndBreakerState,
    ) -> TableResult<()> {
        let json = serde_json::to_string(limiter_state).map_err(Fault::damaged)?;
        self.conn
            .prepare_cached("UPDATE pointsman_handler SET limiter_state = ?2 WHERE id = ?1")?
            .execute((handler, json))?;
        Ok(())
    }

    fn read_missed_event_ranges_json(&mut self, handler: HandlerId) -> TableResult<String> {
        let mut statement = self.conn.prepare_cached("SELECT gaps FROM pointsman_handler WHERE id = ?1")?;
        Ok(statement.query_row([handler], |r| r.get(0))?)
    }

    fn write_missed_event_ranges_json(&mut self, handler: HandlerId, gaps: &str) -> TableResult<()> {
        self.conn
            .prepare_cached("UPDATE pointsman_handler SET gaps = ?2 WHERE id = ?1")?
            .execute((handler, gaps))?;
        Ok(())
    }
}
