use super::*;

fn parse_with_environment(url: &str, variables: &[(&str, &str)]) -> Result<Endpoint, OpenError> {
    let lookup = |name: &str| {
        variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_string())
    };
    url::parse_url(url, &lookup)
}

fn parse(url: &str) -> Endpoint {
    parse_with_environment(url, &[]).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn parse_error(url: &str) -> String {
    match parse_with_environment(url, &[]) {
        Ok(endpoint) => panic!("{url} was read as {endpoint}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn displayed_url_hides_passwords() {
    for (url, displayed) in [
        ("redis://db", "redis://db:6379"),
        ("redis://db.example:6380/2", "redis://db.example:6380/2"),
        ("redis://ann:s3cret@db/", "redis://ann@db:6379"),
        ("rediss://:s3cret@[::1]/0", "rediss://[::1]:6379"),
        (
            "redis+sentinel://ann:s3cret@a,b:1/m?sentinel_password=s3cret",
            "redis+sentinel://ann@a:26379,b:1/m",
        ),
        ("rediss+sentinel://a/m%2Fn/3", "rediss+sentinel://a:26379/m/n/3"),
        ("redis+cluster://a,b:7001,[::2]:7002", "redis+cluster://a:6379,b:7001,[::2]:7002"),
        ("redis://db/?connect_timeout=9&prefix=team:", "redis://db:6379?prefix=team:"),
        ("redis://db/1?prefix=a%26%25%40", "redis://db:6379/1?prefix=a%26%25%40"),
        ("redis+cluster://a?prefix={pointsman}:", "redis+cluster://a:6379"),
        ("redis+cluster://a?prefix={team}:", "redis+cluster://a:6379?prefix={team}:"),
    ] {
        let endpoint = parse(url);
        assert_eq!(endpoint.to_string(), displayed);
        assert!(!format!("{endpoint:?}").contains("s3cret"));
        assert_eq!(endpoint.has_password_in_url(), url.contains("s3cret"), "{url}");
    }
}

#[test]
fn no_error_shows_a_password() {
    for url in [
        "redis://ann:s3cret@db:port/0",
        "redis://ann:s3cret@db/0?prefix=%20",
        "redis://ann:s3cret@db/0?no_such=1",
        "redis://ann:s3cret@/0",
        "redis://ann:s3cret@db/many",
        "mysql://ann:s3cret@db/bus",
        "redis://ann:no@s3cret@db",
        "redis://ann:no/@s3cret@db",
        "redis://ann:no/s3cret@db",
        "redis://ann:no?s3cret@db",
        "redis://ann:no/?prefix=s3cret&@db:port",
        "redis://ann:s3cret",
        "redis://ann:s3cret/0",
        "redis://ann:no?s3cret",
        "redis://:s3cret",
        "redis://s3cret@db",
        "redis://ann:s3cret%ff@db",
        "redis+sentinel://a/m?sentinel_user=b&sentinel_password=s3cret%ff",
        "redis+sentinel://ann:s3cret@a,b",
        "redis+cluster://ann:s3cret@a,b/1",
        "redis://db?sentinel_password=s3cret",
    ] {
        assert!(!parse_error(url).contains("s3cret"), "{}", parse_error(url));
    }
}

#[test]
fn bad_urls_are_refused_with_a_suggestion() {
    for (url, expected) in [
        ("redis:db", "begins with none of redis://, rediss://, redis+sentinel://"),
        ("redis://", "names no host; write redis://host:6379"),
        ("redis+sentinel://", "write redis+sentinel://host1:26379"),
        ("redis+cluster://a,,b", "write redis+cluster://host1:6379"),
        ("redis://db:0", "not a number from 1 to 65535"),
        ("redis://db:66666", "not a number from 1 to 65535"),
        ("redis://[::1]6379", "not a number from 1 to 65535"),
        ("redis://[::1", "a character that is not allowed there"),
        ("redis://[db]", "a character that is not allowed there"),
        ("redis://d b", "a character that is not allowed there"),
        ("redis://a,b", "write redis+sentinel://"),
        ("redis://db/one", "write redis://host:6379/0"),
        ("redis://db/-1", "write redis://host:6379/0"),
        ("redis://ann@db", "REDISCLI_AUTH"),
        ("redis+sentinel://a,b", "does not name the master"),
        ("redis+sentinel://a,b/m/two", "is not the number of a database"),
        ("redis+cluster://a,b/1", "a cluster has only 0"),
        ("redis://db?pool=8", "`pool` is not known, and can only be one of connect_timeout, prefix, "),
        ("redis://db?prefx=8", "`prefx` is not known; did you mean `prefix`?"),
        ("redis://db?connect_timeout=soon", "`connect_timeout` is `soon`"),
        ("redis://db?connect_timeout=0", "`connect_timeout` is `0`, and can only be seconds, from 1"),
        ("redis://db?prefix=a%20b", "`prefix` can only be up to 64"),
        ("redis://db?prefix=%C3%A9", "`prefix` can only be up to 64"),
        ("redis+cluster://a?prefix=plain:", "needs exactly one hash tag"),
        ("redis+cluster://a?prefix={}:", "needs exactly one hash tag"),
        ("redis+cluster://a?prefix={a}{b}", "needs exactly one hash tag"),
        ("redis+cluster://a?prefix={{a}:", "needs exactly one hash tag"),
        ("redis+cluster://a?prefix=", "needs exactly one hash tag"),
        ("redis://db?sslrootcert=roots.pem", "begin the URL with rediss"),
        ("rediss://db?sslmode=disable", "`sslmode` is `disable`"),
        ("rediss://db?sslrootcert=/no/such/file", "`sslrootcert` names /no/such/file, which cannot be read"),
        ("rediss://db?sslcert=/no/such/file", "`sslcert` needs sslkey"),
        ("rediss://db?sslcert=/no/such/file&sslkey=/neither", "`sslcert` names /no/such/file"),
        ("redis://db?sentinel_user=ann", "`sentinel_user` is for sentinels"),
        ("redis+sentinel://a/m?sentinel_user=ann", "`sentinel_user` needs sentinel_password"),
    ] {
        assert!(parse_error(url).contains(expected), "{url}: {}", parse_error(url));
    }
    let long = "p".repeat(65);
    assert!(parse_error(&format!("redis://db?prefix={long}")).contains("up to 64"));
}

#[test]
fn missing_parameters_have_defaults() {
    let plain = parse("redis://db");
    assert_eq!((plain.key_prefix(), plain.connect_timeout, plain.database), ("", Duration::from_secs(5), 0));
    assert!(plain.login.is_none() && !plain.is_encrypted());
    assert_eq!(parse("redis+cluster://a").key_prefix(), "{pointsman}:");
    let endpoint = parse("redis://db/7?connect_timeout=9&prefix=team");
    assert_eq!(
        (endpoint.key_prefix(), endpoint.connect_timeout, endpoint.database),
        ("team", Duration::from_secs(9), 7)
    );
    assert_eq!(parse("redis+cluster://a?prefix=%7Bteam%7D%3A").key_prefix(), "{team}:");
    assert_eq!(parse("redis+cluster://a?prefix=one:{team}").key_prefix(), "one:{team}");
}

#[test]
fn last_of_repeated_parameters_wins() {
    assert_eq!(parse("redis://db?prefix=a&prefix=b").key_prefix(), "b");
}

#[test]
fn environment_supplies_the_password_if_the_url_has_none() {
    let variables = [(url::PASSWORD_VARIABLE, "env"), (url::SENTINEL_PASSWORD_VARIABLE, "watch")];
    let login = |url| {
        let endpoint = parse_with_environment(url, &variables).unwrap();
        assert!(!endpoint.to_string().contains("env"));
        endpoint.login.map(|login| (login.user, login.password, login.password_source))
    };
    assert_eq!(login("redis://db"), Some((None, "env".into(), PasswordSource::Environment)));
    assert_eq!(
        login("redis://ann@db"),
        Some((Some("ann".into()), "env".into(), PasswordSource::Environment))
    );
    assert_eq!(
        login("redis://ann:a%40b:c@db"),
        Some((Some("ann".into()), "a@b:c".into(), PasswordSource::Url))
    );
    assert_eq!(login("redis://:pw@db"), Some((None, "pw".into(), PasswordSource::Url)));
    assert_eq!(login("redis://ann:@db"), Some((Some("ann".into()), String::new(), PasswordSource::Url)));
    assert_eq!(login("redis://:@db"), None, "an empty password disables the login");
    let sentinels = |url| match parse_with_environment(url, &variables).unwrap().mode {
        DiscoveryMode::Sentinel { login, .. } => login.map(|login| (login.user, login.password)),
        DiscoveryMode::Single | DiscoveryMode::Cluster => None,
    };
    assert_eq!(sentinels("redis+sentinel://a/m"), Some((None, "watch".into())));
    let both = "redis+sentinel://a/m?sentinel_user=eve&sentinel_password=p";
    assert_eq!(sentinels(both), Some((Some("eve".into()), "p".into())));
    assert!(
        !parse_with_environment("redis://db", &variables).unwrap().has_password_in_url(),
        "the URL has none"
    );
}
