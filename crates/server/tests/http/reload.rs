use pointsman_engine::Setup;
use serde_json::json;

use tokio::time::timeout;

use crate::client::HANGS;
use crate::house::{House, sources};

const BASE: &str = "store: 'sqlite::memory:'\nserver: {listen: '127.0.0.1:0', drain: 1s}\n";

#[tokio::test(flavor = "multi_thread")]
async fn handlers_change_while_running_and_a_bad_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::at(folder.path(), BASE, Setup::default()).await;
    let handler = |name: &str| format!("{BASE}handlers:\n  {name}: {{run: {{command: ['true']}}}}\n");
    let mut reloads = house.server.reloads();
    sources(folder.path(), &handler("one"));
    timeout(HANGS, reloads.wait_for(|count| count.applied == 1)).await.unwrap().unwrap();
    let list = house.get("/api/v1/handlers").await.json();
    assert_eq!(list["handlers"][0]["name"], json!("one"));
    assert_eq!(list["handlers"][0]["run"], json!("command"));

    sources(folder.path(), &format!("{BASE}handlers: nonsense\n"));
    timeout(HANGS, reloads.wait_for(|count| count.refused == 1)).await.unwrap().unwrap();
    assert_eq!(house.get("/api/v1/handlers").await.json()["handlers"], list["handlers"]);
    house.server.stop().await;
}
