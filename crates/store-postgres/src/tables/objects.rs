//! Objects: the last event of each, the last one sent to each handler, and when retention last found the object in use.

use pointsman_core::{EventId, Tenant};
use pointsman_store::columns::ObjectColumns;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::{IdleObject, ObjectRow};
use pointsman_store::tables::ObjectTable;

use super::PgTables;
use crate::rows::read_columns;
use crate::session::query;
use crate::writer_connection::params;

impl ObjectTable for PgTables {
    fn read_object(&mut self, tenant: &Tenant, key: &str) -> TableResult<Option<ObjectRow>> {
        let tenant_and_key = (tenant.clone(), key.to_string());
        if let Some(cached) = self.cache.find_object(&tenant_and_key) {
            return Ok(cached.cloned());
        }
        let params = params![tenant.to_string(), key.to_string()];
        let found = self.query_and_decode_first(query!("object/read_object", TEXT, TEXT), params, |row| {
            Ok(read_columns::<ObjectColumns<'_>>(row, 0)?.into_row())
        })?;
        self.cache.insert_object(tenant_and_key, found.clone());
        Ok(found)
    }

    fn write_object(&mut self, tenant: &Tenant, key: &str, object: &ObjectRow) -> TableResult<()> {
        self.write_batch.write_object(tenant, key, object);
        self.invalidation_builder.add_written_object(object.number);
        self.cache.insert_object((tenant.clone(), key.into()), Some(object.clone()));
        Ok(())
    }

    fn list_idle_objects(&mut self, up_to: EventId, limit: usize) -> TableResult<Vec<IdleObject>> {
        let params = params![up_to.as_i64(), limit as i64];
        self.query_and_decode_rows(query!("object/list_idle_objects", INT8, INT8), params, |row| {
            let columns: ObjectColumns<'_> = read_columns(row, 0)?;
            Ok(IdleObject {
                tenant: Tenant::new(&*columns.tenant).map_err(Fault::damaged)?,
                key: columns.key.to_string(),
                row: columns.into_row(),
                has_outbox_events: false,
            })
        })
    }

    /// Records when retention found objects in use. Nodes do not cache this time, so that no invalidation is needed.
    fn mark_objects_in_use(&mut self, objects: &[(Tenant, String, EventId)]) -> TableResult<()> {
        if objects.is_empty() {
            return Ok(());
        }
        let tenants: Vec<String> = objects.iter().map(|(tenant, ..)| tenant.to_string()).collect();
        let keys: Vec<String> = objects.iter().map(|(_, key, _)| key.clone()).collect();
        let checked: Vec<i64> = objects.iter().map(|(.., checked)| checked.as_i64()).collect();
        let query = query!("object/mark_objects_in_use", TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY);
        self.query_rows(query, params![tenants, keys, checked]).map(drop)
    }

    fn mark_objects_of_events_in_use(
        &mut self,
        events: &[EventId],
        up_to: EventId,
        checked: EventId,
    ) -> TableResult<()> {
        if events.is_empty() {
            return Ok(());
        }
        let events: Vec<i64> = events.iter().map(|event| event.as_i64()).collect();
        let params = params![events, up_to.as_i64(), checked.as_i64()];
        self.query_rows(query!("object/mark_objects_of_events_in_use", INT8_ARRAY, INT8, INT8), params)
            .map(drop)
    }

    fn delete_objects(&mut self, objects: &[IdleObject]) -> TableResult<()> {
        if objects.is_empty() {
            return Ok(());
        }
        let tenants: Vec<String> = objects.iter().map(|idle| idle.tenant.to_string()).collect();
        let keys: Vec<String> = objects.iter().map(|idle| idle.key.clone()).collect();
        self.query_rows(query!("object/delete_objects", TEXT_ARRAY, TEXT_ARRAY), params![tenants, keys])?;
        for idle in objects {
            self.invalidation_builder.add_written_object(idle.row.number);
            self.cache.drop_cached_object((idle.tenant.clone(), idle.key.clone()));
        }
        Ok(())
    }
}
