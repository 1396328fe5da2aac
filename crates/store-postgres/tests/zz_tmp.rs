mod house;
use house::*;
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn latency() {
    let house = House::new().await;
    let client = house.client().await;
    emit(&client, "emit('a')").await;
    house.events(1).await;
    let mut all = vec![];
    for i in 0..30u64 {
        tokio::time::sleep(std::time::Duration::from_millis(700 + i * 13)).await;
        let begun = std::time::Instant::now();
        let r = emit(&client, "emit('a')").await;
        while event_of(&client, r).await.is_none() {}
        all.push(begun.elapsed().as_micros());
    }
    all.sort();
    println!("{all:?}");
    let begun = std::time::Instant::now();
    client.query_one("SELECT count(pointsman.emit('many', 'k:' || i % 5000)) FROM generate_series(1, 20000) i", &[]).await.unwrap();
    println!("emitted {:?}", begun.elapsed());
    house.events(20031).await;
    println!("drained {:?}", begun.elapsed());
}
