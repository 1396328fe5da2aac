//! `cargo xtask durability`: the test that kills the server at random instants, for as long as one likes.
//!
//! It is the very test that `cargo xtask test` runs in its short form; only the numbers differ, and they reach
//! it through its environment.

use std::path::Path;

use anyhow::{Context, bail};

use crate::step::cargo;

/// How often the server is killed if nothing is said.
const CYCLES: u64 = 1000;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    cycles: u64,
    seed: Option<u64>,
    release: bool,
}

pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let wish = read(words)?;
    eprintln!("killing the server {} times", wish.cycles);
    let mut command = cargo(root, &["test", "--package", "pointsman-cli", "--test", "durability"]);
    if wish.release {
        command.arg("--release");
    }
    command.args(["nothing_acknowledged_is_lost", "--", "--nocapture"]);
    command.env("POINTSMAN_TEST_CYCLES", wish.cycles.to_string());
    if let Some(seed) = wish.seed {
        command.env("POINTSMAN_TEST_SEED", seed.to_string());
    }
    if !command.status().context("cannot run cargo")?.success() {
        bail!("a rule was broken; the output above says which, and the seed that repeats the run");
    }
    Ok(())
}

fn read(words: &[&str]) -> anyhow::Result<Wish> {
    let mut wish = Wish { cycles: CYCLES, seed: None, release: false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || -> anyhow::Result<u64> {
            let text = words.next().with_context(|| format!("`{word}` needs a number"))?;
            text.parse().with_context(|| format!("`{word} {text}`: not a whole number"))
        };
        match *word {
            "--cycles" => wish.cycles = number()?,
            "--seed" => wish.seed = Some(number()?),
            "--release" => wish.release = true,
            other => bail!("`{other}` is unknown here; there are --cycles N, --seed N and --release"),
        }
    }
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_read() {
        assert_eq!(read(&[]).unwrap(), Wish { cycles: CYCLES, seed: None, release: false });
        let words = ["--seed", "7", "--release", "--cycles", "50"];
        assert_eq!(read(&words).unwrap(), Wish { cycles: 50, seed: Some(7), release: true });
        for bad in [&["--cycles"][..], &["--cycles", "many"], &["--seed", "-1"], &["fast"]] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
