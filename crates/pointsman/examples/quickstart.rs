//! A durable bus with one event type and one handler.
//!
//! Run it with `cargo run -p pointsman --example quickstart`.

use pointsman::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(type = "record.published", key = "record:{id}")]
struct RecordPublished {
    id: u64,
    title: String,
}

async fn index(event: RecordPublished, task: TaskInfo) -> Result<(), HandlerError> {
    println!("indexing record {} ({:?}), attempt {}", event.id, event.title, task.attempt);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let bus = Bus::builder("sqlite::memory:")
        .handler("index", index)
        .on::<RecordPublished>("index")
        .start()
        .await?;

    let emitted = bus.emit(RecordPublished { id: 1, title: "Hello".into() }).await?;
    println!("emitted event {}", emitted.id);

    for task in bus.wait_for_tasks(&emitted).await? {
        println!("task {} is {}", task.id, task.lifecycle.state.status().as_str());
    }
    bus.stop().await;
    Ok(())
}
