//! Every part of a run measures something, even with small sizes. The values are not checked here.

use pointsman_bench::{
    BenchOptions, BenchPart, MeasurementUnit, StoreTarget, count_progress_steps, run_benchmarks,
};

fn assert_part_measures_something(part: BenchPart, target: &StoreTarget) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let options = BenchOptions {
        store_target: target.clone(),
        dir: dir.path().into(),
        event_count: 1_000,
        latency_seconds: 1,
        backlog_size: 4_000,
        archived_task_count: 6_000,
        full_load_seconds: 6,
        idle_queue_count: 200,
        schedule_count: 1_000,
        readers_per_protocol: 20,
        order_count: 200,
        server_program: "pointsman".into(),
        selected_parts: vec![part],
    };
    let reported_steps = std::cell::Cell::new(0);
    let report = run_benchmarks(&options, &|step, _| reported_steps.set(step + 1))?;
    assert_eq!(reported_steps.get(), count_progress_steps(&options), "{}", part.name());
    assert!(!report.figures.is_empty(), "{}", part.name());
    for figure in report.figures {
        let min_value = if figure.unit == MeasurementUnit::Rows { 0.0 } else { f64::MIN_POSITIVE };
        assert!(figure.value >= min_value, "{}: {}", figure.name, figure.value);
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
fn every_part_except_the_server_memory_measures_something_on_sqlite() {
    // The memory part needs the server's program, which these tests do not have.
    for part in BenchPart::ALL
        .into_iter()
        .filter(|part| *part != BenchPart::IdleServerMemory && part.is_supported_on(&StoreTarget::Sqlite))
    {
        assert_part_measures_something(part, &StoreTarget::Sqlite).unwrap();
    }
}

#[test]
fn every_part_on_postgres_measures_something_and_drops_its_databases() {
    let admin = pointsman_testing::shared_postgres().unwrap();
    let target = StoreTarget::Postgres { url: Some(admin.url("postgres")) };
    for part in BenchPart::ALL.into_iter().filter(|part| part.is_supported_on(&target)) {
        assert_part_measures_something(part, &target).unwrap();
    }
    let remaining =
        admin.query("postgres", "SELECT datname FROM pg_database WHERE datname LIKE 'pointsman_bench_%'");
    assert_eq!(remaining.unwrap(), Vec::<Vec<_>>::new(), "databases are left behind");
}

#[test]
fn every_part_on_redis_measures_something_and_deletes_its_keys() {
    let server = pointsman_testing::RedisServer::start(pointsman_testing::RedisSettings::default()).unwrap();
    let target = StoreTarget::Redis { url: Some(server.url()) };
    for part in BenchPart::ALL.into_iter().filter(|part| part.is_supported_on(&target)) {
        assert_part_measures_something(part, &target).unwrap();
    }
    let remaining = server.run_command(&["KEYS", "*"]).unwrap().texts();
    assert_eq!(remaining, Vec::<String>::new(), "keys are left behind");
}

#[test]
fn some_parts_are_supported_on_some_stores_only() {
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
    assert!(BenchPart::ALL.into_iter().all(|part| {
        [&postgres, &redis, &StoreTarget::Sqlite].iter().any(|target| part.is_supported_on(target))
    }));
}

#[test]
fn parts_are_parsed_from_their_names() {
    for part in BenchPart::ALL {
        assert_eq!(part.name().parse(), Ok(part));
    }
    assert!("everything".parse::<BenchPart>().is_err());
}
