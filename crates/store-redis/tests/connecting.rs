//! Connections to real servers of every kind, and errors for servers that do not match the URL.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use pointsman_store_redis::{Endpoint, OpenError};
use pointsman_testing::{FaultProxy, RedisCluster, RedisSentinelGroup, RedisServer, RedisSettings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

fn parse_endpoint(url: &str) -> Endpoint {
    Endpoint::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// Returns the port of the server that a URL leads to, over both kinds of connections.
async fn connected_port(url: &str) -> Result<u16, OpenError> {
    let endpoint = parse_endpoint(url);
    let parse_port = |reply: Vec<String>| reply.get(1).and_then(|port| port.parse::<u16>().ok()).unwrap();
    let get_port = || redis::cmd("CONFIG").arg("GET").arg("port").to_owned();
    let mut connection = endpoint.connect().await?;
    let port = parse_port(get_port().query_async(&mut connection).await.unwrap());
    let blocking = tokio::task::spawn_blocking(move || endpoint.connect_blocking()).await.unwrap();
    let mut connection = blocking?;
    assert_eq!(parse_port(get_port().query(&mut connection).unwrap()), port);
    Ok(port)
}

/// Returns the error of connecting, which both kinds of connections share.
async fn connection_error(url: &str) -> OpenError {
    let endpoint = parse_endpoint(url);
    let asynchronous = endpoint.connect().await.err();
    let blocking = tokio::task::spawn_blocking(move || endpoint.connect_blocking().err()).await.unwrap();
    let [asynchronous, blocking] =
        [asynchronous, blocking].map(|error| error.unwrap_or_else(|| panic!("{url} connects")));
    assert_eq!(asynchronous.to_string(), blocking.to_string());
    asynchronous
}

/// Returns a URL of a server: its address between a scheme and a path.
fn url_of(server: &RedisServer, scheme: &str, path: &str) -> String {
    format!("{scheme}{}{path}", server.address())
}

/// Asserts that a listener receives a message published over another connection.
async fn assert_receives_published(endpoint: &Endpoint) {
    let mut listener = endpoint.connect_for_listening().await.unwrap();
    listener.subscribe("channel").await.unwrap();
    let mut publisher = endpoint.connect().await.unwrap();
    let _: () =
        redis::cmd("PUBLISH").arg("channel").arg("test message").query_async(&mut publisher).await.unwrap();
    let received = tokio::time::timeout(Duration::from_secs(20), listener.on_message().next()).await;
    assert_eq!(received.unwrap().unwrap().get_payload::<String>().unwrap(), "test message");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_server_is_reached_with_its_password_and_database() {
    let server =
        RedisServer::start(RedisSettings { password: Some("p@ss/w?rd".into()), extra_directives: vec![] })
            .unwrap();
    let url = url_of(&server, "redis://:p%40ss%2Fw%3Frd@", "/3");
    assert_eq!(connected_port(&url).await.unwrap(), server.port());
    let mut connection = parse_endpoint(&url).connect().await.unwrap();
    let client_info: String = redis::cmd("CLIENT").arg("INFO").query_async(&mut connection).await.unwrap();
    assert!(client_info.contains(" name=pointsman ") && client_info.contains(" db=3 "), "{client_info}");
    assert_receives_published(&parse_endpoint(&url)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_logins_explain_the_reason() {
    let server =
        RedisServer::start(RedisSettings { password: Some("right".into()), extra_directives: vec![] })
            .unwrap();
    for (scheme, expected) in [
        ("redis://", "NOAUTH"),
        ("redis://:wrong@", "WRONGPASS"),
        ("redis://eve:right@", "refused the login of user eve: WRONGPASS"),
    ] {
        let error = connection_error(&url_of(&server, scheme, "")).await;
        assert!(matches!(error, OpenError::LoginRefused { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let listening = parse_endpoint(&url_of(&server, "redis://:wrong@", "")).connect_for_listening().await;
    assert!(matches!(listening, Err(OpenError::LoginRefused { .. })));
    let open = RedisServer::start(RedisSettings::default()).unwrap();
    let error = connection_error(&url_of(&open, "redis://:none@", "")).await;
    assert!(error.to_string().contains("without any password configured"), "{error}");

    let create_limited_user = ["ACL", "SETUSER", "ann", "on", ">right", "~*", "+@read"];
    open.run_command(&create_limited_user).unwrap();
    let url = url_of(&open, "redis://ann:right@", "");
    let error = connection_error(&url).await;
    let OpenError::MissingPrivilege { grant, .. } = &error else { panic!("{error}") };
    open.run_command(&grant.split(' ').collect::<Vec<_>>()).unwrap();
    parse_endpoint(&url).connect().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_databases_and_replicas_are_refused() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let error = connection_error(&url_of(&server, "redis://", "/16")).await;
    assert!(matches!(error, OpenError::NoDatabase { database: 16, .. }), "{error}");
    let (ip, port) = (server.address().ip().to_string(), server.port().to_string());
    let replica =
        RedisServer::start(RedisSettings::with_directives(&[("replicaof", &format!("{ip} {port}"))]))
            .unwrap();
    let error = connection_error(&replica.url()).await;
    assert!(
        matches!(&error, OpenError::IsReplica { master, .. } if *master == server.address().to_string()),
        "{error}"
    );
}

/// Starts a server that sends fixed replies, and then is silent; without replies it closes the connection.
fn start_fake_server(replies: &'static [&'static str]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 1024];
            let _ = client.read(&mut request);
            for reply in replies {
                let _ = client.write_all(reply.as_bytes());
                let _ = client.read(&mut request);
            }
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn other_servers_and_unreachable_hosts_have_distinct_errors() {
    for replies in [&["HTTP/1.1 400 Bad Request\r\n\r\n"], &["SSH-2.0-OpenSSH_9.2\r\n"]] {
        let error = connection_error(&format!("redis://{}", start_fake_server(replies))).await;
        assert!(matches!(error, OpenError::NotRedis { .. }), "{error}");
    }
    const OLD_SERVER_REPLIES: &str =
        "$22\r\nredis_version:6.2.14\r\n\r\n*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n+PONG\r\n+OK\r\n";
    let error =
        connection_error(&format!("redis://{}", start_fake_server(&["+PONG\r\n", OLD_SERVER_REPLIES]))).await;
    assert!(matches!(&error, OpenError::ServerTooOld { found, .. } if found == "6.2.14"), "{error}");

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let error =
        connection_error(&format!("redis://{}?connect_timeout=1", silent.local_addr().unwrap())).await;
    assert!(error.to_string().contains("does not answer within 1 s"), "{error}");
    drop(silent);

    let error = connection_error(&format!("redis://{}", start_fake_server(&[]))).await;
    assert!(matches!(error, OpenError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("begin the URL with rediss"), "{error}");
    let error = connection_error("redis://127.0.0.1:1").await;
    assert!(error.to_string().contains("Connection refused"), "{error}");
    let error = connection_error("redis+sentinel://127.0.0.1:1,127.0.0.1:2/m").await;
    assert!(
        error.to_string().contains("127.0.0.1:1: ") && error.to_string().contains("127.0.0.1:2: "),
        "{error}"
    );
    let error = connection_error("redis://no-such-host.invalid").await;
    assert!(matches!(error, OpenError::Unreachable { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_lead_to_the_master_after_a_failover() {
    let sentinels = RedisSentinelGroup::start().unwrap();
    let url = sentinels.url();
    let first = sentinels.find_master().unwrap();
    assert_eq!(connected_port(&url).await.unwrap(), first.port());
    assert_receives_published(&parse_endpoint(&url)).await;

    let error = connection_error(&url.replace("/mymaster", "/nobody")).await;
    assert!(
        matches!(&error, OpenError::UnknownMaster { known_masters: known, .. } if known == "mymaster"),
        "{error}"
    );
    let sentinel = sentinels.sentinels().first().unwrap();
    let error = connection_error(&sentinel.url()).await;
    assert!(
        error.to_string().contains("is a sentinel") && error.to_string().contains("redis+sentinel://"),
        "{error}"
    );
    let error = connection_error(&url_of(sentinel, "redis+cluster://", "")).await;
    assert!(error.to_string().contains("is a sentinel"), "{error}");
    let error = connection_error(&url_of(first, "redis+sentinel://", "/mymaster")).await;
    assert!(error.to_string().contains("is not a sentinel"), "{error}");

    // A dead sentinel is skipped.
    sentinels.sentinels().first().unwrap().kill().unwrap();
    let short_timeout_url = format!("{url}?connect_timeout=1");
    assert_eq!(connected_port(&short_timeout_url).await.unwrap(), first.port());

    let dead = sentinels.kill_master().unwrap();
    let error = connection_error(&short_timeout_url).await;
    assert!(matches!(error, OpenError::Unreachable { .. }), "{error}");
    let master = sentinels.wait_for_failover(dead).unwrap();
    assert_eq!(connected_port(&short_timeout_url).await.unwrap(), master.port());
    sentinels.restart_as_replica(dead).unwrap();
    assert_eq!(connected_port(&short_timeout_url).await.unwrap(), master.port());
    assert_receives_published(&parse_endpoint(&short_timeout_url)).await;
    // A frozen sentinel is skipped too.
    sentinels.sentinels().get(1).unwrap().pause().unwrap();
    assert_eq!(connected_port(&short_timeout_url).await.unwrap(), master.port());
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_have_their_own_password() {
    let sentinels = RedisSentinelGroup::start().unwrap();
    for sentinel in sentinels.sentinels() {
        sentinel.run_command(&["ACL", "SETUSER", "default", "resetpass", ">watch"]).unwrap();
    }
    let error = connection_error(&sentinels.url()).await;
    assert!(error.to_string().contains("sentinel_password"), "{error}");
    let error = connection_error(&format!("{}?sentinel_password=wrong", sentinels.url())).await;
    assert!(error.to_string().contains("WRONGPASS"), "{error}");
    connected_port(&format!("{}?sentinel_password=watch", sentinels.url())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_urls_lead_to_the_node_that_owns_the_slot() {
    let cluster = RedisCluster::start_with_replicas().unwrap();
    let url = cluster.url();
    for prefix in ["{pointsman}:", "{a}:", "x{b}", "{c}"] {
        let owner = cluster.server(cluster.find_key_owner(prefix).unwrap()).unwrap();
        let encoded = prefix.replace('{', "%7B").replace('}', "%7D");
        assert_eq!(connected_port(&format!("{url}?prefix={encoded}")).await.unwrap(), owner.port());
    }
    let mut connection = parse_endpoint(&url).connect().await.unwrap();
    let set: String =
        redis::cmd("SET").arg("{pointsman}:a").arg(1).query_async(&mut connection).await.unwrap();
    assert_eq!(set, "OK", "the node owns the slot");
    assert_receives_published(&parse_endpoint(&url)).await;

    let node = cluster.server(0).unwrap();
    let error = connection_error(&node.url()).await;
    assert!(error.to_string().contains("redis+cluster://"), "{error}");
    let single = RedisServer::start(RedisSettings::default()).unwrap();
    let error = connection_error(&url_of(&single, "redis+cluster://", "")).await;
    assert!(error.to_string().contains("is not part of a cluster"), "{error}");

    // A replica resolves the owner as well, and becomes the owner after a failover.
    let owner = cluster.find_key_owner("{pointsman}:").unwrap();
    let replica = cluster.server(owner + 3).unwrap();
    let replica_url = url_of(replica, "redis+cluster://", "");
    assert_eq!(connected_port(&replica_url).await.unwrap(), cluster.server(owner).unwrap().port());
    cluster.kill_server(owner).unwrap();
    cluster.wait_for_key_owner("{pointsman}:", owner + 3).unwrap();
    for url in [&url, &replica_url] {
        assert_eq!(connected_port(url).await.unwrap(), replica.port());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unserved_slots_are_reported() {
    let single_node = RedisServer::start(RedisSettings::with_directives(&[
        ("cluster-enabled", "yes"),
        ("cluster-port", &free_port().to_string()),
    ]));
    let single_node = single_node.unwrap();
    let error = connection_error(&url_of(&single_node, "redis+cluster://", "")).await;
    assert!(matches!(error, OpenError::SlotNotServed { slot: 6572, .. }), "{error}");
    // A single node does not announce an address.
    single_node.run_command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).unwrap();
    assert_eq!(
        connected_port(&url_of(&single_node, "redis+cluster://", "")).await.unwrap(),
        single_node.port()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn connecting_to_a_frozen_server_times_out() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let proxy = FaultProxy::start(server.address()).unwrap();
    let url = format!("{}?connect_timeout=1", server.url_through_proxy(&proxy).unwrap());
    connected_port(&url).await.unwrap();
    proxy.set_frozen(true);
    let error = connection_error(&url).await;
    assert!(matches!(error, OpenError::Unreachable { .. }), "{error}");
    assert!(parse_endpoint(&url).connect_for_listening().await.is_err());
    proxy.set_frozen(false);
    connected_port(&url).await.unwrap();
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server whose certificate is that of `localhost`, and the files that clients need.
struct TlsServer {
    server: RedisServer,
    tls_port: u16,
    folder: TempDir,
}

fn create_issuer(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

impl TlsServer {
    fn start(auth_clients: &str) -> Self {
        let folder = TempDir::new().unwrap();
        set_file_mode(folder.path(), 0o755);
        let (trusted, stranger) = (create_issuer("trusted"), create_issuer("stranger"));
        let file = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            set_file_mode(&path, 0o644);
            path.display().to_string()
        };
        let issue = |name: &str, by: &CertifiedIssuer<'static, KeyPair>| {
            let key = KeyPair::generate().unwrap();
            let certificate =
                CertificateParams::new(vec!["localhost".into()]).unwrap().signed_by(&key, by).unwrap();
            (
                file(&format!("{name}.crt"), certificate.pem()),
                file(&format!("{name}.key"), key.serialize_pem()),
            )
        };
        let (certificate, key) = issue("server", &trusted);
        issue("client", &trusted);
        let roots = file("issuer.crt", trusted.pem());
        file("stranger.crt", stranger.pem());
        let port = free_port();
        let server = RedisServer::start(RedisSettings::with_directives(&[
            ("tls-port", &port.to_string()),
            ("tls-cert-file", &certificate),
            ("tls-key-file", &key),
            ("tls-ca-cert-file", &roots),
            ("tls-auth-clients", auth_clients),
        ]));
        Self { server: server.unwrap(), tls_port: port, folder }
    }

    fn file_path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn url(&self, host: &str, parameters: &str) -> String {
        format!("rediss://{host}:{}?{parameters}", self.tls_port)
    }
}

fn set_file_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sslmode_decides_which_certificates_are_accepted() {
    let tls_server = TlsServer::start("no");
    let (issuer, stranger) = (tls_server.file_path("issuer.crt"), tls_server.file_path("stranger.crt"));
    let (issuer, stranger) = (issuer.display(), stranger.display());
    for (host, parameters) in [
        ("localhost", format!("sslrootcert={issuer}")),
        ("localhost", format!("sslmode=verify-full&sslrootcert={issuer}")),
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={issuer}")),
        ("127.0.0.1", format!("sslmode=require&sslrootcert={issuer}")),
        ("127.0.0.1", "sslmode=require".into()),
    ] {
        let url = tls_server.url(host, &parameters);
        assert_eq!(connected_port(&url).await.unwrap(), tls_server.server.port(), "{url}");
        assert_receives_published(&parse_endpoint(&url)).await;
    }
    for (host, parameters) in [
        ("localhost", String::new()),
        ("127.0.0.1", format!("sslrootcert={issuer}")),
        ("localhost", format!("sslrootcert={stranger}")),
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={stranger}")),
        ("127.0.0.1", format!("sslmode=require&sslrootcert={stranger}")),
    ] {
        let error = connection_error(&tls_server.url(host, &parameters)).await;
        assert!(matches!(error, OpenError::TlsFailed { .. }), "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    let error = connection_error(&format!(
        "rediss://localhost:{}?sslmode=require&connect_timeout=1",
        tls_server.server.port()
    ))
    .await;
    assert!(error.to_string().contains("if it does not use TLS, begin the URL with redis"), "{error}");
    let http_server = start_fake_server(&["HTTP/1.1 400 Bad Request\r\n\r\n"]);
    let error = connection_error(&format!("rediss://{http_server}?sslmode=require")).await;
    assert!(matches!(error, OpenError::NotRedis { .. }), "{error}");
    let error = connection_error(&format!("redis://localhost:{}", tls_server.tls_port)).await;
    assert!(error.to_string().contains("begin the URL with rediss"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_may_require_a_client_certificate() {
    let tls_server = TlsServer::start("yes");
    let file = |name| tls_server.file_path(name).display().to_string();
    let roots = format!("sslrootcert={}", file("issuer.crt"));
    let without_certificate = parse_endpoint(&tls_server.url("localhost", &roots));
    // Whether the close or its reason arrives first is random on a multiplexed connection.
    let error = without_certificate.connect().await.err().unwrap().to_string();
    assert!(error.contains("sslcert"), "{error}");
    let blocking =
        tokio::task::spawn_blocking(move || without_certificate.connect_blocking().err()).await.unwrap();
    assert!(matches!(blocking, Some(OpenError::TlsFailed { .. })), "{blocking:?}");
    let with_certificate = format!("{roots}&sslcert={}&sslkey={}", file("client.crt"), file("client.key"));
    assert_eq!(
        connected_port(&tls_server.url("localhost", &with_certificate)).await.unwrap(),
        tls_server.server.port()
    );
}
