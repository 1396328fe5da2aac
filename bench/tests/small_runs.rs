//! Every part of a run measures something, even with small sizes. The values are not checked here.

use pointsman_bench::{
    BenchOptions, BenchPart, MeasurementUnit, StoreTarget, count_progress_steps, run_benchmarks,
};

fn assert_part_measures_something(part: BenchPart, target: &StoreTarget) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let options = BenchOptions {
        target: target.clone(),
        dir: dir.path().into(),
        events: 1_000,
        seconds: 1,
        backlog: 4_000,
        archived_tasks: 6_000,
        load_seconds: 6,
        queues: 200,
        schedules: 1_000,
        readers: 20,
        orders: 200,
        server_program: None,
        selected_parts: vec![part],
    };
    let reported_steps = std::cell::Cell::new(0);
    let report = run_benchmarks(&options, &|step, _| reported_steps.set(step + 1))?;
    assert_eq!(reported_steps.get(), count_progress_steps(&options), "{}", part.name());
    assert!(!report.figures.is_empty(), "{}", part.name());
    for figure in report.figures {
        let least = if figure.unit == MeasurementUnit::Rows { 0.0 } else { f64::MIN_POSITIVE };
        assert!(figure.value >= least, "{}: {}", figure.name, figure.value);
    }
    for time_series in report.time_series {
        assert!(!time_series.times.is_empty());
        assert!(
            time_series.lines.iter().all(|line| line.values.len() == time_series.times.len()),
            "{}",
            time_series.name
        );
    }
    Ok(())
}

#[test]
fn every_part_measures_something_on_sqlite() {
    // The memory part needs the server's program, which these tests do not have.
    for part in BenchPart::ALL
        .into_iter()
        .filter(|part| *part != BenchPart::IdleServerMemory && part.is_supported_on(&StoreTarget::Sqlite))
    {
        assert_part_measures_something(part, &StoreTarget::Sqlite).unwrap();
    }
}

#[test]
fn every_part_measures_something_on_postgres() {
    let admin = pointsman_testing::shared_postgres().unwrap();
    let target = StoreTarget::Postgres { url: Some(admin.url("postgres")) };
    for part in BenchPart::ALL.into_iter().filter(|part| part.is_supported_on(&target)) {
        assert_part_measures_something(part, &target).unwrap();
    }
    let left =
        admin.query("postgres", "SELECT datname FROM pg_database WHERE datname LIKE 'pointsman_bench_%'");
    assert_eq!(left.unwrap(), Vec::<Vec<_>>::new(), "databases are left behind");
}

#[test]
fn every_part_measures_something_on_redis() {
    let server = pointsman_testing::RedisServer::start(pointsman_testing::RedisSettings::default()).unwrap();
    let target = StoreTarget::Redis { url: Some(server.url()) };
    for part in BenchPart::ALL.into_iter().filter(|part| part.is_supported_on(&target)) {
        assert_part_measures_something(part, &target).unwrap();
    }
    let left = server.run_command(&["KEYS", "*"]).unwrap().texts();
    assert_eq!(left, Vec::<String>::new(), "keys are left behind");
}

#[test]
fn each_store_has_its_own_parts() {
    let (postgres, redis) = (StoreTarget::Postgres { url: None }, StoreTarget::Redis { url: None });
    assert!(
        BenchPart::WaitingTaskMemory.is_supported_on(&redis)
            && !BenchPart::WaitingTaskMemory.is_supported_on(&postgres)
    );
    assert!(
        BenchPart::TableSizeUnderLoad.is_supported_on(&postgres)
            && !BenchPart::TableSizeUnderLoad.is_supported_on(&StoreTarget::Sqlite)
    );
    assert!(
        BenchPart::JournalReaders.is_supported_on(&StoreTarget::Sqlite)
            && !BenchPart::JournalReaders.is_supported_on(&postgres)
    );
    assert!(
        BenchPart::ALL
            .into_iter()
            .all(|part| [&postgres, &redis, &StoreTarget::Sqlite].iter().any(|on| part.is_supported_on(on)))
    );
}

#[test]
fn parts_are_parsed_from_their_names() {
    for part in BenchPart::ALL {
        assert_eq!(part.name().parse(), Ok(part));
    }
    assert!("everything".parse::<BenchPart>().is_err());
}
