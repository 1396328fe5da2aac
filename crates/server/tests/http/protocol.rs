use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use pointsman_engine::Setup;

use crate::client::{read, send};
use crate::house::House;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_a_problem_too() {
    let house = House::new().await;
    assert_eq!(house.get("/nothing").await.problem(), 404);
    assert_eq!(house.get("/api/v1/tasks/").await.problem(), 404);
    let answer = house.call("DELETE", "/api/v1/events", &[], b"").await;
    assert_eq!(answer.problem(), 405);
    let allow = answer.header("allow").unwrap();
    assert!(allow.contains("GET") && allow.contains("POST"), "{allow}");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(house.call("POST", "/api/v1/events", &form, b"a=b").await.problem(), 415);
    for path in ["/api/v1/objects/%ff", "/api/v1/objects/%zz", "/%c3%28", "/api/v1/handlers?%ff=1"] {
        assert_eq!(house.get(path).await.problem(), 400, "{path}");
    }
    let long = format!("/api/v1/objects/{}", "x".repeat(9000));
    assert_eq!(house.get(&long).await.problem(), 414);
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_metrics() {
    let house = House::new().await;
    for path in ["/healthz", "/livez", "/readyz"] {
        let answer = house.call("GET", path, &[("authorization", "")], b"").await;
        assert_eq!((answer.status, &answer.json()["status"]), (200, &"ok".into()), "{path}");
    }
    house.emit(r#"{"type":"a"}"#).await;
    assert!(house.get("/metrics").await.text().contains("pointsman_"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_too_large_is_refused_and_the_client_reads_why() {
    let house = House::new().await;
    let body = vec![b' '; (16 << 20) + 1];
    assert_eq!(house.post("/api/v1/events", std::str::from_utf8(&body).unwrap()).await.problem(), 413);
    let bad = [("authorization", "Bearer wrong")];
    assert_eq!(house.call("POST", "/api/v1/events", &bad, &body).await.problem(), 401);

    let head = house.head("POST", "/api/v1/events", &[("transfer-encoding", "chunked")]);
    let mut chunked = Vec::new();
    for piece in body.chunks(1 << 20) {
        chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        chunked.extend_from_slice(piece);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(send(house.address, &format!("{head}\r\n"), &chunked).await.problem(), 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_for_leave_to_send_gets_its_answer_at_once() {
    let house = House::new().await;
    let more = [("expect", "100-continue"), ("content-length", "99999999")];
    let head = house.head("POST", "/api/v1/events", &more);
    assert_eq!(send(house.address, &format!("{head}\r\n"), b"").await.problem(), 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbled_heads_get_an_answer() {
    let house = House::new().await;
    for (head, status) in [
        ("GARBAGE\r\n\r\n".to_owned(), 400),
        ("OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(), 404),
        ("CONNECT x:80 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(), 404),
        ("GET http://x/healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(), 200),
        ("GET / HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(70_000)), 431),
        (format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(200)), 431),
        ("POST /api/v1/events HTTP/1.1\r\ncontent-length: x\r\n\r\n".to_owned(), 400),
    ] {
        assert_eq!(send(house.address, &head, b"").await.status, status, "{head:.40}");
    }
    assert_eq!(house.get("/healthz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_cap_are_told_so() {
    let yaml = "\nserver: {listen: '127.0.0.1:0', drain: 1s, max_connections: 2}\n";
    let folder = tempfile::tempdir().unwrap();
    let house = House::at(folder.path(), &format!("store: 'sqlite::memory:'{yaml}"), Setup::default()).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(house.address).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
        held.push(stream);
    }
    let answer = house.get("/healthz").await;
    assert_eq!(answer.problem(), 503);
    assert!(answer.header("retry-after").is_some());
    for mut stream in held {
        stream.write_all(b"host: x\r\nconnection: close\r\n\r\n").await.unwrap();
        assert_eq!(read(&mut stream).await.status, 200);
    }
    house.server.stop().await;
}
