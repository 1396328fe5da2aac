//! Consistent reads: a reader compares the commit versions before and after a read, and repeats the read if a node
//! committed in between. After several attempts it acquires the write lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_core::Timestamp;
use pointsman_store::error::{BoxError, Fault, TableResult};
use redis::Value;
use uuid::Uuid;

use crate::TASK_ID_NAMESPACE_TEXT_NAME;
use crate::codec::MemberOrField;
use crate::connect::Endpoint;
use crate::connection::{BlockingConnection, CommandArgs, args};
use crate::error::is_connection_fault;
use crate::keys::{Keys, Table};
use crate::overlay::{
    CacheFetch, TransactionOverlay, decode_integer, decode_list, decode_optional_bytes, decode_text_reply,
};
use crate::store_state::{COMMIT_VERSION_BYTES, STORE_MISSING_MESSAGE, StoreState, encode_commit_version};
use crate::write_lock;

/// Number of attempts without the write lock, after which a read acquires it.
pub(crate) const MAX_OPTIMISTIC_ATTEMPTS: usize = 4;
/// Maximum number of attempts under the write lock, which may expire.
const MAX_LOCKED_ATTEMPTS: usize = 2;
/// Maximum time to wait for the write lock.
const LOCK_WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Reads consistent snapshots over its own connection.
#[derive(Debug)]
pub(crate) struct SnapshotReader {
    pub(crate) overlay: TransactionOverlay,
    /// Owner name of this reader in the write lock.
    lock_owner_name: String,
}

impl SnapshotReader {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        let keys = Keys::new(endpoint.key_prefix());
        Self {
            overlay: TransactionOverlay::new(BlockingConnection::new(endpoint), keys),
            lock_owner_name: Uuid::new_v4().to_string(),
        }
    }

    /// Connects, unless there is a connection.
    pub(crate) fn connect_if_needed(&mut self) -> TableResult<()> {
        self.overlay.connection.connect_if_needed().map(drop)
    }

    /// Reads the clock of the server.
    pub(crate) fn read_server_time(&mut self) -> TableResult<Timestamp> {
        decode_server_time_micros(self.overlay.connection.execute(args!["TIME"])?).map(Timestamp::from_micros)
    }

    /// Reads the store state.
    pub(crate) fn read_store_state(&mut self) -> TableResult<StoreState> {
        decode_store_state(self.overlay.connection.execute(read_store_state_command(&self.overlay.keys))?)
    }

    /// Runs `read` on a consistent snapshot.
    pub(crate) fn read_snapshot<T>(
        &mut self,
        read: impl Fn(&mut TransactionOverlay, &StoreState) -> TableResult<T>,
    ) -> TableResult<T> {
        for _ in 0..MAX_OPTIMISTIC_ATTEMPTS {
            if let Some(result) = self.try_read_snapshot(&read)? {
                return Ok(result);
            }
        }
        self.read_under_write_lock(read)
    }

    /// Runs `read` under the write lock. The lock may expire; if a peer has committed then, `read` is repeated.
    pub(crate) fn read_under_write_lock<T>(
        &mut self,
        read: impl Fn(&mut TransactionOverlay, &StoreState) -> TableResult<T>,
    ) -> TableResult<T> {
        for _ in 0..MAX_LOCKED_ATTEMPTS {
            let result = self.acquire_write_lock().and_then(|()| {
                self.overlay.connection.enable_lock_renewal_on_send(&write_lock::renew_command(
                    &self.overlay.keys,
                    &self.lock_owner_name,
                ));
                self.try_read_snapshot(&read)
            });
            self.overlay.connection.disable_lock_renewal_on_send();
            // If this fails, the lock expires by itself.
            let _ = self
                .overlay
                .connection
                .execute_buffer(&write_lock::release_command(&self.overlay.keys, &self.lock_owner_name));
            if let Some(result) = result.transpose() {
                return result;
            }
        }
        Err(read_timeout_fault("peers kept writing during the read; try again"))
    }

    /// Runs `read`; returns `None` if a peer committed meanwhile, even if the read failed.
    fn try_read_snapshot<T>(
        &mut self,
        read: impl Fn(&mut TransactionOverlay, &StoreState) -> TableResult<T>,
    ) -> TableResult<Option<T>> {
        self.overlay.clear();
        // Most reads build task ids and need the namespace.
        let fetches = vec![CacheFetch::Row(
            Table::NamedTexts,
            MemberOrField::from_slice(TASK_ID_NAMESPACE_TEXT_NAME.as_bytes()),
        )];
        let mut replies =
            self.overlay.fetch_after_commands(vec![read_store_state_command(&self.overlay.keys)], fetches)?;
        let store_state = decode_store_state(replies.pop().unwrap_or(Value::Nil))?;
        let result = read(&mut self.overlay, &store_state);
        if result.as_ref().is_err_and(is_connection_fault) {
            return result.map(Some);
        }
        match self.read_commit_version()? == encode_commit_version(store_state.commit_version) {
            true => result.map(Some),
            false => Ok(None),
        }
    }

    /// Reads the encoded version of the last commit.
    fn read_commit_version(&mut self) -> TableResult<Vec<u8>> {
        let last = (COMMIT_VERSION_BYTES - 1).to_string();
        let bytes = self.overlay.connection.execute(args![
            "GETRANGE",
            self.overlay.keys.store_state_key(),
            "0",
            last
        ])?;
        Ok(decode_optional_bytes(bytes)?.map(|bytes| bytes.to_vec()).unwrap_or_default())
    }

    fn acquire_write_lock(&mut self) -> TableResult<()> {
        let begun = Instant::now();
        while begun.elapsed() < LOCK_WAIT_TIMEOUT {
            let reply = self.overlay.connection.execute(write_lock::acquire_command(
                &self.overlay.keys,
                &self.lock_owner_name,
                None,
            ))?;
            if decode_integer(decode_list(reply)?.into_iter().next().unwrap_or(Value::Nil))? != 0 {
                return Ok(());
            }
            self.overlay
                .connection
                .execute(write_lock::wait_command(&self.overlay.keys, &self.lock_owner_name))?;
        }
        Err(read_timeout_fault(format!(
            "could not acquire the write lock for a consistent read within {} s",
            LOCK_WAIT_TIMEOUT.as_secs()
        )))
    }
}

