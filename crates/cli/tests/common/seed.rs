//! Which seed a test begins with, and how much it does.

/// The variable that names a seed, to run a test again as it ran before.
pub(crate) const SEED: &str = "POINTSMAN_TEST_SEED";

/// The seed to use: the one asked for, or a new one. It is printed, so that a failing run can be repeated.
pub(crate) fn seed() -> u64 {
    let new = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        since.subsec_nanos() as u64 ^ (u64::from(std::process::id()) << 32)
    };
    let seed = number(SEED).unwrap_or_else(new);
    println!("{SEED}={seed} repeats this run");
    seed
}

/// A whole number from the environment.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a whole number")))
}
