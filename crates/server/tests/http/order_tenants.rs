//! Orders of several tenants with the same chain and id.

use pointsman_engine::Setup;
use serde_json::{Value, json};

use crate::auth::tokens_yaml;
use crate::orders::{CHAINS_CONFIG, claim_step, post_orders, report_step_end};
use crate::test_server::TestServer;

const ORDER_URL: &str = "/api/v1/orders/publish/article,1";
const OVERVIEW_URL: &str = "/jobscheduler/master/api/order/publish/article,1";

/// Starts a server with an admin of all tenants, and an operator and a viewer that are bound to the tenant `shop`.
/// Requests use the token of the admin.
async fn start_server_with_tenant_tokens() -> TestServer {
    let list = [
        ("admin", "admin", None),
        ("shop-operator", "operator", Some("shop")),
        ("shop-viewer", "viewer", Some("shop")),
    ];
    let mut server =
        TestServer::start_with_config(&format!("{CHAINS_CONFIG}{}", tokens_yaml(&list)), Setup::default())
            .await;
    server.token = "admin".into();
    server
}

fn tenants_of_orders(list: &Value) -> Vec<&str> {
    list["orders"].as_array().expect("a list").iter().filter_map(|order| order["tenant"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_bound_to_a_tenant_neither_sees_nor_conflicts_with_orders_of_other_tenants() {
    let server = start_server_with_tenant_tokens().await;
    let body = json!({"path": "/publish/article,1", "value": "default"});
    assert_eq!(post_orders(&server, &body).await.status, 201);
    let body = json!({"path": "/publish/article,1", "value": "shop"}).to_string();
    let added = server.call_with_token("shop-operator", "POST", "/api/v1/orders", &body).await;
    assert_eq!(added.status, 201, "no 409 because of another tenant's order: {added:?}");
    assert_eq!(added.header("location"), Some(&*format!("{ORDER_URL}?tenant=shop")));
    assert_eq!(
        server
            .call_with_token("shop-operator", "POST", "/api/v1/orders", &body)
            .await
            .checked_problem_status(),
        409
    );

    assert_eq!(server.call_with_token("shop-operator", "GET", ORDER_URL, "").await.json()["value"], "shop");
    assert_eq!(
        server.call_with_token("shop-operator", "GET", &format!("{ORDER_URL}?tenant=shop"), "").await.status,
        200
    );
    for (method, address) in [
        ("GET", ORDER_URL.to_owned()),
        ("POST", format!("{ORDER_URL}/suspend")),
        ("DELETE", ORDER_URL.into()),
    ] {
        let address = format!("{address}?tenant=default");
        assert_eq!(
            server.call_with_token("shop-operator", method, &address, "").await.checked_problem_status(),
            403,
            "{method} {address}"
        );
    }
    assert_eq!(
        server.call_with_token("shop-operator", "POST", &format!("{ORDER_URL}/suspend"), "").await.json()["suspended"],
        true
    );
    assert_eq!(server.get(ORDER_URL).await.json()["suspended"], false);
    assert_eq!(server.call_with_token("shop-operator", "DELETE", ORDER_URL, "").await.status, 200);
    assert_eq!(
        server.call_with_token("shop-operator", "GET", ORDER_URL, "").await.checked_problem_status(),
        404
    );
    assert_eq!(server.get(ORDER_URL).await.json()["value"], "default");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_token_of_all_tenants_means_the_tenant_default_unless_it_names_one() {
    let server = start_server_with_tenant_tokens().await;
    for value in ["shop", "depot"] {
        let address = format!("/api/v1/orders?tenant={value}");
        let body = json!({"path": "/publish/article,1", "value": value}).to_string();
        let added = server.post(&address, &body).await;
        assert_eq!(
            (added.status, added.header("location")),
            (201, Some(&*format!("{ORDER_URL}?tenant={value}")))
        );
    }
    let missing = server.get(ORDER_URL).await;
    assert_eq!(missing.checked_problem_status(), 404, "the tenant `default` has no such order");
    assert!(missing.text().contains("tenant="), "{}", missing.text());
    assert_eq!(server.post(&format!("{ORDER_URL}/suspend"), "").await.checked_problem_status(), 404);
    assert_eq!(server.delete(ORDER_URL).await.checked_problem_status(), 404);

    let order_url_of = |tenant: &str| format!("{ORDER_URL}?tenant={tenant}");
    assert_eq!(server.get(&order_url_of("depot")).await.json()["value"], "depot");
    assert_eq!(server.put(&order_url_of("depot"), r#"{"value":"new"}"#).await.json()["value"], "new");
    assert_eq!(server.get(&order_url_of("shop")).await.json()["value"], "shop");
    assert_eq!(server.post(&format!("{ORDER_URL}/suspend?tenant=shop"), "").await.json()["suspended"], true);
    assert_eq!(server.post(&format!("{ORDER_URL}/resume?tenant=shop"), "").await.json()["suspended"], false);
    let body = json!({"path": "/publish/article,2", "tenant": "depot"}).to_string();
    assert_eq!(server.post("/api/v1/orders?tenant=shop", &body).await.status, 201);
    assert_eq!(
        server.get("/api/v1/orders/publish/article,2?tenant=depot").await.status,
        200,
        "the body takes precedence"
    );
    for bad in [order_url_of("a%20b"), format!("{ORDER_URL}?x=1"), format!("{ORDER_URL}?tenant=")] {
        assert_eq!(server.get(&bad).await.checked_problem_status(), 400, "{bad}");
        assert_eq!(server.put(&bad, r#"{"value":1}"#).await.checked_problem_status(), 400, "{bad}");
        assert_eq!(server.delete(&bad).await.checked_problem_status(), 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_of_two_tenants_with_the_same_key_are_separate() {
    let server = start_server_with_tenant_tokens().await;
    let body = json!([
        {"path": "/publish/article,1", "tenant": "shop", "value": "s"},
        {"path": "/publish/article,1", "value": "d"},
    ]);
    assert_eq!(post_orders(&server, &body).await.status, 201);
    let first = server.get("/api/v1/orders?limit=1").await.json();
    assert_eq!(tenants_of_orders(&first), ["default"]);
    let next = format!("/api/v1/orders?limit=1&cursor={}", first["next"].as_str().expect("there is more"));
    let second = server.get(&next).await.json();
    assert_eq!((tenants_of_orders(&second), &second["next"]), (vec!["shop"], &Value::Null));
    assert_eq!(tenants_of_orders(&server.get("/api/v1/orders?tenant=shop").await.json()), ["shop"]);
    assert_eq!(server.get("/api/v1/orders?cursor=/publish/article,1").await.checked_problem_status(), 400);

    let overview = async |query: &str| server.get(&format!("{OVERVIEW_URL}{query}")).await;
    assert_eq!(overview("").await.json()["nodeId"], "render");
    assert_eq!(overview("?tenant=depot").await.checked_problem_status(), 404);
    assert_eq!(overview("?return=OrderStatistics").await.json()["total"], 2);
    assert_eq!(overview("?return=OrderStatistics&tenant=shop").await.json()["total"], 1);
    assert_eq!(
        server
            .call_with_token("shop-viewer", "GET", &format!("{OVERVIEW_URL}?tenant=default"), "")
            .await
            .checked_problem_status(),
        403
    );

    for _ in 0..2 {
        let task = claim_step(&server, "render").await;
        report_step_end(&server, &task, "done", json!({"result": "rendered"})).await;
    }
    for tenant in ["default", "shop"] {
        let order = server.get(&format!("{ORDER_URL}?tenant={tenant}")).await.json();
        assert_eq!((&order["node"], &order["value"]), (&json!("deploy"), &json!("rendered")), "{order}");
    }
}
