//! The database as the source or the target of a store copy.
//!
//! `read.rs` reads rows in one snapshot, `write.rs` writes them, `copy_data.rs` encodes them. The statements are composed
//! of the columns that a table has in all stores; `table_layout.rs` lists the tables that have them in PostgreSQL.

mod copy_data;
mod read;
mod table_layout;
mod write;

use pointsman_core::store::{StoreError, StoreResult};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::store_copy::{
    COPY_PROGRESS_TEXT_NAME, CopyCursor, CopyEndpoint, CopyEndpointError, CopyPage, CopyRow, TableKind,
};
use tokio::runtime::Runtime;
use tokio_postgres::Client;

use crate::connect::Endpoint;
use crate::error::{self, ConnectError, OpenError, is_constraint_violation, is_value_rejected};
use crate::migrate::{self, MIGRATIONS, SchemaState};
use crate::rows::read_column;
use crate::session::{Query, QueryParams, Session, query};

/// No timeouts except for locks: a copy waits for the other store between two pages, and at its end for a statement
/// that reads whole tables.
const COPY_SESSION_SETTINGS: &str = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; \
     SET idle_session_timeout = 0; SET lock_timeout = '15s'; SELECT set_config('synchronous_commit', 'on', false) \
     WHERE current_setting('synchronous_commit') IN ('off', 'local')";

/// The PostgreSQL side of a store copy, on a database that no node uses.
pub struct PgStoreCopy {
    connection: CopyConnection,
    runtime: Runtime,
}

/// The connection of a copy and its state.
struct CopyConnection {
    client: Client,
    /// A read-only transaction with a snapshot is open.
    is_in_read_transaction: bool,
    /// The table that is being read, and the position of the cursor.
    cursor: Option<(TableKind, CopyCursor)>,
    /// The commit version when the connection was opened, or after its last write.
    commit_version: i64,
    /// The progress of a copy into this store, as it was read or written last.
    progress: Option<String>,
}

/// The role of a database in a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyRole {
    Source,
    Target,
}

impl PgStoreCopy {
    /// Opens a database to copy from. An older layout is migrated, as a server does.
    pub fn open_source(url: &str) -> Result<Self, CopyEndpointError<OpenError>> {
        Self::open(url, CopyRole::Source)
    }

    /// Opens a database to copy to. The schema is created if there is none.
    pub fn open_target(url: &str) -> Result<Self, CopyEndpointError<OpenError>> {
        Self::open(url, CopyRole::Target)
    }

    fn open(url: &str, role: CopyRole) -> Result<Self, CopyEndpointError<OpenError>> {
        let named_endpoint = Endpoint::parse(url)?;
        let Some(endpoint) = named_endpoint.listen_endpoint() else {
            return Err(CopyEndpointError::ConnectionPooler(named_endpoint.to_string()));
        };
        let to_open_error = |error: std::io::Error| OpenError::OpenFailed {
            address: endpoint.address(),
            source: error.into(),
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(to_open_error)?;
        let connection = runtime.block_on(check_and_open_connection(endpoint, role))?;
        Ok(Self { connection, runtime })
    }
}

async fn check_and_open_connection(
    endpoint: &Endpoint,
    role: CopyRole,
) -> Result<CopyConnection, CopyEndpointError<OpenError>> {
    let to_open_error = |fault: Fault| error::to_open_error(endpoint.address(), fault);
    let to_connect_error = |error: ConnectError| OpenError::from_connect_error(endpoint, error);
    let session = endpoint.connect_with_timeout().await.map_err(to_connect_error)?;
    match (migrate::read_schema_state(&session, endpoint, MIGRATIONS).await?, role) {
        (SchemaState::Absent | SchemaState::Empty | SchemaState::Applied(0), CopyRole::Source) => {
            return Err(CopyEndpointError::NoStore(endpoint.to_string()));
        }
        (SchemaState::Absent | SchemaState::Empty | SchemaState::Applied(0), CopyRole::Target) => {}
        (SchemaState::Applied(_), _) => {
            let nodes = list_live_nodes(&session).await.map_err(to_open_error)?;
            if !nodes.is_empty() {
                return Err(CopyEndpointError::InUse { at: endpoint.to_string(), nodes: nodes.join(", ") });
            }
        }
    }
    migrate::migrate(&session, endpoint, MIGRATIONS).await?;
    if role == CopyRole::Source {
        let events = count_outbox_rows(&session).await.map_err(to_open_error)?;
        if events > 0 {
            let events = format!("{events} event{}", if events == 1 { "" } else { "s" });
            return Err(CopyEndpointError::OutboxNotEmpty { at: endpoint.to_string(), events });
        }
    }
    drop(session);
    let (client, driver_connection) =
        endpoint.open_driver_connection_with_timeout().await.map_err(to_connect_error)?;
    tokio::spawn(driver_connection);
    Ok(CopyConnection::new(client).await.map_err(to_open_error)?)
}

/// Lists the names of nodes that use the store.
async fn list_live_nodes(session: &Session) -> TableResult<Vec<String>> {
    let rows = session.query(query!("store_copy/list_live_nodes"), &[]).await?;
    rows.iter().map(|row| read_column(row, 0)).collect()
}

async fn count_outbox_rows(session: &Session) -> TableResult<i64> {
    let rows = session.query(query!("store_copy/count_outbox_rows"), &[]).await?;
    rows.first().map_or(Ok(0), |row| read_column(row, 0))
}

impl CopyConnection {
    async fn new(client: Client) -> TableResult<Self> {
        client.batch_execute(COPY_SESSION_SETTINGS).await?;
        let mut connection =
            Self { client, is_in_read_transaction: false, cursor: None, commit_version: 0, progress: None };
        (connection.commit_version, _) = connection.read_commit_version_and_outbox_empty().await?;
        Ok(connection)
    }

