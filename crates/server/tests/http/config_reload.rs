use pointsman_engine::Setup;
use serde_json::json;

use tokio::time::timeout;

use crate::auth::token_hash_hex;
use crate::raw_http_client::TEST_TIMEOUT;
use crate::stream::SseClient;
use crate::test_server::{TestServer, write_config_and_get_inputs};

const BASE_CONFIG: &str = "store: 'sqlite::memory:'\nserver: {listen: '127.0.0.1:0', drain: 1s}\n";

#[tokio::test(flavor = "multi_thread")]
async fn handlers_can_change_while_running_and_a_faulty_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let test_server = TestServer::start_in_folder(folder.path(), BASE_CONFIG, Setup::default()).await;
    let config_with_handler =
        |name: &str| format!("{BASE_CONFIG}handlers:\n  {name}: {{run: {{command: ['true']}}}}\n");
    let mut reloads = test_server.inner.subscribe_reload_counts();
    write_config_and_get_inputs(folder.path(), &config_with_handler("one"));
    timeout(TEST_TIMEOUT, reloads.wait_for(|count| count.applied == 1)).await.unwrap().unwrap();
    let list = test_server.get("/api/v1/handlers").await.json();
    assert_eq!(list["handlers"][0]["name"], json!("one"));
    assert_eq!(list["handlers"][0]["run"], json!("command"));

    write_config_and_get_inputs(folder.path(), &format!("{BASE_CONFIG}handlers: nonsense\n"));
    timeout(TEST_TIMEOUT, reloads.wait_for(|count| count.rejected == 1)).await.unwrap().unwrap();
    assert_eq!(test_server.get("/api/v1/handlers").await.json()["handlers"], list["handlers"]);
    test_server.inner.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_a_token_ends_its_streams_and_long_polls() {
    let folder = tempfile::tempdir().unwrap();
    let config_with_tokens = |names: &[&str]| {
        let token = |name: &&str| {
            format!("    - {{name: {name}, role: admin, sha256: '{}'}}\n", token_hash_hex(name))
        };
        format!("{BASE_CONFIG}auth:\n  tokens:\n{}", names.iter().map(token).collect::<String>())
    };
    let mut test_server = TestServer::start_in_folder(
        folder.path(),
        &config_with_tokens(&["kept", "removed"]),
        Setup::default(),
    )
    .await;
    test_server.token = "removed".into();
    let mut frames = SseClient::connect(&test_server, "/api/v1/stream", &[]).await;
    let poll = test_server.get("/api/v1/events?tenant=default&after=0&timeout=1h");
    let reload = async {
        test_server.inner.subscribe_reload_counts().wait_for(|count| count.applied == 1).await.unwrap();
    };
    write_config_and_get_inputs(folder.path(), &config_with_tokens(&["kept"]));
    let (poll, ()) = timeout(TEST_TIMEOUT, async { tokio::join!(poll, reload) }).await.unwrap();
    assert_eq!(poll.json()["TYPE"], "Empty");
    assert!(frames.next_frame().await.is_none());
    assert_eq!(test_server.get("/api/v1/tasks").await.checked_problem_status(), 401);
    test_server.token = "kept".into();
    assert_eq!(test_server.get("/api/v1/tasks").await.status, 200);
}
