use super::*;

fn parsed(url: &str) -> Endpoint {
    Endpoint::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn refused(url: &str) -> String {
    match Endpoint::parse(url) {
        Ok(endpoint) => panic!("{url} was read as {endpoint}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_url_is_shown_without_its_password() {
    let endpoint = parsed("postgresql://ann:s3cret@db.example:6432/bus?sslmode=disable");
    assert_eq!(endpoint.to_string(), "postgres://ann@db.example:6432/bus");
    assert!(!format!("{endpoint:?}").contains("s3cret"));
    assert_eq!(parsed("postgres://ann@[::1]/bus").to_string(), "postgres://ann@[::1]:5432/bus");
    assert_eq!(parsed("postgres://ann@a:1,b/bus").to_string(), "postgres://ann@a:1,b:5432/bus");
    assert_eq!(parsed("postgres://ann@a").database(), "ann");
}

#[test]
fn no_fault_shows_the_password() {
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
        assert!(!refused(url).contains("s3cret"), "{}", refused(url));
    }
}

#[test]
fn a_parameter_that_cannot_be_used_is_named() {
    for (url, named) in [
        ("postgres://a@db/bus?sslmode=maybe", "`sslmode` is `maybe`"),
        ("postgres://a@db/bus?pooler=session", "`pooler` is `session`"),
        ("postgres://a@db/bus?sslmode=verify-full", "`sslrootcert` is needed"),
        (
            "postgres://a@db/bus?sslmode=verify-ca&sslrootcert=/no/such/file",
            "`sslrootcert` names /no/such/file",
        ),
        ("postgres://a@db/bus?sslrootcert=/no/such/file", "`sslrootcert` names /no/such/file"),
        ("postgres://a@db/bus?sslmode=disable&sslrootcert=/no/such/file", "`sslrootcert` names"),
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
        assert!(refused(url).contains(named), "{}", refused(url));
    }
}

#[test]
fn the_driver_knows_all_that_is_listed() {
    for name in THEIRS {
        let error = Endpoint::parse(&format!("postgres://a@db/bus?{name}=none")).err();
        assert!(!error.is_some_and(|error| error.to_string().contains("is not known")), "{name}");
    }
}

#[test]
fn who_is_not_named_is_the_one_who_runs_this() {
    for url in ["postgres://db/bus", "postgres://@db/bus"] {
        let endpoint = parsed(url);
        assert!(!endpoint.names_user());
        assert_eq!(endpoint.role(), whoami::username().unwrap());
    }
    assert!(parsed("postgres://db/bus?user=ann").names_user());
}

#[test]
fn what_is_ours_is_taken_out_wherever_it_stands() {
    let listen = "listen=postgres%3A%2F%2Fann%3Aa%2540b%40direct%3A5433%2Fbus";
    for query in [
        format!("pooler=transaction&{listen}&application_name=mine"),
        format!("application_name=mine&{listen}&pooler=transaction"),
        format!("{listen}&application_name=mine&pooler=transaction"),
    ] {
        let endpoint = parsed(&format!("postgres://ann@pool:6432/bus?{query}"));
        assert!(endpoint.pooled);
        assert_eq!(endpoint.config.get_application_name(), Some("mine"));
        assert_eq!(endpoint.config.get_options(), None, "a pooler refuses what it does not know");
        let direct = endpoint.for_listening().map(ToString::to_string);
        assert_eq!(direct.as_deref(), Some("postgres://ann@direct:5433/bus"));
        let password = endpoint.listen.as_ref().and_then(|direct| direct.config.get_password());
        assert_eq!(password, Some("a@b".as_bytes()));
    }
}

#[test]
fn only_behind_a_pooler_nobody_listens() {
    assert!(parsed("postgres://ann@db/bus").for_listening().is_some());
    assert!(parsed("postgres://ann@db/bus?pooler=transaction").for_listening().is_none());
}

#[test]
fn a_password_may_hold_what_else_begins_the_parameters() {
    let endpoint = parsed("postgres://ann:what?now&then@db/bus?sslmode=disable");
    assert_eq!(endpoint.config.get_password(), Some("what?now&then".as_bytes()));
    assert_eq!(endpoint.config.get_ssl_mode(), SslMode::Disable);
}

#[test]
fn what_is_not_given_has_a_sensible_value() {
    let plain = parsed("postgres://ann@db/bus").config;
    assert_eq!(plain.get_ssl_mode(), SslMode::Prefer);
    assert_eq!(plain.get_application_name(), Some("pointsman"));
    assert_eq!(plain.get_connect_timeout(), Some(&PATIENCE));
    assert_eq!(plain.get_keepalives_idle(), QUIET);
    assert_eq!(plain.get_options(), Some("-c jit=off -c TimeZone=UTC"));
    let set =
        parsed("postgres://ann@db/bus?connect_timeout=9&keepalives_idle=7&options=-c%20search_path%3Da")
            .config;
    assert_eq!(set.get_connect_timeout(), Some(&Duration::from_secs(9)));
    assert_eq!(set.get_keepalives_idle(), Duration::from_secs(7));
    assert_eq!(set.get_options(), Some("-c search_path=a -c jit=off -c TimeZone=UTC"));
}

#[test]
fn a_socket_in_a_folder_is_not_encrypted() {
    let local = parsed("postgres:///bus?host=/run/postgresql&user=ann&sslmode=require");
    assert_eq!(local.config.get_ssl_mode(), SslMode::Disable);
    assert_eq!(local.place(), "/run/postgresql:5432");
}

#[test]
fn who_is_trusted_follows_from_the_mode() {
    let file = Some("roots.pem");
    assert_eq!(Trust::read(None, None).unwrap(), Trust::Prefer);
    assert_eq!(Trust::read(Some("require"), None).unwrap(), Trust::Require);
    assert_eq!(Trust::read(Some("require"), file).unwrap(), Trust::Issuer("roots.pem".into()));
    assert_eq!(Trust::read(Some("verify-ca"), file).unwrap(), Trust::Issuer("roots.pem".into()));
    assert_eq!(Trust::read(Some("verify-full"), file).unwrap(), Trust::Host("roots.pem".into()));
    assert_eq!(Trust::read(Some("prefer"), file).unwrap().mode(), SslMode::Prefer);
    assert_eq!(Trust::read(Some("verify-full"), file).unwrap().mode(), SslMode::Require);
}

#[test]
fn of_a_parameter_that_is_given_twice_the_last_counts() {
    let twice = parsed("postgres://ann@db/bus?sslmode=require&sslmode=disable");
    assert_eq!(twice.config.get_ssl_mode(), SslMode::Disable);
    let twice = parsed("postgres://ann@db/bus?sslmode=disable&sslmode=require");
    assert_eq!(twice.config.get_ssl_mode(), SslMode::Require);
}