/// Returns a fault for a read that could not complete in time.
fn read_timeout_fault(reason: impl Into<BoxError>) -> Fault {
    Fault::Database(reason.into())
}

/// Returns the command that reads the store state.
pub(crate) fn read_store_state_command(keys: &Keys) -> CommandArgs {
    args!["GET", keys.store_state_key()]
}

pub(crate) fn decode_store_state(reply: Value) -> TableResult<StoreState> {
    let bytes = decode_optional_bytes(reply)?.ok_or_else(|| Fault::damaged(STORE_MISSING_MESSAGE))?;
    StoreState::decode(&bytes)
}

/// Decodes the reply of TIME into microseconds since 1970.
pub(crate) fn decode_server_time_micros(reply: Value) -> TableResult<i64> {
    let mut parts = decode_list(reply)?.into_iter();
    let mut next_number =
        || decode_text_reply(parts.next().unwrap_or(Value::Nil))?.parse::<i64>().map_err(Fault::damaged);
    Ok(next_number()? * 1_000_000 + next_number()?)
}

#[cfg(test)]
mod tests {
    use pointsman_testing::{shared_redis, unique_key_prefix};

    use super::*;
    use crate::write_lock::LOCK_RENEWAL_INTERVAL;

    /// A long read renews a short lease, so that peers do not wait long if it dies.
    #[test]
    fn long_reads_renew_the_write_lock() {
        let url = shared_redis().unwrap().url_with_prefix(&unique_key_prefix());
        let mut reader = SnapshotReader::new(Arc::new(Endpoint::parse(&url).unwrap()));
        let lock_key = reader.overlay.keys.with_prefix("pointsman:write-lock");
        let remaining_lease = |overlay: &mut TransactionOverlay| {
            decode_integer(overlay.connection.execute(args!["PTTL", &lock_key]).unwrap()).unwrap()
        };
        let state = args!["SET", reader.overlay.keys.store_state_key(), StoreState::default().encode()];
        reader.overlay.connection.execute(state).unwrap();
        let read = |overlay: &mut TransactionOverlay, _: &StoreState| {
            assert!((1..=3_000).contains(&remaining_lease(overlay)));
            for _ in 0..2 {
                overlay.connection.execute(args!["PEXPIRE", &lock_key, "60000"])?;
                std::thread::sleep(LOCK_RENEWAL_INTERVAL);
                assert!((1..=3_000).contains(&remaining_lease(overlay)));
            }
            Ok(())
        };
        reader.read_under_write_lock(read).unwrap();
        assert_eq!(remaining_lease(&mut reader.overlay), -2, "the lock was released");
    }
}
