//! Where the stores of a run are made.

mod databases;
mod spaces;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use pointsman_core::store::Store;
use pointsman_store::Work;
use pointsman_store_postgres::Postgres;
use pointsman_store_redis::Redis;
use pointsman_store_sqlite::Sqlite;
use tempfile::TempDir;

use crate::bare::Bare;
pub(crate) use databases::Databases;
use databases::Server;
use spaces::Spaces;

/// The store that is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Target {
    #[default]
    Sqlite,
    /// The server at this URL; if there is none, one that is started for the run.
    Postgres { url: Option<String> },
    /// Likewise.
    Redis { url: Option<String> },
}

/// Where a whole run takes place.
pub(crate) enum Site {
    Disk(PathBuf),
    Server(Box<Server>),
    Redis(Box<spaces::Server>),
}

impl Site {
    pub(crate) fn find(options: &crate::Options) -> anyhow::Result<Self> {
        match &options.target {
            Target::Sqlite => Ok(Self::Disk(options.dir.clone())),
            Target::Postgres { url } => Ok(Self::Server(Box::new(Server::find(url.as_deref())?))),
            Target::Redis { url } => Ok(Self::Redis(Box::new(spaces::Server::find(url.as_deref())?))),
        }
    }

    /// An empty place for one measurement. What is made there goes with it.
    pub(crate) fn ground(&self) -> anyhow::Result<Ground> {
        match self {
            Self::Disk(dir) => Ok(Ground::Sqlite(tempfile::tempdir_in(dir)?)),
            Self::Server(server) => Ok(Ground::Postgres(server.databases())),
            Self::Redis(server) => Ok(Ground::Redis(server.spaces())),
        }
    }
}

/// Where the stores of one measurement are made.
pub(crate) enum Ground {
    Sqlite(TempDir),
    Postgres(Databases),
    Redis(Spaces),
}

/// A store, and what it has done since it was opened.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) work: Arc<Work>,
}

impl Ground {
    /// The store of this name, made if there is none. On a server it can be opened more than once at a time.
    pub(crate) async fn open(&self, name: &str) -> anyhow::Result<Opened> {
        let now = pointsman_engine::now();
        match self {
            Self::Sqlite(dir) => {
                let store = Sqlite::open(dir.path().join(name), now)?;
                let work = store.writer().work();
                Ok(Opened { store: Arc::new(store), work })
            }
            Self::Postgres(databases) => {
                let store = Postgres::open(&databases.url(name)?, now).await?;
                let work = store.writer().work();
                Ok(Opened { store: Arc::new(store), work })
            }
            Self::Redis(spaces) => {
                let store = Redis::open(&spaces.url(name), now).await?;
                let work = store.writer().work();
                Ok(Opened { store: Arc::new(store), work })
            }
        }
    }

    /// A database with the store's own tables, to be written to by hand. The store lays them out, so that both sides
    /// always have the same ones.
    pub(crate) async fn bare(&self) -> anyhow::Result<Bare> {
        const NAME: &str = "bare";
        self.open(NAME).await?.store.close();
        match self {
            Self::Sqlite(dir) => Bare::sqlite(&dir.path().join(NAME)),
            Self::Postgres(databases) => Bare::postgres(databases.connect(NAME).await?).await,
            Self::Redis(spaces) => Ok(Bare::redis(spaces.connect()?, spaces.prefix(NAME))),
        }
    }

    /// Sees to it that what was written so far no longer waits for the disk.
    pub(crate) async fn settle(&self, name: &str) -> anyhow::Result<()> {
        match self {
            Self::Sqlite(dir) => Ok(File::open(dir.path().join(name))?.sync_all()?),
            Self::Postgres(databases) => databases.settle(name).await,
            // Whatever it has answered is on the disk.
            Self::Redis(_) => Ok(()),
        }
    }
}
