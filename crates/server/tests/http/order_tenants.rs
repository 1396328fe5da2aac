//! Orders of several tenants with the same chain and id.

use pointsman_engine::Setup;
use serde_json::{Value, json};

use crate::auth::tokens;
use crate::house::House;
use crate::orders::{CHAINS, add, claim, end};

const ORDER: &str = "/api/v1/orders/publish/article,1";
const OVERVIEW: &str = "/jobscheduler/master/api/order/publish/article,1";

/// A server with an operator for every tenant and one that is bound to `shop`.
async fn house() -> House {
    let list =
        [("root", "admin", None), ("shop", "operator", Some("shop")), ("look", "viewer", Some("shop"))];
    let mut house = House::with(&format!("{CHAINS}{}", tokens(&list)), Setup::default()).await;
    house.token = "root".into();
    house
}

fn tenants(list: &Value) -> Vec<&str> {
    list["orders"].as_array().expect("a list").iter().filter_map(|order| order["tenant"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_token_neither_meets_nor_blocks_the_orders_of_others() {
    let house = house().await;
    let body = json!({"path": "/publish/article,1", "value": "default"});
    assert_eq!(add(&house, &body).await.status, 201);
    let body = json!({"path": "/publish/article,1", "value": "shop"}).to_string();
    let added = house.call_as("shop", "POST", "/api/v1/orders", &body).await;
    assert_eq!(added.status, 201, "no 409 tells of another tenant's order: {added:?}");
    assert_eq!(added.header("location"), Some(&*format!("{ORDER}?tenant=shop")));
    assert_eq!(house.call_as("shop", "POST", "/api/v1/orders", &body).await.problem(), 409);

    assert_eq!(house.call_as("shop", "GET", ORDER, "").await.json()["value"], "shop");
    assert_eq!(house.call_as("shop", "GET", &format!("{ORDER}?tenant=shop"), "").await.status, 200);
    for (method, address) in
        [("GET", ORDER.to_owned()), ("POST", format!("{ORDER}/suspend")), ("DELETE", ORDER.into())]
    {
        let address = format!("{address}?tenant=default");
        assert_eq!(house.call_as("shop", method, &address, "").await.problem(), 403, "{method} {address}");
    }
    assert_eq!(
        house.call_as("shop", "POST", &format!("{ORDER}/suspend"), "").await.json()["suspended"],
        true
    );
    assert_eq!(house.get(ORDER).await.json()["suspended"], false);
    assert_eq!(house.call_as("shop", "DELETE", ORDER, "").await.status, 200);
    assert_eq!(house.call_as("shop", "GET", ORDER, "").await.problem(), 404);
    assert_eq!(house.get(ORDER).await.json()["value"], "default");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_a_tenant_means_default_unless_it_names_one() {
    let house = house().await;
    for value in ["shop", "depot"] {
        let address = format!("/api/v1/orders?tenant={value}");
        let body = json!({"path": "/publish/article,1", "value": value}).to_string();
        let added = house.post(&address, &body).await;
        assert_eq!(
            (added.status, added.header("location")),
            (201, Some(&*format!("{ORDER}?tenant={value}")))
        );
    }
    let missing = house.get(ORDER).await;
    assert_eq!(missing.problem(), 404, "there is none of the tenant `default`");
    assert!(missing.text().contains("tenant="), "{}", missing.text());
    assert_eq!(house.post(&format!("{ORDER}/suspend"), "").await.problem(), 404);
    assert_eq!(house.delete(ORDER).await.problem(), 404);

    let named = |tenant: &str| format!("{ORDER}?tenant={tenant}");
    assert_eq!(house.get(&named("depot")).await.json()["value"], "depot");
    assert_eq!(house.put(&named("depot"), r#"{"value":"new"}"#).await.json()["value"], "new");
    assert_eq!(house.get(&named("shop")).await.json()["value"], "shop");
    assert_eq!(house.post(&format!("{ORDER}/suspend?tenant=shop"), "").await.json()["suspended"], true);
    assert_eq!(house.post(&format!("{ORDER}/resume?tenant=shop"), "").await.json()["suspended"], false);
    let body = json!({"path": "/publish/article,2", "tenant": "depot"}).to_string();
    assert_eq!(house.post("/api/v1/orders?tenant=shop", &body).await.status, 201);
    assert_eq!(
        house.get("/api/v1/orders/publish/article,2?tenant=depot").await.status,
        200,
        "a body says it best"
    );
    for bad in [named("a%20b"), format!("{ORDER}?x=1"), format!("{ORDER}?tenant=")] {
        assert_eq!(house.get(&bad).await.problem(), 400, "{bad}");
        assert_eq!(house.put(&bad, r#"{"value":1}"#).await.problem(), 400, "{bad}");
        assert_eq!(house.delete(&bad).await.problem(), 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_steps_keep_orders_of_a_key_apart() {
    let house = house().await;
    let body = json!([
        {"path": "/publish/article,1", "tenant": "shop", "value": "s"},
        {"path": "/publish/article,1", "value": "d"},
    ]);
    assert_eq!(add(&house, &body).await.status, 201);
    let first = house.get("/api/v1/orders?limit=1").await.json();
    assert_eq!(tenants(&first), ["default"]);
    let next = format!("/api/v1/orders?limit=1&cursor={}", first["next"].as_str().expect("there is more"));
    let second = house.get(&next).await.json();
    assert_eq!((tenants(&second), &second["next"]), (vec!["shop"], &Value::Null));
    assert_eq!(tenants(&house.get("/api/v1/orders?tenant=shop").await.json()), ["shop"]);
    assert_eq!(house.get("/api/v1/orders?cursor=/publish/article,1").await.problem(), 400);

    let overview = async |query: &str| house.get(&format!("{OVERVIEW}{query}")).await;
    assert_eq!(overview("").await.json()["nodeId"], "render");
    assert_eq!(overview("?tenant=depot").await.problem(), 404);
    assert_eq!(overview("?return=OrderStatistics").await.json()["total"], 2);
    assert_eq!(overview("?return=OrderStatistics&tenant=shop").await.json()["total"], 1);
    assert_eq!(house.call_as("look", "GET", &format!("{OVERVIEW}?tenant=default"), "").await.problem(), 403);

    for _ in 0..2 {
        let task = claim(&house, "render").await;
        end(&house, &task, "done", json!({"result": "rendered"})).await;
    }
    for tenant in ["default", "shop"] {
        let order = house.get(&format!("{ORDER}?tenant={tenant}")).await.json();
        assert_eq!((&order["node"], &order["value"]), (&json!("deploy"), &json!("rendered")), "{order}");
    }
}
