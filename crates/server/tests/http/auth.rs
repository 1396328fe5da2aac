use pointsman_engine::Setup;
use pointsman_server::auth::hash_token;
use pointsman_server::{Server, StartOrReloadError};

use crate::test_server::{TestServer, write_config_and_get_inputs};

pub(crate) fn token_hash_hex(token: &str) -> String {
    hash_token(token).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn tokens_yaml(list: &[(&str, &str, Option<&str>)]) -> String {
    let mut yaml = "auth:\n  tokens:\n".to_owned();
    for (token, role, tenant) in list {
        let tenant = tenant.map(|tenant| format!(", tenant: {tenant}")).unwrap_or_default();
        yaml.push_str(&format!(
            "    - {{name: {token}, role: {role}, sha256: '{}'{tenant}}}\n",
            token_hash_hex(token)
        ));
    }
    yaml
}

async fn call_and_get_status(
    test_server: &TestServer,
    token: &str,
    method: &str,
    path: &str,
    body: &str,
) -> u16 {
    test_server.call_with_token(token, method, path, body).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_is_allowed_only_its_own_calls() {
    let list = ["viewer", "producer", "worker", "operator", "admin"].map(|role| (role, role, None));
    let test_server = TestServer::start_with_config(&tokens_yaml(&list), Setup::default()).await;
    for (method, path, body, allowed_roles) in [
        ("GET", "/api/v1/events?after=0", "", &["viewer", "operator", "admin"][..]),
        ("GET", "/api/v1/tasks", "", &["viewer", "operator", "admin"]),
        ("GET", "/api/v1/handlers", "", &["viewer", "operator", "admin"]),
        ("GET", "/metrics", "", &["viewer", "operator", "admin"]),
        ("GET", "/tasks?source=x", "", &["viewer", "operator", "admin"]),
        ("GET", "/tasks/x", "", &["viewer", "operator", "admin"]),
        ("GET", "/tasks/x/logs", "", &["viewer", "operator", "admin"]),
        ("GET", "/api/v1/tasks/x/why", "", &["viewer", "operator", "admin"]),
        ("GET", "/api/v1/schedules", "", &["viewer", "operator", "admin"]),
        ("GET", "/api/v1/schedules/x/fires", "", &["viewer", "operator", "admin"]),
        ("GET", "/api/v1/redrives", "", &["viewer", "operator", "admin"]),
        ("GET", "/api/v1/nodes", "", &["viewer", "operator", "admin"]),
        ("GET", "/api/v1/audit", "", &["admin"]),
        ("POST", "/tasks?source=x&collection=y", "", &["operator", "admin"]),
        ("POST", "/api/v1/schedules/x/run", "", &["operator", "admin"]),
        ("PUT", "/api/v1/schedules/x/pause", "", &["operator", "admin"]),
        ("PUT", "/api/v1/schedules/x/block", "", &["admin"]),
        ("POST", "/api/v1/tasks/redrive", r#"{"dry_run":true}"#, &["operator", "admin"]),
        ("DELETE", "/api/v1/redrives/x", "", &["operator", "admin"]),
        ("POST", "/api/v1/handlers/x/adopt", "", &["operator", "admin"]),
        ("POST", "/api/v1/worker/claim", "", &["worker", "admin"]),
        ("POST", "/api/v1/worker/x/heartbeat", "", &["worker", "admin"]),
        ("POST", "/api/v1/worker/x/logs", "", &["worker", "admin"]),
        ("POST", "/api/v1/worker/x/done", "", &["worker", "admin"]),
        ("POST", "/api/v1/worker/x/fail", "", &["worker", "admin"]),
        ("POST", "/api/v1/worker/x/snooze", "", &["worker", "admin"]),
        ("POST", "/api/v1/events", r#"{"type":"a"}"#, &["producer", "admin"]),
        ("POST", "/api/v1/tasks/x/retry", "", &["operator", "admin"]),
        ("PUT", "/api/v1/handlers/x/pause", "", &["operator", "admin"]),
        ("PUT", "/api/v1/handlers/x/block", "", &["admin"]),
        ("GET", "/api/v1/orders", "", &["viewer", "operator", "admin"]),
        ("GET", "/api/v1/orders/x,1", "", &["viewer", "operator", "admin"]),
        ("POST", "/api/v1/orders", r#"{"path":"/x"}"#, &["operator", "admin"]),
        ("PUT", "/api/v1/orders/x,1", r#"{"value":1}"#, &["operator", "admin"]),
        ("DELETE", "/api/v1/orders/x,1", "", &["operator", "admin"]),
        ("POST", "/api/v1/orders/x,1/suspend", "", &["operator", "admin"]),
        ("GET", "/api/v1/chains", "", &["viewer", "operator", "admin"]),
        ("GET", "/api/v1/chains/x", "", &["viewer", "operator", "admin"]),
        ("PUT", "/api/v1/chains/x/state", r#"{"state":"running"}"#, &["operator", "admin"]),
        ("PUT", "/api/v1/chains/x/nodes/y/action", r#"{"action":"stop"}"#, &["operator", "admin"]),
        ("PUT", "/api/v1/chains/x/pause", "", &["operator", "admin"]),
        ("PUT", "/api/v1/chains/x/block", "", &["admin"]),
        ("DELETE", "/api/v1/chains/x/block", "", &["admin"]),
        ("GET", "/api/v1/me", "", &["viewer", "producer", "worker", "operator", "admin"]),
        ("GET", "/healthz", "", &["viewer", "producer", "worker", "operator", "admin", "nobody"]),
    ] {
        for (token, ..) in list {
            let allowed = call_and_get_status(&test_server, token, method, path, body).await != 403;
            assert_eq!(allowed, allowed_roles.contains(&token), "{token} {method} {path}");
        }
        let is_accepted = call_and_get_status(&test_server, "nobody", method, path, body).await != 401;
        assert_eq!(is_accepted, allowed_roles.contains(&"nobody"), "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn me_returns_name_role_and_tenant_of_the_token() {
    let list = [("all", "producer", None), ("ours", "operator", Some("shop"))];
    let test_server = TestServer::start_with_config(&tokens_yaml(&list), Setup::default()).await;
    for (token, role, tenant) in list {
        let me = test_server.call_with_token(token, "GET", "/api/v1/me", "").await;
        assert_eq!(me.json(), serde_json::json!({"name": token, "role": role, "tenant": tenant}));
    }
    assert_eq!(
        test_server.call_with_token("all", "GET", "/api/v1/me?x=1", "").await.checked_problem_status(),
        400
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_accepted_in_two_headers() {
    let test_server = TestServer::start().await;
    for (header, status) in [
        ("authorization: Basic x".to_owned(), 401),
        (format!("authorization: bearer {}", test_server.token), 200),
        (format!("x-admin-token: {}", test_server.token), 200),
        ("x-admin-token: wrong".to_owned(), 401),
        ("x-nothing: 1".to_owned(), 401),
    ] {
        let head = format!("GET /api/v1/tasks HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{header}\r\n\r\n");
        let response = crate::raw_http_client::send_request(test_server.address, &head, b"").await;
        assert_eq!(response.status, status, "{header}");
        if status == 401 {
            response.checked_problem_status();
            assert!(response.header("www-authenticate").unwrap().starts_with("Bearer"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_bound_to_a_tenant_cannot_read_metrics_nodes_or_the_audit_log() {
    let list = [("shop", "admin", Some("shop")), ("all", "viewer", None)];
    let test_server = TestServer::start_with_config(&tokens_yaml(&list), Setup::default()).await;
    for path in ["/metrics", "/api/v1/nodes", "/api/v1/audit"] {
        assert_eq!(call_and_get_status(&test_server, "shop", "GET", path, "").await, 403, "{path}");
    }
    for path in ["/metrics", "/api/v1/nodes"] {
        assert_eq!(call_and_get_status(&test_server, "all", "GET", path, "").await, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_bound_to_a_tenant_cannot_access_other_tenants() {
    let list = [("shop-admin", "admin", Some("shop")), ("root-admin", "admin", None)];
    let mut test_server = TestServer::start_with_config(&tokens_yaml(&list), Setup::default()).await;
    test_server.token = "root-admin".into();
    let foreign = test_server.emit(r#"{"type":"a","key":"k","tenant":"other"}"#).await;
    test_server.token = "shop-admin".into();
    let own = test_server.emit(r#"{"type":"a","key":"k"}"#).await;

    let journal = test_server.get("/api/v1/events?after=0").await.json();
    assert_eq!(journal["eventSnapshots"].as_array().unwrap().len(), 1);
    assert_eq!(journal["eventSnapshots"][0]["tenant"], "shop");
    assert_eq!(test_server.get(&format!("/api/v1/events/{own}")).await.status, 200);
    assert_eq!(test_server.get(&format!("/api/v1/events/{foreign}")).await.checked_problem_status(), 404);
    assert_eq!(test_server.get("/api/v1/objects/k").await.json()["last"], own);
    for path in
        ["/api/v1/events?after=0&tenant=other", "/api/v1/stream?tenant=other", "/api/v1/tasks?tenant=other"]
    {
        assert_eq!(test_server.get(path).await.checked_problem_status(), 403, "{path}");
    }
    assert_eq!(
        test_server
            .post("/api/v1/events", r#"[{"type":"a"},{"type":"a","tenant":"other"}]"#)
            .await
            .checked_problem_status(),
        403
    );
    assert_eq!(test_server.post("/api/v1/events", r#"{"type":"a","tenant":"shop"}"#).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_token_is_shown_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("p.db");
    let yaml = format!("store: 'sqlite:{}'\nserver: {{listen: '127.0.0.1:0', drain: 1s}}\n", store.display());
    let first = TestServer::start_in_folder(folder.path(), &yaml, Setup::default()).await;
    let token = first.token.clone();
    assert!(token.starts_with("pm_"));
    let id = first.emit(r#"{"type":"a"}"#).await;
    first.inner.stop().await;

    let mut second = TestServer::start_in_folder(folder.path(), &yaml, Setup::default()).await;
    assert_eq!(second.inner.first_token(), None);
    second.token = token;
    assert_eq!(second.get(&format!("/api/v1/events/{id}")).await.status, 200);
    second.inner.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tokens_refuses_to_listen_beyond_loopback() {
    let folder = tempfile::tempdir().unwrap();
    let mut config =
        write_config_and_get_inputs(folder.path(), "store: 'sqlite::memory:'\n").load_config().unwrap();
    config.listen_address = "0.0.0.0:0".parse().unwrap();
    let error = Server::start(config, None, Setup::default()).await.unwrap_err();
    assert!(matches!(error, StartOrReloadError::NoTokenConfigured(_)), "{error}");
}
