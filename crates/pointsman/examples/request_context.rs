//! Passes the context of an HTTP request with the event to its handlers.
//!
//! Run it with `cargo run -p pointsman --example request_context`.

use std::collections::HashMap;

use pointsman::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(type = "record.read", key = "record:{id}")]
struct RecordRead {
    id: u64,
}

/// Prints where a record was viewed from; a robot is printed as not counted.
async fn print_view(event: RecordRead, request: RequestContext) -> Result<(), HandlerError> {
    let user_agent = request.user_agent.unwrap_or_default();
    if user_agent.contains("bot") {
        println!("record {}: a robot ({user_agent}), not counted", event.id);
        return Ok(());
    }
    let client_address = request.ip.map_or_else(|| "somewhere".into(), |ip| ip.to_string());
    println!("record {}: viewed from {client_address} with {user_agent}", event.id);
    Ok(())
}

/// Does the work of a web framework: takes a request, and emits without a unit of work.
async fn handle_request(bus: &Bus, id: u64, headers: &HashMap<&str, &str>) -> Result<(), BoxError> {
    let context = RequestContext::from_headers(|name| headers.get(name).copied()).ip("192.0.2.7".parse()?);
    let emitted = bus.emit_with(RecordRead { id }, EmitOptions::new().context(context)).await?;
    bus.wait_for_tasks(&emitted).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let bus = Bus::builder("sqlite::memory:")
        .handler("views", print_view)
        .on::<RecordRead>("views")
        .start()
        .await?;
    handle_request(&bus, 1, &HashMap::from([("user-agent", "Mozilla/5.0"), ("x-request-id", "r-1")])).await?;
    handle_request(&bus, 1, &HashMap::from([("user-agent", "searchbot/2.1")])).await?;
    bus.stop().await;
    Ok(())
}
