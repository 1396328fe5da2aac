//! Every part of a run measures something, however small the sizes. What it measured is not judged here.

use pointsman_bench::{Options, Part, Target, Unit, run, steps};

fn measures_something(part: Part, target: &Target) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let options = Options {
        target: target.clone(),
        dir: dir.path().into(),
        events: 1_000,
        seconds: 1,
        backlog: 4_000,
        kept: 6_000,
        load: 6,
        queues: 200,
        schedules: 1_000,
        readers: 20,
        orders: 200,
        program: None,
        only: vec![part],
    };
    let told = std::cell::Cell::new(0);
    let report = run(&options, &|step, _| told.set(step + 1))?;
    assert_eq!(told.get(), steps(&options), "{}", part.name());
    assert!(!report.figures.is_empty(), "{}", part.name());
    for figure in report.figures {
        let least = if figure.unit == Unit::Rows { 0.0 } else { f64::MIN_POSITIVE };
        assert!(figure.value >= least, "{}: {}", figure.name, figure.value);
    }
    for course in report.courses {
        assert!(!course.times.is_empty());
        assert!(course.lines.iter().all(|line| line.values.len() == course.times.len()), "{}", course.name);
    }
    Ok(())
}

#[test]
fn every_part_measures_something() {
    // The server whose memory is measured is the program's own, which is not at hand here.
    for part in Part::ALL.into_iter().filter(|part| *part != Part::Memory && part.is_on(&Target::Sqlite)) {
        measures_something(part, &Target::Sqlite).unwrap();
    }
}

#[test]
fn every_part_measures_something_on_a_server() {
    let admin = pointsman_testing::shared_postgres().unwrap();
    let target = Target::Postgres { url: Some(admin.url("postgres")) };
    for part in Part::ALL.into_iter().filter(|part| part.is_on(&target)) {
        measures_something(part, &target).unwrap();
    }
    let left =
        admin.query("postgres", "SELECT datname FROM pg_database WHERE datname LIKE 'pointsman_bench_%'");
    assert_eq!(left.unwrap(), Vec::<Vec<_>>::new(), "databases are left behind");
}

#[test]
fn every_part_measures_something_on_redis() {
    let server = pointsman_testing::RedisServer::start(pointsman_testing::RedisSettings::default()).unwrap();
    let target = Target::Redis { url: Some(server.url()) };
    for part in Part::ALL.into_iter().filter(|part| part.is_on(&target)) {
        measures_something(part, &target).unwrap();
    }
    let left = server.run_command(&["KEYS", "*"]).unwrap().texts();
    assert_eq!(left, Vec::<String>::new(), "keys are left behind");
}

#[test]
fn each_store_has_parts_of_its_own() {
    let (postgres, redis) = (Target::Postgres { url: None }, Target::Redis { url: None });
    assert!(Part::Waiting.is_on(&redis) && !Part::Waiting.is_on(&postgres));
    assert!(Part::Load.is_on(&postgres) && !Part::Load.is_on(&Target::Sqlite));
    assert!(Part::Readers.is_on(&Target::Sqlite) && !Part::Readers.is_on(&postgres));
    assert!(
        Part::ALL
            .into_iter()
            .all(|part| [&postgres, &redis, &Target::Sqlite].iter().any(|on| part.is_on(on)))
    );
}

#[test]
fn parts_are_known_by_their_names() {
    for part in Part::ALL {
        assert_eq!(part.name().parse(), Ok(part));
    }
    assert!("everything".parse::<Part>().is_err());
}
