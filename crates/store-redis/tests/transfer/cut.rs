//! Moves that are cut off, and go on.

use pointsman_core::store::StoreError;
use pointsman_store::transfer::{Movable, MoveError, Report, Section, Step, transfer, verify};
use pointsman_store_conformance::moving::{self, Before};
use pointsman_store_conformance::world::*;
use pointsman_store_redis::{Redis, RedisMove};
use pointsman_store_sqlite::Sqlite;
use pointsman_testing::{Proxy, shared_redis};

use crate::lair::{Kind, Lair, Movers, apart};

/// Moves so many pages at most.
pub(crate) fn move_pages(from: &Lair, to: &Lair, pages: usize) -> Result<Report, MoveError> {
    moving::move_pages(&mut *from.source(), to.target(), pages)
}

/// A store with something of everything, ended.
pub(crate) async fn filled(kind: &'static [Kind]) -> (Movers, Lair) {
    let movers = Movers::along(kind);
    let mut world = World::new(&movers, moving::plan()).await;
    moving::fill(&mut world).await;
    drop(world);
    let lair = movers.leave();
    (movers, lair)
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
        if let Lair::Keys(_) = to {
            assert!(refuses(to).await, "what is there in part is not opened");
        }
    }
}

/// Whether a store cannot be opened because a move to it has not ended.
async fn refuses(lair: &Lair) -> bool {
    let refused = match lair {
        Lair::File(path) => Sqlite::open(path, BEGINNING).map(drop).map_err(|error| error.to_string()),
        Lair::Database(_) | Lair::Keys(_) => {
            Redis::open(&lair.url(), BEGINNING).await.map(drop).map_err(|error| error.to_string())
        }
    };
    refused.is_err_and(|error| error.contains("a move to it has not ended"))
}

#[tokio::test]
async fn every_page_may_be_the_last_before_a_cut() {
    let (movers, file) = filled(&[Kind::File]).await;
    let (keys, other) = (Lair::keys(), movers.file());
    assert!(creep(&file, &keys).await > 15);
    assert!(creep(&keys, &other).await > 15);
    for lair in [&keys, &other] {
        assert!(!refuses(lair).await);
    }
}

#[tokio::test]
async fn a_wire_that_breaks_loses_nothing() {
    let (_movers, file) = filled(&[Kind::File]).await;
    let keys = Lair::keys();
    let proxy = Proxy::start(shared_redis().unwrap().address()).unwrap();
    let url = format!("redis://{}/?prefix={}&connect_timeout=1", proxy.address(), keys.prefix());
    let from = file.clone();
    let cut = apart(move || {
        let mut pages = 0;
        let page = move || {
            pages += 1;
            if pages == 7 {
                proxy.refuse(true).unwrap();
                proxy.cut();
            }
            Ok(())
        };
        let mut target = Before { target: Box::new(RedisMove::target(&url).unwrap()), page };
        transfer(&mut *from.source(), &mut target, &mut |_| {})
    });
    let error = cut.await.unwrap_err();
    assert!(matches!(error, MoveError::Target(StoreError::Unavailable(_))), "{error:?}");
    let (report, first) = apart(move || {
        let mut first = None;
        let mut told = |step: Step| {
            first.get_or_insert(step);
        };
        let report = transfer(&mut *file.source(), &mut *keys.target(), &mut told).unwrap();
        (report, first)
    })
    .await;
    assert!(report.differences().is_empty());
    assert!(matches!(first, Some(Step::Copying { all, before }) if before > 6 && before < all), "{first:?}");
}

#[tokio::test]
async fn two_who_move_to_one_place_do_not_mix() {
    let (_movers, file) = filled(&[Kind::File]).await;
    let keys = Lair::keys();
    let (url, to) = (keys.url(), keys.clone());
    let moved = apart(move || {
        let mut other = Some(RedisMove::target(&url).unwrap());
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
    let error = moved.await.unwrap_err();
    assert!(matches!(error, MoveError::Disturbed), "{error:?}");
    let count = apart(move || RedisMove::target(&keys.url()).unwrap().count(Section::Handlers)).await;
    assert_eq!(count.unwrap(), Some(0), "the second leaves nothing");
}

#[tokio::test]
async fn two_that_are_equal_verify_and_a_part_does_not() {
    let (_movers, file) = filled(&[Kind::File]).await;
    let keys = Lair::keys();
    let (from, to) = (file.clone(), keys.clone());
    apart(move || move_pages(&from, &to, 3).unwrap_err()).await;
    let (from, to) = (file.clone(), keys.clone());
    let error = apart(move || verify(&mut *from.source(), &mut *to.source(), &mut |_| {})).await.unwrap_err();
    assert!(matches!(error, MoveError::Unended), "{error}");
    file.move_to(&keys).await.unwrap();
    let same = apart(move || verify(&mut *file.source(), &mut *keys.source(), &mut |_| {})).await.unwrap();
    assert!(same.differences().is_empty() && same.rows() > 100);
}
