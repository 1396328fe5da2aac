use super::*;

fn parse_endpoint(url: &str) -> Endpoint {
    Endpoint::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn error_of_invalid_url(url: &str) -> String {
    match Endpoint::parse(url) {
        Ok(endpoint) => panic!("{url} was read as {endpoint}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_url_is_displayed_without_its_password() {
    let endpoint = parse_endpoint("postgresql://ann:s3cret@db.example:6432/bus?sslmode=disable");
    assert_eq!(endpoint.to_string(), "postgres://ann@db.example:6432/bus");
    assert!(!format!("{endpoint:?}").contains("s3cret"));
    assert_eq!(parse_endpoint("postgres://ann@[::1]/bus").to_string(), "postgres://ann@[::1]:5432/bus");
    assert_eq!(parse_endpoint("postgres://ann@a:1,b/bus").to_string(), "postgres://ann@a:1,b:5432/bus");
    assert_eq!(parse_endpoint("postgres://ann@a").database(), "ann");
}

#[test]
fn no_error_message_contains_the_password() {
    for url in [
        "postgres://ann:s3cret@db:port/bus",
        "postgres://ann:s3cret@db/bus?sslmode=maybe",
        "postgres://ann:s3cret@db/bus?no_such=1",
        "postgres://ann:s3cret@db/bus?listen=ann:s3cret@db",
        "postgres://ann:s3cret@/bus",
        "mysql://ann:s3cret@db/bus",
        "postgres://ann:no@s3cret@db/bus",
        "postgres://ann:no/@s3cret@db/bus",
        "postgres://ann:no@s3cret@db",
        "postgres://ann:s3cret",
        "postgres://ann:s3cret/bus",
        "postgres://ann:no@db:s3cret/more@db/bus",
        "postgres://ann:no/?port=s3cret&@db:port/bus",
    ] {
        assert!(!error_of_invalid_url(url).contains("s3cret"), "{}", error_of_invalid_url(url));
    }
}

#[test]
fn errors_name_the_invalid_parameter() {
    for (url, named) in [
        ("postgres://a@db/bus?sslmode=maybe", "`sslmode` is `maybe`"),
        ("postgres://a@db/bus?pooler=session", "`pooler` is `session`"),
        ("postgres://a@db/bus?sslmode=verify-full", "`sslrootcert` is required"),
        (
            "postgres://a@db/bus?sslmode=verify-ca&sslrootcert=/no/such/root_certificates",
            "`sslrootcert` names /no/such/root_certificates",
        ),
        (
            "postgres://a@db/bus?sslrootcert=/no/such/root_certificates",
            "`sslrootcert` names /no/such/root_certificates",
        ),
        ("postgres://a@db/bus?sslmode=disable&sslrootcert=/no/such/root_certificates", "`sslrootcert` names"),
        ("postgres://a:b@c@db/bus", "%40"),
        ("postgres://a@db/bus?listen=nowhere", "`listen`"),
        ("postgres://a@db/bus?sslmod=require", "`sslmod` is not known; did you mean `sslmode`?"),
        ("postgres://a@db/bus?colour=8", "`colour` is not known, and can only be one of listen, pooler, "),
        ("postgres://a@db/bus?connect_timeout=soon", "`connect_timeout` cannot be `soon`"),
        ("postgres://db/bus?connect_timeout=soon", "`connect_timeout` cannot be `soon`"),
        ("postgres://a:b@db:543x/bus?user=c", "`port` cannot be `543x`"),
        ("postgres://a@[::1]:1,[::1]:66666", "`port` cannot be `66666`"),
        ("postgres://a@db:1/bus?port=two", "`port` cannot be `two`"),
    ] {
        assert!(error_of_invalid_url(url).contains(named), "{}", error_of_invalid_url(url));
    }
}

#[test]
fn the_driver_accepts_every_listed_parameter() {
    for name in DRIVER_PARAMETERS {
        let error = Endpoint::parse(&format!("postgres://a@db/bus?{name}=none")).err();
        assert!(!error.is_some_and(|error| error.to_string().contains("is not known")), "{name}");
    }
}

#[test]
fn the_default_user_is_the_os_user() {
    for url in ["postgres://db/bus", "postgres://@db/bus"] {
        let endpoint = parse_endpoint(url);
        assert!(!endpoint.has_url_user());
        assert_eq!(endpoint.role(), whoami::username().unwrap());
    }
    assert!(parse_endpoint("postgres://db/bus?user=ann").has_url_user());
}

#[test]
fn non_driver_parameters_are_removed_at_any_position() {
    let listen = "listen=postgres%3A%2F%2Fann%3Aa%2540b%40direct%3A5433%2Fbus";
    for query in [
        format!("pooler=transaction&{listen}&application_name=mine"),
        format!("application_name=mine&{listen}&pooler=transaction"),
        format!("{listen}&application_name=mine&pooler=transaction"),
    ] {
        let endpoint = parse_endpoint(&format!("postgres://ann@pool:6432/bus?{query}"));
        assert!(endpoint.is_behind_pooler);
        assert_eq!(endpoint.config.get_application_name(), Some("mine"));
        assert_eq!(endpoint.config.get_options(), None, "a pooler rejects unknown settings");
        let direct = endpoint.listen_endpoint().map(ToString::to_string);
        assert_eq!(direct.as_deref(), Some("postgres://ann@direct:5433/bus"));
        let password = endpoint.direct_endpoint.as_ref().and_then(|direct| direct.config.get_password());
        assert_eq!(password, Some("a@b".as_bytes()));
    }
}

#[test]
fn there_is_no_listen_endpoint_behind_a_pooler() {
    assert!(parse_endpoint("postgres://ann@db/bus").listen_endpoint().is_some());
    assert!(parse_endpoint("postgres://ann@db/bus?pooler=transaction").listen_endpoint().is_none());
}

#[test]
fn a_password_may_contain_a_question_mark() {
    let endpoint = parse_endpoint("postgres://ann:what?now&then@db/bus?sslmode=disable");
    assert_eq!(endpoint.config.get_password(), Some("what?now&then".as_bytes()));
    assert_eq!(endpoint.config.get_ssl_mode(), SslMode::Disable);
}

#[test]
fn missing_parameters_have_defaults() {
    let plain = parse_endpoint("postgres://ann@db/bus").config;
    assert_eq!(plain.get_ssl_mode(), SslMode::Prefer);
    assert_eq!(plain.get_application_name(), Some("pointsman"));
    assert_eq!(plain.get_connect_timeout(), Some(&CONNECT_TIMEOUT));
    assert_eq!(plain.get_keepalives_idle(), DEAD_SERVER_TIMEOUT);
    assert_eq!(plain.get_options(), Some("-c jit=off -c TimeZone=UTC"));
    let set = parse_endpoint(
        "postgres://ann@db/bus?connect_timeout=9&keepalives_idle=7&options=-c%20search_path%3Da",
    )
    .config;
    assert_eq!(set.get_connect_timeout(), Some(&Duration::from_secs(9)));
    assert_eq!(set.get_keepalives_idle(), Duration::from_secs(7));
    assert_eq!(set.get_options(), Some("-c search_path=a -c jit=off -c TimeZone=UTC"));
}

#[test]
fn a_unix_socket_is_not_encrypted() {
    let local = parse_endpoint("postgres:///bus?host=/run/postgresql&user=ann&sslmode=require");
    assert_eq!(local.config.get_ssl_mode(), SslMode::Disable);
    assert_eq!(local.address(), "/run/postgresql:5432");
}

#[test]
fn sslmode_decides_which_certificates_are_trusted() {
    let root_certificates = Some("roots.pem");
    assert_eq!(TlsMode::from_parameters(None, None).unwrap(), TlsMode::Prefer);
    assert_eq!(TlsMode::from_parameters(Some("require"), None).unwrap(), TlsMode::Require);
    assert_eq!(
        TlsMode::from_parameters(Some("require"), root_certificates).unwrap(),
        TlsMode::VerifyCa("roots.pem".into())
    );
    assert_eq!(
        TlsMode::from_parameters(Some("verify-ca"), root_certificates).unwrap(),
        TlsMode::VerifyCa("roots.pem".into())
    );
    assert_eq!(
        TlsMode::from_parameters(Some("verify-full"), root_certificates).unwrap(),
        TlsMode::VerifyFull("roots.pem".into())
    );
    assert_eq!(
        TlsMode::from_parameters(Some("prefer"), root_certificates).unwrap().driver_ssl_mode(),
        SslMode::Prefer
    );
    assert_eq!(
        TlsMode::from_parameters(Some("verify-full"), root_certificates).unwrap().driver_ssl_mode(),
        SslMode::Require
    );
}

#[test]
fn the_last_value_of_a_repeated_parameter_counts() {
    let twice = parse_endpoint("postgres://ann@db/bus?sslmode=require&sslmode=disable");
    assert_eq!(twice.config.get_ssl_mode(), SslMode::Disable);
    let twice = parse_endpoint("postgres://ann@db/bus?sslmode=disable&sslmode=require");
    assert_eq!(twice.config.get_ssl_mode(), SslMode::Require);
}
