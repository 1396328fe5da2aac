//! The writer's connection: driven by the writer's own thread, many statements on the way at once.

use std::cell::RefCell;
use std::future::Future;
use std::time::Duration;

use futures::future::{BoxFuture, try_join_all};
use pointsman_store::error::{Fault, Result};
use tokio::runtime::Runtime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use crate::pool::Pool;
use crate::session::{Query, Session};

/// A value of a statement, on its way.
pub(crate) type Param = Box<dyn ToSql + Sync + Send>;

/// A statement, or a word that needs none to be prepared.
pub(crate) enum Piece {
    Word(&'static str),
    Statement(&'static Query, Vec<Param>),
}

/// The parameters of a statement, each in a box.
macro_rules! params {
    ($($value:expr),* $(,)?) => { vec![$(Box::new($value) as $crate::link::Param),*] };
}
pub(crate) use params;

/// How long the writer waits for an answer before it takes the connection for dead. Longer than anybody waits for the
/// right to write, and shorter than a node's lease.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Link {
    runtime: Runtime,
    pool: Pool,
    session: RefCell<Option<Session>>,
}

impl Link {
    pub(crate) fn new(pool: Pool) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, pool, session: RefCell::default() })
    }

    /// Opens a connection if there is none; whether it was opened by this call.
    pub(crate) fn open(&self) -> Result<bool> {
        let open = self.session.borrow().as_ref().is_some_and(|session| !session.is_closed());
        if !open {
            let session = self.wait(self.pool.connect_writer())?;
            self.session.replace(Some(session));
        }
        Ok(!open)
    }

    /// Whether the connection is another one's for each transaction.
    pub(crate) fn is_pooled(&self) -> bool {
        self.session.borrow().as_ref().is_some_and(Session::is_pooled)
    }

    /// Ends the connection, and whatever it was in the middle of. Nobody carries it until something is asked again, so that
    /// the server is told now: it may hold what others wait for.
    pub(crate) fn cut(&self) {
        if let Some(session) = self.session.take() {
            self.runtime.block_on(session.end());
        }
    }

    /// Sends all of it at once and answers what each piece answered. The first that fails fails all.
    pub(crate) fn send(&self, pieces: &[Piece]) -> Result<Vec<Vec<Row>>> {
        let session = self.session.borrow();
        let session = session.as_ref().ok_or_else(|| Fault::from(Cut))?;
        self.wait::<_, Error>(async {
            for piece in pieces {
                if let Piece::Statement(query, _) = piece {
                    session.prepare(query).await?;
                }
            }
            // Each is sent when it is first polled, and they are polled in their order.
            try_join_all(pieces.iter().map(|piece| answer(session, piece))).await
        })
    }

    /// Runs something that asks one question after the other.
    pub(crate) fn with<T>(
        &self,
        work: impl for<'s> FnOnce(&'s Session) -> BoxFuture<'s, Result<T>>,
    ) -> Result<T> {
        let session = self.session.borrow();
        let session = session.as_ref().ok_or_else(|| Fault::from(Cut))?;
        self.wait(work(session))
    }

    fn wait<T, E: Into<Fault>>(&self, work: impl Future<Output = std::result::Result<T, E>>) -> Result<T> {
        self.runtime.block_on(async {
            match tokio::time::timeout(PATIENCE, work).await {
                Ok(done) => done.map_err(Into::into),
                Err(_) => Err(Fault::from(Silent)),
            }
        })
    }
}

fn answer<'a>(session: &'a Session, piece: &'a Piece) -> BoxFuture<'a, std::result::Result<Vec<Row>, Error>> {
    Box::pin(async move {
        match piece {
            Piece::Word(word) => session.batch(word).await.map(|()| Vec::new()),
            Piece::Statement(query, params) => {
                let params: Vec<&(dyn ToSql + Sync)> =
                    params.iter().map(|param| param.as_ref() as &(dyn ToSql + Sync)).collect();
                session.query(query, &params).await
            }
        }
    })
}

#[derive(Debug, thiserror::Error)]
#[error("there is no connection to PostgreSQL")]
struct Cut;

#[derive(Debug, thiserror::Error)]
#[error("PostgreSQL did not answer within {} s", PATIENCE.as_secs())]
struct Silent;
