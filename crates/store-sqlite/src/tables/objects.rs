//! Objects: the last event of each, and when retention last found it in use.

use pointsman_core::{EventId, Tenant};
use pointsman_store::columns::ObjectColumns;
use pointsman_store::expand_sql;
use pointsman_store::row::{IdleObject, ObjectRow};
use pointsman_store::tables::ObjectTable;

use super::SqliteTables;
use super::queries::{query_all, query_first, read_columns, write_columns};
use crate::error::{Fault, TableResult};

impl ObjectTable for SqliteTables {
    fn read_object(&mut self, tenant: &Tenant, key: &str) -> TableResult<Option<ObjectRow>> {
        let sql = expand_sql!("SELECT :object_columns FROM pointsman_object WHERE tenant = ?1 AND key = ?2");
        query_first(&self.conn, sql, (tenant.as_str(), key), |row| {
            Ok(read_columns::<ObjectColumns>(row)?.into_row())
        })
    }

    /// Inserts or updates an object. The column `checked` of an existing object stays as it is; otherwise its index would
    /// be written with each event.
    fn write_object(&mut self, tenant: &Tenant, key: &str, object: &ObjectRow) -> TableResult<()> {
        let sql = expand_sql!(
            "INSERT INTO pointsman_object (:object_columns) VALUES (:object_parameters)
             ON CONFLICT (tenant, key) DO UPDATE
             SET last_event = excluded.last_event, last_sent = excluded.last_sent, number = excluded.number"
        );
        write_columns(&self.conn, sql, &ObjectColumns::from_row(tenant, key, object, object.last_event))
    }

    fn list_idle_objects(&mut self, up_to: EventId, limit: usize) -> TableResult<Vec<IdleObject>> {
        let sql = expand_sql!(
            "SELECT :object_columns FROM pointsman_object WHERE checked <= ?1 ORDER BY checked LIMIT ?2"
        );
        query_all(&self.conn, sql, (up_to.as_i64(), limit as i64), |row| {
            let columns: ObjectColumns<'_> = read_columns(row)?;
            Ok(IdleObject {
                tenant: Tenant::new(&*columns.tenant).map_err(Fault::damaged)?,
                key: columns.key.to_string(),
                row: columns.into_row(),
                has_outbox_events: false,
            })
        })
    }

    fn mark_objects_in_use(&mut self, objects: &[(Tenant, String, EventId)]) -> TableResult<()> {
        let sql = "UPDATE pointsman_object SET checked = ?3 WHERE tenant = ?1 AND key = ?2";
        let mut update = self.conn.prepare_cached(sql)?;
        for (tenant, key, checked) in objects {
            update.execute((tenant.as_str(), key, checked.as_i64()))?;
        }
        Ok(())
    }

    fn mark_objects_of_events_in_use(
        &mut self,
        events: &[EventId],
        up_to: EventId,
        checked: EventId,
    ) -> TableResult<()> {
        let sql = "UPDATE pointsman_object SET checked = ?3
                   WHERE checked <= ?2 AND (tenant, key) = (SELECT tenant, key FROM pointsman_journal WHERE id = ?1)";
        let mut update = self.conn.prepare_cached(sql)?;
        for event in events {
            update.execute((event.as_i64(), up_to.as_i64(), checked.as_i64()))?;
        }
        Ok(())
    }

    fn delete_objects(&mut self, objects: &[IdleObject]) -> TableResult<()> {
        let mut delete =
            self.conn.prepare_cached("DELETE FROM pointsman_object WHERE tenant = ?1 AND key = ?2")?;
        for IdleObject { tenant, key, .. } in objects {
            delete.execute((tenant.as_str(), key))?;
        }
        Ok(())
    }
}
