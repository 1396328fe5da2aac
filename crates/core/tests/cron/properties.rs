//! Properties of the parser for any text, and of planned times for any expression, zone and instant.

use pointsman_core::Timestamp;
use pointsman_core::cron::{Dialect, Expression, Schedule, Zone};
use pointsman_testing::Rng;
use proptest::prelude::*;

use crate::generator::{generate_quartz, generate_vixie};

const ZONES: [&str; 6] =
    ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca", "Pacific/Apia"];

fn any_dialect() -> impl Strategy<Value = Dialect> {
    prop_oneof![Just(Dialect::Auto), Just(Dialect::Vixie), Just(Dialect::Quartz)]
}

/// Generates text that is enough like an expression to get far into the parser.
fn almost_valid_expressions() -> impl Strategy<Value = String> {
    let piece = "[0-9*?/,#LWlw-]{1,6}|[A-Za-z]{3}|\\*/[0-9]{1,3}|[0-9]{1,2}-[0-9]{1,2}|@?(every|daily) ?[0-9]{0,3}[hms]?";
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.join(" "))
}

fn generated_expressions() -> impl Strategy<Value = String> {
    any::<u64>().prop_map(|seed| {
        let mut rng = Rng::new(seed);
        if seed % 2 == 0 { generate_vixie(&mut rng).text } else { generate_quartz(&mut rng).text }
    })
}

fn assert_parsed_or_rejected_with_column(text: &str, dialect: Dialect) {
    match Expression::parse(text, dialect) {
        Err(error) => {
            assert!(error.column >= 1 && error.column <= text.chars().count() + 1, "{text:?}: {error}");
        }
        Ok(parsed) => {
            assert!(!parsed.describe().is_empty());
            assert_eq!(Expression::parse(&parsed.to_string(), parsed.dialect()).as_ref(), Ok(&parsed));
            let schedule = Schedule::new(parsed, Zone::utc());
            schedule.warnings(Timestamp::from_millis(1_767_225_600_000));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed_or_rejected_with_a_column(text in any::<String>(), dialect in any_dialect()) {
        assert_parsed_or_rejected_with_column(&text, dialect);
    }

    #[test]
    fn almost_valid_text_is_parsed_or_rejected_with_a_column(
        text in almost_valid_expressions(),
        dialect in any_dialect(),
    ) {
        assert_parsed_or_rejected_with_column(&text, dialect);
    }

    #[test]
    fn generated_expressions_round_trip(text in generated_expressions()) {
        assert_parsed_or_rejected_with_column(&text, Dialect::Auto);
    }

    #[test]
    fn planned_times_strictly_increase_and_prev_inverts_next(
        text in generated_expressions(),
        zone in prop::sample::select(ZONES.as_slice()),
        after in 0i64..4_102_444_800_000_000,
    ) {
        let Ok(expression) = Expression::parse(&text, Dialect::Auto) else { return Ok(()) };
        let schedule = Schedule::new(expression, Zone::from_name(zone).unwrap());
        let after = Timestamp::from_micros(after);
        let times: Vec<Timestamp> = schedule.upcoming(after).take(8).collect();
        prop_assert!(times.iter().all(|time| *time > after));
        prop_assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
        for pair in times.windows(2) {
            prop_assert_eq!(schedule.prev(pair[1]), Some(pair[0]));
        }
        if let (Some(first), Some(earlier)) = (times.first(), schedule.prev(after)) {
            prop_assert!(earlier < after);
            let again = schedule.next(earlier);
            prop_assert!(again == Some(*first) || again == Some(after));
        }
    }
}
