//! Handlers.

use pointsman_core::HandlerDef;
use pointsman_core::limit::LimiterAndBreakerState;
use pointsman_store::columns::HandlerColumns;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::invalidation::Invalidation;
use pointsman_store::row::{HandlerId, HandlerRow};
use pointsman_store::tables::HandlerTable;

use super::RedisTables;
use crate::keys::Table;
use crate::rows;

impl HandlerTable for RedisTables {
    fn list_handlers(&mut self) -> TableResult<Vec<HandlerRow>> {
        self.overlay.read_handlers()
    }

    /// Stores these handlers as defined, and all others as not defined any more.
    fn set_defined_handlers(&mut self, handlers: &[HandlerDef]) -> TableResult<()> {
        let stored = self.overlay.read_handlers()?;
        let mut last_id = stored.len() as HandlerId;
        for row in stored.iter().filter(|row| !handlers.iter().any(|def| def.name == row.def.name)) {
            self.write_handler(row.id, &row.def, false)?;
        }
        for def in handlers {
            let id = match stored.iter().find(|row| row.def.name == def.name) {
                Some(row) => row.id,
                None => {
                    last_id += 1;
                    last_id
                }
            };
            self.write_handler(id, def, true)?;
        }
        self.mark_registry_changed();
        Ok(())
    }

    fn write_limiter_state(&mut self, handler: HandlerId, state: &LimiterAndBreakerState) -> TableResult<()> {
        self.overlay.write_row(Table::LimiterStates, handler.to_string(), rows::encode_json(state)?);
        self.record_invalidation(Invalidation::Limiter(handler));
        Ok(())
    }

    fn read_missed_event_ranges_json(&mut self, handler: HandlerId) -> TableResult<String> {
        let row = self.overlay.read_row(Table::MissedEventRanges, handler.to_string())?;
        row.map_or(Ok("[]".into()), |row| rows::decode_text(&row))
    }

    fn write_missed_event_ranges_json(&mut self, handler: HandlerId, gaps: &str) -> TableResult<()> {
        self.overlay.write_row(Table::MissedEventRanges, handler.to_string(), gaps.into());
        Ok(())
    }
}

impl RedisTables {
    fn write_handler(&mut self, id: HandlerId, def: &HandlerDef, is_defined: bool) -> TableResult<()> {
        let row = rows::encode_handler(&HandlerColumns {
            id,
            name: def.name.as_str().into(),
            def: serde_json::to_string(def).map_err(Fault::damaged)?.into(),
            defined: is_defined,
            limiter_state: "".into(),
            gaps: "".into(),
        });
        self.overlay.write_row(Table::Handlers, id.to_string(), row);
        Ok(())
    }
}
