//! The random seed and the size of a test, from the environment.

/// The variable that sets the seed, to repeat a run.
pub(crate) const SEED_VARIABLE: &str = "POINTSMAN_TEST_SEED";

/// The seed of the environment, or a new one. It is printed, so that a failing run can be repeated.
pub(crate) fn choose_seed() -> u64 {
    let new_seed = || {
        let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        elapsed.subsec_nanos() as u64 ^ (u64::from(std::process::id()) << 32)
    };
    let seed = read_env_number(SEED_VARIABLE).unwrap_or_else(new_seed);
    println!("{SEED_VARIABLE}={seed} repeats this run");
    seed
}

/// A whole number from the environment.
pub(crate) fn read_env_number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a whole number")))
}
