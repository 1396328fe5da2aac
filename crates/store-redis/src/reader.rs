//! One who reads. All that it sees is of one moment: it looks how far everything has come before and after, and if somebody
//! has written meanwhile, it reads again. Where there is always somebody who does, it takes the turn, and nobody writes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_core::Timestamp;
use pointsman_store::error::{BoxError, Fault, Result};
use redis::Value;
use uuid::Uuid;

use crate::codec::Member;
use crate::connect::Endpoint;
use crate::connection::{BlockingConnection, CommandArgs, args};
use crate::error::is_broken;
use crate::keys::{Keys, Table};
use crate::overlay::{
    CacheFetch, TransactionOverlay, decode_integer, decode_list, decode_optional_bytes, decode_text_reply,
};
use crate::standing::{GONE, POINT, Standing, point_bytes};
use crate::turn;

/// So often a read is tried before it takes the turn.
pub(crate) const TRIES: usize = 4;
/// And so often in its turn.
const TURNS: usize = 2;
/// How long it waits for the turn.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) overlay: TransactionOverlay,
    /// The name under which it has the turn.
    me: String,
}

impl Reader {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        let keys = Keys::new(endpoint.prefix());
        Self {
            overlay: TransactionOverlay::new(BlockingConnection::new(endpoint), keys),
            me: Uuid::new_v4().to_string(),
        }
    }

    /// Connects, unless there is a connection.
    pub(crate) fn open(&self) -> Result<()> {
        self.overlay.connection.open().map(drop)
    }

    /// Reads the clock of the server.
    pub(crate) fn clock(&self) -> Result<Timestamp> {
        time_of(self.overlay.connection.execute(args!["TIME"])?).map(Timestamp::from_micros)
    }

    /// How far everything has come.
    pub(crate) fn standing(&self) -> Result<Standing> {
        standing_of(self.overlay.connection.execute(read_store_state_command(&self.overlay))?)
    }

    /// Runs `read`: all that it sees is of one moment.
    pub(crate) fn moment<T>(&self, read: impl Fn(&TransactionOverlay, &Standing) -> Result<T>) -> Result<T> {
        for _ in 0..TRIES {
            if let Some(seen) = self.undisturbed(&read)? {
                return Ok(seen);
            }
        }
        self.in_turn(read)
    }

    /// The same while nobody writes. The turn may run out, and then others do.
    pub(crate) fn in_turn<T>(&self, read: impl Fn(&TransactionOverlay, &Standing) -> Result<T>) -> Result<T> {
        for _ in 0..TURNS {
            let seen = self.take_turn().and_then(|()| {
                self.overlay.connection.start_lock_renewal(&turn::renew(&self.overlay.keys, &self.me));
                self.undisturbed(&read)
            });
            self.overlay.connection.stop_lock_renewal();
            // Should this fail, the turn runs out by itself.
            let _ = self.overlay.connection.execute_buffer(&turn::hand_on(&self.overlay.keys, &self.me));
            if let Some(seen) = seen.transpose() {
                return seen;
            }
        }
        Err(late("others have written again and again while it was read; try again"))
    }

    /// Runs `read`; nothing if somebody has written meanwhile. Then a failure counts as little as what was seen.
    fn undisturbed<T>(
        &self,
        read: impl Fn(&TransactionOverlay, &Standing) -> Result<T>,
    ) -> Result<Option<T>> {
        self.overlay.clear();
        // Most reads name tasks, for which they need this.
        let also = vec![CacheFetch::Row(Table::Texts, Member::from_slice(b"realm"))];
        let mut answers = self.overlay.fetch_after(vec![read_store_state_command(&self.overlay)], also)?;
        let before = standing_of(answers.pop().unwrap_or(Value::Nil))?;
        let seen = read(&self.overlay, &before);
        if seen.as_ref().is_err_and(is_broken) {
            return seen.map(Some);
        }
        match self.point()? == point_bytes(before.point) {
            true => seen.map(Some),
            false => Ok(None),
        }
    }

    /// Version and mark of the last commit.
    fn point(&self) -> Result<Vec<u8>> {
        let last = (POINT - 1).to_string();
        let point =
            self.overlay.connection.execute(args!["GETRANGE", point_key(&self.overlay), "0", last])?;
        Ok(decode_optional_bytes(point)?.map(|bytes| bytes.to_vec()).unwrap_or_default())
    }

    fn take_turn(&self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let answer = self.overlay.connection.execute(turn::ask(&self.overlay.keys, &self.me, None))?;
            if decode_integer(decode_list(answer)?.into_iter().next().unwrap_or(Value::Nil))? != 0 {
                return Ok(());
            }
            self.overlay.connection.execute(turn::wait(&self.overlay.keys, &self.me))?;
        }
        Err(late(format!("those who write left no room for it within {} s", PATIENCE.as_secs())))
    }
}

/// It could not be read now, though nothing is wrong.
fn late(why: impl Into<BoxError>) -> Fault {
    Fault::Database(why.into())
}

fn point_key(overlay: &TransactionOverlay) -> Vec<u8> {
    overlay.keys.with_prefix("pointsman:point")
}

/// Asks how far everything has come.
pub(crate) fn read_store_state_command(overlay: &TransactionOverlay) -> CommandArgs {
    args!["GET", point_key(overlay)]
}

pub(crate) fn standing_of(answer: Value) -> Result<Standing> {
    let point = decode_optional_bytes(answer)?.ok_or_else(|| Fault::damaged(GONE))?;
    Standing::decode(&point)
}

/// The server's time, in microseconds since 1970.
pub(crate) fn time_of(answer: Value) -> Result<i64> {
    let mut parts = decode_list(answer)?.into_iter();
    let mut number =
        || decode_text_reply(parts.next().unwrap_or(Value::Nil))?.parse::<i64>().map_err(Fault::damaged);
    Ok(number()? * 1_000_000 + number()?)
}

#[cfg(test)]
mod tests {
    use pointsman_testing::{fresh_prefix, shared_redis};

    use super::*;
    use crate::turn::RENEWAL;

    /// The turn of one that reads for long is short all the same: should it die, nobody waits for longer than that.
    #[test]
    fn whoever_reads_for_long_renews_its_turn() {
        let url = shared_redis().unwrap().url_under(&fresh_prefix());
        let reader = Reader::new(Arc::new(Endpoint::parse(&url).unwrap()));
        let turn = reader.overlay.keys.with_prefix("pointsman:turn");
        let left =
            || decode_integer(reader.overlay.connection.execute(args!["PTTL", &turn]).unwrap()).unwrap();
        reader
            .overlay
            .connection
            .execute(args!["SET", point_key(&reader.overlay), Standing::default().encode()])
            .unwrap();
        let read = |overlay: &TransactionOverlay, _: &Standing| {
            assert!((1..=3_000).contains(&left()));
            for _ in 0..2 {
                overlay.connection.execute(args!["PEXPIRE", &turn, "60000"])?;
                std::thread::sleep(RENEWAL);
                assert!((1..=3_000).contains(&left()));
            }
            Ok(())
        };
        reader.in_turn(read).unwrap();
        assert_eq!(left(), -2, "it was handed on");
    }
}
