//! What a database keeps in slices is forgotten by slices after a move, too.

use pointsman_core::store::Store;
use pointsman_store_conformance::moving::Lair as _;
use pointsman_store_conformance::moving::many::Many;
use pointsman_store_postgres::Postgres;

use crate::house::connect;
use crate::lair::{Kind, Lair, Movers};

const SLICE: i64 = 1000;

async fn slices(lair: &Lair, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM pg_inherits WHERE inhparent = 'pointsman.{table}'::regclass");
    connect(lair.url()).await.query_one(&sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn many_lie_in_as_many_slices_as_they_need() {
    let movers = Movers::along(&[Kind::File, Kind::Database]);
    let many = Many::new(&movers).await;
    // Its slices are of no use to another test.
    let database = Lair::own_database();
    database.open(many.world.now).await.close();
    let set = format!("INSERT INTO pointsman.meta (name, text) VALUES ('slice', '{SLICE}')");
    connect(database.url()).await.batch_execute(&set).await.unwrap();
    movers.go_next_to(&database);
    let many = many.moved().await;
    let (journal, history) = (slices(&database, "journal").await, slices(&database, "history").await);
    // One for what is kept though it is forgotten; none for what was forgotten before.
    assert!((8..=10).contains(&journal) && (8..=10).contains(&history), "{journal} {history}");

    many.forgets().await;
    let sweeper = Postgres::open(database.url(), many.world.now).await.unwrap();
    sweeper.sweep().await.unwrap();
    sweeper.close();
    assert!(slices(&database, "journal").await <= journal - 4);
    for table in ["history", "attempt", "log"] {
        assert!(slices(&database, table).await <= history - 4, "{table}");
    }
    many.goes_on().await;
}