    async fn query(
        &self,
        query: &'static Query,
        params: QueryParams<'_>,
    ) -> TableResult<Vec<tokio_postgres::Row>> {
        Ok(self.client.query_typed(query.sql, &query.with_param_types(params)).await?)
    }

    /// Reads the commit version, and whether the outbox is empty.
    async fn read_commit_version_and_outbox_empty(&self) -> TableResult<(i64, bool)> {
        let rows = self.query(query!("store_copy/read_commit_version_and_outbox_empty"), &[]).await?;
        let row = rows.first().ok_or_else(|| Fault::damaged("pointsman.last_commit has no row"))?;
        Ok((read_column(row, 0)?, read_column(row, 1)?))
    }

    async fn count_outbox_events(&self) -> TableResult<u64> {
        let rows = self.query(query!("store_copy/count_outbox_rows"), &[]).await?;
        rows.first().map_or(Ok(0), |row| read_column(row, 0).map(i64::unsigned_abs))
    }

    /// True if nothing was written since the store was opened, and the outbox is empty.
    async fn is_unchanged(&mut self) -> TableResult<bool> {
        self.end_read_transaction().await?;
        Ok(self.read_commit_version_and_outbox_empty().await? == (self.commit_version, true))
    }

    async fn read_progress(&mut self) -> TableResult<Option<String>> {
        let rows = self.query(query!("meta/read_named_text", TEXT), &[&COPY_PROGRESS_TEXT_NAME]).await?;
        self.progress = rows.first().map(|row| read_column(row, 0)).transpose()?;
        Ok(self.progress.clone())
    }
}

/// Converts a fault. A rejected value or row is damaged data, not an unavailable store: a retry would fail again.
fn to_copy_error(fault: Fault) -> StoreError {
    let is_rejected = is_constraint_violation(&fault) || is_value_rejected(&fault);
    match error::to_store_error(fault) {
        StoreError::Unavailable(cause) if is_rejected => StoreError::Damaged(cause),
        other => other,
    }
}

impl CopyEndpoint for PgStoreCopy {
    fn count_rows(&mut self, table_kind: TableKind) -> StoreResult<Option<u64>> {
        self.runtime.block_on(self.connection.count_rows(table_kind)).map(Some).map_err(to_copy_error)
    }

    fn read_page(&mut self, table_kind: TableKind, after: Option<&CopyCursor>) -> StoreResult<CopyPage> {
        self.runtime.block_on(self.connection.read_page(table_kind, after)).map_err(to_copy_error)
    }

    fn count_outbox_events(&mut self) -> StoreResult<u64> {
        self.runtime.block_on(self.connection.count_outbox_events()).map_err(to_copy_error)
    }

    fn is_unchanged_since_open(&mut self) -> StoreResult<bool> {
        self.runtime.block_on(self.connection.is_unchanged()).map_err(to_copy_error)
    }

    fn read_copy_progress(&mut self) -> StoreResult<Option<String>> {
        self.runtime.block_on(self.connection.read_progress()).map_err(to_copy_error)
    }

    fn write_rows_and_progress(
        &mut self,
        table_kind: TableKind,
        rows: Vec<CopyRow>,
        progress: &str,
    ) -> StoreResult<bool> {
        self.runtime.block_on(self.connection.write_page(table_kind, rows, progress)).map_err(to_copy_error)
    }

    fn finish_copy(&mut self) -> StoreResult<bool> {
        self.runtime.block_on(self.connection.finish_copy()).map_err(to_copy_error)
    }
}

impl std::fmt::Debug for PgStoreCopy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PgStoreCopy")
    }
}
