//! Every part of a run measures something, however small the sizes. What it measured is not judged here.

use pointsman_bench::{Options, Part, run, steps};

#[test]
fn every_part_measures_something() {
    let dir = tempfile::tempdir().unwrap();
    // The server whose memory is measured is the program's own, which is not at hand here.
    for part in Part::ALL.into_iter().filter(|part| *part != Part::Memory) {
        let options = Options {
            dir: dir.path().into(),
            events: 1_000,
            seconds: 1,
            backlog: 4_000,
            queues: 200,
            schedules: 1_000,
            readers: 20,
            orders: 200,
            program: None,
            only: vec![part],
        };
        let told = std::cell::Cell::new(0);
        let report = run(&options, &|step, _| told.set(step + 1)).unwrap();
        assert_eq!(told.get(), steps(&options), "{}", part.name());
        assert!(!report.figures.is_empty(), "{}", part.name());
        for figure in report.figures {
            assert!(figure.value > 0.0, "{}: {}", figure.name, figure.value);
        }
    }
}

#[test]
fn parts_are_known_by_their_names() {
    for part in Part::ALL {
        assert_eq!(part.name().parse(), Ok(part));
    }
    assert!("everything".parse::<Part>().is_err());
}
