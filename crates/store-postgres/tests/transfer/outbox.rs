//! What belongs to events that were emitted in SQL.

use pointsman_store::transfer::{NotReady, Section};
use pointsman_store_postgres::PgMove;

use crate::house::{House, connect, emit, event_of};
use crate::lair::{Lair, Movers, apart};

const KEYED: &str = "emit('record', 'r:1', '1', idempotency_key => 'once')";

#[tokio::test]
async fn receipts_go_along_where_there_is_a_place_for_them() {
    let (from, to) = (Lair::database().await, Lair::database().await);
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

    let movers = Movers::new();
    let report = to.move_to(&movers.file()).await.unwrap();
    assert_eq!(report.differences(), []);
    assert_eq!(report.left_behind(), [(Section::Receipts, 3), (Section::Keys, 1)]);
}

#[tokio::test]
async fn what_stands_in_the_outbox_is_not_left_behind_unseen() {
    let from = Lair::database().await;
    emit(&connect(from.url()).await, KEYED).await;
    let url = from.url().to_owned();
    let error = apart(move || PgMove::source(&url).unwrap_err()).await;
    assert!(matches!(&error, NotReady::Undrained { events, .. } if events == "1 event"), "{error}");
    let house = House::at(from.url()).await;
    house.events(1).await;
    let url = house.close().await;
    apart(move || drop(PgMove::source(&url).unwrap())).await;
}
