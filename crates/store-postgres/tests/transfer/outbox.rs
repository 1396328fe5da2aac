//! What belongs to events that were emitted in SQL.

use pointsman_store::transfer::{NotReady, Section};
use pointsman_store_conformance::moving::{Lair as _, apart};
use pointsman_store_postgres::PgMove;
use tokio::runtime::Handle;

use crate::house::{House, connect, emit, event_of};
use crate::lair::{Kind, Lair};

const KEYED: &str = "emit('record', 'r:1', '1', idempotency_key => 'once')";

#[tokio::test]
async fn receipts_go_along_where_there_is_a_place_for_them() {
    let (from, to) = (Lair::empty(Kind::Database).await, Lair::empty(Kind::Database).await);
    let house = House::at(from.url()).await;
    let client = house.client().await;
    let first = emit(&client, KEYED).await;
    let second = emit(&client, "emit('record', 'r:1', '2')").await;
    let events = house.events(2).await;
    house.close().await;
    let report = from.move_to(&to).await.unwrap();
    assert_eq!((report.differences(), report.left_behind()), (vec![], vec![]));

    let house = House::at(to.url()).await;
    let client = house.client().await;
    for (receipt, event) in [(first, &events[0]), (second, &events[1])] {
        assert_eq!(event_of(&client, receipt).await, Some(event.id));
    }
    assert_eq!(emit(&client, KEYED).await, first);
    let third = emit(&client, "emit('record', 'r:1', '3')").await;
    let all = house.events(3).await;
    assert_eq!(event_of(&client, third).await, Some(all[2].id));
    assert_eq!(all[2].prev, Some(events[1].id));
    house.close().await;

    let report = to.move_to(&Lair::empty(Kind::File).await).await.unwrap();
    assert_eq!(report.differences(), []);
    assert_eq!(report.left_behind(), [(Section::Receipts, 3), (Section::Keys, 1)]);
}

#[tokio::test]
async fn what_is_emitted_at_the_target_meanwhile_keeps_its_numbers() {
    let (from, to) = (Lair::filled(Kind::File).await, Lair::empty(Kind::Database).await);
    let (runtime, url) = (Handle::current(), to.url().to_owned());
    let moved = from.move_to_while(&to, 1, move || {
        runtime.block_on(async { emit(&connect(&url).await, "emit('meanwhile')").await });
    });
    assert_eq!(moved.await.unwrap().differences(), []);
    let client = connect(to.url()).await;
    // As somebody may have refused who has made it up.
    let made_up = "INSERT INTO pointsman.outbox (n, type) VALUES (9000000000000000, 'made up')";
    client.batch_execute(made_up).await.unwrap();
    emit(&client, "emit('after')").await;
    let numbers = client.query("SELECT n FROM pointsman.outbox ORDER BY n", &[]).await.unwrap();
    let numbers: Vec<i64> = numbers.iter().map(|row| row.get(0)).collect();
    assert_eq!(numbers, [1, 2, 9_000_000_000_000_000]);
}

#[tokio::test]
async fn a_number_that_was_made_up_does_not_use_up_all_that_there_are() {
    let (from, to) = (Lair::empty(Kind::Database).await, Lair::empty(Kind::Database).await);
    let house = House::at(from.url()).await;
    let client = house.client().await;
    let receipt = "INSERT INTO pointsman.outbox (n, type, receipt)
                   VALUES (9223372036854775807, 'a', gen_random_uuid()), (281474976710655, 'a', gen_random_uuid())";
    client.batch_execute(receipt).await.unwrap();
    house.events(2).await;
    house.close().await;
    from.move_to(&to).await.unwrap();
    emit(&connect(to.url()).await, "emit('after')").await;
}

#[tokio::test]
async fn what_stands_in_the_outbox_is_not_left_behind_unseen() {
    let from = Lair::empty(Kind::Database).await;
    emit(&connect(from.url()).await, KEYED).await;
    let url = from.url().to_owned();
    let error = apart(move || PgMove::source(&url).unwrap_err()).await;
    assert!(matches!(&error, NotReady::Undrained { events, .. } if events == "1 event"), "{error}");
    let house = House::at(from.url()).await;
    house.events(1).await;
    let url = house.close().await;
    apart(move || drop(PgMove::source(&url).unwrap())).await;
}
