use pointsman_engine::Setup;
use serde_json::json;

use crate::auth::{token_hash_hex, tokens_yaml};
use crate::test_server::{TestServer, write_config_and_get_inputs};

const BASE_CONFIG: &str = "store: 'sqlite::memory:'\nserver: {listen: '127.0.0.1:0', drain: 1s}\n";
const CONFIG_URL: &str = "/api/v1/config";

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_is_shown_with_locations_and_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("key"), "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX").unwrap();
    let more =
        "handlers: {a: {run: {http: 'https://x.example/', secret: 'file:key', headers: {x-key: hunter2}}}}\n";
    let tokens =
        format!("auth: {{tokens: [{{name: root, role: admin, sha256: '{}'}}]}}\n", token_hash_hex("root"));
    let mut test_server =
        TestServer::start_in_folder(folder.path(), &format!("{BASE_CONFIG}{more}{tokens}"), Setup::default())
            .await;
    test_server.token = "root".into();
    let response = test_server.get(CONFIG_URL).await;
    let body = response.json();
    let file = folder.path().join("pointsman.yml").display().to_string();
    assert_eq!((&body["files"], &body["watched"]), (&json!([file]), &json!(true)));
    assert_eq!(body["reloads"], json!([]));
    assert!(body["node"].as_str().unwrap().starts_with("pointsman-"), "{body}");
    let settings = body["settings"].as_str().unwrap();
    assert!(settings.contains(&format!("listen: \"127.0.0.1:0\"  # {file}:2")), "{settings}");
    assert!(settings.contains("workers: ") && settings.contains("# default"), "{settings}");
    let text = response.text();
    for secret in ["hunter2", "whsec_", &token_hash_hex("root")] {
        assert!(!text.contains(secret), "{secret} is shown");
    }
    let warnings = body["warnings"].as_array().unwrap();
    assert!(warnings[0].as_str().unwrap().ends_with("nothing routes to the handler \"a\""), "{body}");
    assert_eq!(test_server.get("/api/v1/config?x=1").await.checked_problem_status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn reloads_are_listed_with_their_faults() {
    let folder = tempfile::tempdir().unwrap();
    let test_server = TestServer::start_in_folder(folder.path(), BASE_CONFIG, Setup::default()).await;
    let before = test_server.get(CONFIG_URL).await.json();
    write_config_and_get_inputs(
        folder.path(),
        &format!("{BASE_CONFIG}workers: many\nhandlers:\n  a: {{run: {{http: 1}}, secret: hunter2}}\n"),
    );
    let refused = test_server
        .wait_until_get_returns(CONFIG_URL, |body| {
            body["reloads"].as_array().is_some_and(|list| list.len() == 1)
        })
        .await;
    let reload = &refused["reloads"][0];
    assert_eq!(
        (&reload["applied"], &reload["error"]),
        (&json!(false), &json!("the configuration has faults"))
    );
    let first = &reload["faults"][0];
    assert!(first["location"].as_str().unwrap().ends_with("pointsman.yml:3:10"), "{reload}");
    assert_eq!(first["excerpt"], "    3 | workers: many\n      |          ^");
    assert!(!refused.to_string().contains("hunter2"), "{refused}");
    assert_eq!(refused["loaded_at"], before["loaded_at"], "the running configuration stays in force");

    write_config_and_get_inputs(folder.path(), &format!("{BASE_CONFIG}handlers:\n  b: {{run: pull}}\n"));
    let applied = test_server
        .wait_until_get_returns(CONFIG_URL, |body| {
            body["reloads"].as_array().is_some_and(|list| list.len() == 2)
        })
        .await;
    assert_eq!((&applied["reloads"][0]["applied"], &applied["reloads"][1]), (&json!(true), reload));
    assert!(applied["settings"].as_str().unwrap().contains("  b:\n    run: pull"), "{applied}");
    assert_ne!(applied["loaded_at"], before["loaded_at"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_of_all_tenants_can_read_the_configuration() {
    let list = [("root", "admin", None), ("ops", "operator", None), ("theirs", "admin", Some("shop"))];
    let test_server = TestServer::start_with_config(&tokens_yaml(&list), Setup::default()).await;
    assert_eq!(test_server.call_with_token("root", "GET", CONFIG_URL, "").await.status, 200);
    assert_eq!(test_server.call_with_token("ops", "GET", CONFIG_URL, "").await.checked_problem_status(), 403);
    assert_eq!(
        test_server.call_with_token("theirs", "GET", CONFIG_URL, "").await.checked_problem_status(),
        403
    );
    assert_eq!(
        test_server.call_with_token("nobody", "GET", CONFIG_URL, "").await.checked_problem_status(),
        401
    );
}

/// Handlers whose URLs and arguments contain secrets, and routes whose names look like settings.
const CONFIG_WITH_SECRETS: &str = "handlers:
  hook: {run: {http: 'https://hooks.example/services/T0/hunter2?key=hunter2#hunter2'}}
  secret-tool: {run: {command: [curl, -u, 'user:hunter2', 'https://x.example/hunter2'], timeout: 5s}}
event_handlers:
  ev: [hook, {handler: secret-tool, sync: true}]
  token.made: [secret-tool]
sources:
  env: {run: {command: [sh]}, collections: [orders]}
schedules:
  end: {cron: '@daily', emit: {type: ev, value: {ev: 1, end: 2, password: hunter2}}}
";

#[tokio::test(flavor = "multi_thread")]
async fn urls_and_command_arguments_are_redacted_and_names_are_shown() {
    let list = [("root", "admin", None), ("view", "viewer", None)];
    let test_server = TestServer::start_with_config(
        &format!("{CONFIG_WITH_SECRETS}{}", tokens_yaml(&list)),
        Setup::default(),
    )
    .await;
    let response = test_server.call_with_token("root", "GET", CONFIG_URL, "").await;
    assert!(!response.text().contains("hunter2"), "{}", response.text());
    let settings = response.json()["settings"].as_str().unwrap().to_owned();
    for shown in [
        "http: \"https://hooks.example/services/…\"",
        "command: \"curl (3 arguments)\"",
        "timeout: 5s",
        "  ev:\n    - hook",
        "handler: secret-tool",
        "token.made: [secret-tool]",
        "ev: 1",
        "end: 2",
        "password: \"***\"",
        "cron: \"@daily\"",
    ] {
        assert!(settings.contains(shown), "{shown} is missing in\n{settings}");
    }
    for role in ["root", "view"] {
        let response = test_server.call_with_token(role, "GET", "/api/v1/handlers", "").await;
        assert!(!response.text().contains("hunter2"), "{}", response.text());
        let body = response.json();
        let target = |name: &str| {
            let list = body["handlers"].as_array().unwrap();
            list.iter().find(|handler| handler["name"] == name).unwrap()["target"].clone()
        };
        assert_eq!(
            (target("hook"), target("secret-tool")),
            (json!("https://hooks.example"), json!("curl (3 arguments)"))
        );
        assert_eq!(target("env"), json!("sh"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_do_not_show_the_lines_of_urls_and_commands() {
    let folder = tempfile::tempdir().unwrap();
    let test_server = TestServer::start_in_folder(folder.path(), BASE_CONFIG, Setup::default()).await;
    let faulty = "handlers:
  a: {run: {comand: [curl, -u, 'user:hunter2']}}
  b:
    run:
      htpt: hunter2
      timeout: soon
  c: {run: {http: 'https://hooks.example/hunter2', timeout: soon}}
  d: {run: {command: 'curl -u user:hunter2'}}
";
    write_config_and_get_inputs(folder.path(), &format!("{BASE_CONFIG}{faulty}"));
    let refused = test_server
        .wait_until_get_returns(CONFIG_URL, |body| {
            body["reloads"].as_array().is_some_and(|list| list.len() == 1)
        })
        .await;
    assert!(!refused.to_string().contains("hunter2"), "{refused}");
    write_config_and_get_inputs(
        folder.path(),
        &format!("{BASE_CONFIG}handlers: [curl, -u, 'user:hunter2'\nworkers: 1\n"),
    );
    let refused = test_server
        .wait_until_get_returns(CONFIG_URL, |body| {
            body["reloads"].as_array().is_some_and(|list| list.len() == 2)
        })
        .await;
    assert!(!refused.to_string().contains("hunter2"), "{refused}");
}
