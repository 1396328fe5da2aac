//! Moves that are cut off, and go on.

use pointsman_core::store::StoreError;
use pointsman_store::transfer::{Movable, MoveError, NOTE, Report, Section, Step, transfer};
use pointsman_store_conformance::moving::{self, Before};
use pointsman_store_conformance::world::*;
use pointsman_store_postgres::{PgMove, Postgres};
use pointsman_store_sqlite::{Sqlite, SqliteMove};
use pointsman_testing::Proxy;

use crate::house::connect;
use crate::lair::{Lair, Movers, apart};

/// Moves so many pages at most.
pub(crate) fn move_pages(from: &Lair, to: &Lair, pages: usize) -> Result<Report, MoveError> {
    moving::move_pages(&mut *from.source(), to.target(), pages)
}

/// A store with something of everything, ended.
pub(crate) async fn filled(movers: &Movers) -> Lair {
    let mut world = World::new(movers, moving::plan()).await;
    moving::fill(&mut world).await;
    movers.leave()
}

/// How often a move was cut off that writes a page at a time.
async fn creep(from: &Lair, to: &Lair) -> usize {
    let mut cuts = 0;
    loop {
        let (one, other) = (from.clone(), to.clone());
        match apart(move || move_pages(&one, &other, 1)).await {
            Ok(report) => {
                assert!(report.differences().is_empty(), "{report:?}");
                return cuts;
            }
            Err(MoveError::Target(StoreError::Unavailable(what))) => assert_eq!(what, "cut off"),
            Err(error) => panic!("{error:?}"),
        }
        cuts += 1;
        assert!(cuts < 100, "it does not come to an end");
        assert!(refuses(to).await, "what is there in part is not opened");
    }
}

/// Whether a store cannot be opened because a move to it has not ended.
async fn refuses(lair: &Lair) -> bool {
    let refused = match lair {
        Lair::File(path) => Sqlite::open(path, BEGINNING).map(drop).map_err(|error| error.to_string()),
        Lair::Database(url, _) => {
            Postgres::open(url, BEGINNING).await.map(drop).map_err(|error| error.to_string())
        }
    };
    refused.is_err_and(|error| error.contains("a move to it has not ended"))
}

#[tokio::test]
async fn every_page_may_be_the_last_before_a_cut() {
    let movers = Movers::new();
    let (file, database, other) = (filled(&movers).await, Lair::database().await, movers.file());
    assert!(creep(&file, &database).await > 15);
    assert!(creep(&database, &other).await > 15);
    for lair in [&database, &other] {
        assert!(!refuses(lair).await);
    }
}

#[tokio::test]
async fn a_wire_that_breaks_loses_nothing() {
    let movers = Movers::new();
    let (file, database) = (filled(&movers).await, Lair::database().await);
    let (login, place) = database.url().split_once('@').unwrap();
    let (address, name) = place.split_once('/').unwrap();
    let proxy = Proxy::start(address.parse().unwrap()).unwrap();
    let url = format!("{login}@{}/{name}", proxy.address());
    let from = file.clone();
    let cut = apart(move || {
        let mut pages = 0;
        let page = move || {
            pages += 1;
            if pages == 7 {
                proxy.cut();
            }
            Ok(())
        };
        let mut target = Before { target: Box::new(PgMove::target(&url).unwrap()), page };
        transfer(&mut *from.source(), &mut target, &mut |_| {})
    });
    let error = cut.await.unwrap_err();
    assert!(matches!(error, MoveError::Target(StoreError::Unavailable(_))), "{error:?}");
    let from = file.clone();
    let to = database.clone();
    let (report, first) = apart(move || {
        let mut first = None;
        let mut told = |step: Step| {
            first.get_or_insert(step);
        };
        let report = transfer(&mut *from.source(), &mut *to.target(), &mut told).unwrap();
        (report, first)
    })
    .await;
    assert!(report.differences().is_empty());
    assert!(matches!(first, Some(Step::Copying { all, before }) if before > 6 && before < all), "{first:?}");
}

#[tokio::test]
async fn two_who_move_to_one_database_do_not_mix() {
    let movers = Movers::new();
    let (file, database) = (filled(&movers).await, Lair::database().await);
    let (url, to) = (database.url().to_owned(), database.clone());
    let report = apart(move || {
        let mut other = Some(PgMove::target(&url).unwrap());
        let mut pages = 0;
        let page = move || {
            pages += 1;
            match other.take().filter(|_| pages == 1) {
                // Both have found it empty; this one is first to write.
                Some(mut other) => other.write(Section::Texts, vec![], "another note").map(drop),
                None => Ok(()),
            }
        };
        let mut target = Before { target: to.target(), page };
        transfer(&mut *file.source(), &mut target, &mut |_| {})
    });
    let error = report.await.unwrap_err();
    assert!(matches!(error, MoveError::Disturbed), "{error:?}");
    let client = connect(database.url()).await;
    let nodes = client.query_one("SELECT is_called FROM pointsman.node_id_seq", &[]).await;
    assert!(!nodes.unwrap().get::<_, bool>(0), "the second leaves nothing, not even in a sequence");
}

#[test]
fn a_note_is_no_part_of_what_is_moved() {
    let folder = tempfile::tempdir().unwrap();
    let mut target = SqliteMove::target(folder.path().join("a.db")).unwrap();
    target.write(Section::Texts, vec![], "a note").unwrap();
    assert_eq!(target.note().unwrap().as_deref(), Some("a note"));
    assert_eq!((target.count(Section::Texts).unwrap(), NOTE), (Some(0), "move"));
}
