use pointsman_engine::Setup;
use serde_json::json;

use tokio::time::timeout;

use crate::auth::token_hash_hex;
use crate::client::HANGS;
use crate::house::{House, sources};
use crate::stream::Frames;

const BASE_CONFIG: &str = "store: 'sqlite::memory:'\nserver: {listen: '127.0.0.1:0', drain: 1s}\n";

#[tokio::test(flavor = "multi_thread")]
async fn handlers_can_change_while_running_and_a_faulty_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::at(folder.path(), BASE_CONFIG, Setup::default()).await;
    let handler = |name: &str| format!("{BASE_CONFIG}handlers:\n  {name}: {{run: {{command: ['true']}}}}\n");
    let mut reloads = house.server.reloads();
    sources(folder.path(), &handler("one"));
    timeout(HANGS, reloads.wait_for(|count| count.applied == 1)).await.unwrap().unwrap();
    let list = house.get("/api/v1/handlers").await.json();
    assert_eq!(list["handlers"][0]["name"], json!("one"));
    assert_eq!(list["handlers"][0]["run"], json!("command"));

    sources(folder.path(), &format!("{BASE_CONFIG}handlers: nonsense\n"));
    timeout(HANGS, reloads.wait_for(|count| count.refused == 1)).await.unwrap().unwrap();
    assert_eq!(house.get("/api/v1/handlers").await.json()["handlers"], list["handlers"]);
    house.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_a_token_ends_its_streams_and_long_polls() {
    let folder = tempfile::tempdir().unwrap();
    let with = |names: &[&str]| {
        let token = |name: &&str| {
            format!("    - {{name: {name}, role: admin, sha256: '{}'}}\n", token_hash_hex(name))
        };
        format!("{BASE_CONFIG}auth:\n  tokens:\n{}", names.iter().map(token).collect::<String>())
    };
    let mut house = House::at(folder.path(), &with(&["stays", "goes"]), Setup::default()).await;
    house.token = "goes".into();
    let mut cut = Frames::open(&house, "/api/v1/stream", &[]).await;
    let poll = house.get("/api/v1/events?tenant=default&after=0&timeout=1h");
    let reload = async {
        house.server.reloads().wait_for(|count| count.applied == 1).await.unwrap();
    };
    sources(folder.path(), &with(&["stays"]));
    let (poll, ()) = timeout(HANGS, async { tokio::join!(poll, reload) }).await.unwrap();
    assert_eq!(poll.json()["TYPE"], "Empty");
    assert!(cut.next().await.is_none());
    assert_eq!(house.get("/api/v1/tasks").await.problem(), 401);
    house.token = "stays".into();
    assert_eq!(house.get("/api/v1/tasks").await.status, 200);
}
