//! Handlers.

use pointsman_core::HandlerDef;
use pointsman_core::limit::LimiterAndBreakerState;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::invalidation::Invalidation;
use pointsman_store::row::{HandlerId, HandlerRow};
use pointsman_store::tables::HandlerTable;
use tokio_postgres::Row;

use super::PgTables;
use crate::rows::read_column;
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

impl HandlerTable for PgTables {
    fn list_handlers(&mut self) -> TableResult<Vec<HandlerRow>> {
        self.query_and_decode_rows(query!("handler/list_handlers"), vec![], |row| {
            Ok(HandlerRow {
                id: read_column(row, 0)?,
                def: serde_json::from_str(read_column(row, 1)?).map_err(Fault::damaged)?,
                is_defined: read_column(row, 2)?,
                limiter_state: decode_limiter_state(read_column(row, 3)?)?,
            })
        })
    }

    fn set_defined_handlers(&mut self, handlers: &[HandlerDef]) -> TableResult<()> {
        self.mark_registry_changed();
        self.add_to_batch(SqlCommand::Query(query!("handler/mark_handlers_undefined"), vec![]));
        for def in handlers {
            let json = serde_json::to_string(def).map_err(Fault::damaged)?;
            let params = params![def.name.to_string(), json];
            self.add_to_batch(SqlCommand::Query(query!("handler/upsert_handler", TEXT, TEXT), params));
        }
        Ok(())
    }

    fn write_limiter_state(
        &mut self,
        handler: HandlerId,
        limiter_state: &LimiterAndBreakerState,
    ) -> TableResult<()> {
        self.record_invalidation(Invalidation::Limiter(handler));
        let json = serde_json::to_string(limiter_state).map_err(Fault::damaged)?;
        self.add_to_batch(SqlCommand::Query(
            query!("handler/write_limiter_state", INT8, TEXT),
            params![handler, json],
        ));
        Ok(())
    }

    fn read_missed_event_ranges_json(&mut self, handler: HandlerId) -> TableResult<String> {
        let gaps = self.query_and_decode_first(
            query!("handler/read_missed_event_ranges_json", INT8),
            params![handler],
            |row| read_column(row, 0),
        )?;
        gaps.ok_or_else(|| Fault::damaged(format!("no handler {handler}")))
    }

    fn write_missed_event_ranges_json(&mut self, handler: HandlerId, gaps: &str) -> TableResult<()> {
        let params = params![handler, gaps.to_string()];
        self.add_to_batch(SqlCommand::Query(
            query!("handler/write_missed_event_ranges_json", INT8, TEXT),
            params,
        ));
        Ok(())
    }
}

impl PgTables {
    pub(super) fn list_limiter_states(
        &mut self,
        ids: Vec<HandlerId>,
    ) -> TableResult<Vec<(HandlerId, LimiterAndBreakerState)>> {
        let decode_state =
            |row: &Row| Ok((read_column(row, 0)?, decode_limiter_state(read_column(row, 1)?)?));
        match ids.is_empty() {
            true => Ok(vec![]),
            false => self.query_and_decode_rows(
                query!("handler/list_limiter_states", INT8_ARRAY),
                params![ids],
                decode_state,
            ),
        }
    }
}

fn decode_limiter_state(json: &str) -> TableResult<LimiterAndBreakerState> {
    match json {
        "" => Ok(LimiterAndBreakerState::default()),
        json => serde_json::from_str(json).map_err(Fault::damaged),
    }
}
