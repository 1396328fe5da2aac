#![allow(clippy::unwrap_used)]
mod common;
use common::*;
use pointsman_engine::Outcome;
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn speed() {
    let folder = tempfile::tempdir().unwrap();
    let store = pointsman_store_sqlite::SqliteStore::open(folder.path().join("p.db"), now()).unwrap();
    let engine =
        House::default().handler("h", |_| async { Outcome::done() }).route("a", "h").start(&store).await;
    let n = 5000usize;
    let t = std::time::Instant::now();
    let ps = (0..64).map(|p| {
        let e = engine.clone();
        tokio::spawn(async move {
            for i in 0..n / 64 {
                emit(&e, vec![event("a", &format!("k{p}-{i}"))]).await;
            }
        })
    });
    futures::future::join_all(ps).await;
    println!("emit64 {:?}", (n as f64) / t.elapsed().as_secs_f64());
    let handled = "pointsman_tasks_ended_total{handler=\"h\",status=\"done\"}";
    while metric(&engine, handled) < (n / 64 * 64) as u64 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    println!("e2e64 {:?}", (n as f64) / t.elapsed().as_secs_f64());
    let t = std::time::Instant::now();
    for b in 0..50 {
        emit(&engine, (0..100).map(|i| event("a", &format!("b{b}-{i}"))).collect()).await;
    }
    println!("emit batch {:?}", 5000.0 / t.elapsed().as_secs_f64());
    while metric(&engine, handled) < (n / 64 * 64) as u64 + 5000 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    println!("e2e batch {:?}", 5000.0 / t.elapsed().as_secs_f64());
    let t = std::time::Instant::now();
    for i in 0..200 {
        emit(&engine, vec![event("a", &format!("c{i}"))]).await;
    }
    println!("single emit {:?}/s", 200.0 / t.elapsed().as_secs_f64());
    println!(
        "{}",
        engine.metrics_text().await.lines().filter(|l| l.contains("latency")).collect::<Vec<_>>().join("\n")
    );
    let cpu = || {
        std::fs::read_to_string("/proc/self/stat")
            .unwrap()
            .split(' ')
            .skip(13)
            .take(2)
            .map(|x| x.parse::<u64>().unwrap())
            .sum::<u64>()
    };
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let c = cpu();
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    println!("idle ticks in 10s: {}", cpu() - c);
    engine.stop(PATIENCE).await;
}
